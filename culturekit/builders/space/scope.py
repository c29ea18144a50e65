"""Which of a candidate's countries a concept is about."""

from collections.abc import Sequence

from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid

__all__ = ["countries_in_scope"]


def countries_in_scope(stated: Sequence[str], concept: Concept) -> list[str]:
    """List the ISO codes of stated countries, each once and in stated order; what has no code is left out."""
    known = by_qid()
    codes = list(dict.fromkeys(known[qid].iso for qid in stated if qid in known))
    return [iso for iso in codes if iso in concept.codes]
