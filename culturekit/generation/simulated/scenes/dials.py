"""Dials with exceptions: a share for everybody, and others for a group of countries or for one."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from culturekit.errors import UsageError
from culturekit.generation.simulated.scenes.vocabulary import world

__all__ = ["Dial", "read_dial"]


@dataclass(frozen=True, slots=True)
class Dial:
    """A share, by country where that is told."""

    share: float
    exceptions: Mapping[str, float]

    def of_country(self, country: str | None) -> float:
        """Give the share for a country: its own, else its group's, else everybody's."""
        known = world().countries.get(country or "")
        group = known.group if known else ""
        return self.exceptions.get(country or "", self.exceptions.get(group, self.share))


def read_dial(name: str, text: str, *, places: Collection[str] = ()) -> Dial:
    """Read a dial such as `0.8,GS:0.6,IR:0.4`; other worlds than that of activities have other `places`.

    Raises:
        UsageError: it is none, a share lies outside 0 to 1, or a place is not of the simulated world.
    """
    first, *others = text.split(",")
    known = set(places) or {*world().countries, *(country.group for country in world().countries.values())}
    exceptions: dict[str, float] = {}
    for other in others:
        place, _, value = other.partition(":")
        if place.strip() not in known or place.strip() in exceptions:
            raise UsageError(
                f"{name} names {place.strip()!r}, or names it twice",
                expected="each once: " + ", ".join(sorted(known)),
                found=text,
            )
        exceptions[place.strip()] = share_of(name, value, text)
    return Dial(share_of(name, first, text), exceptions)


def share_of(name: str, value: str, text: str) -> float:
    """Read one share of a dial."""
    try:
        share = float(value)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"{name} is no dial", expected="shares from 0 to 1, such as 0.8,GS:0.6,IR:0.4", found=text)
    return share
