"""Names become things: SPEC strings, factories that import what they need only when asked, plugins.

A SPEC is `name[:target][?key=value&key=value]`, such as `simulated?temperature=2` or
`openai:MODEL?base_url=http://127.0.0.1:8000/v1`. Other packages add names: `culturekit.plugins`.
"""

import dataclasses
import difflib
import importlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, quote

import msgspec

from culturekit.core.digests import digest_file, digest_tree, state_of
from culturekit.core.errors import MissingDependency, UsageError
from culturekit.core.literal_keys import LIKE_KEY, masked, refuse_key
from culturekit.core.package_data import shipped
from culturekit.core.plugins import Contract, Plugin, plugins_of
from culturekit.version import install_line

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
        joined = "&".join(f"{key}={quote(value, safe='/:,.@-${}')}" for key, value in sorted(self.options.items()))
        return f"{text}?{joined}" if joined else text

    def read(self, options: type[Options], *, such_as: str = "") -> Options:
        """Turn the option texts into a frozen dataclass; all unknown names are said at once.

        What has options only, and no target, gives an option `such_as`.
        """
        if such_as and self.target:
            raise UsageError(f"{self.name} has options only", where=str(self), hint=f"Write {self.name}?{such_as}.")
        known = [field.name for field in dataclasses.fields(options)]  # type: ignore[arg-type]
        unknown = sorted(set(self.options) - set(known))
        if unknown:
            near = difflib.get_close_matches(unknown[0], known, n=1)
            # What stands under a misspelled name of a key is not shown.
            hidden = {name: "..." for name in unknown if LIKE_KEY.search(name)}
            raise UsageError(
                f"{self.name} has no option {', '.join(unknown)}",
                where=str(dataclasses.replace(self, options={**self.options, **hidden})),
                expected=" or ".join(known) or "no options", hint=f"Did you mean {near[0]!r}?" if near else "",
            )  # fmt: skip
        written = {name: f"0{value}" if re.match(r"\.\d", value) else value for name, value in self.options.items()}
        try:
            return msgspec.convert(written, options, strict=False)
        except (msgspec.ValidationError, ValueError) as error:
            raise UsageError(f"an option of {self.name} is wrong: {error}", where=str(self)) from error

    def state(self) -> tuple[object, ...]:
        """Say in which state the files are that stand in the SPEC."""
        return tuple(state_of(Path(text)) for text in (self.target, *self.options.values()) if text)

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
        raise UsageError(
            "a SPEC begins with a name", expected="name[:target][?key=value&...]", found=repr(masked(text))
        )
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


@dataclass(frozen=True, slots=True)
class Entry(Generic[Thing]):
    """A name in a registry; what it stands for is imported on first use."""

    name: str
    factory: str  # `module:function`
    summary: str
    options: str = ""  # `module:Dataclass`
    extra: str = ""  # the optional part of culturekit that brings what the module imports
    packages: tuple[str, ...] = ()  # what it imports of that
    needs: tuple[str, ...] = ()  # keyword arguments that the factory takes besides the SPEC
    reads: str = ""  # a shipped file that decides what the thing makes
    plugin: Plugin | None = None  # what another package brings

    def make(self, kind: str, spec: Spec, contract: Contract | None = None, **context: Any) -> Thing:  # noqa: ANN401
        """Make the thing; what another package makes is held to the contract."""
        factory: Callable[..., Thing] = self.load(kind)
        if self.plugin is None:
            return factory(spec, **context)
        self.check(kind, spec)
        with self.plugin.blamed():
            thing = factory(spec, **context)
        return thing if contract is None else contract.held(thing, self.plugin)

    def check(self, kind: str, spec: Spec) -> None:
        """Check the options of a SPEC without making anything."""
        options = self.load(kind, self.options) if self.options else self.plugin.options() if self.plugin else None
        if options is not None:
            spec.read(options)

    def ready(self, kind: str) -> None:
        """Make sure that the packages are installed, without importing them."""
        with needing(self.extra or "all", f"the {kind} {self.name}"):
            for package in self.packages:
                if find_spec(package) is None:
                    raise ModuleNotFoundError(name=package)

    def load(self, kind: str, reference: str = "") -> Any:  # noqa: ANN401 - a function, a class, or a thing
        """Import what the name stands for, or something else of ours; say which command installs what is missing."""
        if self.plugin is not None:
            return self.plugin.load()
        module, _, name = (reference or self.factory).partition(":")
        with needing(self.extra or "all", f"the {kind} {self.name}"):
            return getattr(importlib.import_module(module), name)


