"""What the manifests behind a release say: the dump, who judged with which wording, and what was dropped why."""

import re
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from culturekit.storage.digests import canonical_json
from culturekit.storage.manifest import Manifest

__all__ = ["Drop", "Dump", "Setting", "Source", "StageFacts", "drops_of", "dumps_of", "stages_of"]

INGEST = "ingest"
DUMP_ROLE = re.compile(r"^dump(-\d+)?$")
DATE = re.compile(r"(?<!\d)(20\d\d)-?([01]\d)-?([0-3]\d)(?!\d)")

JUDGING = re.compile(
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


def stages_of(manifests: Sequence[Manifest]) -> tuple[StageFacts, ...]:
    """Describe the stages, the release's own first."""
    return tuple(
        StageFacts(
            manifest.stage,
            manifest.key,
            dict(sorted(manifest.code.items())),
            dict(sorted(manifest.packages.items())),
            dict(sorted(manifest.seeds.items())),
            dict(sorted(manifest.counts.items())),
            dict(sorted(flattened(manifest.notes))),
            tuple(settings_of(manifest.options)),
            tuple(sources_of(manifest)),
        )
        for manifest in manifests
    )


def flattened(notes: Mapping[str, object], within: str = "") -> Iterator[tuple[str, str]]:
    """Give what a stage noted, at any depth, each by its path."""
    for name, value in notes.items():
        path = f"{within} / {name}" if within else name
        if isinstance(value, Mapping):
            yield from flattened(value, path)
        elif isinstance(value, list):
            yield from ((f"{path} / {number}", as_text(one)) for number, one in enumerate(value, start=1))
        else:
            yield path, as_text(value)


def as_text(value: object) -> str:
    """Write a value as text."""
    return value if isinstance(value, str) else canonical_json(value).decode()


def settings_of(options: Mapping[str, object], within: str = "") -> Iterator[Setting]:
    """Find the options that name a model, a task or a wording, at any depth."""
    for name, value in sorted(options.items()):
        path = f"{within}.{name}" if within else name
        if JUDGING.search(name) and value is not None:
            yield Setting(path, as_text(value))
        elif isinstance(value, Mapping) and name != "concepts":
            yield from settings_of(value, path)


def sources_of(manifest: Manifest) -> Iterator[Source]:
    """Find the inputs that no stage made, the dump apart."""
    for role, record in sorted(manifest.inputs.items()):
        if not record.stage and not is_dump(manifest, role):
            yield Source(role, record.name, record.sha256)


def is_dump(manifest: Manifest, role: str) -> bool:
    """Tell whether an input is a part of a dump."""
    return manifest.stage == INGEST and DUMP_ROLE.match(role) is not None


def dumps_of(manifests: Sequence[Manifest]) -> tuple[Dump, ...]:
    """Find the dumps behind a release, in the order in which they were read."""
    return tuple(
        Dump(record.name, record.sha256, date_of(record.name))
        for manifest in manifests
        for role, record in sorted(manifest.inputs.items(), key=lambda item: (len(item[0]), item[0]))
        if is_dump(manifest, role)
    )


def date_of(name: str) -> str:
    """Read a date from the name of a dump; empty where it tells none."""
    found = DATE.search(name)
    return "-".join(found.groups()) if found else ""


def drops_of(manifests: Sequence[Manifest]) -> tuple[Drop, ...]:
    """Gather what every stage left out."""
    return tuple(
        Drop(manifest.stage, reason, count)
        for manifest in manifests
        for reason, count in sorted(manifest.drops.items(), key=lambda item: (-item[1], item[0]))
    )
