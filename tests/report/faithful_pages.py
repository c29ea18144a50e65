"""The section on faithfulness made by hand, harmless and hostile."""

from culturekit.report.faithfulness import (
    Apart,
    Faithfulness,
    Instrument,
    Judge,
    JudgedLine,
    JudgedScores,
    LookedAt,
    QuestionLine,
)
from culturekit.report.run_folders import Figure


def faithfulness(*models: str) -> Faithfulness:
    """Two judges of some models, the last of which has no score by one of them."""
    some: dict[str, Figure | None] = {model: Figure(0.5, 0.4, 0.6, 12, row) for row, model in enumerate(models)}
    looked = {model: LookedAt(48, 3, 2, 1, 4) for model in models}
    lacking: dict[str, Figure | None] = {**some, models[-1]: None}
    concepts = {"art": some, "cuisine": lacking}
    dsg = Instrument("dsg", "seer-1", "DSG", "these", "share", lacking, looked, concepts)
    clip = Instrument("quality", "clipscore:vit", "CLIPScore", "population", "share", some, looked, {"art": some})
    line = QuestionLine("Is it round?", "attribute", "art", "A round bowl", "p1", {models[0]: (0.75, 12)})
    judge = Judge("answers", "seer-1", "openai at http://127.0.0.1:1/v1, wording 1a2b3c4d", "not known", "It errs.", "")
    apart = Apart("DSG", "seer-1", models[0], models[-1], Figure(0.1, -0.1, 0.3, 12, 1), 0.2, 2, 1)
    missing = ("No scorer compared image and text.",)
    alone, right = Figure(0.7, 0.68, 0.72, 400, 3), Figure(0.41, 0.35, 0.47, 400, 2)
    marked = (JudgedLine(models[0], "art", "DSG", "seer-1", alone, right, 120, 0.8, "in-region", "one rater"),)
    judged = JudgedScores(marked, "belongs yes", {"people marked too few items": 3})
    return Faithfulness((dsg, clip), (judge,), (line,), (line,), 2, missing, (apart,), judged)
