"""The stages of the recipe `linguistic` that no other has: who is asked about what, and who knows better."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from culturekit.annotate.rated_sample import Answering
from culturekit.annotate.scheme import Scheme
from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws, step
from culturekit.errors import UsageError
from culturekit.families.handles.public_files import roles
from culturekit.metrics.linguistic.monk_scale import MONK_TONES
from culturekit.pipeline.steps.annotate_stages import filled_in_stage
from culturekit.records.schemas import ANNOTATIONS, AUDIT_SAMPLE, CAPTIONS, IMAGES, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, table_outcome

__all__ = [
    "DIALECT_FORM", "PLACE_FORM", "even_sample_stage", "known_truth_stage", "question_captions_stage",
    "simulated_choices_stage",
]  # fmt: skip

DIALECT_FORM, PLACE_FORM = "linguistic_dialect", "linguistic"
"""The forms that people fill in about people and about places."""

TRUTH, TONE, CORRECT = "truth", "monk_tone", "correct"
YES, NO, NOBODY = "yes", "no", "none"


def question_captions_stage(pairs: Sequence[tuple[str, str]]) -> Stage:
    """Write the captions that pictures are asked about, each its own id."""

    def run(work: Work) -> Outcome:
        texts = sorted({caption for pair in pairs for caption in pair})
        rows = [(text, text, "question", "", "en", 0, None) for text in texts]
        return table_outcome(work, CAPTIONS, pl.DataFrame(rows, schema=CAPTIONS.schema, orient="row"))

    return Stage("question-captions", "question-captions", 1, run, {}, {"pairs": [list(pair) for pair in pairs]})


def even_sample_stage(images: Sequence[Path], prompts: Path, *, count: int, seed: int) -> Stage:
    """Draw so many images of each model that were made for these prompts, each with the same chance."""

    def run(work: Work) -> Outcome:
        asked = read_table(prompts, PROMPTS).select("prompt_id")
        parts = []
        for path in images:
            made = read_table(path, IMAGES).filter(status="ok").join(asked, on="prompt_id", how="semi").sort("image_id")
            if made.is_empty():
                raise UsageError("no image was made for these prompts", where=str(path))
            drawn = made[np.random.default_rng(seed).permutation(made.height)[:count].tolist()]
            parts.append(drawn.select(
                "image_id", "model", "concept", "prompt_id", stratum=pl.lit("all"),
                chance=pl.lit(drawn.height / made.height),
            ))  # fmt: skip
        sample = pl.concat(parts).select(list(AUDIT_SAMPLE.schema)).sort(AUDIT_SAMPLE.key)
        return table_outcome(work, AUDIT_SAMPLE, sample)

    inputs = {**roles("images", list(images)), "prompts": prompts}
    return Stage("drawn", "even-sample", 1, run, inputs, {"count": count}, {"sample": seed})


def known_truth_stage(images: Sequence[Path]) -> Stage:
    """Write down what simulated portraits and places truly show, as somebody who never errs answers the forms."""

    def run(work: Work) -> Outcome:
        rows = []
        for path in images:
            made = read_table(path, IMAGES).filter(status="ok")
            if "truth_scene" not in made.columns:
                raise UsageError("these images do not come with the truth", where=str(path),
                                 expected="images of simulated-portraits")  # fmt: skip
            for image, scene in made.select("image_id", "truth_scene").sort("image_id").iter_rows():
                rows += answers_about(image, msgspec.json.decode(scene))
        table = pl.DataFrame(rows, schema=ANNOTATIONS.schema, orient="row").sort(ANNOTATIONS.key)
        return table_outcome(work, ANNOTATIONS, table)

    return Stage("truth", "portrait-truth", 1, run, roles("images", list(images)), packages=("msgspec", "polars"))


def answers_about(image: str, scene: Mapping[str, Any]) -> list[tuple[object, ...]]:
    """Answer the form about one picture."""

    def answer(scheme: str, criterion: str, value: float | None, choice: str | None) -> tuple[object, ...]:
        return image, TRUTH, TRUTH, None, scheme, criterion, value, choice, None, None, []

    if "looks" in scene:
        return [answer(PLACE_FORM, name, 1 + 4 * share, None) for name, share in scene["looks"].items()]
    tone = scene["tone"]
    return [
        answer(DIALECT_FORM, CORRECT, None, YES if scene["correct"] else NO),
        answer(DIALECT_FORM, TONE, tone, NOBODY if tone is None else str(tone)),
    ]


def simulated_choices_stage(project: Path, truth: Path, how: SimulatedPeople, *, seed: int) -> Stage:
    """Let simulated people fill in a form who know the truth: some choices miss it, and ratings scatter."""

    def answering(scheme: Scheme) -> Answering:
        said = read_table(truth, ANNOTATIONS).filter(scheme=scheme.name)
        known = {(row["item_id"], row["criterion"]): row for row in said.iter_rows(named=True)}
        return partial(filled, scheme=scheme, known=known, how=how, seed=seed)

    stage = filled_in_stage("simulated-choices", project, {"truth": truth}, answering, how, seed=seed)
    return replace(stage, name="answers")


def filled(
    person: str, row: Mapping[str, Any], *, scheme: Scheme, known: Mapping[tuple[str, str], Mapping[str, Any]],
    how: SimulatedPeople, seed: int,
) -> Mapping[str, str]:  # fmt: skip
    """Answer every question about one item as one person would."""
    own = person_draws(person, row["item_id"], "again" if row["kind"] != "item" else "first", seed=seed)
    careless, answers = is_careless(person, how, seed=seed), {}
    for criterion in scheme.criteria:
        options = [option.value for option in criterion.options or ()]
        deserved = known.get((row["item_id"], criterion.name))
        if careless or deserved is None:
            answers[criterion.name] = options[int(own.integers(len(options)))] if options else str(own.integers(1, 6))
        elif options:
            answers[criterion.name] = chosen(deserved["choice"], options, how, own)
        else:
            answers[criterion.name] = step(deserved["value"] + own.uniform(-0.5, 0.5) + own.normal(0, how.scatter))
    return answers


def chosen(right: str, options: Sequence[str], how: SimulatedPeople, own: np.random.Generator) -> str:
    """Choose what is right, or something near: one who misses a tone takes the next one."""
    if own.random() < how.accuracy:
        return right
    if right in (YES, NO):
        return NO if right == YES else YES
    if right == NOBODY:
        return options[int(own.integers(len(MONK_TONES)))]
    return str(min(max(int(right) + (1 if own.random() < 0.5 else -1), 1), len(MONK_TONES)))
