"""Quality and faithfulness: what judges and scorers say of each model's images, and how far that can be relied on."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import polars as pl

from culturekit.core import roles
from culturekit.core.digests import Manifest
from culturekit.core.schemas import ANSWER_COUNTS, QUESTION_RATES
from culturekit.report.run_folders import Figure, Rows, RunFolders, figure_in, larger_first, rows_of, with_params
from culturekit.scores.family import parsed

# Who judged, under which licence and with what it misses, and how far models are apart by each of them.

TITLES: Mapping[str, str] = {
    "dsg": "DSG", "vqascore": "VQAScore", "clipscore": "CLIPScore", "hpsv2": "HPS v2", "pickscore": "PickScore",
    "embedded": "clarity (embedded)",
}  # fmt: skip

LICENCES: Mapping[str, str] = {
    "embedded": "no weights",
    "hpsv2": "that of the weights as published; it does not stand in the files",
    "pickscore": "that of the weights as published; it does not stand in the files",
    "clipscore": "that of the encoder's weights",
    "replay": "no model was asked: its replies are replayed",
    "local": "that of the model in its folder",
    "openai": "the terms of the service; a server of one's own: that of the model it serves",
    "google": "the terms of the service",
}

BIASES: Mapping[str, str] = {
    "questions": "What it leaves out of a prompt is never asked; it knows words better than cultures.",
    "answers": "A vision model that does not know a dish or a garment answers no, and the picture is blamed; it knows "
    "the things of some countries far better than those of others.",
    "vqascore": "P(Yes) is a model's confidence, and two models are on two scales; what it has rarely seen, it doubts.",
    "clipscore": "Trained on mostly English captions of mostly Western pictures; it reads single words rather than how "
    "they stand to each other, and texts only up to a length.",
    "hpsv2": "Tuned on which pictures English-speaking raters preferred: it likes polish, whatever the culture.",
    "pickscore": "Tuned on choices of the users of one web page: it likes polish, whatever the culture.",
    "embedded": "Sees sharp edges, contrast and noise, and nothing of what an image shows.",
}


@dataclass(frozen=True, slots=True)
class Judge:
    """Somebody who judged, for what, and what a reader must know about them."""

    task: str
    name: str
    made_by: str
    licence: str
    bias: str
    caveat: str


def title_of(metric: str, by: str) -> str:
    """Name an instrument as people do."""
    name = by.partition(":")[0] if metric == "quality" else metric
    return TITLES.get(name, name)


def judges_in(run: RunFolders, models: Sequence[str]) -> Iterator[Judge]:
    """List everybody who judged, once each."""
    judged = [("questions", run.found(roles.QUESTIONS))]
    for model in models:
        judged += [("answers", run.found(roles.ANSWERS, model)), ("vqascore", run.found(roles.VQASCORE, model))]
        judged += [("scorer", manifest) for manifest in scorers_of(run, model)]
    yield from dict.fromkeys(judge_of(task, manifest) for task, manifest in judged if manifest is not None)


def scorers_of(run: RunFolders, model: str) -> Iterator[Manifest]:
    """Give the manifests of everything that compared a model's images with texts, or rated them."""
    if run.has(roles.QUALITY, model):
        yield run.manifest(roles.QUALITY, model)
    for variant in run.variants(roles.SCORER, model):
        yield run.manifest(roles.SCORER, model, variant)


def judge_of(task: str, manifest: Manifest) -> Judge:
    """Describe a judge by the manifest of what it said."""
    notes, caveat = manifest.notes, str(manifest.notes.get("caveat", ""))
    if task == "scorer":
        parameters: Mapping[str, Any] = notes.get("parameters", {})
        name = str(parameters.get("name") or manifest.options.get("scorer"))
        weights = str(parameters.get("weights") or "none")
        encoder = f"{parameters['encoder']}, " if parameters.get("encoder") else ""
        made_by = "no weights" if weights == "none" else f"{encoder}weights {weights[:16]}"
        kind = name.partition(":")[0]
        return Judge(
            TITLES.get(kind, name), name, made_by, LICENCES.get(kind, "not known"), BIASES.get(kind, ""), caveat
        )
    judge = manifest.options.get("judge")
    identity: Mapping[str, Any] = judge if isinstance(judge, Mapping) else {"provider": str(judge).partition(":")[0]}
    provider = str(identity.get("provider", ""))
    host = f" at {identity['base_url']}" if identity.get("base_url") else ""
    wording = str(manifest.options.get("wording", ""))[:8]
    made_by = f"{provider}{host}, wording {wording}"
    return Judge(task, str(notes.get("judge")), made_by, LICENCES.get(provider, "not known"), BIASES[task], caveat)


