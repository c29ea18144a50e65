"""What the scores of a run stand on, and where runs stand on different ground."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import polars as pl

from culturekit.generation.comparability import not_comparable, traits_of
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles
from culturekit.stages.roles import Role
from culturekit.storage.digests import canonical_json, digest

__all__ = ["Apart", "Ground", "apart", "ground_of", "image_traits", "same_ground"]

DECISIVE = ("cultural space", "index", "encoder", "mapping", "labels of the scores")
"""Scores of runs that differ in one of these are not on one scale: no difference is computed."""

CONSEQUENCES = {
    "cultural space": "images are mapped to other artifacts, so labels differ: no difference is computed",
    "index": "artifacts are compared through other reference pictures: no difference is computed",
    "encoder": "another instrument measures, with errors of its own: no difference is computed",
    "mapping": "images are mapped by other rules: no difference is computed",
    "labels of the scores": "batches have another size, or kernels, orders or rules differ: no difference is computed",
    "prompts": "only prompts that stand in both are compared; headline scores average over other prompts",
    "images": "models were asked for other numbers of images, or by other kinds of prompts",
    "quality scorer": "quality and qVS are on other scales",
}


@dataclass(frozen=True, slots=True)
class Ground:
    """What the scores of a run stand on: by name, what is compared and what is shown of it."""

    run: str
    keys: Mapping[str, str]
    shown: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Apart:
    """Something in which runs differ: what each has, and what follows."""

    what: str
    values: tuple[tuple[str, str], ...]
    consequence: str
    decisive: bool


def ground_of(run: RunFolders, name: str) -> Ground:
    """Read from the manifests of a run what its scores stand on."""
    matches, scores = run.manifest(roles.MATCHES, run.models[0]), run.manifest(roles.SCORES)
    images = run.manifest(roles.IMAGES, run.models[0])
    quality = run.found(roles.QUALITY, run.models[0])
    judged = {} if quality is None else quality.notes
    rules = {key: value for key, value in scores.options.items() if key not in {"pool", "seed", "required"}}
    asked = {key: images.options.get(key) for key in ("kinds", "repeats", "slots", "size")}
    told = {
        "cultural space": content(run, roles.CSPACE),
        "index": matches.inputs["index"].sha256,
        "encoder": dict(matches.notes.get("identity") or {"name": matches.notes.get("encoder", "")}),
        "mapping": dict(matches.options),
        "labels of the scores": rules,
        "prompts": content(run, roles.PROMPTS),
        "images": asked,
        "quality scorer": {"scorer": judged.get("scorer", "none"), **(judged.get("parameters") or {})},
    }
    return Ground(name, {key: digest(value) for key, value in told.items()}, {k: shown(v) for k, v in told.items()})


def content(run: RunFolders, role: Role) -> str:
    """Name a table by its content."""
    return run.manifest(role).outputs[run.table(role).name].sha256 if run.has(role) else "not in this run"


def shown(value: object) -> str:
    """Write what a run stands on; of a hash the beginning is enough."""
    if isinstance(value, str):
        return value[:12]
    about: dict[str, object] = msgspec.json.decode(canonical_json(value))
    return "; ".join(f"{key} {said(each)}" for key, each in about.items() if each not in (None, [], {}))


def said(value: object) -> str:
    """Write one option."""
    if isinstance(value, list):
        return ", ".join(said(each) for each in value)
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def apart(grounds: Sequence[Ground]) -> list[Apart]:
    """List in what runs differ, the decisive first."""
    found = []
    for what, consequence in CONSEQUENCES.items():
        if len({ground.keys[what] for ground in grounds}) > 1:
            values = tuple((ground.run, ground.shown[what]) for ground in grounds)
            found.append(Apart(what, values, consequence, what in DECISIVE))
    return found


def same_ground(grounds: Sequence[Ground]) -> list[tuple[int, ...]]:
    """Group runs, by number, whose scores are on one scale; a run alone on its ground is in no group."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for number, ground in enumerate(grounds):
        groups.setdefault(tuple(ground.keys[what] for what in DECISIVE), []).append(number)
    return [tuple(group) for group in groups.values() if len(group) > 1]


def image_traits(runs: Sequence[tuple[str, RunFolders]]) -> list[str]:
    """Say in sentences what images of models differ in besides the model: rewriters, seeds, sizes, versions."""
    tables: dict[str, pl.DataFrame] = {
        f"{model} ({name})": run.images(model) for name, run in runs for model in run.models
    }
    return not_comparable({model: traits_of(table) for model, table in tables.items() if table.height})
