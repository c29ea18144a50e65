"""A run, verified by making it again: the chain of hashes, then each stage from its finished inputs.

```
recipe.json -> the stages it gives -> for each: the key its inputs, options and seeds have -> run into a scratch folder
            -> the same manifest, output by output
```
A stage that is costly to make again is known by its hashes, and of its pictures a sample is looked at.
"""

import importlib
import json
import logging
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, TypeAlias, TypeVar

import msgspec
import polars as pl
from pydantic import ValidationError

from culturekit import recipes
from culturekit.config.kinds import wired
from culturekit.config.load import load_any_recipe
from culturekit.core.addresses import SendingRefused, offline
from culturekit.core.atomic import decoding, remove_strays
from culturekit.core.declared import AskingCommand, Declared, StageCommand, declared, inputs_of, is_group, settings_of
from culturekit.core.digests import JOURNAL, MANIFEST, InputRecord, Manifest, canonical_json, digest_file, read_manifest
from culturekit.core.errors import CultureKitError, MissingDependency, UsageError
from culturekit.core.inputs import Files
from culturekit.core.package_data import shipped
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.pictures.picture_reading import read_inside
from culturekit.core.plugins import carrying, installed, typed_plugins
from culturekit.core.registry import Registry, Spec, parse_spec
from culturekit.core.roles import REPORT
from culturekit.core.run import RECIPE_RECORD, make_manifest, plugins_of_run, what_differs
from culturekit.core.schemas import IMAGES
from culturekit.core.spreadsheet_cells import export_table
from culturekit.core.stage import Engine, Progress, Quiet, Stage, Work, key_of, record_of
from culturekit.core.yaml_source import as_json
from culturekit.index.encoder import ENCODERS
from culturekit.index.raters.picture_spread import PAIR_MEASURES
from culturekit.index.raters.quality import SCORERS
from culturekit.kg.concepts import load_concept
from culturekit.llm.journal import go_on_as, last_run
from culturekit.people.stages import import_stage
from culturekit.recipes.run_recipe import report_of
from culturekit.scores.catalog import FAMILIES
from culturekit.scores.inputs import NamedVectors, PairFolders, VectorFolder, VectorFolders
from culturekit.scores.listing import family_named, outside_names
from culturekit.scores.named_in_recipe import as_inputs, settings_made
from culturekit.verify.chain import (
    Finding,
    FinishedStage,
    Ledger,
    RunTree,
    ScoreVerdict,
    check_chain,
    exports_of,
    fingerprint,
    open_tree,
)

_SCORES_FILE = "scores.parquet"
_LARGE = 64_000_000  # bytes of a dump from which it is not read again
_SHOWN = 5
_SIMULATED = "simulated"  # begins the name of every backend that draws by arithmetic alone

_COSTLY = {
    "embed": "running a model", "finetune": "training", "generate": "making pictures", "index": "running a model",
    "ingest": "reading a dump",
}  # fmt: skip

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# Options that name a model by a SPEC.
_MODELS: Mapping[str, Registry[Any]] = {"encoder": ENCODERS, "scorer": SCORERS, "measure": PAIR_MEASURES}


@dataclass(frozen=True, slots=True)
class Verification:
    """What became of a run.

    Attributes:
        root: the folder that was verified.
        fingerprint: of all its manifests and its recipe.
        stages: how many were found.
        checked: what was looked at, counted.
        findings: what is not as it should be, and notes.
        verdicts: one per row of every scores table.
    """

    root: Path
    fingerprint: str
    stages: int
    checked: dict[str, int]
    findings: tuple[Finding, ...]
    verdicts: tuple[ScoreVerdict, ...]

    @property
    def exit_code(self) -> int:
        """Give 4 where bytes or numbers are not what they are said to be, 1 where a person has to look, else 0."""
        if any(finding.severity == "broken" for finding in self.findings):
            return 4
        return int(any(finding.severity == "finding" for finding in self.findings))


