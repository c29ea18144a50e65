"""What a service takes: bodies held against strict structs, and schemas walked node by node."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from tests.llm.server.error_replies import Refused

_SAID = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)
_FIELDS = {
    "Object contains unknown": ("Unknown parameter", "unknown_parameter"),
    "Object missing required": ("Missing required parameter", "missing_required_parameter"),
}


class Strict(msgspec.Struct, forbid_unknown_fields=True):
    """A part of a request; a field that is not listed is a mistake of the client."""


def fitting(kind: Any, body: Any) -> None:
    """Hold a body against a struct.

    Raises:
        Refused: naming the place, with the code that OpenAI gives to such a mistake.
    """
    try:
        msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        found = _SAID.fullmatch(str(error))
        assert found is not None
        what, path = found.groups(default="")
        problem, _, field = what.partition(" field `")
        said, code = _FIELDS.get(problem, (what, "invalid_type" if ", got" in what else "invalid_value"))
        where = ".".join(filter(None, (path, field.rstrip("`"))))
        raise Refused("bad-request", f"{said}: '{where}'.", param=where, code=code) from None


def nodes(node: Any, where: str, depth: int = 1) -> Iterator[tuple[Any, str, int]]:
    """Yield each node of a schema with its place, and in how many objects and lists it is."""
    yield node, where, depth
    if not isinstance(node, dict):
        return
    for group in ("properties", "$defs", "definitions"):
        for name, part in (node.get(group) or {}).items():
            yield from nodes(part, f"{where}.{group}.{name}", depth + (group == "properties"))
    for word in ("items", "additionalProperties"):
        if not isinstance(node.get(word, False), bool):
            yield from nodes(node[word], f"{where}.{word}", depth + 1)
    for word in ("anyOf", "oneOf", "prefixItems"):
        for at, part in enumerate(node.get(word) or ()):
            yield from nodes(part, f"{where}.{word}[{at}]", depth)
