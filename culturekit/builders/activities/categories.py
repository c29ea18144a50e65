"""The nine categories of activities, and what prompts ask for in each of them."""

from collections.abc import Mapping

__all__ = ["FIXED", "LOOKED_FOR", "PER_CATEGORY", "form_of", "grid_size", "spelled_out"]

LOOKED_FOR = ("dances", "games", "religious", "greetings", "celebrations")
"""The categories whose activities differ from country to country: pages are read for them."""

PER_CATEGORY = 6

FIXED: Mapping[str, tuple[str, ...]] = {
    "eating": ("eating at home", "eating at a restaurant"),
    "concerts": ("an indoor concert", "an outdoor concert"),
    "wedding": ("a wedding",),
    "funeral": ("a funeral",),
}
"""The categories whose activities are the same everywhere, and are shown in two settings, or in one way."""

SHORT = {"home": "eating at home", "restaurant": "eating at a restaurant"}
SHORT |= {"indoor": "an indoor concert", "outdoor": "an outdoor concert"}


def form_of(category: str) -> str:
    """Say how the activities of a category come about."""
    if category in LOOKED_FOR:
        return "multi-variant"
    return "setting" if len(FIXED[category]) > 1 else "single"


def grid_size(per_category: int = PER_CATEGORY) -> int:
    """Count the activities of a country: 36 with six of each category that is looked for."""
    return per_category * len(LOOKED_FOR) + sum(map(len, FIXED.values()))


def spelled_out(activity: str) -> str:
    """Say an activity as a prompt does, where published files only name its setting."""
    plain = activity.replace("_", " ").strip()
    return SHORT.get(plain.casefold(), plain)