def verify_run(
    root: Path,
    *,
    everything: bool = False,
    only: Sequence[str] = (),
    engine: Engine | None = None,
    progress: Progress = Quiet(),  # noqa: B008 - it holds nothing
) -> Verification:
    """Verify a run, or one stage folder standing alone.

    Args:
        root: the folder.
        everything: whether stages that are costly to make again are made again too.
        only: what is made again: names of stages, their first part, or the name of a table that they write; all
            stages where there is none. Hashes are followed through the whole run in any case.
        engine: who does the work; this process where none is given.
        progress: hears of each stage.
    """
    ledger = Ledger()
    tree = open_tree(root, ledger)
    chosen = [name for name, stage in tree.stages.items() if not only or any(_is_named(stage, word) for word in only)]
    if not chosen and tree.stages:
        raise UsageError(
            "no stage of this run is meant", where=str(root), found=", ".join(only),
            expected=f"a name or its first part, such as {', '.join(sorted(tree.stages)[:_SHOWN])}, or a table: scores",
        )  # fmt: skip
    check_chain(tree, ledger)
    with tempfile.TemporaryDirectory(prefix="culturekit-verify-") as scratch, _warnings_off(), offline():
        wiring = _wire_again(tree, ledger)
        earlier = _is_earlier(tree, wiring)
        again = _Again(tree, ledger, Path(scratch), engine or _ThisProcess(), everything, earlier)
        progress.begin(len(chosen), "stages")
        for name in chosen:
            progress.tell(name)
            with ledger.guarded("stages", name):
                again.check(tree.stages[name], wiring)
            progress.advance(1)
    return Verification(
        root, fingerprint(tree), len(tree.stages), dict(sorted(ledger.checked.items())), tuple(ledger.findings),
        tuple(sorted(ledger.verdicts, key=lambda verdict: (verdict.folder, verdict.row))),
    )  # fmt: skip


def _is_named(stage: FinishedStage, word: str) -> bool:
    """Tell whether a word means a stage."""
    return stage.name == word or stage.name.startswith(f"{word}-") or f"{word}.parquet" in stage.manifest.outputs


@contextmanager
def _warnings_off() -> Iterator[None]:
    """Keep what stages warn of to themselves: their runs have said it."""
    logger = logging.getLogger("culturekit")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _wire_again(tree: RunTree, ledger: Ledger) -> dict[str, Stage]:
    """Give the stages of the recipe by name; none where there is no recipe, or where it cannot be wired here."""
    root = tree.root.resolve().parent if tree.alone else tree.root
    path = root / RECIPE_RECORD
    if not path.is_file():
        if not tree.alone and REPORT.form in tree.stages:
            ledger.broken("recipe", RECIPE_RECORD, "is gone", expected="the recipe of this run")
        return {}
    try:
        stages = _stages_of(path, ledger, tree)
    except (CultureKitError, ValueError, OSError) as error:
        there = {f"{one.kind}.{one.name}" for one in installed()}
        made_with = plugins_of_run(one.folder for one in tree.stages.values())
        absent = [f"the package {package} ({point})" for point, package in made_with.items() if point not in there]
        lacks = isinstance(error, MissingDependency) or any(one.severity == "finding" for one in ledger.findings)
        tell = ledger.finding if lacks or absent or tree.alone else ledger.broken
        why = f"it needs {' and '.join(absent)}, not installed here" if absent else " ".join(str(error).split())
        tell("recipe", RECIPE_RECORD, f"gives no run here ({why})")
        return {}
    if not tree.alone:
        for name in sorted(set(stages) - set(tree.stages)):
            ledger.finding("recipe", name, "is a stage of the recipe, and is not here: not run yet, or removed")
    return stages


def _is_earlier(tree: RunTree, wiring: Mapping[str, Stage]) -> bool:
    """Tell whether a run has stages of versions that are not those of today."""
    wired_stages = ((stage.manifest, wiring[name]) for name, stage in tree.stages.items() if name in wiring)
    return any(manifest.stage == stage.kind and manifest.version != stage.version for manifest, stage in wired_stages)


