"""The card of a release as a stage."""

from pathlib import Path

from culturekit.cards.build import build_card
from culturekit.cards.hand import FIELDS_FILE, TEXT_FILE
from culturekit.cards.provenance import keys_behind
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest
from culturekit.storage.manifest import InputRecord

__all__ = ["card_stage"]


def card_stage(release: Path, hand: Path, *, name: str = "card") -> Stage:
    """Build the card of a release from its folder and a hand-written half.

    Which stages behind the release are at hand decides what the card can say, so their keys count as an input.
    """
    return Stage(
        name,
        "card",
        2,
        lambda work: build_card(work, release, hand),
        {"release": release, "fields": hand / FIELDS_FILE, "text": hand / TEXT_FILE, "stages": release},
        packages=("polars", "PyYAML"),
        trees={"stages": lambda _: InputRecord(digest(keys_behind(release)), "the stages behind the release")},
    )
