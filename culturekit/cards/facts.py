"""Every number of a card, computed from its tables and the manifests it carries, and from nothing else."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from culturekit.cards.card_tables import (
    NOT_KNOWN,
    CardTable,
    Counts,
    FileFacts,
    agreement_in,
    count_table,
    other_files,
    tables_in,
)
from culturekit.cards.release_files import carried_manifests, not_at_hand
from culturekit.records.work import UNDER_REVIEW
from culturekit.storage.digests import canonical_json, indented_json
from culturekit.storage.manifest import Manifest

FACTS = "facts.json"

_MAIN = ("cspace", "prompts")
"""Tables that a release is about, the first that it has."""

_INGEST = "ingest"
_DUMP_ROLE = re.compile(r"^dump(-\d+)?$")
_DATE = re.compile(r"(?<!\d)(20\d\d)-?([01]\d)-?([0-3]\d)(?!\d)")

_JUDGING = re.compile(
    r"^(judge|model|models|llm|task|revision|critic|verifier|proposer|popularity|templates|wordings?|encoder)$"
    r"|(_|^)(model|wording|judge|llm)(_|$)"
)
"""Options that say who answered, and to which words."""


class Setting(msgspec.Struct, frozen=True):
    """An option that decides what a stage said."""

    name: str
    value: str


class Source(msgspec.Struct, frozen=True):
    """A file that a stage read and no stage made, by its content."""

    role: str
    name: str
    sha256: str


class StageFacts(msgspec.Struct, frozen=True):
    """A stage behind the release."""

    stage: str
    key: str
    code: Mapping[str, str]
    packages: Mapping[str, str]
    seeds: Mapping[str, int]
    counts: Mapping[str, int]
    notes: Mapping[str, str]
    settings: tuple[Setting, ...]
    sources: tuple[Source, ...]


class Dump(msgspec.Struct, frozen=True):
    """A dump of Wikidata; its date as far as its name tells it."""

    name: str
    sha256: str
    date: str


class Drop(msgspec.Struct, frozen=True):
    """How many things a stage left out for one reason."""

    stage: str
    reason: str
    count: int


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
        return indented_json(self)

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
        rank = {name: number for number, name in enumerate(_MAIN)}
        return min(self.tables, key=lambda table: (rank.get(table.name, len(_MAIN)), -table.rows, table.name))

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
        stages=_stages_of(manifests),
        not_at_hand=tuple(not_at_hand(manifests)),
        dumps=_dumps_of(manifests),
        drops=_drops_of(manifests),
        agreement=(*agreement_in(folder, tables), *_agreement_notes(manifests)),
    )


def _agreement_notes(manifests: Sequence[Manifest]) -> list[Mapping[str, object]]:
    """Take what stages noted of how far judges agree."""
    return [
        {"stage": manifest.stage, "note": key, "value": value}
        for manifest in manifests
        for key, value in sorted(manifest.notes.items())
        if "agreement" in key
    ]


def _stages_of(manifests: Sequence[Manifest]) -> tuple[StageFacts, ...]:
    """Describe the stages, the release's own first."""
    return tuple(
        StageFacts(
            manifest.stage,
            manifest.key,
            dict(sorted(manifest.code.items())),
            dict(sorted(manifest.packages.items())),
            dict(sorted(manifest.seeds.items())),
            dict(sorted(manifest.counts.items())),
            dict(sorted(_flattened(manifest.notes))),
            tuple(_settings_of(manifest.options)),
            tuple(_sources_of(manifest)),
        )
        for manifest in manifests
    )


def _flattened(notes: Mapping[str, object], within: str = "") -> Iterator[tuple[str, str]]:
    """Give what a stage noted, at any depth, each by its path."""
    for name, value in notes.items():
        path = f"{within} / {name}" if within else name
        if isinstance(value, Mapping):
            yield from _flattened(value, path)
        elif isinstance(value, list):
            yield from ((f"{path} / {number}", _as_text(one)) for number, one in enumerate(value, start=1))
        else:
            yield path, _as_text(value)


def _as_text(value: object) -> str:
    """Write a value as text."""
    return value if isinstance(value, str) else canonical_json(value).decode()


def _settings_of(options: Mapping[str, object], within: str = "") -> Iterator[Setting]:
    """Find the options that name a model, a task or a wording, at any depth."""
    for name, value in sorted(options.items()):
        path = f"{within}.{name}" if within else name
        if _JUDGING.search(name) and value is not None:
            yield Setting(path, _as_text(value))
        elif isinstance(value, Mapping) and name != "concepts":
            yield from _settings_of(value, path)


def _sources_of(manifest: Manifest) -> Iterator[Source]:
    """Find the inputs that no stage made, the dump apart."""
    for role, record in sorted(manifest.inputs.items()):
        if not record.stage and not _is_dump(manifest, role):
            yield Source(role, record.name, record.sha256)


def _is_dump(manifest: Manifest, role: str) -> bool:
    """Tell whether an input is a part of a dump."""
    return manifest.stage == _INGEST and _DUMP_ROLE.match(role) is not None


def _dumps_of(manifests: Sequence[Manifest]) -> tuple[Dump, ...]:
    """Find the dumps behind a release, in the order in which they were read."""
    return tuple(
        Dump(record.name, record.sha256, _date_of(record.name))
        for manifest in manifests
        for role, record in sorted(manifest.inputs.items(), key=lambda item: (len(item[0]), item[0]))
        if _is_dump(manifest, role)
    )


def _date_of(name: str) -> str:
    """Read a date from the name of a dump; empty where it tells none."""
    found = _DATE.search(name)
    return "-".join(found.groups()) if found else ""


def _drops_of(manifests: Sequence[Manifest]) -> tuple[Drop, ...]:
    """Gather what every stage left out."""
    return tuple(
        Drop(manifest.stage, reason, count)
        for manifest in manifests
        for reason, count in sorted(manifest.drops.items(), key=lambda item: (-item[1], item[0]))
    )
