"""Who is to judge what: slots of each item for annotators of its own region, and of others."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from culturekit.annotate.blinding import drawn
from culturekit.annotate.items import Item
from culturekit.defaults import RATERS
from culturekit.errors import UsageError
from culturekit.metrics.scoring.rating_pools import InRegion, OutOfRegion
from culturekit.stages.stage_command import Typed

__all__ = ["ANYWHERE", "Quotas", "Share", "shares"]

ANYWHERE = "anywhere"
"""The region of annotators where nobody is more at home than others."""


@dataclass(frozen=True, slots=True)
class Quotas:
    """How many annotators judge an item."""

    inside: Annotated[InRegion, Typed("in-region")] = RATERS
    outside: Annotated[OutOfRegion, Typed("out-of-region")] = 0
    regions: Annotated[
        tuple[str, ...],
        Field(description="Where annotators are found; repeatable. [the regions of the items]"),
        Typed("region", gather=lambda names: tuple(sorted(set(names)))),
    ] = ()
    everywhere: Annotated[
        bool, Field(description="Annotators of all regions judge items that have no region, too, in turn.")
    ] = False


@dataclass(frozen=True, slots=True)
class Share:
    """Some items for annotators of one region, each of which so many of them judge."""

    region: str
    slots: int
    inside: bool | None
    items: tuple[Item, ...]


def shares(items: Sequence[Item], quotas: Quotas, *, seed: int) -> list[Share]:
    """Give every item its annotators.

    Where items have no region, all slots are for annotators from anywhere, unless `everywhere` says else. Slots of
    other regions go round these
    from a drawn start, so that each region gets about as many.

    Raises:
        UsageError: there are no slots, or no other region to fill them.
    """
    if any(not region.strip() for region in quotas.regions):
        raise UsageError(
            "a region of annotators has no name", expected="--region with the name of one", found="a blank"
        )
    if quotas.inside + quotas.outside == 0:
        raise UsageError("nobody is to judge anything", expected="at least one annotator in or out of region")
    regions = sorted(set(quotas.regions) or {item.region for item in items if item.region is not None})
    wanted: dict[tuple[str, int, bool | None], list[Item]] = {}
    for number, place in enumerate(drawn(len(items), "slots", seed=seed)):
        item = items[place]
        for region, slots, inside in slots_of(item, regions, quotas, number):
            wanted.setdefault((region, slots, inside), []).append(item)
    ordered = sorted(wanted, key=lambda key: (key[0], str(key[2]), key[1]))
    return [Share(*key, tuple(sorted(wanted[key], key=lambda item: item.item_id))) for key in ordered]


def slots_of(item: Item, regions: Sequence[str], quotas: Quotas, number: int) -> list[tuple[str, int, bool | None]]:
    """Say how many annotators of which regions judge one item, the `number`-th of all."""
    if item.region is None and quotas.everywhere and regions:
        return [(region, count, None) for region, count in in_turn(regions, number, quotas.inside + quotas.outside)]
    if item.region is None:
        return [(ANYWHERE, quotas.inside + quotas.outside, None)]
    found: list[tuple[str, int, bool | None]] = []
    if quotas.inside:
        if item.region not in regions:
            raise UsageError(
                "no annotators are found in the region of an item",
                where=f"item {item.item_id!r}",
                found=item.region,
                expected=", ".join(regions),
                hint="Name it as a region of annotators too, or ask for none in region.",
            )
        found.append((item.region, quotas.inside, True))
    others = [region for region in regions if region != item.region]
    if quotas.outside and not others:
        raise UsageError(
            "there is no other region to find annotators in",
            where=f"item {item.item_id!r}",
            found=", ".join(regions),
            hint="Name regions of annotators, or ask for none out of region.",
        )
    return [*found, *((region, count, False) for region, count in in_turn(others, number, quotas.outside))]


def in_turn(regions: Sequence[str], number: int, slots: int) -> list[tuple[str, int]]:
    """Let the slots of items go round the regions; how many of those of the `number`-th item each region has."""
    return sorted(Counter(regions[(number * slots + slot) % len(regions)] for slot in range(slots)).items())
