"""What the scores of a run stand on, and where runs stand on different ground."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import msgspec
import polars as pl
from markupsafe import Markup

from culturekit.core import roles
from culturekit.core.digests import canonical_json, digest
from culturekit.core.roles import Role
from culturekit.generation.comparability import not_comparable, traits_of
from culturekit.report.charts import ModelLine, diversity_chart, in_order, model_lines, place_of
from culturekit.report.differences import DifferenceLine, lines_of
from culturekit.report.headline import Verdict, verdict_in
from culturekit.report.provenance import caveats
from culturekit.report.run_folders import RunFolders
from culturekit.report.write import page_of
from culturekit.version import VERSION

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
    ground = {
        "cultural space": content(run, roles.CSPACE),
        "index": matches.inputs["index"].sha256,
        "encoder": dict(matches.notes.get("identity") or {"name": matches.notes.get("encoder", "")}),
        "mapping": dict(matches.options),
        "labels of the scores": rules,
        "prompts": content(run, roles.PROMPTS),
        "images": asked,
        "quality scorer": {"scorer": judged.get("scorer", "none"), **(judged.get("parameters") or {})},
    }
    return Ground(name, {key: digest(value) for key, value in ground.items()}, {k: shown(v) for k, v in ground.items()})


def content(run: RunFolders, role: Role) -> str:
    """Name a table by its content."""
    return run.manifest(role).outputs[run.table(role).name].sha256 if run.has(role) else "not in this run"


def shown(value: object) -> str:
    """Write what a run stands on; of a hash the beginning is enough."""
    if isinstance(value, str):
        return value[:12]
    about: dict[str, object] = msgspec.json.decode(canonical_json(value))
    return "; ".join(f"{key} {shown_value(each)}" for key, each in about.items() if each not in (None, [], {}))


def shown_value(value: object) -> str:
    """Write one option."""
    if isinstance(value, list):
        return ", ".join(shown_value(each) for each in value)
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


# Several runs as one page.


@dataclass(frozen=True, slots=True)
class RunPart:
    """A run on the page of several: its models, what is to be known of it, and the hash of its scores."""

    name: str
    models: tuple[ModelLine, ...]
    verdict: Verdict
    caveats: tuple[str, ...]
    scores: str


@dataclass(frozen=True, slots=True)
class SeveralData:
    """Everything the page of several runs shows."""

    runs: tuple[RunPart, ...]
    grounds: tuple[Ground, ...]
    apart: tuple[Apart, ...]  # in what the runs differ
    traits: tuple[str, ...]  # in what the images of models differ besides the model, in sentences
    differences: tuple[DifferenceLine, ...]  # of models of different runs, on the prompts that both answered
    compared: tuple[tuple[str, ...], ...]  # runs on the same ground, whose models were compared
    kernel: str
    versions: Mapping[str, str]

    @property
    def title(self) -> str:
        """What the page is about."""
        return f"{len(self.runs)} runs side by side" if len(self.runs) > 1 else f"The models of {self.runs[0].name}"

    @property
    def lines(self) -> list[tuple[RunPart, ModelLine]]:
        """The models of all runs, the most diverse first; run by run where these share no scale."""
        every = [(run, line) for run in self.runs for line in run.models]
        if any(one.decisive for one in self.apart):
            return every
        return sorted(every, key=lambda one: place_of(one[1]))

    def knows(self, what: str) -> bool:
        """Tell whether something of a model's line, such as its truth, is known of any model."""
        return any(getattr(line, what) is not None for run in self.runs for line in run.models)


def collect_several(
    runs: Sequence[tuple[str, RunFolders]], comparison: pl.DataFrame | None, compared: Sequence[tuple[str, ...]]
) -> SeveralData:
    """Collect the page; `comparison` are differences of models of different runs, where some were computed."""
    grounds = [ground_of(run, name) for name, run in runs]
    images = {f"{model} ({name})": run.images(model) for name, run in runs for model in run.models}
    traits = not_comparable({model: traits_of(table) for model, table in images.items() if table.height})
    return SeveralData(
        runs=tuple(part(name, run) for name, run in runs), grounds=tuple(grounds), apart=tuple(apart(grounds)),
        traits=tuple(traits),
        differences=() if comparison is None else tuple(lines_of(comparison, kernel=runs[0][1].kernel)),
        compared=tuple(compared), kernel=runs[0][1].kernel, versions={"culturekit": VERSION},
    )  # fmt: skip


def part(name: str, run: RunFolders) -> RunPart:
    """Read the headline of one run."""
    scores = run.headline_scores()
    models = in_order(model_lines(run, scores))
    return RunPart(name, models, verdict_in(run, models, scores), caveats(run), run.manifest(roles.SCORES).sha256)


def render_several(data: SeveralData, pages: Mapping[tuple[str, str], str] = MappingProxyType({})) -> str:
    """Render the page: it has no script at all; `pages` are those that models have, by run and model."""
    names = {id(line): line.model if len(data.runs) == 1 else f"{line.model} ({run.name})" for run, line in data.lines}
    named = [names[id(line)] for run, line in data.lines if line.model in run.verdict.named]
    lines = [replace(line, model=names[id(line)]) for _, line in data.lines]
    return page_of("several.html", data=data, pages=pages, chart=Markup(diversity_chart(lines, named=named)))