def _stages_of(path: Path, ledger: Ledger, tree: RunTree) -> dict[str, Stage]:
    """Wire the run of a recipe record, and hold the record against what a run writes of this recipe."""
    content = path.read_bytes()
    with decoding(path, "not the record of a recipe"):
        record = msgspec.json.decode(content, type=dict[str, Any])
    stated = record.get("plugins", {})
    if set(stated) - set(typed_plugins()):  # what lies in a run's folder decides no code that runs here
        raise MissingDependency(
            "its recipe brings plugins, which verify does not run by itself", found=", ".join(sorted(stated)),
            hint="Name them: culturekit --plugins FILE verify RUN",
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="culturekit-recipe-") as folder:
        copy = Path(folder) / RECIPE_RECORD
        copy.write_bytes(canonical_json({**record, "plugins": {}}))
        recipe = load_any_recipe(copy)
    run = wired(recipe, path.parent)
    stages = {step.stage.name: step.stage for step in run.steps}
    listed = [name for name in stages if name != REPORT.form]
    whole = {**as_json(recipe), "plugins": stated, "stages": listed}
    if not tree.alone and canonical_json(whole) + b"\n" != content:
        names = ", ".join(name for name in sorted({*whole, *record}) if whole.get(name) != record.get(name))
        # A recipe of an earlier version had fewer stages; those that are not here are told one by one.
        if isinstance(record.get("stages"), list) and _is_earlier(tree, stages):
            record["stages"] = [name for name in listed if name in record["stages"] or name not in tree.stages]
        if canonical_json(_completed(record, whole)) == canonical_json(whole) and names:
            ledger.finding("recipe", RECIPE_RECORD, "lacks keys that a run of this version writes", found=names)
        else:
            names = names or "other bytes"
            ledger.broken("recipe", RECIPE_RECORD, "is not what a run writes of its recipe", found=names)
    ledger.count("recipes wired again")
    return stages


def _completed(record: Any, whole: Any) -> Any:  # noqa: ANN401 - what JSON holds
    """Add to a record of an earlier version the keys that it does not know, as they are where nobody states them."""
    if isinstance(record, dict) and isinstance(whole, dict):
        return {**whole, **{name: _completed(value, whole.get(name)) for name, value in record.items()}}
    if isinstance(record, list) and isinstance(whole, list) and len(record) == len(whole):
        return [_completed(*pair) for pair in zip(record, whole, strict=True)]
    return record


class _ThisProcess:
    """Does the items one by one, here."""

    workers = 1

    def map(self, function: Callable[[_Item], _Result], items: Sequence[_Item]) -> Iterator[_Result]:
        """Yield one result for each item."""
        return map(function, items)


