"""Where two JSON values part, place by place."""

from collections.abc import Iterator
from typing import Any

__all__ = ["differences"]

LONGEST = 120
NOTHING = "nothing"


def differences(wanted: Any, found: Any, path: str = "") -> Iterator[tuple[str, str, str]]:  # noqa: ANN401 - JSON
    """Give path, wanted and found for every place where two values differ."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            inner = f"{path}.{key}" if path else key
            if key not in found:
                yield inner, shown(wanted[key]), NOTHING
            elif key not in wanted:
                yield inner, NOTHING, shown(found[key])
            else:
                yield from differences(wanted[key], found[key], inner)
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for number, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from differences(one, other, f"{path}[{number}]")
    elif type(wanted) is not type(found) or wanted != found:
        yield path or "the whole", shown(wanted), shown(found)


def shown(value: Any) -> str:  # noqa: ANN401 - JSON
    """Write a value, or what there is of it."""
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
