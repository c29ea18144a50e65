"""A shard as a task for a worker elsewhere: what is to be done, and what came of it, errors included."""

import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Generic, TypeVar

from culturekit.errors import CultureKitError
from culturekit.heaps import settle_heaps
from culturekit.pipeline.workers.shared_ground import SharedGround, ready, stand_on
from culturekit.storage.system_errors import outside_failure, system_error

__all__ = ["Raised", "Returned", "Task", "abandoned_in", "check_ground", "end_series", "work_on"]

Item = TypeVar("Item")
Result = TypeVar("Result")

ONE_AT_A_TIME = threading.Lock()
"""Held by the item at work: shards expect a process of their own, also on a worker with several threads."""


AT_WORK: list[tuple[str, Path]] = []
"""The series and the marker of the item at work in this process."""

ENDED: set[str] = set()
"""The series of which no more items are begun. When a worker dies in the moment in which its result is fetched, the
scheduler has the item done again, though nobody waits for it."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Item, Result]):
    """An item and what is to be done with it; `series` names the run over items that it is part of."""

    series: str
    function: Callable[[Item], Result]
    item: Item
    ground: SharedGround


@dataclass(frozen=True, slots=True)
class Returned(Generic[Result]):
    """What a function gave back."""

    result: Result


@dataclass(frozen=True, slots=True)
class Raised:
    """What a function raised, and where."""

    error: Exception
    place: str


def work_on(task: Task[Item, Result]) -> Returned[Result] | Raised | None:
    """Work on an item, in a worker; None when nobody waits for it any more."""
    settle_heaps()
    with ONE_AT_A_TIME:
        AT_WORK.append((task.series, task.ground.marker))
        try:
            wanted = task.series not in ENDED and stand_on(task.ground)
            return Returned(task.function(task.item)) if wanted else None
        except BaseException as error:
            return Raised(sendable(error), traceback.format_exc())
        finally:
            AT_WORK.clear()


def end_series(series: str) -> bool:
    """Begin no more items of a series in this worker; tell whether one is still at work."""
    ENDED.add(series)
    return any(series == at_work for at_work, _ in list(AT_WORK))


def abandoned_in(folder: Path) -> bool:
    """Tell whether this worker still works for somebody who wrote to a folder and is gone."""
    return any(marker.parent == folder and not marker.exists() for _, marker in list(AT_WORK))


def check_ground(ground: SharedGround) -> Raised | None:
    """Say what a worker does not share with the command, if anything."""
    try:
        ready(ground)
    except CultureKitError as error:
        return Raised(error, "")
    return None


def sendable(error: BaseException) -> Exception:
    """Give an error in a form that crosses process borders; what the system refused stays just that."""
    sent = system_error(error) or error
    try:
        ForkingPickler.loads(ForkingPickler.dumps(sent))  # made anew from its parts, as on the other side
    except Exception:
        return outside_failure(error) or CultureKitError(f"a shard failed: {type(error).__name__}: {error}")
    return sent if isinstance(sent, Exception) else CultureKitError(f"a shard failed: {type(error).__name__}: {error}")