@dataclass(frozen=True, slots=True)
class _Again:
    """Makes stages again, each from its finished inputs."""

    tree: RunTree
    ledger: Ledger
    scratch: Path
    engine: Engine
    everything: bool
    earlier: bool

    def check(self, finished: FinishedStage, wiring: Mapping[str, Stage]) -> None:
        """Check one stage: that it is the one its recipe gives, and that its bytes come again."""
        if IMAGES_FILE in finished.manifest.outputs:
            with self.ledger.guarded("images", finished.name):
                check_images(self.tree, finished, self.ledger, everything=self.everything)
        name = finished.name
        stage = wiring.get(finished.folder.resolve().name if self.tree.alone else name)  # which may be named as `.`
        from_recipe, manifest = stage is not None, finished.manifest
        if stage is None:
            stage = _by_hand(finished)
        if stage is None and manifest.stage in _COSTLY and not self.everything:
            self.by_hash(finished, _COSTLY[manifest.stage])
            return
        if stage is None and manifest.stage == "annotate-export":  # drawn after the run: its form is in no recipe
            self.ledger.count("stages known by their hashes alone")
            self.judge(finished, None, "no recipe says how its form was drawn: its hashes are compared")
            return
        if stage is None:
            self.not_here(finished, "not verifiable here: neither a recipe nor its options say how it was made")
            return
        if gone := sorted(role for role, path in stage.inputs.items() if not path.exists()):
            self.not_here(finished, f"not verifiable here: {', '.join(gone)} of its inputs cannot be found")
            return
        if manifest.stage == stage.kind and manifest.version != stage.version:
            made_by = " ".join([f"version {manifest.version} of {manifest.stage}", *_packages(manifest.code)])
            self.not_here(finished, f"not verifiable here: made by {made_by}; here is version {stage.version}")
            return
        stage = replace(stage, exports=exports_of(manifest))
        inputs = self.inputs_of(stage)
        key = key_of(stage, inputs)
        self.ledger.count("keys compared with the recipe" if from_recipe else "keys compared with the options")
        if manifest.stage != stage.kind or manifest.key != key or manifest.inputs != inputs:
            found = [f"kind: {manifest.stage} -> {stage.kind}"] if manifest.stage != stage.kind else []
            found += [*what_differs(stage, manifest, inputs)] or ["its inputs are named otherwise"]
            differences = "; ".join(found[:_SHOWN])
            options, known = json.loads(_json(stage.options)), json.loads(_json(manifest.options))
            earlier = key_of(replace(stage, options=known), inputs)  # before options were added to it
            if (manifest.key, manifest.inputs, _completed(known, options)) == (earlier, inputs, options):
                self.not_here(finished, f"not verifiable here: made when the stage had fewer options; {differences}")
                return
            if self.earlier and _differs_by_version(stage, manifest, inputs):
                self.not_here(finished, f"not verifiable here: made by an earlier version of its recipe; {differences}")
                return
            self.ledger.broken("recipe", name, "is not the stage that its recipe gives", found=differences)
            self.judge(finished, None, "its stage is another than its recipe gives")
            return
        if not self.everything and (why := _costly(stage)):
            self.by_hash(finished, why)
            return
        self.make(stage, finished, inputs, key)

    def inputs_of(self, stage: Stage) -> dict[str, InputRecord]:
        """Name each input as it lies there now; what the chain has hashed is not hashed again."""
        folder = self.scratch / "trees" / stage.name
        folder.parent.mkdir(exist_ok=True)
        return {
            role: stage.trees[role](folder) if role in stage.trees else self.tree.record(path) or record_of(path)
            for role, path in sorted(stage.inputs.items())
        }

    def by_hash(self, finished: FinishedStage, why: str) -> None:
        """Say that the hashes of a stage are all that is known of it."""
        self.ledger.count("stages known by their hashes alone")
        self.judge(finished, None, f"{why} is costly: its hashes are compared, and --all makes it again")

    def not_here(self, finished: FinishedStage, why: str) -> None:
        """Say that a stage cannot be made again here; a person has to look at it."""
        self.ledger.finding("stages", finished.name, why)
        self.judge(finished, None, why)

    def make(self, stage: Stage, finished: FinishedStage, inputs: Mapping[str, InputRecord], key: str) -> None:
        """Run a stage into a scratch folder, with what it paid for, and compare everything that it says."""
        out, work = self.scratch / stage.name / "out", self.scratch / stage.name / "scratch"
        out.mkdir(parents=True)
        work.mkdir()
        if (finished.folder / JOURNAL).is_dir():
            shutil.copytree(finished.folder / JOURNAL, out / JOURNAL)
            go_on_as(last_run(out / JOURNAL)[0], work)
        try:
            work_of_stage = Work(dict(stage.inputs), out, work, carrying(self.engine), Quiet(), stage.in_run)
            outcome = stage.run(work_of_stage)
            remove_strays(out)
            for table in sorted(out.glob("*.parquet")):
                for form in stage.exports:
                    export_table(table, form)
            manifest = make_manifest(stage, out, inputs, key, outcome)
            self.ledger.count("stages made again")
            self.compare(manifest, finished, out)
        except (SendingRefused, MissingDependency) as error:
            self.not_here(finished, f"not verifiable here: {error}")
        finally:
            shutil.rmtree(self.scratch / stage.name)

    def compare(self, manifest: Manifest, finished: FinishedStage, out: Path) -> None:
        """Compare a stage that was made again with the one that is there."""
        there, name = finished.manifest, finished.name
        then, here = ({**one.packages, **one.code} for one in (there, manifest))
        others = ", ".join(_packages({one: then[one] for one in then if then[one] != here.get(one)}))
        problems = [
            (f"{name}/{output}", *_difference(out / output, finished.folder / output))
            for output in sorted({*manifest.outputs, *there.outputs})
            if manifest.outputs.get(output) != there.outputs.get(output)
        ]
        for part in ("counts", "drops", "notes"):
            now, before = _json(getattr(manifest, part)), _json(getattr(there, part))
            if now != before:
                problems.append((f"{name}/{MANIFEST}", f"its {part} are others when it is made again", now, before))
        for where, problem, expected, found in problems:
            if others:
                problem = f"not verifiable here, made with {others}: {problem}"
            tell = self.ledger.finding if others else self.ledger.broken
            tell("stages", where, problem, expected=expected, found=found)
        if others and not problems:
            self.ledger.note("stages", name, f"was made with {others}; its bytes are the same")
        self.judge(finished, None if others and problems else out, f"made with {others}" if others else "")

    def judge(self, finished: FinishedStage, out: Path | None, why: str) -> None:
        """Give a verdict on each row of a scores table."""
        if _SCORES_FILE not in finished.manifest.outputs or not (finished.folder / _SCORES_FILE).is_file():
            return
        with self.ledger.guarded("scores", f"{finished.name}/{_SCORES_FILE}"):
            rows = pl.read_parquet(finished.folder / _SCORES_FILE).with_row_index("row").to_dicts()
            self.ledger.count("scores", len(rows))
            known = None if out is None else set(map(repr, pl.read_parquet(out / _SCORES_FILE).to_dicts()))
            for row in rows:
                if known is None:
                    self.ledger.judge(finished.name, row, "not verifiable", why)
                else:
                    same = repr({key: value for key, value in row.items() if key != "row"}) in known
                    how = "made again from its inputs, with the same bytes" if same else "made again, it is another"
                    self.ledger.judge(finished.name, row, "verified" if same else "wrong", how)


