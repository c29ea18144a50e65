"""Compare two cultural spaces: which rows differ, from which stage on, and which of its inputs or options differ."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from culturekit.builders.country_names import folded
from culturekit.builders.filtering.cspace_filter import COLUMNS
from culturekit.builders.space.checked import check_beside, compared
from culturekit.builders.space.space_files import read_space
from culturekit.core.digests import Manifest, canonical_json, digest_file, read_manifest
from culturekit.core.errors import CultureKitError, IntegrityError, UsageError, counted
from culturekit.core.inputs import manifest_of, roles_among, upstream
from culturekit.core.schemas import DIFF, OF_A_MODEL
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import write_table
from culturekit.kg.countries import number_of_item, use_countries_beside
from culturekit.kg.inspection.graph_stats import diff_graphs, text_of
from culturekit.trail.evidence import reason_text

KEY = ("concept", "country", "artifact_id")
PAIRED = {name: f"{name}_after" for name in KEY}

BY_NAME = ("concept", "country", "folded")
# By what rows find their partner, in turn.
WAYS = (KEY, ("artifact_id", "country"), ("artifact_id", "concept"), ("artifact_id",), BY_NAME)


COMPARED = ("name", "subconcept", "continent", "source", "path")


def _paired(before: pl.DataFrame, after: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Pair rows in each way where there is one on each side; give the pairs, what came, and what went."""
    removed, added = (_with_folded(side.select(*KEY, *COMPARED)) for side in (before, after))
    found = []
    for way in WAYS:
        a, b = (side.filter(pl.len().over(way) == 1) for side in (removed, added))
        b = b.rename(lambda name: f"{name}_after")
        pairs = a.join(b, left_on=way, right_on=[f"{name}_after" for name in way], coalesce=False)
        if way == BY_NAME:
            completed = pl.col("artifact_id", "artifact_id_after").str.starts_with(OF_A_MODEL)
            pairs = pairs.filter(pl.any_horizontal(completed))
        found.append(pairs)
        removed = removed.join(pairs, on=KEY, how="anti")
        added = added.join(pairs, left_on=KEY, right_on=list(PAIRED.values()), how="anti")
    return pl.concat(found), added, removed


def _with_folded(rows: pl.DataFrame) -> pl.DataFrame:
    """Add the folded name, by which a completed artifact is known when it has an item."""
    known = {name: folded(name) for name in rows["name"].unique()}
    return rows.with_columns(folded=pl.col("name").replace_strict(known, return_dtype=pl.String))


RECLASSIFIED = ("artifact_id", "concept", "subconcept", "country", "continent", "source", "path")
# Columns that are counted and not told row by row: one new row can move the popularity of all others in its cell.
UNTOLD = ("qid", "country_name", "popularity", "popularity_source", "country_order", "aliases", "verdict")


CHANGES = ("added", "removed", "renamed", "reclassified")

CHANGE_SCHEMA = {name: pl.String() for name in (*KEY, *PAIRED.values(), "part", "change", "before", "after")}


