"""Item identifiers, checked once at the border."""

import re
from typing import Annotated

from pydantic import AfterValidator

__all__ = ["QID", "Qid", "check_qid"]

QID = re.compile(r"^Q[1-9][0-9]*\Z")


def check_qid(text: str) -> str:
    """Accept a QID."""
    if not QID.match(text) or int(text[1:]) >= 2**32:
        raise ValueError(f"a QID is Q and a number, found {text[:40]!r}")
    return text


Qid = Annotated[str, AfterValidator(check_qid)]
