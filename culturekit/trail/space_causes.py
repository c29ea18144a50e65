"""Two cultural spaces compared: which rows differ, at which stage first, and what differs in its inputs or options."""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import polars as pl

from culturekit.builders.country_names import folded
from culturekit.builders.filtering.cspace_filter import COLUMNS
from culturekit.builders.space.checked import check_beside, compared
from culturekit.builders.space.space_diff import CHANGES, space_changes, untold_changes
from culturekit.builders.space.space_files import read_space
from culturekit.core.counting import counted
from culturekit.core.digests import Manifest, canonical_json, digest_file, read_manifest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import roles_among
from culturekit.core.lineage import recorded
from culturekit.core.schemas import CANDIDATES, DECISIONS, DIFF, DROPS, KEPT
from culturekit.core.stage import Stage
from culturekit.core.table import Table
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome, Work
from culturekit.kg.countries import use_countries_beside
from culturekit.kg.store import GraphTables, among
from culturekit.trail.evidence import reason_text

# What lies behind a cultural space: its finished stages, found one from the other and known by their hashes.

# Kinds of stages without which a row cannot be walked back to the dump.
_NEEDED = ("release", "filter", "extract", "ingest")

_WITHIN = ("cspace.parquet", "cspace/cspace.parquet", "release/cspace.parquet")

ENTERED = frozenset({"added", "country added"})  # Outcomes of proposals that made a row

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SpaceBehind:
    """A cultural space and the stages behind it by kind; `missing` says what of them could not be found, and why."""

    file: Path
    folders: Mapping[str, Path] = field(default_factory=dict)
    manifests: Mapping[str, Manifest] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @classmethod
    def found_at(cls, path: Path) -> Self:
        """Find a space from its table, its folder or the folder of its run, and what lies behind it."""
        file = space_file(path)
        folders: dict[str, Path] = {}
        missing: list[str] = []
        _walk_from(file, folders, missing)
        missing += [f"no {kind} stage" for kind in _NEEDED if kind not in folders and not missing]
        manifests = {kind: manifest for kind, folder in folders.items() if (manifest := read_manifest(folder))}
        return cls(file, folders, manifests, tuple(missing))

    @property
    def space(self) -> pl.DataFrame:
        """The cultural space itself."""
        return read_space(self.file)[0]

    @property
    def graph(self) -> Path:
        """The graph that the candidates come from."""
        return self.folders["ingest"]

    def candidates(self, qids: Iterable[str]) -> dict[tuple[str, str], Row]:
        """Read candidates by item and concept."""
        return _rows_of(self.folders["extract"] / "candidates.parquet", CANDIDATES, "qid", qids)

    def decisions(self, qids: Iterable[str]) -> dict[tuple[str, str], str]:
        """Read what people decided about candidates, as verdicts, by item and concept."""
        if "review" not in self.folders:
            return {}
        wanted = pl.Series(sorted(set(qids)), dtype=pl.String).implode()
        table = read_table(self.folders["review"] / "decisions.parquet", DECISIONS)
        decided = table.filter(pl.col("counts"), pl.col("qid").is_in(wanted))
        verdict = pl.when(pl.col("decision") == "accept").then(pl.lit("keep")).otherwise(pl.lit("remove"))
        rows = decided.select("qid", "concept", verdict.alias("verdict")).iter_rows()
        return {(qid, concept): word for qid, concept, word in rows}

    def verdicts(self, qids: Iterable[str]) -> dict[tuple[str, str], tuple[str, str]]:
        """Read what became of candidates, and why, by item and concept."""
        wanted, found = list(qids), dict[tuple[str, str], tuple[str, str]]()
        for folder in [self.folders[kind] for kind in ("filter", "settle") if kind in self.folders]:
            kept = _rows_of(folder / "kept.parquet", KEPT, "qid", wanted)
            dropped = _rows_of(folder / "drops.parquet", DROPS, "key", wanted)
            found |= {key: ("remove", reason_text(row)) for key, row in dropped.items()}
            found |= {key: (row["verdict"], row["reason"]) for key, row in kept.items()}
        return found

    def proposals(self, cells: Iterable[tuple[str, str]]) -> dict[tuple[str, str, str], Row]:
        """Read proposals for some cells, by identifier and by folded name: the one that entered, or the last."""
        if "completion" not in self.folders:
            return {}
        wanted = pl.LazyFrame(sorted(set(cells)), schema={"concept": pl.String, "country": pl.String}, orient="row")
        rows = pl.scan_parquet(self.folders["completion"] / "proposals.parquet").join(wanted, on=["concept", "country"])
        found: dict[tuple[str, str, str], Row] = {}
        for row in rows.collect().sort("round", "name", maintain_order=True).iter_rows(named=True):
            for known_by in filter(None, (row["artifact_id"], folded(row["name"]))):
                place = (row["concept"], row["country"], known_by)
                if place not in found or found[place]["outcome"] not in ENTERED:
                    found[place] = row
        return found


