"""How results look: one line of JSON for machines, lines for people."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from culturekit.core.foreign_text import JOINERS, printable


def show(result: object, lines: Iterable[str], *, as_json: bool) -> None:
    """Print a result as JSON, dataclasses and paths in it too, or in lines."""
    if as_json:
        print(json.dumps(result, ensure_ascii=False, default=_plain))
    else:
        for line in lines:
            print(line)


def aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table whose columns are as wide as their widest cell."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def foreign(lines: Iterable[str]) -> Iterator[str]:
    """Give what others wrote, such as labels of Wikidata, as lines that each stay one and steer no terminal."""
    return (printable(line, keep=JOINERS) for line in lines)


def _plain(value: Any) -> object:  # noqa: ANN401 - whatever JSON does not know
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)
