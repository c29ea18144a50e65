"""The UN's standard M49: sub-regions, and the regions they make up."""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

from culturekit.storage.yaml_model import closest

__all__ = ["UN_REGIONS", "UnRegion"]

UN_REGIONS: Mapping[str, str] = {
    "Antarctica": "Antarctica",
    "Australia and New Zealand": "Oceania",
    "Central Asia": "Asia",
    "Eastern Asia": "Asia",
    "Eastern Europe": "Europe",
    "Latin America and the Caribbean": "Americas",
    "Melanesia": "Oceania",
    "Micronesia": "Oceania",
    "Northern Africa": "Africa",
    "Northern America": "Americas",
    "Northern Europe": "Europe",
    "Polynesia": "Oceania",
    "South-eastern Asia": "Asia",
    "Southern Asia": "Asia",
    "Southern Europe": "Europe",
    "Sub-Saharan Africa": "Africa",
    "Western Asia": "Asia",
    "Western Europe": "Europe",
}
"""Sub-region -> region."""


def check_region(name: str) -> str:
    """Accept a sub-region of M49."""
    if name not in UN_REGIONS:
        raise ValueError(f"no sub-region of UN M49: {name!r}{closest(name, sorted(UN_REGIONS))}")
    return name


UnRegion = Annotated[str, AfterValidator(check_region)]