def space_changes(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """List the changes from one space to another: the row's key on both sides, the part, and its two values.

    A row is known by artifact, concept and country. One that lost its partner finds it again where just one row of the
    same artifact came and just one went: in its country under another concept, in its concept under another country, or
    under another of both; and a completed artifact that has an item now, by its folded name. Where several came or
    went, nothing is paired by guess: they are added and removed.
    """
    both, added, removed = _paired(before, after)
    parts = {"name": "renamed"} | dict.fromkeys(RECLASSIFIED, "reclassified")
    lines = [_part_rows(both, name, change) for name, change in parts.items()]
    rows = pl.concat([_alone(added, "added"), _alone(removed, "removed"), *lines])
    return rows.sort(*KEY, *PAIRED.values(), "part", nulls_last=False)


def untold_changes(before: pl.DataFrame, after: pl.DataFrame) -> dict[str, int]:
    """Count the rows, there on both sides, that differ in a column which is not told row by row."""
    counts = {}
    for name in UNTOLD:
        if name in before.columns or name in after.columns:
            a, b = (
                side.select(*KEY, (pl.col(name) if name in side.columns else pl.lit(None)).alias(role))
                for role, side in (("a", before), ("b", after))
            )
            joined = a.join(b, on=KEY)
            counts[name] = joined.filter(text_of(joined, "a").ne_missing(text_of(joined, "b"))).height
    return {name: count for name, count in counts.items() if count}


def _part_rows(both: pl.DataFrame, name: str, change: str) -> pl.DataFrame:
    """List the pairs that differ in a column."""
    values = {"before": text_of(both, name), "after": text_of(both, f"{name}_after")}
    differs = both.with_columns(**values).filter(pl.col("before").ne_missing(pl.col("after")))
    return _shaped(differs, name, change)


def _alone(rows: pl.DataFrame, change: str) -> pl.DataFrame:
    """List rows that are on one side only; the name stands on that side."""
    here, there = ("after", "before") if change == "added" else ("before", "after")
    keys = {paired: pl.col(name) for name, paired in PAIRED.items()}
    one_side = {here: pl.col("name"), there: pl.lit(None, pl.String)}
    return _shaped(rows.with_columns(**one_side, **keys), "artifact", change)


def _shaped(rows: pl.DataFrame, part: str, change: str) -> pl.DataFrame:
    """Give rows the columns of a list of changes."""
    complete = rows.with_columns(part=pl.lit(part), change=pl.lit(change))
    return complete.select(pl.col(name).cast(dtype) for name, dtype in CHANGE_SCHEMA.items())


_WITHIN = ("cspace.parquet", "cspace/cspace.parquet", "release/cspace.parquet")
_NEEDED = ("release", "filter", "extract", "ingest")  # without these a row cannot be followed
_STAGES = ("ingest", "extract", "filter", "completion", "settle", "review", "release")
_CAUSES = ("dump", "config", "wording", "model", "code")
_WHO = {"judge", "model", "models", "proposer", "verifier", "replies"}
_JUDGED = "judge "  # how reasons of a judge begin
_SIGNS = {"added": "+", "removed": "-", "changed": "*"}
_MOST_ITEMS, _SHOWN, _HASH = 4, 160, 12

# The columns of a candidate that a part of a row is made from; other parts are made by the release.
_FROM_CANDIDATE = {
    "artifact": (*COLUMNS, "path"), "name": ("label",), "path": ("path",), "subconcept": ("roots",),
    "country": ("country_qids",), "continent": ("country_qids",),
}  # fmt: skip

Row: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SpaceBehind:
    """A cultural space and the stages it was made from, by kind; `missing` says what could not be found, and why."""

    file: Path
    folders: dict[str, Path] = field(default_factory=dict)
    manifests: dict[str, Manifest] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)

    def rows(self, kind: str, table: str, **among: Iterable[str]) -> Iterator[Row]:
        """Read the rows of a stage's table that hold one of some values; none where there is no such stage."""
        if kind in self.folders:
            rows = pl.scan_parquet(self.folders[kind] / f"{table}.parquet")
            for name, values in among.items():
                rows = rows.filter(pl.col(name).is_in(pl.Series(sorted(set(values)), dtype=pl.String).implode()))
            yield from rows.collect().iter_rows(named=True)


def space_behind(path: Path) -> SpaceBehind:
    """Find a space from its table, its folder or the folder of its run, and the stages it was made from."""
    side = SpaceBehind(space_file(path))
    manifest = read_manifest(side.file.parent)
    record = manifest.outputs.get(side.file.name) if manifest else None
    if record is None:
        side.missing.append(f"no manifest tells what {side.file.name} was made from")
        return side
    if (found := digest_file(side.file)) != record.sha256:
        raise IntegrityError(
            "not the cultural space that its stage wrote", where=str(side.file), expected=f"SHA-256 {record.sha256}",
            found=found,
            hint="Remove the folder and release again, or compare a copy that lies in a folder of its own.",
        )  # fmt: skip
    _walk(side.file.parent, side)
    if not side.missing:
        side.missing.extend(f"no {kind} stage" for kind in _NEEDED if kind not in side.folders)
    return side


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