def _differs_by_version(stage: Stage, manifest: Manifest, inputs: Mapping[str, InputRecord]) -> bool:
    """Tell whether a stage is of another kind, has other inputs by name, or read what this package ships otherwise."""
    if manifest.stage != stage.kind:
        return True
    changed = [role for role in inputs if role in manifest.inputs and inputs[role] != manifest.inputs[role]]
    if changed:
        return all(stage.inputs[role].resolve().is_relative_to(shipped("").resolve()) for role in changed)
    return set(inputs) != set(manifest.inputs)


def _json(value: object) -> str:
    """Write a part of a manifest in the one form that equal parts share."""
    return canonical_json(json.loads(json.dumps(value))).decode()


def _costly(stage: Stage) -> str:
    """Say why a stage is not made again unless everything is; empty where it is."""
    simulated = stage.kind == "generate" and str(stage.options["backend"]).startswith(_SIMULATED)
    if stage.kind in {"generate", "finetune"} and not simulated:
        return _COSTLY[stage.kind]
    if stage.kind == "ingest" and sum(path.stat().st_size for path in stage.inputs.values()) > _LARGE:
        return _COSTLY[stage.kind]
    options = [stage.options]
    if "index" in stage.inputs and (index := read_manifest(stage.inputs["index"])) is not None:
        options.append(index.options)
    for name, registry in _MODELS.items():
        specs = [spec for each in options if isinstance(spec := each.get(name), str)]
        if any(registry.find(parse_spec(spec)).packages for spec in specs):
            return _COSTLY["embed"]
    return _COSTLY["embed"] if str(stage.options.get("judge", "")).startswith("local:") else ""