def faithfulness_differences(run: RunFolders, models: Sequence[str]) -> Rows:
    """Give how far every two models are apart over all their prompts, judge by judge, the largest first."""
    table = run.numbered(roles.FAITHFULNESS_COMPARISON)
    if table is None:
        return ()
    compared = with_params(
        table.filter(pl.col("concept").is_null(), pl.col("country").is_null()),
        "a", "b", "common", "left_out", judge="of.judge", scorer="of.scorer", score="metric", p="p_corrected",
    ).with_columns(
        pl.col("common", "left_out").cast(pl.Int64), pl.col("p").cast(pl.Float64),
        judge=pl.coalesce("judge", "scorer", pl.lit("")),
    )  # fmt: skip
    rows = rows_of(compared.filter(pl.col("a").is_in(models), pl.col("b").is_in(models)))
    for row in rows:
        row.title = title_of(row.score, row.judge)
        row.first, row.second, row.difference = larger_first(vars(row))
    return tuple(sorted(rows, key=lambda one: (one.title, one.judge, -one.difference.value, one.first, one.second)))


# What judges say beside what it is once people have put them right.

PLACES = ("concept", "country", "group")


@dataclass(frozen=True, slots=True)
class JudgedScores:
    """All of them, what people were asked, and what could not be put right, counted by reason."""

    lines: Rows  # model, place, title, judge, judged, corrected, people (images they marked), trust, pool, marked
    question: str
    left_out: Mapping[str, int]


def judged_in(run: RunFolders, models: Sequence[str]) -> JudgedScores | None:
    """Read the scores that people put right; None for a run in which nobody was to."""
    scores = run.numbered(roles.JUDGED)
    if scores is None:
        return None
    manifest = run.manifest(roles.JUDGED)
    rows = [{**row, "about": parsed(row["params"])} for row in scores.to_dicts()]
    lines = sorted(lines_of(rows), key=lambda line: (line.title, line.judge, line.place != "all", line.place))
    shown = tuple(line for model in models for line in lines if line.model == model)
    asked = " ".join(str(manifest.options[name]) for name in ("criterion", "choice") if manifest.options.get(name))
    return JudgedScores(shown, asked, dict(manifest.drops))


def lines_of(rows: Sequence[Mapping[str, Any]]) -> Iterator[SimpleNamespace]:
    """Put each corrected score beside what its judge says alone."""
    alone = {key_of(row): row for row in rows if row["about"]["labels"] == "judged"}
    for row in rows:
        about = row["about"]
        if about["labels"] == "corrected":
            judge = str(about.get("judge") or about.get("scorer") or "")
            yield SimpleNamespace(
                model=row["model"], place=", ".join(row[name] for name in PLACES if row[name]) or "all", judge=judge,
                title=title_of(row["metric"], judge), judged=figure_in(alone[key_of(row)]), corrected=figure_in(row),
                people=about["people"], trust=about["trust"], pool=about["pool"],
                marked=", ".join(about.get("marked", ())),
            )  # fmt: skip


