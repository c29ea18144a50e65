"""Who judged, under which licence and with what it misses, and how far models are apart by each of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from culturekit.report.figures import Figure, larger_first
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.storage.manifest import Manifest

__all__ = ["Apart", "Judge", "faithfulness_differences", "judges_in", "title_of"]

TITLES: Mapping[str, str] = {
    "dsg": "DSG",
    "vqascore": "VQAScore",
    "clipscore": "CLIPScore",
    "hpsv2": "HPS v2",
    "pickscore": "PickScore",
    "embedded": "clarity (embedded)",
}

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
    said = manifest.options.get("judge")
    identity: Mapping[str, Any] = said if isinstance(said, Mapping) else {"provider": str(said).partition(":")[0]}
    provider = str(identity.get("provider", ""))
    place = f" at {identity['base_url']}" if identity.get("base_url") else ""
    wording = str(manifest.options.get("wording", ""))[:8]
    made_by = f"{provider}{place}, wording {wording}"
    return Judge(task, str(notes.get("judge")), made_by, LICENCES.get(provider, "not known"), BIASES[task], caveat)


@dataclass(frozen=True, slots=True)
class Apart:
    """How far the first model is above the second by one judge.

    Attributes:
        title: of the instrument.
        judge: who scored.
        first: the model with the larger score.
        second: the other.
        difference: on the common prompts.
        p: corrected for the number of comparisons; None where nothing says how much values scatter.
        common: prompts that both answered.
        left_out: prompts that only one answered.
    """

    title: str
    judge: str
    first: str
    second: str
    difference: Figure
    p: float | None
    common: int
    left_out: int


def faithfulness_differences(run: RunFolders, models: Sequence[str]) -> Iterator[Apart]:
    """Give the differences of every two models over all their prompts, judge by judge, the largest first."""
    table = run.numbered(roles.FAITHFULNESS_COMPARISON)
    if table is None:
        return
    of = pl.Struct(dict.fromkeys(("judge", "scorer"), pl.String))
    params = pl.Struct(
        [
            pl.Field("of", of),
            *(pl.Field(name, pl.String) for name in ("a", "b", "metric")),
            *(pl.Field(name, pl.Int64) for name in ("common", "left_out")),
            pl.Field("p_corrected", pl.Float64),
        ]
    )
    rows = table.drop("metric").with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    over_all = rows.filter(pl.col("concept").is_null(), pl.col("country").is_null())
    found = [apart(row) for row in over_all.to_dicts() if {row["a"], row["b"]} <= set(models)]
    yield from sorted(found, key=lambda one: (one.title, one.judge, -one.difference.value, one.first, one.second))


def apart(row: Mapping[str, Any]) -> Apart:
    """Read one comparison; the larger score stands first."""
    judge = row["of"]["judge"] or row["of"]["scorer"] or ""
    title = title_of(row["metric"], judge)
    return Apart(title, judge, *larger_first(row), row["p_corrected"], row["common"], row["left_out"])
