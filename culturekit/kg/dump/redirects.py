"""A map of redirected items: which QID now stands for which other."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.kg.qids import QID

__all__ = ["final_target", "numbered", "read_redirects"]

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