def space_file(path: Path) -> Path:
    """Find the table of a cultural space in what a user names."""
    if path.is_file():
        return path
    found = next((path / name for name in _WITHIN if (path / name).is_file()), None)
    if found is None:
        raise UsageError(
            "there is no cultural space here", where=str(path), expected=f"a run folder, or a folder with {_WITHIN[0]}",
            found="a folder without one" if path.is_dir() else "nothing",
        )  # fmt: skip
    return found


def _walk_from(file: Path, folders: dict[str, Path], missing: list[str]) -> None:
    """Begin at the table itself; it must be what its stage wrote."""
    manifest = read_manifest(file.parent)
    record = manifest.outputs.get(file.name) if manifest else None
    if record is None:
        missing.append(f"no manifest tells what {file.name} was made from")
        return
    found = digest_file(file)
    if found != record.sha256:
        raise IntegrityError(
            "not the cultural space that its stage wrote", where=str(file), expected=f"SHA-256 {record.sha256}",
            found=found,
            hint="Remove the folder and release again, or compare a copy that lies in a folder of its own.",
        )  # fmt: skip
    _walk(file.parent, folders, missing)


def _walk(folder: Path, folders: dict[str, Path], missing: list[str]) -> None:
    """Go from a stage to those it was made from, as far as they are there and still the same."""
    manifest = read_manifest(folder)
    if manifest is None:
        missing.append(f"{folder.name} has no manifest")
        return
    folders.setdefault(manifest.stage, folder)
    for role, record in sorted(manifest.inputs.items()):
        if not record.stage:
            continue
        try:
            place = recorded(folder, role)
        except IntegrityError as error:
            missing.append(f"{manifest.stage}: {error.problem}")
            continue
        above = place if place.is_dir() else place.parent
        if _hash_now(place) != record.sha256:
            missing.append(f"the {role} that {manifest.stage} was made from is no longer there, or is another one")
        elif above not in folders.values():
            _walk(above, folders, missing)


def _hash_now(place: Path) -> str:
    """Read from its manifest what a stage, or a file of one, is."""
    manifest = read_manifest(place if place.is_dir() else place.parent)
    if manifest is None:
        return ""
    if place.is_dir():
        return manifest.sha256
    record = manifest.outputs.get(place.name)
    return record.sha256 if record and place.is_file() else ""


def _rows_of(file: Path, table: Table, column: str, qids: Iterable[str]) -> dict[tuple[str, str], Row]:
    """Read the rows of some items by item and concept."""
    wanted = pl.Series(sorted(set(qids)), dtype=pl.String).implode()
    names = [name for name in table.columns if name not in {"aliases", "image", "lat", "lon"}]
    rows = pl.scan_parquet(file).filter(pl.col(column).is_in(wanted)).select(names).collect()
    return {(row[column], row["concept"]): row for row in rows.iter_rows(named=True)}


Cause: TypeAlias = Literal["dump", "config", "wording", "model", "code"]