def key_of(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Name the score that a row is about, whoever says it."""
    about = row["about"]
    part = {name: value for name, value in about.items() if name not in OF_PEOPLE}
    return (row["metric"], row["model"], *(row[name] for name in PLACES), repr(sorted(part.items())))


OF_PEOPLE = frozenset(("labels", "criterion", "pool", "pools_by", "people", "trust", "choice", "marked"))


OUTCOMES: Mapping[str, str] = {
    "ok": "answered", "repaired": "answered", "refused": "refused", "blocked": "refused", "invalid": "unparsed",
    "truncated": "unparsed", "neither yes nor no": "unparsed", "exhausted": "failed", "over-budget": "failed",
}  # fmt: skip
"""How judgments end -> how the page counts them."""

QUESTIONS_SHOWN = 10  # at either end; all stand in `question_rates.parquet`


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
    """A metric by one judge or scorer: every model's score over all prompts, and concept by concept."""

    metric: str  # `dsg`, `vqascore` or `quality`
    judge: str  # who scored, as the scores name it
    title: str  # as the page calls it
    target: str  # whether intervals speak of `these` prompts or of the `population` they are a sample of
    unit: str  # of the scores
    models: Mapping[str, Figure | None]  # model -> score; None where none of its images could be scored
    looked_at: Mapping[str, LookedAt]  # model -> what became of its images
    concepts: Mapping[str, Mapping[str, Figure | None]]  # concept -> model -> score

    @property
    def whole(self) -> bool:
        """Tell whether scores lie between 0 and 1."""
        return self.metric in {"dsg", "vqascore"} or self.judge == "embedded"


@dataclass(frozen=True, slots=True)
class Faithfulness:
    """The whole section; `missing` says what nobody looked at, and why that matters."""

    instruments: tuple[Instrument, ...]
    judges: tuple[Judge, ...]
    worst: Rows  # questions: text, kind, concept, prompt, prompt_id, and by model the share that fail it, of how many
    best: Rows
    unasked: int
    missing: tuple[str, ...]
    differences: Rows = ()
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
    asked = run.models_with(roles.ANSWERS) or run.models_with(roles.VQASCORE)
    counts = run.read(roles.FAITHFULNESS, ANSWER_COUNTS) if asked else None
    rows = with_params(scores, "judge", "scorer", "target").with_columns(by=pl.coalesce("judge", "scorer"))
    instruments = tuple(instruments_in(run, rows, counts, models))
    metrics = {instrument.metric for instrument in instruments}
    missing = [NO_ANSWERS] if "dsg" not in metrics and not run.models_with(roles.ANSWERS) else []
    missing += [NO_VQASCORE] if "vqascore" not in metrics and not run.models_with(roles.VQASCORE) else []
    missing += [NO_TEXTS] if not any(run.variants(roles.SCORER, model) for model in run.models) else []
    missing += [] if counts is None else list(unscored(counts, metrics))
    worst, best, unasked = questions_failed(run, models)
    differences = faithfulness_differences(run, models)
    return Faithfulness(
        instruments, tuple(judges_in(run, models)), worst, best, unasked, tuple(missing), differences,
        judged_in(run, models),
    )  # fmt: skip


def unscored(counts: pl.DataFrame, metrics: set[str]) -> Iterator[str]:
    """Say of which judges no image got a score, and how their judgments ended."""
    for task in ("dsg", "vqascore"):
        part = counts.filter(pl.col("concept").is_null(), pl.col("task") == task)
        if task in metrics or part.is_empty():
            continue
        ended = part.group_by("outcome").agg(pl.col("judgments").sum()).sort("outcome").rows()
        counts_text = ", ".join(f"{number:,} {outcome}" for outcome, number in ended)
        yield f"No image has a score by {title_of(task, '')}, as its judge gave too few answers: {counts_text}."


def instruments_in(
    run: RunFolders, rows: pl.DataFrame, counts: pl.DataFrame | None, models: Sequence[str]
) -> Iterator[Instrument]:
    """Give every metric by every judge or scorer: what was asked of models first, scorers after them."""
    placed = rows.filter(pl.col("country").is_null(), pl.col("group").is_null())
    pairs = placed.select("metric", "by").unique().iter_rows()
    for metric, by in sorted(pairs, key=lambda pair: (pair[0] == "quality", *pair)):
        part = placed.filter(pl.col("metric") == metric, pl.col("by") == by)
        concepts = part["concept"].drop_nulls().unique().sort()
        yield Instrument(
            metric=metric, judge=by, title=title_of(metric, by), target=part["target"][0], unit=part["unit"][0],
            models=figures_of(part.filter(pl.col("concept").is_null()), models),
            looked_at={model: looked_at(run, counts, metric, by, model) for model in models},
            concepts={concept: figures_of(part.filter(concept=concept), models) for concept in concepts},
        )  # fmt: skip


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
        part = counts.filter(pl.col("concept").is_null(), pl.col("model") == model, pl.col("judge") == by)
        for outcome, number in part.filter(task=metric).select("outcome", "judgments").iter_rows():
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


def questions_failed(run: RunFolders, models: Sequence[str]) -> tuple[Rows, Rows, int]:
    """Give the questions failed most and least often, each model counting alike, and how many have no answer at all."""
    if not run.models_with(roles.ANSWERS):
        return (), (), 0
    table = run.read(roles.FAITHFULNESS, QUESTION_RATES)
    if table is None or table.is_empty():
        return (), (), 0
    subset = table.filter(pl.col("model").is_in(list(models)))
    keys = ("prompt_id", "question_id")
    ordered = subset.group_by(keys).agg(mean=pl.col("rate").mean()).sort(
        ["mean", *keys], descending=[True, False, False], nulls_last=True
    )  # fmt: skip
    known = ordered.filter(pl.col("mean").is_not_null())
    worst = known.head(QUESTIONS_SHOWN)
    best = known.tail(max(0, min(QUESTIONS_SHOWN, known.height - worst.height))).reverse()
    texts = run.prompts()
    lines = [
        tuple(
            line_of(subset.filter(prompt_id=prompt, question_id=question), texts) for prompt, question, _ in part.rows()
        )
        for part in (worst, best)
    ]
    return lines[0], lines[1], ordered.height - known.height


def line_of(rows: pl.DataFrame, texts: Mapping[str, str]) -> SimpleNamespace:
    """Put the rows of one question together."""
    line = rows_of(rows.sort("model").head(1))[0]
    line.rates = {row["model"]: (row["rate"], row["yes"] + row["no"]) for row in rows.drop_nulls("rate").to_dicts()}
    line.prompt = texts.get(line.prompt_id, line.prompt_id)
    return line
