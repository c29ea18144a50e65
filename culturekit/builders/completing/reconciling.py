"""Which known item a proposed name means: by its letters first, then by concept, then by country.

An equal name goes before one whose accents merely agree, so two items that only accents tell apart stay two. What has
to do with the concept goes before what is only called the same.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from culturekit.builders.completing.completion_lookup import KnownItem
from culturekit.builders.completing.completion_names import accents_agree
from culturekit.builders.folded_names import folded

__all__ = ["Found", "How", "reconcile"]

How: TypeAlias = Literal["there", "elsewhere", "several", "nothing"]
"""The artifact is in the collection for the country; an item is likely meant that is not; several are called so, and
neither concept nor country decides; nothing is called so that could be meant."""


@dataclass(frozen=True, slots=True)
class Found:
    """What a name was found to mean."""

    how: How
    item: KnownItem | None = None
    detail: str = ""


def reconcile(
    name: str, called: Sequence[KnownItem], *, concept: str, classes: Collection[str], countries: Collection[str]
) -> Found:
    """Choose among the items whose names share the letters of a name.

    Args:
        name: as it was proposed.
        called: what is called so, in any spelling of the same letters.
        concept: what was asked for.
        classes: classes that mark an item as one of the concept, though it is no candidate.
        countries: the items of the country that was asked for.
    """
    key = folded(name)
    near = [
        item for item in once(called, concept) if item.concept == concept or any(one in classes for one in item.classes)
    ]
    far = [item for item in once(called, concept) if item not in near]
    for among, of_concept in ((near, True), (far, False)):
        for fits in (equal(key), agreeing(key)):
            fitting = [item for item in among if fits(item)]
            if fitting:
                return chosen(fitting, concept=concept, countries=countries, of_concept=of_concept)
    return Found("nothing")


def once(called: Sequence[KnownItem], concept: str) -> list[KnownItem]:
    """Leave each item once: as a candidate of the concept where it is one."""
    own = {item.qid: item for item in sorted(called, key=lambda item: (item.concept == concept, item.concept or ""))}
    return [own[qid] for qid in sorted(own)]


def equal(key: str) -> Callable[[KnownItem], bool]:
    """Make a test of equal names."""
    return lambda item: key in item.names


def agreeing(key: str) -> Callable[[KnownItem], bool]:
    """Make a test of names that may be spellings of one another."""
    return lambda item: any(accents_agree(key, name) for name in item.names)


def chosen(fitting: Sequence[KnownItem], *, concept: str, countries: Collection[str], of_concept: bool) -> Found:
    """Let the country decide among items of one name, then what the filter kept."""
    here = [item for item in fitting if any(qid in countries for qid in item.country_qids)]
    there = [item for item in here if item.concept == concept and item.standing == "kept"]
    if there:
        return Found("there", there[0])
    for among in (here, fitting):
        kept = [item for item in among if item.concept == concept and item.standing == "kept"]
        candidates = [item for item in among if item.concept == concept]
        one = next((few[0] for few in (kept, candidates, list(among)) if len(few) == 1), None)
        if one is not None:
            return Found("elsewhere", one)
        if among:
            break
    if not of_concept:
        return Found("nothing", detail=f"{len(fitting)} items of other kinds are called so")
    return Found("several", detail=" ".join(item.qid for item in fitting))