_CAUSES: tuple[Cause, ...] = ("dump", "config", "wording", "model", "code")
_STAGES = ("ingest", "extract", "filter", "completion", "settle", "review", "release")
_WHO = {"judge", "model", "models", "proposer", "verifier", "replies"}
_OPTIONAL = ("stage", "causes", "undecided", "because")
_JUDGED, _COMPLETED = "judge ", "LLM:"  # how reasons of a judge and identifiers of completed artifacts begin
_MOST_ITEMS, _SHOWN, _HASH = 4, 160, 12

_CANDIDATE = (*COLUMNS, "path", "label")
# The columns of a candidate that the part of a row is made from; other parts are made by the release.
_FROM_CANDIDATE = {
    "artifact": _CANDIDATE, "name": ("label",), "path": ("path",), "subconcept": ("roots",),
    "country": ("country_qids",), "continent": ("country_qids",),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Difference:
    """Something that differs between the inputs or options of a stage in two runs; `concept` is empty for all."""

    cause: Cause
    stage: str
    key: str = ""
    concept: str = ""
    before: object = None
    after: object = None

    def __str__(self) -> str:
        """Name it as it stands in messages."""
        return self.cause if self.cause in {"dump", "model"} else f"{self.cause} ({self.key})"

    def line(self) -> str:
        """Say how it differs."""
        if isinstance(self.before, list) and isinstance(self.after, list):
            gone, new = ([_shown(each) for each in side] for side in self.members)
            text = "; ".join([*(f"- {each}" for each in gone), *(f"+ {each}" for each in new)]) or "another order"
            return f"{self.cause}: {self.key}: {text}"
        return f"{self.cause}: {self.key}: {_shown(self.before)} -> {_shown(self.after)}"

    @property
    def members(self) -> tuple[list[Any], list[Any]]:
        """The members of a list on one side only."""
        a, b = (side if isinstance(side, list) else [] for side in (self.before, self.after))
        return [each for each in a if each not in b], [each for each in b if each not in a]

    def reaches(self, roots: Container[str]) -> bool:
        """Tell whether roots that differ are among those that lead to an item; anything else may reach it."""
        changed = [each["qid"] for side in self.members for each in side if isinstance(each, Mapping) and "qid" in each]
        return not changed or any(qid in roots for qid in changed)


def _shown(value: Any) -> str:  # noqa: ANN401 - JSON
    """Write a value of an option, cut where it is long."""
    if isinstance(value, Mapping) and "qid" in value:
        rest = ", ".join(str(inner) for key, inner in value.items() if key != "qid" and inner)
        return f"{value['qid']} ({rest})"
    text = value if isinstance(value, str) else canonical_json(value).decode()
    if re.fullmatch("[0-9a-f]{64}", text):
        return text[:_HASH]
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


@dataclass(frozen=True, slots=True)
class SpaceDiff:
    """All changes as a table; `untold` counts rows that differ in other columns; `factors` say what differs at all."""

    rows: pl.DataFrame
    untold: Mapping[str, int]
    factors: tuple[str, ...]
    missing: tuple[str, ...]


def compare_spaces(before: SpaceBehind, after: SpaceBehind, work: Work) -> SpaceDiff:
    """Compare two spaces, and find for every row that differs the first stage that made it so."""
    spaces = [before.space, after.space]
    changes = []
    for row in space_changes(*spaces).iter_rows(named=True):
        keys = ((row[f"concept{end}"], row[f"country{end}"], row[f"artifact_id{end}"]) for end in ("", "_after"))
        changes.append(_Change(tuple(dict.fromkeys(keys)), row["part"], row["change"], row["before"], row["after"]))
    work.progress.begin(len(changes), "changes")
    missing = tuple(f"{word}: {text}" for word, side in (("first", before), ("second", after)) for text in side.missing)
    differences = [] if missing else list(_differences(before, after))
    if missing:
        rows = [_table_row(change, None, (), _CAUSES, missing) for change in changes]
    else:
        compared = _Stages([before, after], changes, differences)
        rows = []
        for change in changes:
            rows.append(compared.explained(change))
            work.progress.advance(1)
    schema = {**DIFF.schema, **{name: DIFF.optional[name].dtype for name in _OPTIONAL}}
    factors = sorted(differences, key=lambda each: (_CAUSES.index(each.cause), each.concept, each.key))
    table = pl.DataFrame(rows, schema=schema)
    return SpaceDiff(table, untold_changes(*spaces), tuple(dict.fromkeys(map(str, factors))), missing)


@dataclass(frozen=True, slots=True)
class _Change:
    """A change between two spaces: the keys of the row on both sides (concept, country, artifact), and what differs."""

    keys: tuple[tuple[str, str, str], ...]
    part: str
    change: str
    before: str | None
    after: str | None


def _table_row(
    change: _Change, stage: str | None, causes: Sequence[str], undecided: Sequence[str], because: Iterable[str]
) -> dict[str, Any]:
    """Give a change as a row of the table `diff`."""
    concept, country, artifact_id = change.keys[0]
    return {
        "part": change.part, "qid": artifact_id, "concept": concept,
        "property": None if change.part == "artifact" else change.part, "value": country, "change": change.change,
        "before": change.before, "after": change.after, "stage": stage, "causes": list(causes),
        "undecided": list(undecided), "because": "\n".join(dict.fromkeys(because)),
    }  # fmt: skip


def _differences(before: SpaceBehind, after: SpaceBehind) -> Iterator[_Difference]:
    """List what differs between two runs: versions of stages, their options, and the files that no stage made."""
    for kind in _STAGES:
        a, b = before.manifests.get(kind), after.manifests.get(kind)
        if a is None or b is None:
            if a is not b:
                yield _Difference("config", kind, kind, "", *("none" if m is None else "a stage" for m in (a, b)))
            continue
        if a.version != b.version:
            yield _Difference("code", kind, kind, "", f"version {a.version}", f"version {b.version}")
        for path, one, other in _differing(_read_by(a), _read_by(b)):
            yield _difference(kind, path, one, other)


def _read_by(manifest: Manifest) -> dict[str, Any]:
    """Give what decides what a stage makes beside the stages before it: options, and files by hash."""
    files = {role: record.sha256 for role, record in manifest.inputs.items() if not record.stage}
    return {**manifest.options, **files}


def _differing(a: Any, b: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, Any]]:  # noqa: ANN401
    """Give every place where two nested mappings differ; configs of concepts are compared key by key and no deeper."""
    if isinstance(a, Mapping) and isinstance(b, Mapping) and len(path) < 3:
        for name in sorted({*a, *b}):
            yield from _differing(a.get(name), b.get(name), (*path, name))
    elif a != b:
        yield path, a, b


