"""Maps from items to items: QIDs that were merged into others, and states that took the place of others."""

from collections.abc import Mapping
from pathlib import Path

from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.yaml_source import StrictModel, read_yaml, validate
from culturekit.kg.countries import QID, Qid

_HEADER = ("qid", "target")


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
        if cells in {("",), _HEADER}:
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


class _SuccessorFile(StrictModel):
    """The file as a whole."""

    successors: dict[Qid, Qid]


def load_successors(path: Path) -> Mapping[int, int]:
    """Read which country stands for which, by QID number, chains followed to their end; circles are refused."""
    source = read_yaml(path)
    stated = validate(source, _SuccessorFile).successors
    last = {qid: final_target(qid, stated) for qid in stated}
    problems = []
    for qid, target in last.items():
        if target in stated:
            position = source.place(("successors", qid))
            message = "no last successor: the chain comes back to itself"
            problems.append(Problem(message, position.where, position.line, f"successors.{qid}"))
    if problems:
        raise ConfigError(problems)
    return {int(qid[1:]): int(target[1:]) for qid, target in last.items()}
