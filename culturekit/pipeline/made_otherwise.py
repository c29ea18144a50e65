"""What a finished folder was made from that is another thing now: nothing finished is replaced in silence."""

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from culturekit.errors import UsageError
from culturekit.stages.stage import Stage
from culturekit.storage.manifest import JOURNAL, InputRecord, Manifest

__all__ = ["check_replacing", "what_differs"]

logger = logging.getLogger(__name__)

SHOWN = 5
LONGEST = 60
ABSENT = object()


def check_replacing(
    stage: Stage, final: Path, manifest: Manifest, inputs: Mapping[str, InputRecord], *, replace: bool
) -> None:
    """Refuse to put a stage in the place of one that was made from something else; with `replace`, say that it is.

    A new version of the stage, or another form of its tables, is made from the same and may take the place.
    """
    differences = list(what_differs(stage, manifest, inputs))
    if not differences:
        return
    more = f"; and {len(differences) - SHOWN} more" if len(differences) > SHOWN else ""
    found = "; ".join(differences[:SHOWN]) + more
    if not replace:
        raise UsageError(
            "the finished folder was made from something else", where=str(final), expected=f"the same {stage.kind}",
            found=found, hint="It stays as it is. Choose another --out, or replace it with --replace.",
        )  # fmt: skip
    journal = final / JOURNAL
    paid = f" The replies it paid for stay in {journal}." if journal.is_dir() else ""
    logger.warning("%s is made again and replaces what was finished: %s.%s", final, found, paid)


def what_differs(stage: Stage, manifest: Manifest, inputs: Mapping[str, InputRecord]) -> Iterator[str]:
    """Name each input, option and seed that is another one than when the folder was made."""
    for role in sorted({*manifest.inputs, *inputs}):
        before, now = manifest.inputs.get(role), inputs.get(role)
        if before is None or now is None:
            yield f"input {role} {'was not there' if before is None else 'is gone'}"
        elif before.sha256 != now.sha256:
            yield f"input {role} ({now.name}) has other content: {before.sha256[:12]} -> {now.sha256[:12]}"
    yield from changes("option", manifest.options, as_in_json(stage.options))
    yield from changes("seed", manifest.seeds, as_in_json(stage.seeds))


def as_in_json(value: object) -> Any:  # noqa: ANN401 - anything JSON can hold
    """Give a value as a manifest has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def changes(name: str, before: object, now: object) -> Iterator[str]:
    """Name each value that differs, by its path."""
    if before == now:
        return
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for key in sorted({*before, *now}):
            yield from changes(f"{name} {key}", before.get(key, ABSENT), now.get(key, ABSENT))
    else:
        yield f"{name}: {shown(before)} -> {shown(now)}"


def shown(value: object) -> str:
    """Write a value so that a line stays a line."""
    text = "not there" if value is ABSENT else msgspec.json.encode(value).decode()
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
