"""How results look: one line of JSON for machines, lines for people."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, is_dataclass
from typing import Any

from culturekit.core.counting import JOINERS, printable


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


def duration(seconds: float) -> str:
    """Write a time in the unit that fits."""
    if seconds < 120.0:
        return f"{seconds:.0f} s"
    return f"{seconds / 60.0:.0f} min" if seconds < 7200.0 else f"{seconds / 3600.0:.1f} h"


def rate_text(rate: float) -> str:
    """Write a speed in the unit that fits."""
    if rate >= 1.0:
        return f"{rate:,.0f}/s"
    return f"{rate * 60.0:.0f}/min" if rate * 60.0 >= 1.0 else f"{rate * 3600.0:.0f}/h"


def _plain(value: Any) -> object:  # noqa: ANN401 - whatever JSON does not know
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)
