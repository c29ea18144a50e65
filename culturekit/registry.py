"""Names become things: SPEC strings, factories that import what they need only when asked, plugins.

A SPEC is `name[:target][?key=value&key=value]`, such as `simulated?temperature=2` or
`openai:gpt-4o-mini?base_url=http://127.0.0.1:8000/v1`. Other packages add names through the entry-point
group `culturekit.plugins`; an entry point is called `KIND.NAME`.
"""

import dataclasses
import difflib
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, quote

import msgspec

from culturekit.errors import MissingDependency, UsageError
from culturekit.records.literal_keys import key_problem, masked

__all__ = ["PLUGIN_GROUP", "Entry", "Registry", "Spec", "needing", "parse_spec"]

PLUGIN_GROUP = "culturekit.plugins"

LIKE_KEY = re.compile(r"key|kye|tok|secr|pas|pwd|auth|cred|login|bear", re.IGNORECASE)

Thing = TypeVar("Thing")
Options = TypeVar("Options")


@dataclass(frozen=True, slots=True)
class Spec:
    """A parsed SPEC string."""

    name: str
    target: str
    options: Mapping[str, str]

    def __str__(self) -> str:
        """Write the SPEC again, options in alphabetical order."""
        text = f"{self.name}:{self.target}" if self.target else self.name
        pairs = (f"{key}={quote(value, safe='/:,.@-${}')}" for key, value in sorted(self.options.items()))
        joined = "&".join(pairs)
        return f"{text}?{joined}" if joined else text

    def read(self, options: type[Options]) -> Options:
        """Turn the option texts into a frozen dataclass; all unknown names are said at once."""
        known = [field.name for field in dataclasses.fields(options)]  # type: ignore[arg-type]
        unknown = sorted(set(self.options) - set(known))
        if unknown:
            near = difflib.get_close_matches(unknown[0], known, n=1)
            raise UsageError(
                f"{self.name} has no option {', '.join(unknown)}",
                where=str(self.without_keys(unknown)),
                expected=" or ".join(known) if known else "no options",
                hint=f"Did you mean {near[0]!r}?" if near else "",
            )
        written = {name: f"0{value}" if re.match(r"\.\d", value) else value for name, value in self.options.items()}
        try:
            return msgspec.convert(written, options, strict=False)
        except (msgspec.ValidationError, ValueError) as error:
            raise UsageError(f"an option of {self.name} is wrong: {error}", where=str(self)) from error

    def without_keys(self, unknown: Sequence[str]) -> "Spec":
        """Blank what stands under unknown options that may be misspelled names of a key."""
        return dataclasses.replace(
            self,
            options={
                name: "..." if name in unknown and LIKE_KEY.search(name) else value
                for name, value in self.options.items()
            },
        )

    def refuse_options(self) -> None:
        """Make sure that nothing but the name is given."""
        if self.target or self.options:
            found = ", ".join([*filter(None, [self.target]), *sorted(self.options)])
            raise UsageError(f"{self.name} takes no target and no options", found=found)


def parse_spec(text: str) -> Spec:
    """Read a SPEC string."""
    head, _, query = text.strip().partition("?")
    name, _, target = head.partition(":")
    if not name:
        found = repr(masked(text))
        raise UsageError("a SPEC begins with a name", expected="name[:target][?key=value&...]", found=found)
    try:
        pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    except ValueError as error:
        expected = "key=value&key=value"
        raise UsageError("the options of a SPEC cannot be read", where=masked(text), expected=expected) from error
    for option, value in [("", name), ("", target), *pairs]:
        refuse_key(option, value)
    twice = [option for option, count in Counter(option for option, _ in pairs).items() if count > 1]
    if twice:
        raise UsageError(f"the option {twice[0]} stands twice", where=masked(text), expected="each option once")
    return Spec(name, target, dict(pairs))


def refuse_key(option: str, value: str) -> None:
    """Refuse a key that is written out, without repeating it: a SPEC stands in logs, manifests and reports."""
    problem = key_problem(option) or key_problem(value, name=option)
    if problem is not None:
        raise UsageError(
            f"a SPEC never holds a key: {problem}",
            expected="the name of an environment variable, such as api_key=${MY_KEY}",
            hint="Put the key into that variable, and write the SPEC in single quotes.",
        )


