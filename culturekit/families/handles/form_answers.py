"""Which answers a form offered: what is said of people's answers is held against it."""

from pathlib import Path

from culturekit.errors import UsageError
from culturekit.storage.manifest import read_manifest

__all__ = ["check_offered"]


def check_offered(
    annotations: Path, criterion: str, choice: str | None, ends: tuple[float | None, float | None]
) -> None:
    """Refuse another scale than that of the form, and a choice that it did not offer: these would shift means.

    What the form offered stands, in order, beside the answers that were imported; of others it is not known.
    """
    manifest = read_manifest(annotations.parent)
    offered = [] if manifest is None else manifest.notes.get("answers", {}).get(criterion, [])
    if not offered:
        return
    if choice is not None and choice not in offered:
        raise UsageError(
            "the form did not offer the choice that is to count 1", expected=" or ".join(offered), found=repr(choice)
        )
    lowest, highest = ends
    if lowest is not None and [f"{lowest:g}", f"{highest:g}"] != [offered[0], offered[-1]]:
        raise UsageError(
            "the scale that is stated is not the form's",
            expected=f"the ends of {', '.join(offered)}",
            found=f"from {lowest:g} to {highest:g}",
        )
