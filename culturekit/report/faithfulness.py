"""Quality and faithfulness: what judges and scorers say of each model's images, and how far that can be relied on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from culturekit.records.schemas import ANSWER_COUNTS, QUESTION_RATES
from culturekit.report.faithfulness_judges import (
    Apart,
    Judge,
    faithfulness_differences,
    judges_in,
    scorers_of,
    title_of,
)
from culturekit.report.figures import Figure, figure_in
from culturekit.report.judged import JudgedScores, judged_in
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.storage.manifest import Manifest

__all__ = ["Faithfulness", "Instrument", "LookedAt", "QuestionLine", "faithfulness_in"]

OUTCOMES: Mapping[str, str] = {
    "ok": "answered",
    "repaired": "answered",
    "refused": "refused",
    "blocked": "refused",
    "invalid": "unparsed",
    "truncated": "unparsed",
    "neither yes nor no": "unparsed",
    "exhausted": "failed",
    "over-budget": "failed",
}
"""How judgments end -> how the page counts them."""

QUESTIONS_SHOWN = 10
"""At either end; all stand in `question_rates.parquet`."""


@dataclass(frozen=True, slots=True)
class QuestionLine:
    """A question, its prompt, and the share of each model's images that fail it, with how many were answered."""

    text: str
    kind: str
    concept: str | None
    prompt: str
    prompt_id: str
    rates: Mapping[str, tuple[float, int]]


@dataclass(frozen=True, slots=True)
class LookedAt:
    """What became of a model's images under one judge: how many answers, how many not, images that were not shown."""

    answered: int
    refused: int
    unparsed: int
    failed: int
    not_shown: int


@dataclass(frozen=True, slots=True)
class Instrument:
    """A metric by one judge or scorer: every model's score over all prompts, and concept by concept.

    Attributes:
        metric: `dsg`, `vqascore` or `quality`.
        judge: who scored, as the scores name it.
        title: as the page calls it.
        target: whether intervals speak of `these` prompts or of the `population` they are a sample of.
        unit: of the scores.
        models: model -> score; None where none of its images could be scored.
        looked_at: model -> what became of its images.
        concepts: concept -> model -> score.
    """

    metric: str
    judge: str
    title: str
    target: str
    unit: str
    models: Mapping[str, Figure | None]
    looked_at: Mapping[str, LookedAt]
    concepts: Mapping[str, Mapping[str, Figure | None]]

    @property
    def whole(self) -> bool:
        """Tell whether scores lie between 0 and 1."""
        return self.metric in {"dsg", "vqascore"} or self.judge == "embedded"


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """The whole section; `missing` says what nobody looked at, and why that matters."""

    instruments: tuple[Instrument, ...]
    judges: tuple[Judge, ...]
    worst: tuple[QuestionLine, ...]
    best: tuple[QuestionLine, ...]
    unasked: int
    missing: tuple[str, ...]
    differences: tuple[Apart, ...] = ()
    judged: JudgedScores | None = None


NO_ANSWERS = (
    "Whether images show what prompts ask for was not asked question by question (DSG): no vision model was named "
    "under faithfulness.answers. The embedded scorer and the rules judge cannot see what an image shows."
)
NO_VQASCORE = "No vision model was asked how probable it finds that images show their prompts (faithfulness.vqascore)."
NO_TEXTS = "No scorer compared image and text (faithfulness.scorers, such as clipscore:SPEC)."


def faithfulness_in(run: RunFolders, models: Sequence[str]) -> Faithfulness | None:
    """Read the section; None for a run whose recipe asked for none."""
    scores = run.numbered(roles.FAITHFULNESS)
    if scores is None:
        return None
    counts = run.read(roles.FAITHFULNESS, ANSWER_COUNTS) if has_judges(run) else None
    params = pl.Struct(dict.fromkeys(("judge", "scorer", "target"), pl.String))
    rows = scores.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    rows = rows.with_columns(by=pl.coalesce("judge", "scorer"))
    instruments = tuple(instruments_in(run, rows, counts, models))
    metrics = {instrument.metric for instrument in instruments}
    missing = [NO_ANSWERS] if "dsg" not in metrics and not run.models_with(roles.ANSWERS) else []
    missing += [NO_VQASCORE] if "vqascore" not in metrics and not run.models_with(roles.VQASCORE) else []
    missing += [NO_TEXTS] if not any(run.variants(roles.SCORER, model) for model in run.models) else []
    missing += [] if counts is None else list(unscored(counts, metrics))
    worst, best, unasked = questions_failed(run, models)
    differences = tuple(faithfulness_differences(run, models))
    return Faithfulness(
        instruments, tuple(judges_in(run, models)), worst, best, unasked, tuple(missing), differences,
        judged_in(run, models),
    )  # fmt: skip


def unscored(counts: pl.DataFrame, metrics: set[str]) -> Iterator[str]:
    """Say of which judges no image got a score, and how their judgments ended."""
    for task in ("dsg", "vqascore"):
        own = counts.filter(pl.col("concept").is_null(), pl.col("task") == task)
        if task in metrics or own.is_empty():
            continue
        ended = own.group_by("outcome").agg(pl.col("judgments").sum()).sort("outcome").rows()
        said = ", ".join(f"{number:,} {outcome}" for outcome, number in ended)
        yield f"No image has a score by {title_of(task, '')}, as its judge gave too few answers: {said}."