def _walk(folder: Path, side: SpaceBehind) -> None:
    """Go from a stage to those it was made from, as far as they are there and still the same."""
    manifest = manifest_of(folder)
    side.folders.setdefault(manifest.stage, folder)
    side.manifests.setdefault(manifest.stage, manifest)
    for role in sorted(role for role, record in manifest.inputs.items() if record.stage):
        try:
            above = upstream(folder, role)
            above = above if above.is_dir() else above.parent
            if above not in side.folders.values():
                _walk(above, side)
        except CultureKitError as error:
            side.missing.append(f"{manifest.stage}: {error.problem}")


@dataclass(frozen=True, slots=True)
class _Difference:
    """An input or option of a stage that differs between two runs; `concept` is empty where it is about all."""

    cause: str
    stage: str
    key: str
    concept: str = ""
    before: Any = None
    after: Any = None

    def __str__(self) -> str:
        """Name it as it stands in messages."""
        return self.cause if self.cause in {"dump", "model"} else f"{self.cause} ({self.key})"

    def line(self) -> str:
        """Say how it differs."""
        gone, new = self.members()
        sides = [f"- {_shown(each)}" for each in gone] + [f"+ {_shown(each)}" for each in new]
        return f"{self.cause}: {self.key}: {'; '.join(sides) or f'{_shown(self.before)} -> {_shown(self.after)}'}"

    def members(self) -> tuple[list[Any], list[Any]]:
        """Give the members of a list on one side only."""
        if not isinstance(self.before, list) or not isinstance(self.after, list):
            return [], []
        return [each for each in self.before if each not in self.after], [
            each for each in self.after if each not in self.before
        ]

    def reaches(self, roots: set[str]) -> bool:
        """Tell whether roots that differ are among those that lead to an item; anything else may reach it."""
        changed = {each["qid"] for side in self.members() for each in side if isinstance(each, dict) and "qid" in each}
        return not changed or bool(changed & roots)


def _shown(value: Any) -> str:  # noqa: ANN401 - JSON
    """Write a value of an option, cut where it is long."""
    if isinstance(value, Mapping) and "qid" in value:
        rest = ", ".join(str(inner) for key, inner in value.items() if key != "qid" and inner)
        return f"{value['qid']} ({rest})"
    text = value if isinstance(value, str) else canonical_json(value).decode()
    if re.fullmatch("[0-9a-f]{64}", text):
        return text[:_HASH]
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


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
            name, key = path[0], f"{kind}.{'.'.join(path)}"
            if name == "concepts" and len(path) > 1:
                yield _Difference("config", kind, ".".join(path[1:]), path[1], one, other)
            elif kind == "ingest" and name.startswith("dump"):
                yield _Difference("dump", kind, key)
            else:
                who = name in _WHO or name.startswith("replies")
                cause = "wording" if "wording" in name else "model" if who else "config"
                yield _Difference(cause, kind, key, "", one, other)


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


