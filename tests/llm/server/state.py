"""A server's memory on disk: what it counted, its files and its jobs, in one readable JSON file."""

import json
from dataclasses import dataclass
from pathlib import Path

import msgspec

from tests.llm.server.jobs import Storage
from tests.llm.server.script import Script
from tests.llm.server.service import Service
from tests.llm.server.statistics import Statistics


@dataclass(frozen=True, slots=True)
class _State:
    """What is written; `now` is how long the script had been followed."""

    script: Script
    now: float
    first: int
    first_job: int
    attempts: dict[str, int]
    statistics: Statistics
    storage: Storage


def save(service: Service, path: Path) -> None:
    """Write all a server knows, whole or not at all."""
    state = _State(
        service.script,
        service.now(),
        service.first,
        service.first_job,
        dict(service.attempts),
        service.statistics,
        service.storage,
    )
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(json.dumps(msgspec.to_builtins(state, str_keys=True)), encoding="utf-8")
    unfinished.replace(path)


def restore(service: Service, path: Path) -> None:
    """Take up where another server stopped; a script given to this one wins over the one it followed."""
    state = msgspec.convert(json.loads(path.read_text(encoding="utf-8")), _State, strict=False)
    if service.script == Script():
        service.follow(state.script)
    service.statistics, service.storage = state.statistics, state.storage
    service.first, service.first_job = state.first, state.first_job
    service.attempts.update(state.attempts)
    service.epoch = service.clock() - state.now