def _difference(kind: str, path: tuple[str, ...], before: object, after: object) -> _Difference:
    """Name a difference by what it is about."""
    name = path[0]
    if name == "concepts" and len(path) > 1:
        key = ".".join(path[1:])
        return _Difference("config", kind, key, path[1], before, after)
    key = f"{kind}.{'.'.join(path)}"
    if kind == "ingest" and name.startswith("dump"):
        return _Difference("dump", kind)
    if "wording" in name:
        return _Difference("wording", kind, key, "", before, after)
    if name in _WHO or name.startswith("replies"):
        return _Difference("model", kind, key, "", before, after)
    return _Difference("config", kind, key, "", before, after)


class _Stages:
    """What the stages of two runs made of the rows that changed."""

    def __init__(
        self, sides: Sequence[SpaceBehind], changes: Sequence[_Change], differences: Sequence[_Difference]
    ) -> None:
        """Read candidates, verdicts, decisions and proposals of the changed rows."""
        self.sides, self.differences = sides, differences
        qids = {key[2] for change in changes for key in change.keys}
        self.candidates = [side.candidates(qids) for side in sides]
        self.verdicts = [side.verdicts(qids) for side in sides]
        self.decisions = [side.decisions(qids) for side in sides]
        cells = {(key[0], key[1]) for change in changes for key in change.keys}
        self.proposals = [side.proposals(cells) for side in sides]
        self.same_kept = len({side.manifests["filter"].outputs["kept.parquet"].sha256 for side in sides}) == 1
        self.dumps = None
        if any(each.cause == "dump" for each in differences):
            rows = [row for table in self.candidates for row in table.values()]
            near = {qid for row in rows for qid in (*row["path"], *row["p31"], *row["p279"])}
            self.dumps = _DumpDifferences([side.folders["ingest"] for side in sides], qids | near)

    def explained(self, change: _Change) -> dict[str, Any]:
        """Find the first stage at which a row differs, and what differs there."""
        proposed = any(
            key[2].startswith(_COMPLETED) or any(own.get(key, {}).get("outcome") in ENTERED for own in self.proposals)
            for key in change.keys
        )
        stage, found, lines = self.completed(change) if proposed else self.extracted(change)
        lines = [*(each.line() for each in found if each.cause != "dump"), *lines]
        causes = tuple(cause for cause in _CAUSES if any(each.cause == cause for each in found))
        if len(causes) == 1:
            return _table_row(change, stage, causes, (), lines)
        return _table_row(change, stage, (), causes, lines or ["nothing that is recorded differs between the two runs"])

    def at(self, change: _Change, *stages: str) -> list[_Difference]:
        """List what differs in stages, as far as it concerns a concept of the row."""
        concepts = {"", *(key[0] for key in change.keys)}
        rows = [table.get((key[2], key[0])) for key in change.keys for table in self.candidates]
        roots = {root for row in rows if row for root in row["roots"]}
        reaching = (each for each in self.differences if each.concept in concepts and each.reaches(roots))
        return [each for each in reaching if each.stage in stages]

    def completed(self, change: _Change) -> tuple[str, list[_Difference], list[str]]:
        """Explain a row that a model proposed: it was told the names that the filter kept."""
        lines = []
        for key in change.keys:
            said = [_proposal_text(self.proposal(side, key)) for side in (0, 1)]
            lines.append(f"completion: {key[2]} in {key[0]}, {key[1]}: {said[0]} -> {said[1]}")
        earlier = () if self.same_kept else ("ingest", "extract", "filter")
        found = self.at(change, *earlier, "completion")
        return "completion", found or [_same_question("completion")], lines

    def proposal(self, side: int, key: tuple[str, str, str]) -> Row | None:
        """Find the proposal of an artifact in a run; one that did not enter has no identifier, and is known by name."""
        own, other = self.proposals[side], self.proposals[1 - side].get(key)
        if key in own or other is None:
            return own.get(key)
        return own.get((key[0], key[1], folded(other["name"])))

    def extracted(self, change: _Change) -> tuple[str, list[_Difference], list[str]]:
        """Explain a row that comes from the graph: candidate, verdict, decision of people, release."""
        pairs = list(dict.fromkeys((key[2], key[0]) for key in change.keys))
        rows = [[table.get(pair) for pair in pairs] for table in self.candidates]
        verdicts = [[table.get(pair) for pair in pairs] for table in self.verdicts]
        decisions = [[table.get(pair) for pair in pairs] for table in self.decisions]
        columns = _FROM_CANDIDATE.get(change.part, ())
        seen = [[None if row is None else [row[name] for name in columns] for row in side] for side in rows]
        judged = change.part == "artifact" and all(any(side) for side in rows)
        people = judged and decisions[0] != decisions[1]
        judge = (
            judged
            and not people
            and any(verdict for side in verdicts for verdict in side)
            and verdicts[0] != verdicts[1]
        )
        lines = []
        if people or judge:
            for number, (artifact_id, concept) in enumerate(pairs):
                texts = [" because ".join(side[number] or ("not asked",)) for side in verdicts]
                lines.append(f"filter: verdict on {artifact_id} in {concept}: {texts[0]} -> {texts[1]}")
        found: list[_Difference] = []
        if seen[0] != seen[1]:
            near = self.dump_lines(change, rows)
            upstream = self.at(change, "ingest", "extract")
            found = [each for each in upstream if each.cause != "dump" or near or len(upstream) == 1]
            lines = [*near, *lines]
        stage = "release"
        if found:
            stage = "ingest" if {each.stage for each in found} == {"ingest"} else "extract"
        if people:
            return stage if found else "review", [*found, *self.at(change, "review")], lines
        if judge:
            return stage if found else "filter", [*found, *self.at_filter(change, verdicts, changed=bool(found))], lines
        return stage, found or self.at(change, "release"), lines

    def at_filter(self, change: _Change, verdicts: Sequence[Sequence[Any]], *, changed: bool) -> list[_Difference]:
        """List what a verdict may differ for; a judge who is paid may say something else to the same question."""
        asked = any(verdict and verdict[1].startswith(_JUDGED) for side in verdicts for verdict in side)
        found = [each for each in self.at(change, "filter", "settle") if asked or each.cause in {"config", "code"}]
        if asked and not any(each.cause == "model" for each in found) and _paid(self.sides[0]):
            said_twice = all(verdict and verdict[1].startswith(_JUDGED) for side in verdicts for verdict in side)
            found += [_same_question("filter")] if said_twice else []
        return found if found or changed else self.at(change, "ingest", "extract")

    def dump_lines(self, change: _Change, rows: Sequence[Sequence[Row | None]]) -> list[str]:
        """Say what the dumps say differently of the item, then of what lies on its path, then of its classes."""
        if self.dumps is None:
            return []
        own = [row for side in rows for row in side if row]
        paths = (qid for row in own for qid in reversed(row["path"]))
        classes = (qid for row in own for qid in (*row["p31"], *row["p279"]))
        return self.dumps.lines([change.keys[0][2], *paths, *classes])