class _Stages:
    """What the stages of two runs made of the rows that changed."""

    def __init__(self, sides: Sequence[SpaceBehind], qids: set[str], differences: Sequence[_Difference]) -> None:
        """Read candidates, verdicts, decisions and proposals of the changed rows."""
        self.differences = differences
        self.candidates = [
            {(row["qid"], row["concept"]): row for row in side.rows("extract", "candidates", qid=qids)}
            for side in sides
        ]
        self.verdicts = [_verdicts(side, qids) for side in sides]
        self.decisions = [
            {(row["qid"], row["concept"]): row["decision"] == "accept"
             for row in side.rows("review", "decisions", qid=qids) if row["counts"]}
            for side in sides
        ]  # fmt: skip
        entered = ("added", "country added")
        self.proposed = {
            (row["concept"], row["country"], row["artifact_id"])
            for side in sides for row in side.rows("completion", "proposals", artifact_id=qids, outcome=entered)
        }  # fmt: skip
        judge = str(sides[0].manifests["filter"].options.get("judge"))
        self.paid = judge.partition("?")[0].partition(":")[0] not in {"rules", "replay"}
        self.same_kept = len({side.manifests["filter"].outputs["kept.parquet"].sha256 for side in sides}) == 1
        self.dumps: dict[str, list[str]] = {}
        if any(each.cause == "dump" for each in differences):
            rows = [row for table in self.candidates for row in table.values()]
            near = qids.union(*(_near(row) for row in rows))
            before, after = (side.folders["ingest"] for side in sides)
            self.dumps = _dump_differences(before, after, near)

    def explain(self, part: str, keys: Sequence[tuple[str, str, str]]) -> tuple[str, list[_Difference], list[str]]:
        """Find the first stage at which a row differs, what differs there and in later ones, and evidence in lines."""
        if any(key in self.proposed or key[2].startswith(OF_A_MODEL) for key in keys):
            earlier = () if self.same_kept else ("ingest", "extract", "filter")  # a model is told what was kept
            return "completion", self.at(keys, *earlier, "completion") or [_same_question("completion")], []
        pairs = list(dict.fromkeys((artifact, concept) for concept, _, artifact in keys))
        rows = [[table.get(pair) for pair in pairs] for table in self.candidates]
        verdicts = [[table.get(pair) for pair in pairs] for table in self.verdicts]
        decisions = [[table.get(pair) for pair in pairs] for table in self.decisions]
        stages, found, lines = list[str](), list[_Difference](), list[str]()
        values = [[row and [row[name] for name in _FROM_CANDIDATE.get(part, ())] for row in side] for side in rows]
        if values[0] != values[1]:
            lines = self.dump_lines(pairs[0][0], [row for side in rows for row in side if row])
            found = self.at(keys, "ingest", "extract")
            found = [each for each in found if each.cause != "dump" or lines or len(found) == 1]
            stages.append("extract" if any(each.stage == "extract" for each in found) else "ingest")
        judged = part == "artifact" and all(any(side) for side in rows)  # a candidate in both runs
        if judged and (decisions[0] != decisions[1] or verdicts[0] != verdicts[1]):
            stages.append("review" if decisions[0] != decisions[1] else "filter")
            here = self.at(keys, "review") if stages[-1] == "review" else self.at_filter(keys, verdicts)
            found += here if here or len(stages) > 1 else self.at(keys, "ingest", "extract")
            for pair, *sides in zip(pairs, *verdicts, strict=True):
                texts = [" because ".join(verdict or ("not asked",)) for verdict in sides]
                lines.append(f"filter: verdict on {pair[0]} in {pair[1]}: {texts[0]} -> {texts[1]}")
        return (stages[0], found, lines) if stages else ("release", self.at(keys, "release"), [])

    def at(self, keys: Sequence[tuple[str, str, str]], *stages: str) -> list[_Difference]:
        """List what differs in stages, as far as it concerns a concept of the row and the roots that lead to it."""
        concepts = {"", *(key[0] for key in keys)}
        rows = [table.get((key[2], key[0])) for key in keys for table in self.candidates]
        roots = {root for row in rows if row for root in row["roots"]}
        near = [each for each in self.differences if each.stage in stages and each.concept in concepts]
        return [each for each in near if each.reaches(roots)]

    def at_filter(self, keys: Sequence[tuple[str, str, str]], verdicts: Sequence[Sequence[Any]]) -> list[_Difference]:
        """List what a verdict may differ for; a judge who is paid may answer the same question otherwise."""
        judged = [bool(verdict) and verdict[1].startswith(_JUDGED) for side in verdicts for verdict in side]
        found = self.at(keys, "filter", "settle")
        if not any(judged):
            return [each for each in found if each.cause in {"config", "code"}]
        again = all(judged) and self.paid and not any(each.cause == "model" for each in found)
        return [*found, _same_question("filter")] if again else found

    def dump_lines(self, qid: str, rows: Sequence[Row]) -> list[str]:
        """Say what the dumps say differently of an item, its path and its classes."""
        near = dict.fromkeys([qid, *(each for row in rows for each in _near(row))])
        lines = [f"dump: {each}: {'; '.join(self.dumps[each])}" for each in near if each in self.dumps]
        if self.dumps and len({row["description"] for row in rows if row["qid"] == qid}) > 1:
            lines.insert(0, f"dump: {qid}: * description")
        return lines[:_MOST_ITEMS]


