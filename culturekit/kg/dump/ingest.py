"""Dump files to the graph store: runs of lines to parts, parts to one sorted result."""

import logging
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.errors import ConfigError, IntegrityError, Problem, UsageError
from culturekit.core.schemas import STARTS
from culturekit.core.stage_command import Typed
from culturekit.core.tables import write_table
from culturekit.core.work import Outcome, Work
from culturekit.kg.countries import QID
from culturekit.kg.dump.build_store import build_store
from culturekit.kg.dump.entities import LARGEST
from culturekit.kg.dump.members import STDIN
from culturekit.kg.dump.read_dump import FileReport, read_dump
from culturekit.kg.dump.triples import LACKS

# A map of redirected items: which QID now stands for which other.

HEADER = ("qid", "target")


def read_redirects(path: Path) -> Mapping[str, str]:
    """Read `qid,target` lines, separated by comma or tab; a first line with these two words is a header."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError("there is no such file of redirects", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=str(path), found=f"byte {error.start}") from error
    targets: dict[str, str] = {}
    problems = []
    for number, line in enumerate(lines, start=1):
        cells = tuple(cell.strip() for cell in line.replace("\t", ",").split(","))
        if cells in {("",), HEADER}:
            continue
        if len(cells) != 2 or not all(QID.match(cell) for cell in cells):
            problems.append(Problem(f"a redirect is two QIDs, found {line[:80]!r}", str(path), number))
        elif targets.setdefault(*cells) != cells[1]:
            message = f"{cells[0]} is redirected twice, to {targets[cells[0]]} and to {cells[1]}"
            problems.append(Problem(message, str(path), number))
    if problems:
        raise ConfigError(problems)
    if not targets:
        raise UsageError("the file has no redirects", where=str(path), expected="lines such as Q1,Q2", found="none")
    return targets


def final_target(qid: str, redirects: Mapping[str, str]) -> str:
    """Follow redirects to their end; of a circle, give the last before it closes."""
    seen = {qid}
    while redirects.get(qid, qid) not in seen:
        qid = redirects[qid]
        seen.add(qid)
    return qid


def numbered(redirects: Mapping[str, str]) -> pl.DataFrame:
    """Give each redirected number and the number where it ends: value and target, u32."""
    ends = {int(qid[1:]): int(final_target(qid, redirects)[1:]) for qid in redirects}
    return pl.DataFrame(
        {"value": list(ends), "target": list(ends.values())}, schema={"value": pl.UInt32, "target": pl.UInt32}
    )


logger = logging.getLogger(__name__)

LANGUAGE = re.compile(r"(?:[a-z]{2,3}|simple)(?:-[a-z0-9]+)*")
"""A code of a language of Wikidata, such as `pt-br`, which others write `pt-BR`."""

SAMPLES = 3
"""How many malformed lines are quoted."""


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """How a dump is read."""

    languages: Annotated[
        tuple[str, ...],
        Field(description="Languages of labels after en and mul, separated by commas."),
        Typed(once=True),
    ] = ("en",)
    max_malformed: Annotated[
        float,
        Field(ge=0, le=1, description="Share of malformed lines above which the run stops."),
        Typed("max-malformed"),
    ] = 0.001

    def __post_init__(self) -> None:
        codes = dict.fromkeys(code.replace("_", "-").lower() for code in self.languages)
        object.__setattr__(self, "languages", tuple(codes))
        strange = [code for code in self.languages if not LANGUAGE.fullmatch(code)]
        if strange or not self.languages:
            raise UsageError(
                "languages must be codes of Wikidata", expected="such as en or en,pt-BR",
                found=repr(strange[0]) if strange else "none",
            )  # fmt: skip


def ingest(work: Work, dump: Sequence[Path], options: IngestOptions, *, redirects: Path | None = None) -> Outcome:
    """Read dump files into a graph store at `work.out`; `redirects` lists QIDs that now stand for others."""
    if len(dump) > LARGEST:
        raise UsageError(f"a dump is read from {LARGEST:,} files at most", found=f"{len(dump):,}")
    moved = None if redirects is None else numbered(read_redirects(redirects))
    work.progress.begin(sum(size_of(path) for path in dump), "bytes of the dump")
    reports = [read_dump(work, file, path, options.languages) for file, path in enumerate(dump)]
    check_malformed(reports, options.max_malformed, dump)
    kinds = sum((report.kinds for report in reports), Counter[str]())
    parts = [part for report in reports for part in report.parts]
    write_table(work.out, STARTS, starts_of(reports))
    built = build_store(work.out, parts, work.scratch, moved, items=kinds["item"])
    drops = {f"not an item: {kind}": count for kind, count in kinds.items() if kind != "item"}
    drops |= {f"malformed: {reason}": count for reason, count in all_malformed(reports).items()}
    drops |= sum((report.left_out for report in reports), Counter[str]())
    if built.duplicates:
        drops["item given twice"] = built.duplicates
    totals = {"lines": sum(report.entities for report in reports), **built.counts}
    notes: dict[str, object] = {
        "members": sum(report.members for report in reports),
        "bytes": sum(report.length for report in reports),
        "redirected targets": built.redirected,
        "dangling targets": built.dangling,
    }
    if any(report.syntax == "triples" for report in reports):
        refuse_scattered(built.duplicates, dump)
        notes["lacks"] = list(LACKS)
        logger.warning("triples say nothing of %s: the graph has none", ", ".join(LACKS))
    return Outcome(totals, drops, notes)


def refuse_scattered(duplicates: int, dump: Sequence[Path]) -> None:
    """Refuse triples of which those about one item do not stand together: only the first of them would be heard."""
    if duplicates:
        raise IntegrityError(
            "the triples about an item do not stand together",
            where=", ".join(path.name for path in dump),
            found=f"{duplicates:,} items that come again",
            hint="Nothing was published. Sort the lines: LC_ALL=C sort FILE, which moves no item apart.",
        )


def starts_of(reports: Sequence[FileReport]) -> pl.DataFrame:
    """List where each file can be read from."""
    rows = sorted((file, *start) for file, report in enumerate(reports) for start in report.starts)
    return pl.DataFrame(rows, schema=STARTS.schema, orient="row")


def size_of(path: Path) -> int:
    """Give the bytes of a dump file; how many standard input will have nobody knows."""
    return path.stat().st_size if path != STDIN and path.is_file() else 0


def all_malformed(reports: Sequence[FileReport]) -> Counter[str]:
    """Add up the malformed lines by reason."""
    return sum((report.malformed for report in reports), Counter[str]())


def check_malformed(reports: Sequence[FileReport], share: float, dump: Sequence[Path]) -> None:
    """Stop when more lines are malformed than a dump can have by accident."""
    name = ", ".join(path.name for path in dump)
    lines = sum(report.entities for report in reports)
    malformed = sum(all_malformed(reports).values())
    if lines == 0:
        raise IntegrityError("the dump holds no entity", where=name)
    samples = [
        f"{path}, line {sample.line} (member {sample.member}, byte {sample.offset}): {sample.problem}"
        for path, report in zip(dump, reports, strict=True)
        for sample in report.samples
    ]
    for sample in samples[:SAMPLES]:
        logger.warning("malformed: %s", sample)
    if malformed > share * lines:
        raise IntegrityError(
            f"{malformed:,} of {lines:,} lines are not entities",
            where=name,
            expected=f"at most {share:.2%}",
            found="; ".join(samples[:SAMPLES]),
            hint="Nothing was published. If the dump is sound, allow more with --max-malformed.",
        )
