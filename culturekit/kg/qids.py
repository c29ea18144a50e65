"""Item identifiers, checked once at the border."""

import re
from typing import Annotated

from pydantic import AfterValidator

from culturekit.errors import UsageError

__all__ = ["ADDRESS", "QID", "Qid", "check_qid", "number_of_item"]

ADDRESS = re.compile(r"wd:|https?://www\.wikidata\.org/(?:wiki|entity)/")
"""What may stand before an item."""

QID = re.compile(r"^Q[1-9][0-9]*\Z")


def check_qid(text: str) -> str:
    """Accept a QID."""
    if not QID.match(text) or int(text[1:]) >= 2**32:
        raise ValueError(f"a QID is Q and a number, found {text[:40]!r}")
    return text


Qid = Annotated[str, AfterValidator(check_qid)]


def number_of_item(qid: str) -> int:
    """Read a QID that a user typed: `Q42` is 42."""
    if not QID.match(qid) or int(qid[1:]) >= 2**32:
        raise UsageError("not an item", expected="a QID such as Q42", found=repr(qid))
    return int(qid[1:])