def _near(row: Row) -> Iterator[str]:
    """Give the items on the path of a candidate, and its classes."""
    yield from (*reversed(row["path"]), *row["p31"], *row["p279"])


def _verdicts(side: SpaceBehind, qids: set[str]) -> dict[tuple[str, str], tuple[str, str]]:
    """Read what became of candidates, and why, by item and concept."""
    found: dict[tuple[str, str], tuple[str, str]] = {}
    for kind in ("filter", "settle"):
        for row in side.rows(kind, "drops", key=qids):
            found[row["key"], row["concept"]] = ("remove", reason_text(row))
        for row in side.rows(kind, "kept", qid=qids):
            found[row["qid"], row["concept"]] = (row["verdict"], row["reason"])
    return found


def _same_question(stage: str) -> _Difference:
    """Say that a model answered the same question otherwise."""
    return _Difference("model", stage, f"{stage}, the same question", "", "an answer", "another answer")


def _dump_differences(before: Path, after: Path, qids: Iterable[str]) -> dict[str, list[str]]:
    """Say in words, by item, what only one of two graphs says."""
    found = defaultdict[str, list[str]](list)
    rows = diff_graphs(before, after, numbers=(number_of_item(qid) for qid in qids if qid.startswith("Q")))
    for row in rows.sort(DIFF.key, nulls_last=False).iter_rows(named=True):
        what = " ".join(filter(None, (row["property"] or row["part"], row["value"])))
        sides = f" {row['before']} -> {row['after']}" if row["change"] == "changed" else ""
        found[row["qid"]].append(f"{_SIGNS[row['change']]} {what}{sides}")
    return found


def compare_spaces(before: SpaceBehind, after: SpaceBehind) -> tuple[pl.DataFrame, dict[str, Any]]:
    """Compare two spaces: all changes as a table, each with the first stage that made it so, and notes about them all.

    `untold` counts rows that differ in other columns, `factors` say what differs at all, `missing` what is not there.
    """
    spaces = [read_space(side.file)[0] for side in (before, after)]
    changes = space_changes(*spaces).rows(named=True)
    keys = [
        list(dict.fromkeys((row[f"concept{end}"], row[f"country{end}"], row[f"artifact_id{end}"])
                           for end in ("", "_after"))) for row in changes
    ]  # fmt: skip
    missing = [f"{word}: {text}" for word, side in (("first", before), ("second", after)) for text in side.missing]
    differences = [] if missing else list(_differences(before, after))
    stages = None if missing else _Stages([before, after], {key[2] for ends in keys for key in ends}, differences)
    rows = []
    for row, ends in zip(changes, keys, strict=True):
        stage, found, lines = stages.explain(row["part"], ends) if stages else (None, [], missing)
        causes = [cause for cause in _CAUSES if not stages or any(each.cause == cause for each in found)]
        because = [*(each.line() for each in found if each.cause != "dump"), *lines]
        rows.append({
            "part": row["part"], "qid": ends[0][2], "concept": ends[0][0],
            "property": None if row["part"] == "artifact" else row["part"], "value": ends[0][1],
            "change": row["change"], "before": row["before"], "after": row["after"], "stage": stage,
            "causes": causes if len(causes) == 1 else [], "undecided": [] if len(causes) == 1 else causes,
            "because": "\n".join(dict.fromkeys(because or ["nothing that is recorded differs between the two runs"])),
        })  # fmt: skip
    table = pl.DataFrame(rows, schema={**DIFF.schema, **{name: column.dtype for name, column in DIFF.optional.items()}})
    factors = sorted(differences, key=lambda each: (_CAUSES.index(each.cause), each.concept, each.key))
    notes = {"factors": list(dict.fromkeys(map(str, factors))), "missing": missing, "untold": untold_changes(*spaces)}
    return table, notes


