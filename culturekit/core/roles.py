"""What stages do in a run, and what their folders are called: nowhere else is such a name put together or taken apart.

A recipe of another kind names its own roles beside its wiring. These are the roles of `cube`; who reads a finished
folder finds the same names by them, since they are all that a folder tells.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

# How the names of models begin that nobody evaluates: their pictures show nothing, which says what nothing scores.
FLOOR = "floor-"

# The models that pictures of nothing, and shuffled images, stand under.
FLOORS = CULTURE_FREE, SHUFFLED = f"{FLOOR}culture-free", f"{FLOOR}shuffled"

REAL_IMAGES = "real"  # The model that real images stand under


@dataclass(frozen=True, slots=True)
class Role:
    """What a stage does in a run.

    Attributes:
        form: the name of its folder, with `{model}` for whom it works, and `{variant}` where there are several.
        holds: its main table; empty where the folder is read as one.
    """

    form: str
    holds: str = ""

    def folder(self, model: str = "", variant: str = "") -> str:
        """Name the folder."""
        return self.form.format(model=model, variant=variant)

    def read(self, folder: str, models: Iterable[str]) -> tuple[str, str] | None:
        """Take a name apart into model and variant; None for the folder of another role."""
        known = "|".join(map(re.escape, models)) or "(?!)"
        pattern = re.escape(self.form).replace(r"\{model\}", f"(?P<model>{known})")
        found = re.fullmatch(pattern.replace(r"\{variant\}", "(?P<variant>.+?)"), folder)
        return None if found is None else (found.groupdict().get("model", ""), found.groupdict().get("variant", ""))


def shows_nothing(model: str) -> bool:
    """Tell whether a model is one of those whose pictures show nothing."""
    return model.startswith(FLOOR)


GRAPH, CANDIDATES = Role("graph"), Role("candidates", "candidates")
FILTER, COMPLETION, REVIEW = Role("filter", "kept"), Role("completion", "completed"), Role("review", "kept")
CSPACE, CARD, PROMPTS = Role("cspace", "cspace"), Role("card"), Role("prompts", "prompts")
REFERENCE_PROMPTS, REFERENCES = Role("reference-prompts", "prompts"), Role("references", "images")

INDEX, INDEX_BY = Role("index"), Role("index-{variant}")
IMAGES, MATCHES = Role("images-{model}", "images"), Role("matches-{model}", "matches")
MATCHES_BY = Role("matches-{model}-by-{variant}", "matches")
TRUTH, QUALITY, AUDIT = (
    Role("truth-{model}", "matches"),
    Role("quality-{model}", "quality"),
    Role("audit-{model}", "audits"),
)
TAGS, DIAGNOSIS = Role("tags-{model}", "judgments"), Role("diagnosis", "matches")

SHOWN, SCORES, SCORES_BY = (
    Role("shown", "distributions"),
    Role("scores", "scores"),
    Role("scores-by-{variant}", "scores"),
)
RANKS, AUDITED, JUDGED = Role("ranks", "scores"), Role("audited", "scores"), Role("judged", "scores")
COMPARISON, ROUTES, STABILITY = Role("comparison", "scores"), Role("routes", "scores"), Role("stability", "scores")

QUESTIONS, ANSWERS = Role("questions", "questions"), Role("answers-{model}", "judgments")
VQASCORE, SCORER = Role("vqascore-{model}", "judgments"), Role("scorer-{variant}-{model}", "quality")
FAITHFULNESS, FAITHFULNESS_COMPARISON = Role("faithfulness", "scores"), Role("faithfulness-comparison", "scores")

REAL, VECTORS, CLASSES = Role("real", "images"), Role("vectors-{model}"), Role("classes-{model}")
PAIRS, REALISM, SPREAD = Role("pairs-{model}"), Role("realism", "scores"), Role("spread", "scores")

WITHIN_IMAGES, WITHIN_MATCHES = Role("within-images-{model}", "images"), Role("within-matches-{model}", "matches")
WITHIN, GAPS, METRIC = Role("within", "scores"), Role("gaps", "scores"), Role("metric-{variant}", "scores")

LANGUAGES = Role("languages", "scores")

RATED_SAMPLE, TO_RATE = Role("rated-sample", "audit_sample"), Role("to-rate")
SIMULATED_ANSWERS, IMPORTED = Role("simulated-answers"), Role("taken-in", "annotations")
RATINGS, META = Role("ratings", "annotations"), Role("meta", "scores")

AUDITED_SAMPLE, TO_AUDIT = Role("audited-sample", "audit_sample"), Role("to-audit")
AUDITED_ANSWERS = Role("audited-answers", "audits")

REPORT = Role("report")