@contextmanager
def needing(extra: str, asked_by: str) -> Iterator[None]:
    """Say which extra of culturekit, such as `kg`, brings a package that an import in the block does not find."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("culturekit"):
            raise
        raise MissingDependency(
            f"{asked_by} needs the package {error.name}, which is not installed",
            hint=f"Install it with: {install_line(extra)}",
        ) from error


class Registry(Generic[Thing]):
    """The things of one kind, by name."""

    def __init__(
        self, kind: str, entries: Sequence[Entry[Thing]], *,
        point: str = "", contract: Contract | None = None, wanted: str = "",
    ) -> None:  # fmt: skip
        """Take the names that culturekit itself knows.

        Args:
            kind: what messages call one of them.
            entries: the names.
            point: what the entry points of other packages begin with; empty where those can bring none.
            contract: what a thing that another package makes is held to.
            wanted: `module:Class` of what a name stands for, where it is the thing itself and no factory.
        """
        self.kind, self.point, self.contract, self.wanted = kind, point, contract, wanted
        self.entries = {entry.name: entry for entry in entries}
        self.waiting: dict[object, Thing] = {}
        self.keeping: dict[object, tuple[tuple[object, ...], Thing]] = {}
        self.says: dict[object, Mapping[str, object]] = {}

    def names(self) -> list[str]:
        """List all known names, those of installed plugins included."""
        return sorted({*self.entries, *self.plugins()})

    def plugins(self) -> Mapping[str, Plugin]:
        """Give what other packages bring, by name."""
        return plugins_of(self.point) if self.point else {}

    def make(self, spec: Spec | str, **context: Any) -> Thing:  # noqa: ANN401 - each factory types its own
        """Make the thing a SPEC names."""
        parsed = parse_spec(spec) if isinstance(spec, str) else spec
        entry = self.find(parsed)
        if entry.plugin is not None and self.waiting and not context:
            waiting = self.waiting.pop((entry.plugin.load(), str(parsed), parsed.state()), None)
            if waiting is not None:
                return waiting
        return entry.make(self.kind, parsed, self.contract, **context)

    def kept(self, spec: str, **context: Path) -> Thing:
        """Make the thing once per process, and anew where its code, or a file that the SPEC names, became another."""
        parsed = parse_spec(spec)
        asked = (str(parsed), *sorted(context.items()))
        state = (self.load(parsed.name), parsed.state(), *map(state_of, context.values()))
        if self.keeping.get(asked, ((), None))[0] != state:
            self.keeping[asked] = state, self.make(parsed, **context)
        return self.keeping[asked][1]

    def load(self, name: str) -> Any:  # noqa: ANN401 - one of `wanted`, or a function
        """Import what stands under a name, and make sure that it is what things of this kind are."""
        entry = self.find(name)
        found = entry.load(self.kind)
        module, _, title = self.wanted.partition(":")
        fits = isinstance(found, getattr(importlib.import_module(module), title)) if module else callable(found)
        if not fits:
            expected, how = title or "a function", "is something else than its kind"
            failure = entry.plugin.failure if entry.plugin else UsageError
            raise failure(how, expected=expected, found=type(found).__name__)
        return found

    def check(self, spec: str) -> None:
        """Check a SPEC, its name and its options, without making anything."""
        parsed = parse_spec(spec)
        self.find(parsed).check(self.kind, parsed)

    def brought_by(self, spec: Spec | str) -> dict[str, object]:
        """Say in which state a plugin is: the version its package states, or else its code; of ours what it reads."""
        entry = self.find(spec)
        if entry.plugin is not None:
            return {f"{self.point}_plugin": entry.plugin.made_of()}
        return {f"{self.point}_reads": digest_file(shipped(entry.reads))} if entry.reads else {}

    def decided_by(self, spec: Spec | str) -> dict[str, object]:
        """Say what decides the answers of a plugin, as part of the options of a stage: its state, and what it says.

        It is made for that, and given to whoever makes it next: it may hold weights. Of ours the version of a stage
        speaks.
        """
        parsed = parse_spec(spec) if isinstance(spec, str) else spec
        plugin = self.find(parsed).plugin
        if plugin is None or self.contract is None:
            return self.brought_by(parsed)
        asked = (plugin.load(), str(parsed), parsed.state())
        if asked not in self.says:
            self.waiting[asked] = thing = self.make(parsed)
            self.says[asked] = dict(self.contract.says(thing))
        return {f"{self.point}_plugin": {**plugin.made_of(), **self.says[asked]}}

    def ready(self, spec: str) -> None:
        """Make sure that what a SPEC names could be made here, as far as installed packages tell."""
        self.find(spec).ready(self.kind)

    def find(self, spec: Spec | str) -> Entry[Thing]:
        """Look a name up, among our own first."""
        name = (parse_spec(spec) if isinstance(spec, str) else spec).name
        if name in self.entries:
            return self.entries[name]
        plugin = self.plugins().get(name)
        if plugin is None:
            near = difflib.get_close_matches(name, self.names(), n=1)
            raise UsageError(
                f"there is no {self.kind} {name!r}",
                expected=" or ".join(self.names()),
                hint=f"Did you mean {near[0]!r}?" if near else "",
            )
        return Entry(name, plugin.place, f"plugin of {plugin.package}", plugin=plugin)


PATHS = ("/", "./", "../", "~")  # How the path of a file begins, which a name of the hub never does


def spec_state(registry: Registry[Any], spec: str, *, targets: Registry[Any] | None = None) -> dict[str, object]:
    """Say what decides the answers of a SPEC besides its words: weights, and what another package brings.

    The target of a scorer may be a SPEC of `targets`, as in `clipscore:transformers:FOLDER`.
    """
    parsed = parse_spec(spec)
    inner = targets.brought_by(parsed.target) if targets is not None and parsed.name == "clipscore" else {}
    return {**weights_of(parsed.target), **inner, **registry.decided_by(parsed)}


def weights_of(target: str) -> dict[str, str]:
    """Hash the weights that the target of a SPEC points to, so that others at the same place give another result."""
    for path in (Path(target), Path(target.partition(":")[2])):
        if path != Path() and path.is_dir():
            return {"weights": digest_tree(path)[0]}
        if path.is_file():
            return {"weights": digest_file(path)}
    return {}


def check_ready(registry: Registry[Any], spec: str) -> None:
    """Make sure that the packages and files that a SPEC needs are there; a name of the hub is left to its encoder."""
    target = parse_spec(spec).target
    path = target if target.startswith(PATHS) else target.partition(":")[2]
    if path.startswith(PATHS) and not Path(path).expanduser().exists():
        raise MissingDependency(
            "there are no weights at this place", where=spec, expected="a folder or a file", found=path
        )
    registry.ready(spec)
