"""Every number of a card, computed from its tables and the manifests it carries, and from nothing else."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from culturekit.cards.card_tables import NOT_KNOWN, CardTable, FileFacts, other_files, tables_in
from culturekit.cards.counting import Counts, agreement_in, count_table
from culturekit.cards.provenance import carried_manifests, not_at_hand
from culturekit.cards.stage_facts import Drop, Dump, Setting, Source, StageFacts, drops_of, dumps_of, stages_of
from culturekit.records.work import UNDER_REVIEW
from culturekit.storage.manifest import Manifest

__all__ = ["FACTS", "Facts", "facts_of"]

FACTS = "facts.json"

MAIN = ("cspace", "prompts")
"""Tables that a release is about, the first that it has."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a card says that people did not write."""

    format: str = "culturekit card 1"
    release: str
    tables: tuple[CardTable, ...]
    others: tuple[FileFacts, ...]
    counts: Mapping[str, Counts]
    stages: tuple[StageFacts, ...]
    not_at_hand: tuple[tuple[str, str, str], ...]
    dumps: tuple[Dump, ...]
    drops: tuple[Drop, ...]
    agreement: tuple[Mapping[str, object], ...]

    def encode(self) -> bytes:
        """Write the facts for people and machines."""
        return msgspec.json.format(msgspec.json.encode(self, order="sorted"), indent=2) + b"\n"

    @property
    def settings(self) -> tuple[tuple[str, Setting], ...]:
        """Give the models and wordings, each with its stage."""
        return tuple((stage.stage, setting) for stage in self.stages for setting in stage.settings)

    @property
    def sources(self) -> tuple[tuple[str, Source], ...]:
        """Give the files that stages read, such as wordings and lists of countries."""
        return tuple((stage.stage, source) for stage in self.stages for source in stage.sources)

    @property
    def under_review(self) -> Mapping[str, int]:
        """Count, by reason, the artifacts that a release took in although they wait for a person to look at."""
        begin = f"{UNDER_REVIEW} / "
        return {
            name.removeprefix(begin): int(count)
            for stage in self.stages
            for name, count in stage.notes.items()
            if name.startswith(begin)
        }

    @property
    def main(self) -> CardTable:
        """The table that the release is about."""
        rank = {name: number for number, name in enumerate(MAIN)}
        return min(self.tables, key=lambda table: (rank.get(table.name, len(MAIN)), -table.rows, table.name))

    @property
    def dump_dated(self) -> bool:
        """Tell whether every dump says its date."""
        return bool(self.dumps) and all(dump.date for dump in self.dumps)


def facts_of(folder: Path, hashes: Mapping[str, str] = NOT_KNOWN) -> Facts:
    """Compute what a card folder holds; files whose `hashes` are known are not hashed again.

    Raises:
        IntegrityError: the manifests cannot be read.
        pl.exceptions.PolarsError: a table cannot be read.
    """
    manifests = carried_manifests(folder)
    tables = tables_in(folder, hashes)
    return Facts(
        release=manifests[0].key,
        tables=tables,
        others=other_files(folder, hashes),
        counts={table.name: count_table(folder, table.name) for table in tables},
        stages=stages_of(manifests),
        not_at_hand=tuple(not_at_hand(manifests)),
        dumps=dumps_of(manifests),
        drops=drops_of(manifests),
        agreement=(*agreement_in(folder, tables), *agreement_notes(manifests)),
    )


def agreement_notes(manifests: Sequence[Manifest]) -> list[Mapping[str, object]]:
    """Take what stages noted of how far judges agree."""
    return [
        {"stage": manifest.stage, "note": key, "value": value}
        for manifest in manifests
        for key, value in sorted(manifest.notes.items())
        if "agreement" in key
    ]