def _packages(packages: Mapping[str, str]) -> list[str]:
    """Name packages with their versions."""
    return [f"{name} {version}" for name, version in sorted(packages.items())]


def _difference(again: Path, there: Path) -> tuple[str, str, str]:
    """Say where an output departs from the one that was made again."""
    if not there.exists() or not again.exists():
        return "is not made again" if there.exists() else "is missing", "", ""
    if again.suffix == ".parquet":
        now, before = pl.read_parquet(again), pl.read_parquet(there)
        if now.schema != before.schema:
            return "has other columns when it is made again", str(now.columns), str(before.columns)
        if now.height != before.height:
            return "has other rows when it is made again", f"{now.height} rows", f"{before.height} rows"
        pairs = zip(now.iter_rows(named=True), before.iter_rows(named=True), strict=True)
        for row, (one, other) in enumerate(pairs):
            column = next((name for name in one if repr(one[name]) != repr(other[name])), None)
            if column is not None:
                problem = f"row {row}: {column} is another when it is made again"
                return problem, repr(one[column]), repr(other[column])
    elif again.is_file() and there.is_file() and again.suffix in {".html", ".json", ".csv", ".jsonl", ".md", ".txt"}:
        lines = zip(again.read_bytes().splitlines(), there.read_bytes().splitlines(), strict=False)
        for number, (first, second) in enumerate(lines, start=1):
            if first != second:
                at = next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
                around = slice(max(0, at - 20), at + 40)
                texts = [repr(text[around].decode("utf-8", "replace")) for text in (first, second)]
                return f"line {number} is another when it is made again", texts[0], texts[1]
    return "has other bytes when it is made again", "", ""


def _by_hand(finished: FinishedStage) -> Stage | None:
    """Give a stage that no recipe tells of, from the inputs and options of its manifest: whichever has its key."""
    manifest = finished.manifest
    if not set(manifest.inputs) <= set(finished.places):
        return None
    roots = {path.parent for role, path in finished.places.items() if path.is_dir() and path.name == role}
    if manifest.stage.endswith("report") and len(roots) == 1:
        return report_of(roots.pop())
    if manifest.stage == "annotate-import":
        exports = [finished.places[f"export-{number}"] for number in range(len(finished.places) - 1)]
        return import_stage(
            finished.places["project"], exports, pool=manifest.options["pool"],
            distinct=bool(manifest.options.get("distinct")),
        )  # fmt: skip
    seeds = dict(zip(["seed"], manifest.seeds.values(), strict=False))
    for command in _commands(manifest.stage):
        try:
            given = {**seeds, **manifest.options}
            if isinstance(concepts := manifest.options.get("concepts"), dict):
                given["roots"] = [  # shipped, with the countries that the stage was made for; the key tells whether so
                    load_concept(name).model_copy(update={"countries": tuple(each["countries"])})
                    for name, each in concepts.items()
                ]
            if isinstance(command, AskingCommand):
                _, mode = last_run(finished.folder / JOURNAL)
                given |= {**_judge_of(settings_of(command.stage), given), "batch": mode == "batch", "go_on": True}
            read = as_inputs(command.stage, _reads(inputs_of(command.stage), finished.places))
            stage = command.stage(**read, **settings_made(command.stage, given))
            if stage.kind != manifest.stage:
                continue
            inputs = {role: manifest.inputs[role] for role in stage.inputs}
            stage = replace(stage, exports=exports_of(manifest))
            if manifest.key in (key_of(stage, inputs), key_of(replace(stage, version=manifest.version), inputs)):
                return stage
        except (UsageError, ValidationError, TypeError, KeyError, OSError):  # it is the command of another stage
            continue
    return None


# How a module declares the command of a stage.
DECLARED = re.compile(rb"^([A-Z_]+ = (Stage|Asking)Command|@(builds|asks|looks))\(", re.MULTILINE)


