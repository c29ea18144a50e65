"""What people are shown of a run, and simulated people: they know what was drawn, and miss it as they are told to."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from culturekit.builders.built import staged
from culturekit.builders.judging.simulated_people import SimulatedPeople, is_careless, person_draws, step
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import ANNOTATIONS, AUDIT_SAMPLE, IMAGES, PROMPTS
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table, table_outcome
from culturekit.core.work import Outcome, Work
from culturekit.metrics.linguistic.tone_histograms import MONK_TONES
from culturekit.people.rated_sample import Answering
from culturekit.people.scheme import Scheme
from culturekit.people.stages import filled_in_stage
from culturekit.recipes.linguistic.scores import CORRECT, NO, YES
from culturekit.recipes.linguistic.tones import TONE_CRITERION
from culturekit.scores.answers import TRUTH

DIALECT_FORM, PLACE_FORM = "linguistic_dialect", "linguistic"  # the forms about persons and about places
NOBODY = "none"


@staged("even-sample", "drawn", seeds={"sample": "seed"})
def even_sample_stage(work: Work, images: Numbered, prompts: Path, *, count: int, seed: int) -> Outcome:
    """Draw `count` images of each model that were made for these prompts, each with the same chance."""
    asked = read_table(prompts, PROMPTS).select("prompt_id")
    parts = []
    for path in images.places:
        of_model = read_table(path, IMAGES).filter(status="ok").join(asked, on="prompt_id", how="semi")
        if of_model.is_empty():
            raise UsageError("no image was made for these prompts", where=str(path))
        order = np.random.default_rng(seed).permutation(of_model.height)[:count].tolist()
        drawn = of_model.sort("image_id")[order]
        parts.append(drawn.select(
            "image_id", "model", "concept", "prompt_id", stratum=pl.lit("all"),
            chance=pl.lit(drawn.height / of_model.height),
        ))  # fmt: skip
    sample = pl.concat(parts).select(list(AUDIT_SAMPLE.schema)).sort(AUDIT_SAMPLE.key)
    return table_outcome(work, AUDIT_SAMPLE, sample)


@staged("portrait-truth", "truth", packages=("msgspec", "polars"))
def known_truth_stage(work: Work, images: Numbered) -> Outcome:
    """Write down what simulated portraits and places truly show, as somebody who never errs answers the forms."""
    rows = []
    for path in images.places:
        table = read_table(path, IMAGES).filter(status="ok")
        if "truth_scene" not in table.columns:
            raise UsageError("these images do not come with the truth", where=str(path),
                             expected="images of simulated-portraits")  # fmt: skip
        for image, scene in table.select("image_id", "truth_scene").sort("image_id").iter_rows():
            rows += _true_answers(image, msgspec.json.decode(scene))
    table = pl.DataFrame(rows, schema=ANNOTATIONS.schema, orient="row").sort(ANNOTATIONS.key)
    return table_outcome(work, ANNOTATIONS, table)


def _true_answers(image: str, scene: Mapping[str, Any]) -> list[tuple[object, ...]]:
    def answer(scheme: str, criterion: str, value: float | None, choice: str | None) -> tuple[object, ...]:
        return image, TRUTH, TRUTH, None, scheme, criterion, value, choice, None, None, []

    if "looks" in scene:
        return [answer(PLACE_FORM, name, 1 + 4 * share, None) for name, share in scene["looks"].items()]
    tone = scene["tone"]
    return [
        answer(DIALECT_FORM, CORRECT, None, YES if scene["correct"] else NO),
        answer(DIALECT_FORM, TONE_CRITERION, tone, NOBODY if tone is None else str(tone)),
    ]


def simulated_choices_stage(project: Path, truth: Path, how: SimulatedPeople, *, seed: int) -> Stage:
    """Let simulated people fill in a form who know the truth: some choices miss it, and ratings scatter."""

    def answering(scheme: Scheme) -> Answering:
        rows = read_table(truth, ANNOTATIONS).filter(scheme=scheme.name)
        known = {(row["item_id"], row["criterion"]): row for row in rows.iter_rows(named=True)}
        return partial(_filled, scheme=scheme, known=known, how=how, seed=seed)

    stage = filled_in_stage("simulated-choices", project, {"truth": truth}, answering, how, seed=seed)
    return replace(stage, name="answers")


def _filled(
    person: str, row: Mapping[str, Any], *, scheme: Scheme, known: Mapping[tuple[str, str], Mapping[str, Any]],
    how: SimulatedPeople, seed: int,
) -> Mapping[str, str]:  # fmt: skip
    """Answer every question about one item as one person would."""
    rng = person_draws(person, row["item_id"], "again" if row["kind"] != "item" else "first", seed=seed)
    careless, answers = is_careless(person, how, seed=seed), {}
    for criterion in scheme.criteria:
        options = [option.value for option in criterion.options or ()]
        deserved = known.get((row["item_id"], criterion.name))
        if careless or deserved is None:
            answers[criterion.name] = options[int(rng.integers(len(options)))] if options else str(rng.integers(1, 6))
        elif options:
            answers[criterion.name] = _chosen(deserved["choice"], options, how, rng)
        else:
            answers[criterion.name] = step(deserved["value"] + rng.uniform(-0.5, 0.5) + rng.normal(0, how.scatter))
    return answers


def _chosen(right: str, options: Sequence[str], how: SimulatedPeople, rng: np.random.Generator) -> str:
    """Choose what is right, or something near: one who misses a tone takes the next one."""
    if rng.random() < how.accuracy:
        return right
    if right in (YES, NO):
        return NO if right == YES else YES
    if right == NOBODY:
        return options[int(rng.integers(len(MONK_TONES)))]
    return str(min(max(int(right) + (1 if rng.random() < 0.5 else -1), 1), len(MONK_TONES)))
