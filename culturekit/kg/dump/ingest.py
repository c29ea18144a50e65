"""Ingest dump files into the graph store: runs of lines to parts, parts to one sorted result."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.schemas import STARTS
from culturekit.core.stage import Stage
from culturekit.core.stage_command import Typed
from culturekit.core.tables import write_table
from culturekit.core.work import Outcome, Work
from culturekit.kg.dump.build_store import build_store
from culturekit.kg.dump.entities import LARGEST
from culturekit.kg.dump.members import STDIN, tells_damage
from culturekit.kg.dump.read_dump import FileReport, read_dump
from culturekit.kg.dump.runs import Tally
from culturekit.kg.dump.triples import LACKS
from culturekit.kg.redirects import final_target, read_redirects

logger = logging.getLogger(__name__)

# A code of a language of Wikidata, such as `pt-br`, which others write `pt-BR`.
_LANGUAGE = re.compile(r"(?:[a-z]{2,3}|simple)(?:-[a-z0-9]+)*")
_SAMPLES = 3  # malformed lines that are quoted


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
        strange = [code for code in self.languages if not _LANGUAGE.fullmatch(code)]
        if strange or not self.languages:
            raise UsageError(
                "languages must be codes of Wikidata", expected="such as en or en,pt-BR",
                found=repr(strange[0]) if strange else "none",
            )  # fmt: skip


def ingest(work: Work, dump: Sequence[Path], options: IngestOptions, *, redirects: Path | None = None) -> Outcome:
    """Read dump files into a graph store at `work.out`; `redirects` lists QIDs that now stand for others."""
    if len(dump) > LARGEST:
        raise UsageError(f"a dump is read from {LARGEST:,} files at most", found=f"{len(dump):,}")
    moved = None if redirects is None else _numbered(read_redirects(redirects))
    # How many bytes standard input will have nobody knows.
    sizes = [path.stat().st_size for path in dump if path != STDIN and path.is_file()]
    work.progress.begin(sum(sizes), "bytes of the dump")
    reports = [read_dump(work, file, path, options.languages) for file, path in enumerate(dump)]
    tally = Tally()
    for report in reports:
        tally.add(report.tally)
    _check_malformed(reports, tally, options.max_malformed, dump)
    starts = sorted((file, *start) for file, report in enumerate(reports) for start in report.starts)
    write_table(work.out, STARTS, pl.DataFrame(starts, schema=STARTS.schema, orient="row"))
    parts = [part for report in reports for part in report.parts]
    built = build_store(work.out, parts, work.scratch, moved, items=tally.kinds.get("item", 0))
    drops = {f"not an item: {kind}": count for kind, count in tally.kinds.items() if kind != "item"}
    drops |= {f"malformed: {reason}": count for reason, count in tally.malformed.items()} | tally.left_out
    if built.duplicates:
        drops["item given twice"] = built.duplicates
    notes: dict[str, object] = {
        "members": sum(report.members for report in reports),
        "bytes": sum(report.length for report in reports),
        "redirected targets": built.redirected,
        "dangling targets": built.dangling,
    }
    if any(report.syntax == "triples" for report in reports):
        if built.duplicates:  # only the first lines of an item would count
            raise IntegrityError(
                "the triples about an item do not stand together",
                where=", ".join(path.name for path in dump),
                found=f"{built.duplicates:,} items that come again",
                hint="Nothing was published. Sort the lines: LC_ALL=C sort FILE, which moves no item apart.",
            )
        notes["lacks"] = list(LACKS)
        logger.warning("triples say nothing of %s: the graph has none", ", ".join(LACKS))
    return Outcome({"lines": tally.entities, **built.counts}, drops, notes)


def _numbered(redirects: Mapping[str, str]) -> pl.DataFrame:
    """Give each redirected number and the number where it ends: value and target, u32."""
    rows = [(int(qid[1:]), int(final_target(qid, redirects)[1:])) for qid in redirects]
    return pl.DataFrame(rows, schema={"value": pl.UInt32, "target": pl.UInt32}, orient="row")


def _check_malformed(reports: Sequence[FileReport], tally: Tally, share: float, dump: Sequence[Path]) -> None:
    """Stop when more lines are malformed than a dump can have by accident."""
    name = ", ".join(path.name for path in dump)
    if tally.entities == 0:
        raise IntegrityError("the dump holds no entity", where=name)
    samples = [
        f"{path}, line {sample.line} (member {sample.member}, byte {sample.offset}): {sample.problem}"
        for path, report in zip(dump, reports, strict=True)
        for sample in report.tally.samples
    ][:_SAMPLES]
    for sample in samples:
        logger.warning("malformed: %s", sample)
    malformed = sum(tally.malformed.values())
    if malformed > share * tally.entities:
        raise IntegrityError(
            f"{malformed:,} of {tally.entities:,} lines are not entities",
            where=name,
            expected=f"at most {share:.2%}",
            found="; ".join(samples),
            hint="Nothing was published. If the dump is sound, allow more with --max-malformed.",
        )


# The stage from a dump to a graph; apart from the others, so that reading a dump waits for none of their packages.


INGEST_VERSION = 5
SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def ingest_stage(
    dump: Sequence[Path],
    options: IngestOptions,
    *,
    sha256: Sequence[str] = (),
    redirects: Path | None = None,
) -> Stage:
    """Read a dump into a graph; `sha256` holds its files, in their order, to what was published."""
    if len(sha256) not in {0, len(dump)}:
        raise UsageError("give a SHA-256 for each dump file, in their order", found=f"{len(sha256)} for {len(dump)}")
    for text in sha256:
        if not SHA256.fullmatch(text):
            raise UsageError("not a SHA-256", where="--sha256", expected="64 hexadecimal digits", found=repr(text))
    if STDIN in dump:
        return stdin_stage(dump, options, sha256, redirects)
    for path in dump:
        if not sha256 and path.is_file() and not tells_damage(path):
            logger.warning("nothing in %s tells whether it is whole: hold it to its published --sha256", path)
    return Stage(
        "graph",
        "ingest",
        INGEST_VERSION,
        lambda work: ingest(work, dump, options, redirects=redirects),
        {**{f"dump-{number}": path for number, path in enumerate(dump)}, **redirect_input(redirects)},
        asdict(options),
        packages=("isal", "msgspec", "numpy", "polars"),
        expected={f"dump-{number}": text for number, text in enumerate(sha256)},
    )


def redirect_input(redirects: Path | None) -> dict[str, Path]:
    """Name the file of redirects as an input, where there is one."""
    return {} if redirects is None else {"redirects": redirects}


def stdin_stage(dump: Sequence[Path], options: IngestOptions, sha256: Sequence[str], redirects: Path | None) -> Stage:
    """Read standard input into a graph: what it holds is known only afterwards, so that its graph is never reused."""
    if len(dump) > 1:
        raise UsageError("standard input is the whole dump", expected="- alone", found=" ".join(map(str, dump)))
    if sha256:
        raise UsageError(
            "standard input cannot be held to a SHA-256 before it is read",
            hint="Check the stream on its way: curl ... | tee >(sha256sum >&2) | culturekit kg ingest -",
        )
    return Stage(
        "graph",
        "ingest",
        INGEST_VERSION,
        lambda work: ingest(work, dump, options, redirects=redirects),
        redirect_input(redirects),
        {**asdict(options), "standard input, begun": datetime.now(UTC).isoformat()},
        packages=("isal", "msgspec", "numpy", "polars"),
    )