def _cause_of(row: Row) -> str:
    """Write the cause of a row, or those among which it is undecided."""
    sure, undecided = "+".join(row["causes"]), " or ".join(row["undecided"])
    return sure or (f"undecided: {undecided}" if undecided else "nothing recorded")


def _cause_totals(rows: pl.DataFrame) -> dict[str, dict[str, int]]:
    """Count the changes of each kind by their causes, most frequent causes first."""
    totals = defaultdict[str, Counter[str]](Counter)
    for row in rows.iter_rows(named=True):
        totals[_cause_of(row)][row["change"]] += 1
    ordered = sorted(totals, key=lambda cause: (-totals[cause].total(), cause))
    return {cause: {change: totals[cause][change] for change in CHANGES if totals[cause][change]} for cause in ordered}


def diff_lines(rows: pl.DataFrame, notes: Mapping[str, Any], *, show: int) -> Iterator[str]:
    """Tell what differs between two runs, how many rows it made others, and the first rows with their evidence."""
    yield f"what differs: {', '.join(notes['factors']) or 'nothing that is recorded'}"
    for text in notes["missing"]:
        yield f"not to be walked back: {text}"
    totals = Counter(rows["change"])
    yield ", ".join(f"{totals[change]:,} {change}" for change in CHANGES)
    if notes["untold"]:
        others = ", ".join(f"{name} in {counted(count, 'rows')}" for name, count in notes["untold"].items())
        yield f"not told row by row: {others}"
    yield from notes["checks"]
    if rows.height:
        yield f"{'cause':<40} " + " ".join(f"{change:>12}" for change in CHANGES)
        for cause, counts in notes["causes"].items():
            yield f"{cause:<40} " + " ".join(f"{counts.get(change, 0):>12,}" for change in CHANGES)
    for row in rows.head(show).iter_rows(named=True):
        name = {"added": row["after"], "removed": row["before"]}.get(row["change"])
        what = name or f"{row['part']} {row['before']} -> {row['after']}"
        where = f"{row['concept']} {row['value']} {row['qid']}"
        yield f"{row['change']} {where} {what}: {_cause_of(row)} ({row['stage'] or '?'})"
        yield from (f"    {line}" for line in row["because"].splitlines())
    if rows.height > show:
        yield f"... and {rows.height - show:,} more; --out writes all of them"


def space_diff_stage(before: Path, after: Path) -> Stage:
    """Compare two cultural spaces; the keys of all stages behind them are part of what decides."""
    sides = [space_behind(path) for path in (before, after)]
    use_countries_beside(*(side.file for side in sides))
    upstream_keys = {
        f"behind {word}": {
            **{kind: manifest.key for kind, manifest in sorted(side.manifests.items())}, "missing": side.missing,
        }
        for word, side in zip(("before", "after"), sides, strict=True)
    }  # fmt: skip

    def run(work: Work) -> Outcome:
        rows, notes = compare_spaces(*sides)
        write_table(work.out, DIFF, rows)
        counts = {"diff": rows.height, **dict(rows.group_by("change").len().iter_rows())}
        return Outcome(counts, notes={**notes, "checks": list(compared(*checks)), "causes": _cause_totals(rows)})

    checks = [check_beside(side.file) for side in sides]
    inputs = roles_among(
        {"before": sides[0].file, "after": sides[1].file, "before-check": checks[0], "after-check": checks[1]}
    )
    return Stage("diff", "space-diff", 4, run, inputs, upstream_keys, packages=("polars",))