def _same_question(stage: str) -> _Difference:
    """Say that a model answered the same question otherwise."""
    return _Difference("model", stage, f"{stage}, the same question", "", "an answer", "another answer")


def _paid(side: SpaceBehind) -> bool:
    """Tell whether the judge can answer the same question otherwise another time."""
    judge = side.manifests["filter"].options.get("judge")
    return not (isinstance(judge, str) and judge.partition("?")[0].partition(":")[0] in {"rules", "replay"})


def _proposal_text(row: Row | None) -> str:
    """Write what became of a proposal."""
    if row is None:
        return "not proposed"
    detail = f" ({row['detail']})" if row["detail"] else ""
    return f"{row['outcome']} in round {row['round']}{detail}"


class _DumpDifferences:
    """What two graphs say of some items: names and place, and statements in words."""

    def __init__(self, graphs: Sequence[Path], qids: Iterable[str]) -> None:
        """Read them."""
        numbers = sorted({int(qid[1:]) for qid in qids if qid.startswith("Q")})
        tables = [GraphTables(graph) for graph in graphs]
        self.facts = [table.facts(numbers) for table in tables]
        self.stated: list[dict[int, set[str]]] = []
        for table in tables:
            stated = defaultdict(set)
            rows = among(table.statements, numbers).select("number", "property", "value", "snak", "rank", "ended")
            for number, name, value, snak, rank, ended in rows.collect().iter_rows():
                manner = (f", {rank}" if rank != "normal" else "") + ", ended" * ended
                stated[number].add(f"{name} {snak if value is None else f'Q{value}'}{manner}")
            self.stated.append(stated)

    def lines(self, qids: Iterable[str]) -> list[str]:
        """Say of items, each once, what only one dump says of them and where."""
        found = [line for qid in dict.fromkeys(qids) if qid.startswith("Q") and (line := self.line(qid))]
        more = len(found) - _MOST_ITEMS
        return [*found[:_MOST_ITEMS], f"dump: {more} more items on its path say something else"] if more > 0 else found

    def line(self, qid: str) -> str:
        """Say what differs in an item; empty where nothing does."""
        number = int(qid[1:])
        a, b = (side.get(number) for side in self.facts)
        if a is None or b is None:
            word = "only the second dump describes it" if a is None else "only the first describes it"
            return f"dump: {qid}: {word}, {here.place}" if (here := a or b) else ""
        before, after = (side.get(number, set()) for side in self.stated)
        names = [("label", a.label, b.label), ("description", a.description, b.description)]
        parts = [f"{name} {old!r} -> {new!r}" for name, old, new in names if old != new]
        parts += [f"- {text}" for text in sorted(before - after)] + [f"+ {text}" for text in sorted(after - before)]
        return f"dump: {qid}: {'; '.join(parts)}; {a.place} -> {b.place}" if parts else ""