@dataclass(frozen=True, slots=True)
class Entry(Generic[Thing]):
    """A name in a registry.

    `factory` is `module:function` and `options` is `module:Dataclass`; both are imported on first use.
    `extra` is the optional part of culturekit that brings what the module imports, `packages` what it imports of it;
    `needs` names the keyword arguments the factory takes besides the SPEC. `outside` says that another package
    brings it.
    """

    name: str
    factory: str
    summary: str
    options: str = ""
    extra: str = ""
    packages: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    outside: bool = False

    def make(self, kind: str, spec: Spec, **context: Any) -> Thing:  # noqa: ANN401 - each factory types its own
        """Make the thing."""
        factory: Callable[..., Thing] = self.load(kind, self.factory)
        return factory(spec, **context)

    def check(self, kind: str, spec: Spec) -> None:
        """Check the options of a SPEC without making anything."""
        if self.options:
            spec.read(self.load(kind, self.options))

    def ready(self, kind: str) -> None:
        """Make sure that the packages are installed, without importing them.

        Raises:
            MissingDependency: one is not.
        """
        with needing(self.extra or "all", f"the {kind} {self.name}"):
            for package in self.packages:
                if find_spec(package) is None:
                    raise ModuleNotFoundError(name=package)

    def load(self, kind: str, reference: str) -> Any:  # noqa: ANN401 - a function or a class
        """Import what a reference names, or say which command installs what is missing.

        Raises:
            UsageError: a package is missing, or that of a plugin cannot be imported, whatever it raises.
        """
        module, _, name = reference.partition(":")
        if not self.outside:
            with needing(self.extra or "all", f"the {kind} {self.name}"):
                return getattr(importlib.import_module(module), name)
        try:
            return getattr(importlib.import_module(module), name)
        except Exception as error:
            raise UsageError(
                f"the {kind} {self.name}, a {self.summary}, cannot be imported: {type(error).__name__}: {error}",
                where=reference,
                hint="Mend that package, or remove it.",
            ) from error


@contextmanager
def needing(extra: str, asked_by: str) -> Iterator[None]:
    """Say which extra of culturekit brings a package that an import in the block does not find.

    Args:
        extra: such as `kg`.
        asked_by: what needs the package, such as `culturekit kg query`.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("culturekit"):
            raise
        raise MissingDependency(
            f"{asked_by} needs the package {error.name}, which is not installed",
            hint=f"Install it with: pip install -c constraints.txt 'culturekit[{extra}]'",
        ) from error


class Registry(Generic[Thing]):
    """The things of one kind, by name."""

    def __init__(self, kind: str, entries: Sequence[Entry[Thing]]) -> None:
        """Take the names that culturekit itself knows."""
        self.kind = kind
        self.entries = {entry.name: entry for entry in entries}

    def names(self) -> list[str]:
        """List all known names, those of installed plugins included."""
        return sorted({*self.entries, *plugins(self.kind)})

    def make(self, spec: Spec | str, **context: Any) -> Thing:  # noqa: ANN401 - each factory types its own
        """Make the thing a SPEC names."""
        parsed = parse_spec(spec) if isinstance(spec, str) else spec
        return self.find(parsed).make(self.kind, parsed, **context)

    def load(self, name: str, wanted: type[Any]) -> Any:  # noqa: ANN401 - one of `wanted`, which may be a protocol
        """Import what stands under a name, and make sure that it is what things of this kind are."""
        entry = self.find(name)
        found = entry.load(self.kind, entry.factory)
        if not isinstance(found, wanted):
            raise UsageError(
                f"an entry point `{self.kind}.NAME` names a {wanted.__name__}",
                where=entry.factory,
                found=type(found).__name__,
            )
        return found

    def check(self, spec: str) -> None:
        """Check a SPEC, its name and its options, without making anything."""
        parsed = parse_spec(spec)
        self.find(parsed).check(self.kind, parsed)

    def ready(self, spec: str) -> None:
        """Make sure that what a SPEC names could be made here, as far as installed packages tell."""
        self.find(spec).ready(self.kind)

    def find(self, spec: Spec | str) -> Entry[Thing]:
        """Look a name up, among our own first."""
        name = (parse_spec(spec) if isinstance(spec, str) else spec).name
        entry = self.entries.get(name) or plugins(self.kind).get(name)
        if entry is None:
            near = difflib.get_close_matches(name, self.names(), n=1)
            raise UsageError(
                f"there is no {self.kind} {name!r}",
                expected=" or ".join(self.names()),
                hint=f"Did you mean {near[0]!r}?" if near else "",
            )
        return entry


def plugins(kind: str) -> dict[str, Entry[Any]]:
    """List the entry points that other packages registered for a kind."""
    found: dict[str, Entry[Any]] = {}
    for point in entry_points(group=PLUGIN_GROUP):
        prefix, _, name = point.name.partition(".")
        if prefix == kind and name:
            summary = f"plugin of {point.dist.name}" if point.dist else "plugin"
            found[name] = Entry(name, point.value, summary, outside=True)
    return found
