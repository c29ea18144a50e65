"""Item identifiers, checked once at the border."""

import re
from typing import Annotated

from pydantic import AfterValidator

__all__ = ["Qid"]

QID = re.compile(r"^Q[1-9][0-9]*$")


def check_qid(text: str) -> str:
    """Accept a QID."""
    if not QID.match(text):
        raise ValueError(f"a QID is Q and a number, found {text!r}")
    return text


Qid = Annotated[str, AfterValidator(check_qid)]
