"""Forms with files in them, as clients upload these."""

import re
from dataclasses import dataclass

from tests.llm.server.error_replies import Refused

__all__ = ["FormPart", "parse_form"]

_NAME = re.compile(r'\bname="([^"]*)"')
_FILENAME = re.compile(r'\bfilename="([^"]*)"')


@dataclass(frozen=True, slots=True)
class FormPart:
    """One field of a form."""

    filename: str | None
    content: bytes


def parse_form(content_type: str, body: bytes) -> dict[str, FormPart]:
    """Take a form apart.

    Raises:
        Refused: it is no form.
    """
    found = re.search(r'boundary="?([^";]+)', content_type)
    if not content_type.startswith("multipart/form-data") or found is None:
        raise Refused("bad-request", f"expected multipart/form-data, found {content_type!r}")
    parts = {}
    for chunk in body.split(b"--" + found[1].encode())[1:-1]:
        head, _, content = chunk.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        named = head.decode("utf-8", "replace")
        name, filename = _NAME.search(named), _FILENAME.search(named)
        if name is not None:
            parts[name[1]] = FormPart(filename[1] if filename else None, content.removesuffix(b"\r\n"))
    return parts
