"""Dump files to the graph store: runs of lines to parts, parts to one sorted result."""

import logging
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.errors import IntegrityError, UsageError
from culturekit.kg.dump.build_store import build_store
from culturekit.kg.dump.item_batches import LARGEST
from culturekit.kg.dump.members import STDIN
from culturekit.kg.dump.read_dump import read_dump
from culturekit.kg.dump.redirects import numbered, read_redirects
from culturekit.kg.dump.splice import FileReport
from culturekit.kg.dump.triples import LACKS
from culturekit.records.schemas import STARTS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage_command import Typed
from culturekit.storage.tables import write_table

__all__ = ["IngestOptions", "ingest"]

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
        object.__setattr__(self, "languages", tuple(code.replace("_", "-").lower() for code in self.languages))
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