# Two compared cultural spaces in lines of text.

_UNDECIDED = "undecided: "


def _cause_of(row: Mapping[str, Any]) -> str:
    """Write the causes of a row, and what is left undecided."""
    sure, open_ones = "+".join(row["causes"]), " or ".join(row["undecided"])
    if sure and open_ones:
        return f"{sure}, {_UNDECIDED}{open_ones}"
    return sure or (f"{_UNDECIDED}{open_ones}" if open_ones else "nothing recorded")


def cause_totals(rows: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Count the changes of each kind by their causes, most frequent causes first."""
    counted = Counter((_cause_of(row), row["change"]) for row in rows.iter_rows(named=True))
    totals = Counter({cause: 0 for cause, _ in counted})
    for (cause, _), count in counted.items():
        totals[cause] += count
    ordered = sorted(totals, key=lambda cause: (-totals[cause], cause))
    return {
        cause: {change: counted[cause, change] for change in CHANGES if counted[cause, change]} for cause in ordered
    }


def diff_lines(rows: pl.DataFrame, notes: Mapping[str, Any], *, show: int) -> Iterator[str]:
    """Tell what differs between two runs, how many rows it made others, and the first rows with their evidence."""
    yield f"what differs: {', '.join(notes['factors']) or 'nothing that is recorded'}"
    for text in notes["missing"]:
        yield f"not to be walked back: {text}"
    counts = Counter(rows["change"])
    yield ", ".join(f"{counts[change]:,} {change}" for change in CHANGES)
    if notes["untold"]:
        others = ", ".join(f"{name} in {counted(count, 'rows')}" for name, count in notes["untold"].items())
        yield f"not told row by row: {others}"
    yield from notes["checks"]
    if rows.height:
        yield f"{'cause':<40} " + " ".join(f"{change:>12}" for change in CHANGES)
        for cause, own in cause_totals(rows).items():
            yield f"{cause:<40} " + " ".join(f"{own.get(change, 0):>12,}" for change in CHANGES)
    for row in rows.head(show).iter_rows(named=True):
        yield from _row_lines(row)
    if rows.height > show:
        yield f"... and {rows.height - show:,} more; --out writes all of them"


def _row_lines(row: Mapping[str, Any]) -> Sequence[str]:
    """Tell a change, its cause, and the evidence below it."""
    name = {"added": row["after"], "removed": row["before"]}.get(row["change"])
    what = name or f"{row['part']} {row['before']} -> {row['after']}"
    head = (
        f"{row['change']} {row['concept']} {row['value']} {row['qid']} {what}: {_cause_of(row)} ({row['stage'] or '?'})"
    )
    return [head, *(f"    {line}" for line in row["because"].splitlines())]


def space_diff_stage(before: Path, after: Path) -> Stage:
    """Compare two cultural spaces; the keys of all stages behind them are part of what decides."""
    sides = [SpaceBehind.found_at(path) for path in (before, after)]
    use_countries_beside(*(side.file for side in sides))
    behind = {
        f"behind {word}": {
            **{kind: manifest.key for kind, manifest in sorted(side.manifests.items())}, "missing": list(side.missing),
        }
        for word, side in zip(("before", "after"), sides, strict=True)
    }  # fmt: skip

    def run(work: Work) -> Outcome:
        found = compare_spaces(sides[0], sides[1], work)
        write_table(work.out, DIFF, found.rows)
        counts = {"diff": found.rows.height, **dict(found.rows.group_by("change").len().iter_rows())}
        notes = {"factors": found.factors, "missing": found.missing, "untold": found.untold}
        notes |= {"checks": list(compared(*checks))}
        return Outcome(counts, notes={**notes, "causes": cause_totals(found.rows)})

    checks = [check_beside(side.file) for side in sides]
    inputs = roles_among(
        {"before": sides[0].file, "after": sides[1].file, "before-check": checks[0], "after-check": checks[1]}
    )
    return Stage("diff", "space-diff", 3, run, inputs, behind, packages=("polars",))
