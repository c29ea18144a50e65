"""What a plugin promises, held where it enters: it has what its kind has, and answers as its kind answers."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from culturekit.plugins import Plugin

__all__ = ["Broken", "Contract", "broken_by", "hold", "maker_of", "shown", "state_of"]

STATE = 16
"""Letters that tell the states of a plugin apart."""


class Broken(Exception):
    """An answer is not what was promised: what was expected, what was found."""

    def __init__(self, expected: str, found: str) -> None:
        """Keep the parts apart."""
        super().__init__(expected, found)
        self.expected, self.found = expected, found


def hold(true: bool, expected: str, found: str) -> None:
    """Make sure of what an answer has to be.

    Raises:
        Broken: it is not so.
    """
    if not true:
        raise Broken(expected, found)


def shown(thing: object) -> str:
    """Say what something is, and how it begins."""
    return f"{type(thing).__name__} {thing!r:.60}"


@dataclass(frozen=True, slots=True)
class Contract:
    """What a kind of plugin is, and how its answers are held against it.

    Attributes:
        shapes: protocols, of which it must have all members of at least one.
        answers: by method or value, what looks at an answer, given the thing, the answer and what was asked, and gives
            it on; `hold` refuses it.
        raises: what a method may raise as an answer.
        says: what the thing says of itself that decides what comes of it.
    """

    shapes: tuple[type, ...]
    answers: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: MappingProxyType({}))
    raises: tuple[type[BaseException], ...] = ()
    says: Callable[[Any], Mapping[str, object]] = lambda _: {}

    def held(self, thing: object, plugin: Plugin) -> Any:  # noqa: ANN401 - fits the shapes
        """Give a thing in such a form that each answer is held against the contract when it comes.

        Raises:
            PluginFailure: it lacks what things of its kind have.
        """
        with plugin.blamed():
            lacking = {shape: [name for name in members(shape) if not has(thing, name)] for shape in self.shapes}
        nearest = min(self.shapes, key=lambda shape: (len(lacking[shape]), -len(members(shape))))
        if lacking[nearest]:
            raise plugin.failure(
                f"is no {nearest.__name__}", expected=", ".join(members(nearest)),
                found=f"{type(thing).__name__} without {', '.join(lacking[nearest])}",
            )  # fmt: skip
        met = [shape for shape in self.shapes if not lacking[shape]]
        guard: dict[str, Any] = {}
        for name in sorted({*public_names(thing), *(name for shape in met for name in members(shape))}):
            shape = next((shape for shape in met if name in members(shape)), None)
            promised = None if shape is None else inspect.getattr_static(shape, name)
            if shape is not None and promised is not None and not isinstance(promised, property):
                check_call(thing, name, shape, plugin)
            guard[name] = passed(name, promised, self, plugin)
        return type(type(thing).__name__, (Held,), guard)(thing, plugin)


class Held:
    """Something of a plugin that is held to its contract."""

    def __init__(self, thing: object, plugin: Plugin) -> None:
        """Keep the thing, and who made it."""
        self._thing, self._plugin = thing, plugin
        self._state = ""

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - what no contract speaks of
        """Give what the thing has besides."""
        return getattr(self._thing, name)


def maker_of(thing: object) -> Plugin:
    """Give the plugin that made something that is held."""
    plugin: Plugin = thing._plugin  # type: ignore[attr-defined]
    return plugin


def state_of(thing: Any) -> str:  # noqa: ANN401 - something that is held
    """Say in which state the plugin is that made something, as a version or the beginning of a hash."""
    if not thing._state:
        ((kind, text),) = maker_of(thing).made_of().items()
        thing._state = f"{kind} {text[:STATE]}"
    state: str = thing._state
    return state


def members(shape: type) -> list[str]:
    """List what a protocol asks for, as it stands there, what it inherits first."""
    bases = [base for base in reversed(shape.__mro__) if getattr(base, "_is_protocol", False)]
    return [name for base in bases for name in vars(base) if not name.startswith("_")]


def public_names(thing: object) -> list[str]:
    """List what a thing has that is meant for others."""
    return [name for name in dir(thing) if not name.startswith("_")]


def has(thing: object, name: str) -> bool:
    """Tell whether a thing has a member, without computing it where that can be told."""
    return inspect.getattr_static(thing, name, None) is not None or hasattr(thing, name)


def passed(name: str, promised: object, contract: Contract, plugin: Plugin) -> property:
    """Make the member of a held thing: a value of the type that was promised, or a method whose answers are held."""
    kinds = types_of(promised) if isinstance(promised, property) else ()

    def member(self: Held) -> Any:  # noqa: ANN401 - as promised
        with plugin.blamed(f"failed at {name}", passing=contract.raises):
            found = getattr(self._thing, name)
        if kinds and not isinstance(found, kinds):
            raise plugin.failure(
                f"has something else as {name}", expected=" or ".join(kind.__name__ for kind in kinds),
                found=shown(found),
            )  # fmt: skip
        if callable(found) and not kinds:
            return called(self, found, name, contract)
        return contract.answers[name](self, found) if kinds and name in contract.answers else found

    return property(member)


def called(thing: Held, method: Callable[..., Any], name: str, contract: Contract) -> Callable[..., Any]:
    """Make a call whose errors are the plugin's, and whose answer is held against the contract."""
    check, plugin = contract.answers.get(name), maker_of(thing)

    def answered(found: Any, words: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ANN401 - as promised
        if check is None:
            return found
        with broken_by(plugin, name), plugin.blamed(f"failed at {name}", passing=(Broken,)):
            return check(thing, found, *words, **named)

    def call(*words: Any, **named: Any) -> Any:  # noqa: ANN401 - as promised
        with plugin.blamed(f"failed at {name}", passing=contract.raises):
            found = method(*words, **named)
        return awaited(found, words, named) if inspect.isawaitable(found) else answered(found, words, named)

    async def awaited(found: Any, words: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ANN401 - as promised
        with plugin.blamed(f"failed at {name}", passing=contract.raises):
            came = await found
        return answered(came, words, named)

    return call


@contextmanager
def broken_by(plugin: Plugin, name: str) -> Iterator[None]:
    """Name the plugin whose answer is not what it promised."""
    try:
        yield
    except Broken as broken:
        how = f"answers {name} with something else"
        raise plugin.failure(how, expected=broken.expected, found=broken.found) from broken


def check_call(thing: object, name: str, shape: type, plugin: Plugin) -> None:
    """Make sure that a method can be called as its protocol says.

    Raises:
        PluginFailure: it takes other arguments.
    """
    promised = list(inspect.signature(getattr(shape, name)).parameters.values())[1:]
    with plugin.blamed(f"failed at {name}"):
        method = getattr(thing, name)
    words = [each.name for each in promised if each.kind is not each.KEYWORD_ONLY]
    named = {each.name: each.default for each in promised if each.kind is each.KEYWORD_ONLY}
    try:
        taken = inspect.signature(method)
    except (TypeError, ValueError):
        if not callable(method):
            raise plugin.failure(f"has a {name} that is no method", found=type(method).__name__) from None
        return  # written in C, which does not say
    try:
        taken.bind(*words, **named)
    except TypeError as error:
        raise plugin.failure(
            f"cannot be asked to {name}: {error}", expected=f"{name}({', '.join([*words, *named])})",
            found=f"{name}({', '.join(taken.parameters)})",
        ) from None  # fmt: skip


def types_of(promised: property) -> tuple[type, ...]:
    """Give the types that a value may have, as a protocol states them."""
    stated = get_type_hints(promised.fget)["return"]
    kinds = get_args(stated) if get_origin(stated) in {Union, UnionType} else (stated,)
    return tuple(found for kind in kinds if isinstance(found := get_origin(kind) or kind, type) and kind is not Any)
