"""The card of a release as a stage."""

from pathlib import Path

from culturekit.core.digests import InputRecord, digest
from culturekit.core.stage import Stage
from culturekit.release.card_build import build_card
from culturekit.release.card_facts import keys_behind
from culturekit.release.card_hand import FIELDS_FILE, TEXT_FILE


def card_stage(release: Path, hand: Path) -> Stage:
    """Build the card of a release from its folder and a hand-written half.

    Which stages behind the release are at hand decides what the card can say, so their keys count as an input.
    """
    return Stage(
        "card",
        "card",
        3,
        lambda work: build_card(work, release, hand),
        {"release": release, "fields": hand / FIELDS_FILE, "text": hand / TEXT_FILE, "stages": release},
        packages=("polars", "PyYAML"),
        trees={"stages": lambda _: InputRecord(digest(keys_behind(release)), "the stages behind the release")},
    )
