"""A shard as a task for a worker elsewhere: what is to be done, and what came of it, errors included."""

import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from culturekit.errors import CultureKitError
from culturekit.pipeline.shared_ground import SharedGround, stand_on

__all__ = ["Raised", "Returned", "Task", "check_ground", "work_on"]

Item = TypeVar("Item")
Result = TypeVar("Result")

ONE_AT_A_TIME = threading.Lock()
"""Held by the item at work: shards expect a process of their own, also on a worker with several threads."""


@dataclass(frozen=True, slots=True)
class Task(Generic[Item, Result]):
    """An item and what is to be done with it."""

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
    with ONE_AT_A_TIME:
        try:
            return Returned(task.function(task.item)) if stand_on(task.ground) else None
        except Exception as error:
            return Raised(sendable(error), traceback.format_exc())


def check_ground(ground: SharedGround) -> Raised | None:
    """Say what a worker does not share with the command, if anything."""
    with ONE_AT_A_TIME:
        try:
            stand_on(ground)
        except CultureKitError as error:
            return Raised(error, "")
        return None


def sendable(error: Exception) -> Exception:
    """Give an error in a form that crosses process borders."""
    try:
        reduced = error.__reduce_ex__(2)
        if not isinstance(reduced, str):
            reduced[0](*reduced[1])  # what the other side will do with it
    except Exception:
        return CultureKitError(f"a shard failed: {type(error).__name__}: {error}")
    return error