def has_judges(run: RunFolders) -> bool:
    """Tell whether any model was asked about images."""
    return bool(run.models_with(roles.ANSWERS) or run.models_with(roles.VQASCORE))


def instruments_in(
    run: RunFolders, rows: pl.DataFrame, counts: pl.DataFrame | None, models: Sequence[str]
) -> Iterator[Instrument]:
    """Give every metric by every judge or scorer."""
    placed = rows.filter(pl.col("country").is_null(), pl.col("group").is_null())
    for metric, by in in_order(placed):
        own = placed.filter(pl.col("metric") == metric, pl.col("by") == by)
        concepts = own["concept"].drop_nulls().unique().sort()
        yield Instrument(
            metric=metric,
            judge=by,
            title=title_of(metric, by),
            target=own["target"][0],
            unit=own["unit"][0],
            models=figures_of(own.filter(pl.col("concept").is_null()), models),
            looked_at={model: looked_at(run, counts, metric, by, model) for model in models},
            concepts={concept: figures_of(own.filter(concept=concept), models) for concept in concepts},
        )


def in_order(rows: pl.DataFrame) -> list[tuple[str, str]]:
    """List metrics and judges: what was asked of models first, scorers after them."""
    return sorted(rows.select("metric", "by").unique().iter_rows(), key=lambda pair: (pair[0] == "quality", *pair))


def figures_of(rows: pl.DataFrame, models: Sequence[str]) -> dict[str, Figure | None]:
    """Give the score of each model; None where it has none."""
    found = {row["model"]: figure_in(row) for row in rows.to_dicts()}
    return {model: found.get(model) for model in models}


def looked_at(run: RunFolders, counts: pl.DataFrame | None, metric: str, by: str, model: str) -> LookedAt:
    """Count what became of a model's images under a judge; a scorer gives each image a value, or a reason."""
    if metric == "quality":
        manifest = manifest_of_scorer(run, by, model)
        dropped = 0 if manifest is None else sum(manifest.drops.values())
        return LookedAt(0 if manifest is None else manifest.counts["quality"], 0, 0, 0, dropped)
    ended: Counter[str] = Counter()
    if counts is not None:
        own = counts.filter(pl.col("concept").is_null(), pl.col("model") == model, pl.col("judge") == by)
        for outcome, number in own.filter(task=metric).select("outcome", "judgments").iter_rows():
            ended[OUTCOMES.get(outcome, "failed")] += number
    judged = run.found(roles.ANSWERS if metric == "dsg" else roles.VQASCORE, model)
    dropped = 0 if judged is None else sum(judged.drops.values())
    return LookedAt(ended["answered"], ended["refused"], ended["unparsed"], ended["failed"], dropped)


def manifest_of_scorer(run: RunFolders, scorer: str, model: str) -> Manifest | None:
    """Find the manifest of a scorer's values by the names in it."""
    for manifest in scorers_of(run, model):
        parameters = manifest.notes.get("parameters", {})
        name, encoder = parameters.get("name"), parameters.get("encoder")
        label = f"{name}:{encoder}@{str(parameters.get('weights', ''))[:8]}" if encoder else name
        if label == scorer or scorer in (manifest.options.get("scorer"), name):
            return manifest
    return None


def questions_failed(
    run: RunFolders, models: Sequence[str]
) -> tuple[tuple[QuestionLine, ...], tuple[QuestionLine, ...], int]:
    """Give the questions failed most and least often, each model counting alike, and how many have no answer at all."""
    if not run.models_with(roles.ANSWERS):
        return (), (), 0
    table = run.read(roles.FAITHFULNESS, QUESTION_RATES)
    if table is None or table.is_empty():
        return (), (), 0
    own = table.filter(pl.col("model").is_in(list(models)))
    place = ("prompt_id", "question_id")
    ordered = own.group_by(place).agg(mean=pl.col("rate").mean()).sort(
        ["mean", *place], descending=[True, False, False], nulls_last=True
    )  # fmt: skip
    known = ordered.filter(pl.col("mean").is_not_null())
    worst = known.head(QUESTIONS_SHOWN)
    best = known.tail(max(0, min(QUESTIONS_SHOWN, known.height - worst.height))).reverse()
    texts = run.prompts()
    lines = [
        tuple(line_of(own.filter(prompt_id=prompt, question_id=question), texts) for prompt, question, _ in part.rows())
        for part in (worst, best)
    ]
    return lines[0], lines[1], ordered.height - known.height


def line_of(rows: pl.DataFrame, texts: Mapping[str, str]) -> QuestionLine:
    """Put the rows of one question together."""
    first = rows.sort("model").row(0, named=True)
    rates = {row["model"]: (row["rate"], row["yes"] + row["no"]) for row in rows.to_dicts() if row["rate"] is not None}
    prompt = first["prompt_id"]
    return QuestionLine(first["text"], first["kind"], first["concept"], texts.get(prompt, prompt), prompt, rates)