def _commands(kind: str) -> Iterator[StageCommand]:
    """Give the commands that may have made a stage of some kind: the family of its scores first, then all others."""
    family = kind.removeprefix("score-")
    if family in {*FAMILIES, *outside_names()}:
        yield family_named(family)
    root = Path(recipes.__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        if DECLARED.search(path.read_bytes()):  # importing all others as well would take seconds
            module = importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
            yield from (thing for thing in vars(module).values() if isinstance(thing, StageCommand))
    yield from (family_named(name) for name in FAMILIES if name != family)


def _judge_of(settings: Iterable[Declared], given: Mapping[str, Any]) -> dict[str, str]:
    """Give the field of options that says who is asked, from how a manifest names that."""
    judge = given.get("judge")
    if isinstance(judge, dict):
        rest = {name: str(value) for name, value in judge.items() if name not in {"provider", "endpoint", "model"}}
        judge = str(Spec(str(judge["provider"]), str(judge["model"]), rest))
    fields = [each for one in settings for each in (declared(one.kind) if is_group(one) else [one])]
    return {each.name: str(judge) for each in fields if each.typed.name == "llm" and judge}


def _reads(reads: Sequence[Declared], places: Mapping[str, Path]) -> dict[str, object]:
    """Give what a stage reads of the files of a manifest, by their roles."""
    found: dict[str, object] = {}
    names = "|".join(each.name for each in reads)
    others = {role: path for role, path in places.items() if not re.fullmatch(rf"({names})(-.+)?", role)}
    for each in reads:
        mine = {role: path for role, path in places.items() if re.fullmatch(rf"{each.name}(-.+)?", role)}
        kind = each.kind if isinstance(each.kind, type) else Path
        if issubclass(kind, VectorFolders | VectorFolder | NamedVectors):
            folders = {role.removesuffix("-ids"): path.parent for role, path in mine.items() if role.endswith("-ids")}
            if issubclass(kind, VectorFolders):
                found[each.name] = kind(folders)
            elif folders:
                found[each.name] = kind(next(iter(folders.values())))
        elif issubclass(kind, PairFolders):
            found[each.name] = kind({role: path.parent for role, path in mine.items()})
        elif issubclass(kind, Files):
            found[each.name] = kind(mine or others)
        elif each.name in places:
            found[each.name] = places[each.name]
    return found


IMAGES_FILE = f"{IMAGES.name}.parquet"

_NAMED = 3
_DECODED = 32  # pictures of a stage, spread over its table

_Problem: TypeAlias = tuple[str, str, object, object]  # where, what, expected, found


def check_images(tree: RunTree, stage: FinishedStage, ledger: Ledger, *, everything: bool) -> None:
    """Compare a table of images with its files and with the prompts that they were made from."""
    rows = pl.read_parquet(stage.folder / IMAGES_FILE).to_dicts()
    _report(stage, "pictures compared with their rows", len(rows), list(_against_files(stage, rows)), ledger)
    _check_cells(stage, rows, ledger)
    path = stage.places.get("prompts")
    record = None if path is None else tree.record(path)
    if path is not None and path.suffix == ".parquet" and record == stage.manifest.inputs["prompts"]:
        prompts = {row["prompt_id"]: row for row in pl.read_parquet(path).to_dicts()}
        wrong = [found for row in rows for found in _against_prompt(stage, row, prompts)]
        _report(stage, "images compared with their prompts", len(rows), wrong, ledger)
    there = [row for row in rows if row["status"] == "ok"]
    sample = there if everything else _spread(there, _DECODED)
    _report(stage, "pictures decoded again", len(sample), [f for row in sample for f in _decoded(stage, row)], ledger)


def _report(stage: FinishedStage, what: str, count: int, problems: Sequence[_Problem], ledger: Ledger) -> None:
    """Count what was compared, and tell the first problems."""
    ledger.count(what, count)
    for where, problem, expected, found in problems[:_NAMED]:
        ledger.broken("images", where, problem, expected=expected, found=found)
    if len(problems) > _NAMED:
        ledger.broken("images", f"{stage.name}/{IMAGES_FILE}", f"and {len(problems) - _NAMED:,} more such differences")


def _spread(items: Sequence[_Item], count: int) -> list[_Item]:
    """Take items from first to last, evenly."""
    if len(items) <= count:
        return list(items)
    return [items[number * (len(items) - 1) // (count - 1)] for number in range(count)]


def _against_files(stage: FinishedStage, rows: Sequence[Mapping[str, Any]]) -> Iterator[_Problem]:
    """List files that are not as the table says: each where it is said to be, with its hash, and no other."""
    named = set()
    for row in rows:
        where, path = f"{stage.name}/{row['path']} (image {row['image_id']})", PurePosixPath(row["path"])
        if row["status"] != "ok":
            continue
        if path.is_absolute() or ".." in path.parts or not row["path"]:
            yield where, "the path leads out of the folder", "a path below it", row["path"]
            continue
        named.add(row["path"])
        file = stage.folder / path
        if not file.is_file():
            yield where, "the picture is gone", row["sha256"], "no file"
        elif (content := digest_file(file)) != row["sha256"]:
            yield where, "the picture is not the one that the table describes", row["sha256"], content
    folders = [stage.folder / name for name, record in stage.manifest.outputs.items() if record.files]
    for file in (file for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()):
        name = file.relative_to(stage.folder).as_posix()
        if name not in named:
            yield f"{stage.name}/{name}", "the picture is in no row of the table", "a row", "none"


def _check_cells(stage: FinishedStage, rows: Sequence[Mapping[str, Any]], ledger: Ledger) -> None:
    """Compare how many images there are with the manifest, and look for two of one prompt, repeat and slot."""
    where, wanted = f"{stage.name}/{IMAGES_FILE}", stage.manifest.counts
    for name, found in (("images", len(rows)), ("ok", sum(row["status"] == "ok" for row in rows))):
        if wanted.get(name, found) != found:
            ledger.broken("images", where, f"the manifest counts other {name}", expected=found, found=wanted[name])
    cells = Counter((row["model"], row["prompt_id"], row["repeat"], row["slot"]) for row in rows)
    twice = [cell for cell, count in cells.items() if count > 1 and None not in cell]
    if twice:
        ledger.broken("images", where, "two images are of one prompt, repeat and slot", found=twice[0])


def _against_prompt(
    stage: FinishedStage, row: Mapping[str, Any], prompts: Mapping[str, Mapping[str, Any]]
) -> Iterator[_Problem]:
    """List in what an image departs from its prompt."""
    where = f"{stage.name}/{IMAGES_FILE}"
    if row["prompt_id"] is None:
        return
    prompt = prompts.get(row["prompt_id"])
    if prompt is None:
        problem = f"image {row['image_id']} is of a prompt that is not there"
        yield where, problem, "one of the prompts", row["prompt_id"]
        return
    pairs = [(name, prompt[name], row.get(name)) for name in ("concept", "country") if row.get(name) is not None]
    if row["rewriter"] == "off" and row["prompt_sent"] is not None:
        pairs.append(("the prompt sent", prompt["text"], row["prompt_sent"]))
    for name, expected, found in pairs:
        if expected != found:
            yield where, f"image {row['image_id']}: {name} is not the prompt's", expected, found


def _decoded(stage: FinishedStage, row: Mapping[str, Any]) -> Iterator[_Problem]:
    """Decode a picture, and compare its size with its row."""
    picture = read_inside(stage.folder, row["path"], sha256=row["sha256"])
    where, size = f"{stage.name}/{row['path']}", f"{row['width']} × {row['height']}"
    if isinstance(picture, NoPicture):
        yield where, "the picture cannot be read", size, picture.reason
    elif picture.pixels.shape[:2] != (row["height"], row["width"]):
        height, width = picture.pixels.shape[:2]
        yield where, "the picture has another size than its row", size, f"{width} × {height}"
