"""What other packages and a recipe's own files bring: the points where they can, what is found, who is named."""

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, is_dataclass
from functools import cache, partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec, spec_from_file_location
from multiprocessing.reduction import ForkingPickler
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType, ModuleType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from culturekit.core.errors import CultureKitError, MissingDependency, PluginFailure, UsageError
from culturekit.core.stage import Engine

PLUGIN_GROUP = "culturekit.plugins"


@dataclass(frozen=True, slots=True)
class Point:
    """A kind of thing that other packages can bring."""

    kind: str  # what the name of an entry point begins with
    registry: str  # where the things of this kind are found by name
    brings: str  # what the entry point names: a function `make(spec)` of something, or the thing itself
    contract: str  # what it must be
    earlier: tuple[str, ...] = ()  # other words for the kind, which older packages use


POINTS = (
    Point(
        "encoder", "culturekit.index.encoder:ENCODERS", "make(spec) of an encoder of pictures, of texts, or of both",
        "culturekit.index.encoder:ImageEncoder, TextEncoder",
    ),
    Point(
        "backend", "culturekit.generation.backend:BACKENDS", "make(spec) of a text-to-image model",
        "culturekit.generation.backend:ImageBackend, HeldBackend",
    ),
    Point(
        "judge", "culturekit.llm.clients.clients:CLIENTS", "make(spec) of a language model, paid or in this process",
        "culturekit.llm.client:Client, FreeClient", ("client", "language model client"),
    ),
    Point(
        "quality", "culturekit.index.raters.quality:SCORERS", "make(spec) of a scorer of how good pictures are",
        "culturekit.index.raters.quality:QualityScorer", ("quality scorer",),
    ),
    Point(
        "measure", "culturekit.index.raters.picture_spread:PAIR_MEASURES", "make(spec) of how far pictures are apart",
        "culturekit.index.raters.picture_spread:PairMeasure", ("measure of pairs",),
    ),
    Point(
        "popularity", "culturekit.builders.popularity:SOURCES", "make(spec) of how well known artifacts are",
        "culturekit.builders.popularity:PopularitySource", ("popularity source",),
    ),
    Point(
        "search", "culturekit.index.search.search:ENGINES", "make(spec, vectors=, order=) of an exact search",
        "culturekit.index.search.search:Searcher",
    ),
    Point(
        "engine", "culturekit.core.engines:ENGINES", "make(spec, workers=, folder=) of who does the work",
        "culturekit.core.stage:Engine",
    ),
    Point("metric", "culturekit.scores.listing:KNOWN", "a family of scores", "culturekit.scores.family:Family"),
    Point(
        "form", "culturekit.people.stages:FORMS", "what writes the answers to a form as tables of its own",
        "culturekit.people.stages:FormTables",
    ),
    Point(
        "recipe", "culturekit.config.kinds:RECIPES", "a kind of recipe", "culturekit.config.kinds:RecipeKind",
        ("kind of recipe",),
    ),
)  # fmt: skip

# Kinds that packages and recipes may still name and that nothing asks for: `verify` makes scores again by itself.
RETIRED = frozenset({"check"})

KINDS = {word: point.kind for point in POINTS for word in (point.kind, *point.earlier)}


@dataclass(frozen=True, slots=True)
class Plugin:
    """One thing that another package brings."""

    kind: str  # of POINTS, or else the word that the package uses, which is none of them
    name: str  # under which it is asked for
    place: str  # `module:name`
    package: str = ""  # that brings it, as pip knows it
    version: str = ""
    file: str = ""  # that a recipe names instead

    def __str__(self) -> str:
        """Name it, and who brings it."""
        return f"the {self.kind} {self.name} of {self.brought_by}"

    @property
    def brought_by(self) -> str:
        """The package, with its version, or the file."""
        if self.file:
            return f"the file {self.file}"
        return f"the package {self.package} {self.version}".rstrip() if self.package else "an unknown package"

    def load(self) -> Any:  # noqa: ANN401 - whatever the package brings
        """Import what it names."""
        module, _, name = self.place.partition(":")
        try:
            with self.blamed("cannot be imported"):
                return attrgetter(name)(importlib.import_module(module))
        except OSError as error:  # a library that it loads is not there
            raise self.failure(f"cannot be imported: {type(error).__name__}: {error}") from error

    def options(self) -> type | None:
        """Give the dataclass that options of a SPEC have to fit: the attribute `options` of its function, if any."""
        stated = getattr(self.load(), "options", None)
        if stated is None or (isinstance(stated, type) and is_dataclass(stated)):
            return stated
        raise self.failure(
            "has options that are no dataclass", expected="make.options = a dataclass", found=repr(stated)
        )

    @contextmanager
    def blamed(
        self, how: str = "failed", *, answering: str = "", passing: tuple[type[BaseException], ...] = ()
    ) -> Iterator[None]:
        """Say that it was the plugin that failed, in its own words, or that it `answers` something else.

        What culturekit or the system explains passes, as does what its kind may raise, `passing`.

        Raises:
            PluginFailure: the plugin raised anything else.
            MissingDependency: it imports what is not installed.
        """
        explained: tuple[type[BaseException], ...] = (*passing, OSError, MemoryError)
        try:
            yield
        except explained:
            raise
        except Broken as broken:
            expected, found = broken.args
            how = f"answers {answering} with something else"
            raise self.failure(how, expected=expected, found=found) from broken
        except ModuleNotFoundError as error:
            if not error.name or error.name.partition(".")[0] == self.top:
                raise self.failure(f"{how}: {type(error).__name__}: {error}") from error
            raise MissingDependency(
                f"{self} needs the package {error.name}, which is not installed", where=self.place,
                hint="Install it; code of your own belongs into one folder with the file, with an __init__.py in it."
                if self.file
                else f"Install it, or see what the installation of {self.package or 'its package'} says of it.",
            ) from error  # fmt: skip
        except (Exception, SystemExit) as error:
            ours = isinstance(error, CultureKitError)
            if ours and type(error) is not CultureKitError:
                raise
            raise self.failure(f"{how}: {error}" if ours else f"{how}: {type(error).__name__}: {error}") from error

    def raised(self, error: BaseException) -> bool:
        """Tell whether an error comes out of the code of its package, or of what that calls, but for us."""
        names = (frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__))
        tops = [name.partition(".")[0] for name in names]
        return next((top == self.top for top in reversed(tops) if top in {self.top, "culturekit"}), False)

    @property
    def top(self) -> str:
        """What is imported: the outermost package of its code."""
        return self.place.partition(":")[0].partition(".")[0]

    def failure(self, how: str, *, expected: str = "", found: str = "") -> PluginFailure:
        """Make the error that names the plugin."""
        return PluginFailure(
            f"{self} {how}", where=self.place, expected=expected, found=found,
            hint=f"Mend that {'file' if self.file else 'package'}, or remove it: culturekit itself is not at fault.",
        )  # fmt: skip

    def made_of(self) -> dict[str, str]:
        """Give what tells this plugin from another state of itself: the version it states, or its code."""
        module = self.place.partition(":")[0]
        with self.blamed("cannot be imported"):
            modules = [importlib.import_module(name) for name in dict.fromkeys((module, self.top))]
        stated = next((found for one in modules if isinstance(found := getattr(one, "__version__", None), str)), None)
        return {"version": stated} if stated else {"code": digest_of_code(module)}


OF_RECIPE: list[Plugin] = []  # What the recipe that counts brings itself


def installed() -> list[Plugin]:
    """List what other packages and the recipe bring, in alphabetical order; nothing of it is imported."""
    found = set(OF_RECIPE)
    for point in entry_points(group=PLUGIN_GROUP):
        word, _, name = point.name.partition(".")
        about = (point.dist.name, point.dist.version) if point.dist else ("", "")
        found.add(Plugin(KINDS.get(word, word), name, point.value, *about))
    return sorted(found, key=lambda one: (one.kind, one.name, one.package, one.version, one.place, one.file))


def in_use() -> dict[str, str]:
    """Name the packages whose plugins this process has imported, each by what it brings: `recipe.NAME`."""
    found = (one for one in installed() if one.package and one.top in sys.modules)
    return {f"{one.kind}.{one.name}": f"{one.package} {one.version}".rstrip() for one in found}


def failure_within(error: BaseException) -> PluginFailure | None:
    """Name the plugin whose code raised an error that nothing held; None where it is not of a plugin."""
    plugin = next((one for one in installed() if one.raised(error)), None)
    return plugin.failure(f"failed: {type(error).__name__}: {error}") if plugin else None


def guard_exit() -> None:
    """Let `os._exit` in the code of a plugin be a failure of it: nobody would learn that nothing was finished."""
    leave: Any = os._exit
    if leave.__name__ != "_exit":
        return

    def guarded(status: int) -> None:
        top = str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0]
        os._exit = leave  # whatever looking for plugins runs may end the process itself
        if plugin := next((one for one in installed() if one.top == top), None):
            os._exit = guarded  # type: ignore[assignment]
            raise plugin.failure(f"ends the process: os._exit({status})")
        leave(status)

    os._exit = guarded  # type: ignore[assignment]


def plugins_of(kind: str) -> dict[str, Plugin]:
    """Give the plugins of a kind by their names."""
    named: dict[str, Plugin] = {}
    for one in installed():
        if one.kind != kind or not one.name:
            continue
        if one.name in named:
            both = f"{named[one.name].brought_by} and {one.brought_by}"
            raise UsageError(f"two packages bring the {kind} {one.name}", found=both, hint="Remove one of them.")
        named[one.name] = one
    return named


def digest_of_code(module: str) -> str:
    """Hash the Python files of the package that a module is in, or the file of a module that is in none.

    What else lies in its folder, such as runs, caches and data, is none of its code.
    """
    whole = hashlib.sha256()
    for name, path in files_of(module):
        whole.update(f"{name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def files_of(module: str) -> Iterator[tuple[str, Path]]:
    """Give the files by their names; a namespace, which packages share, is not looked into."""
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            continue
        origin = Path(found.origin)
        if not found.submodule_search_locations:
            yield origin.name, origin
            return
        named = {path.relative_to(origin.parent): path for path in origin.parent.rglob("*.py") if path.is_file()}
        for within, path in sorted(named.items(), key=lambda one: one[0].as_posix()):
            if not any(part.startswith((".", "__pycache__")) for part in within.parts):  # what tools keep there
                yield within.as_posix(), path
        return


# What a plugin promises, held where it enters: it has what its kind has, and answers as its kind answers.

STATE = 16  # Letters that tell the states of a plugin apart


class Broken(Exception):
    """An answer is not what was promised: what was expected, what was found."""


def hold(true: bool, expected: str, found: str) -> None:
    """Make sure of what an answer has to be."""
    if not true:
        raise Broken(expected, found)


def shown(thing: object) -> str:
    """Say what something is, and how it begins."""
    return f"{type(thing).__name__} {thing!r:.60}"


@dataclass(frozen=True, slots=True)
class Contract:
    """What a kind of plugin is, and how its answers are held against it."""

    shapes: tuple[type, ...]  # protocols, of which it must have all members of at least one
    # By method or value what looks at an answer, given the thing, the answer and what was asked, and gives it on;
    # `hold` refuses it.
    answers: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: MappingProxyType({}))
    raises: tuple[type[BaseException], ...] = ()  # what a method may raise as an answer
    says: Callable[[Any], Mapping[str, object]] = lambda _: {}  # what it says of itself that decides what comes of it

    def held(self, thing: object, plugin: Plugin) -> Any:  # noqa: ANN401 - fits the shapes
        """Check a thing against its protocols, and wrap it so that its errors and answers are the plugin's."""
        with plugin.blamed():
            lacking = {shape: [name for name in _members(shape) if not _has(thing, name)] for shape in self.shapes}
        nearest = min(self.shapes, key=lambda shape: (len(lacking[shape]), -len(_members(shape))))
        if lacking[nearest]:
            raise plugin.failure(
                f"is no {nearest.__name__}", expected=", ".join(_members(nearest)),
                found=f"{type(thing).__name__} without {', '.join(lacking[nearest])}",
            )  # fmt: skip
        promised = {
            name: inspect.getattr_static(shape, name)
            for shape in reversed(self.shapes) if not lacking[shape] for name in _members(shape)
        }  # fmt: skip
        for name in sorted(promised):
            if not isinstance(promised[name], property):
                _check_call(thing, name, promised[name], plugin)
        names = {name for name in dir(thing) if not name.startswith("_")} | promised.keys()
        guard = {name: property(partial(_member, name=name, promised=promised.get(name), of=self)) for name in names}
        return type(type(thing).__name__, (Held,), guard)(thing, plugin)


class Held:
    """Something of a plugin that is held to its contract."""

    def __init__(self, thing: object, plugin: Plugin) -> None:
        """Keep the thing, and who made it."""
        self._thing, self._plugin, self._state = thing, plugin, ""

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


def _members(shape: type) -> list[str]:
    """List what a protocol asks for, as it stands there, what it inherits first."""
    bases = [base for base in reversed(shape.__mro__) if getattr(base, "_is_protocol", False)]
    return [name for base in bases for name in vars(base) if not name.startswith("_")]


def _has(thing: object, name: str) -> bool:
    """Tell whether a thing has a member, without computing it where that can be told."""
    return inspect.getattr_static(thing, name, None) is not None or hasattr(thing, name)


def _member(held: Held, *, name: str, promised: object, of: Contract) -> Any:  # noqa: ANN401 - as promised
    """Give a member of a held thing: a value of the type that was promised, or a method whose answers are held."""
    with held._plugin.blamed(f"failed at {name}", passing=of.raises):
        found = getattr(held._thing, name)
    kinds = _types_of(promised) if isinstance(promised, property) else ()
    if kinds and not isinstance(found, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise held._plugin.failure(f"has something else as {name}", expected=expected, found=shown(found))
    if kinds:
        return of.answers[name](held, found) if name in of.answers else found
    return _guarded(held, found, name, of) if callable(found) else found


def _guarded(held: Held, method: Callable[..., Any], name: str, of: Contract) -> Callable[..., Any]:
    """Make a call whose errors are the plugin's, and whose answer is held against the contract."""
    plugin, check = held._plugin, of.answers.get(name)

    def answered(found: Any, words: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ANN401 - as promised
        with plugin.blamed(f"failed at {name}", answering=name):
            return found if check is None else check(held, found, *words, **named)

    def call(*words: Any, **named: Any) -> Any:  # noqa: ANN401 - as promised
        with plugin.blamed(f"failed at {name}", passing=of.raises):
            found = method(*words, **named)
        return awaited(found, words, named) if inspect.isawaitable(found) else answered(found, words, named)

    async def awaited(found: Any, words: tuple[Any, ...], named: dict[str, Any]) -> Any:  # noqa: ANN401 - as promised
        with plugin.blamed(f"failed at {name}", passing=of.raises):
            reply = await found
        return answered(reply, words, named)

    return call


def _check_call(thing: object, name: str, promised: Callable[..., Any], plugin: Plugin) -> None:
    """Make sure that a method can be called as its protocol says."""
    parameters = list(inspect.signature(promised).parameters.values())[1:]
    with plugin.blamed(f"failed at {name}"):
        method = getattr(thing, name)
    words = [each.name for each in parameters if each.kind is not each.KEYWORD_ONLY]
    named = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
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


@cache
def _types_of(promised: property) -> tuple[type, ...]:
    """Give the types that a value may have, as a protocol states them."""
    stated = get_type_hints(promised.fget)["return"]
    kinds = get_args(stated) if get_origin(stated) in {Union, UnionType} else (stated,)
    return tuple(found for kind in kinds if isinstance(found := get_origin(kind) or kind, type) and kind is not Any)


Item = TypeVar("Item")
Result = TypeVar("Result")

SUFFIX = ".py"


class Chosen:
    """What counts in this process, as `KIND.NAME` to `FILE.py:THING` or `module:THING`."""

    typed: Mapping[str, str] = {}  # what the command line names
    stated: Mapping[str, str] = {}  # what the recipe that was read last names


@dataclass(frozen=True, slots=True)
class Code:
    """What is imported of a file: under which name, and the file, or the folder of the package that it is part of."""

    top: str
    path: Path
    module: str

    @property
    def entry(self) -> Path:
        """The file that is run first."""
        return self.path / "__init__.py" if self.path.is_dir() else self.path


class AsWritten(SourceFileLoader):
    """Reads a file as it is now, whatever was compiled a moment before; leaves nothing beside it."""

    def path_stats(self, path: Any) -> Any:  # noqa: ANN401 - as of its base
        """Know no time of it, so that nothing is kept."""
        raise OSError(path)


class Finder(MetaPathFinder):
    """Finds the files of the recipe by the names of their modules, after all that is installed."""

    codes: Mapping[str, Code] = {}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find one; what is in a package is found by its folder."""
        if (code := self.codes.get(fullname)) is None:
            return None
        inside, entry = [str(code.path)] if code.path.is_dir() else None, str(code.entry)
        loader = AsWritten(fullname, entry)
        return spec_from_file_location(fullname, entry, loader=loader, submodule_search_locations=inside)


FINDER = Finder()
DIGESTS: dict[str, str] = {}  # of the code that is imported, by the name of its outermost module


def use_plugins(stated: Mapping[str, str]) -> None:
    """Let plugins count beside those that are installed; none takes back what counted.

    Args:
        stated: `KIND.NAME` to `FILE.py:THING`, relative to the folder the command runs in, or to `module:THING`.
    """
    choose(stated, {})


def typed_plugins() -> Mapping[str, str]:
    """Give the plugins that the command line names."""
    return Chosen.typed


def use_plugins_of_recipe(stated: Mapping[str, str]) -> None:
    """Let the plugins that a recipe names count, until another recipe is read."""
    for point in stated.keys() & Chosen.typed.keys():
        if stated[point] != Chosen.typed[point]:
            raise UsageError(
                f"two plugins are called {point}", found=f"{Chosen.typed[point]} of --plugins and {stated[point]}",
                expected="one of them",
            )  # fmt: skip
    choose(Chosen.typed, stated)


def choose(typed: Mapping[str, str], stated: Mapping[str, str]) -> None:
    """Put plugins in the place of those that counted; where one is wrong nothing has changed."""
    codes: dict[str, Code] = {}
    both = {point: thing for point, thing in {**typed, **stated}.items() if point.partition(".")[0] not in RETIRED}
    plugins = [plugin_of(point, thing, codes) for point, thing in both.items()]
    Chosen.typed, Chosen.stated = dict(typed), dict(stated)
    OF_RECIPE[:] = plugins
    if codes and FINDER not in sys.meta_path:
        sys.meta_path.append(FINDER)
    FINDER.codes = {**codes}
    importlib.invalidate_caches()
    digests = {top: f"{code.path.resolve()} {digest_of_code(code.module)}" for top, code in codes.items()}
    for top in [top for top, before in DIGESTS.items() if digests.get(top) != before]:
        for module in [module for module in sys.modules if module.partition(".")[0] == top]:
            del sys.modules[module]
    DIGESTS.clear()
    DIGESTS.update(digests)


def plugin_of(point: str, reference: str, codes: dict[str, Code]) -> Plugin:
    """Read one plugin, and note the code that it is in."""
    word, _, name = point.partition(".")
    if word not in KINDS or not name:
        kinds = ", ".join(each.kind for each in POINTS)
        raise UsageError(f"{point!r} names no plugin", expected=f"KIND.NAME, of the kinds {kinds}")
    where, _, thing = reference.rpartition(":")
    is_named = where.endswith(SUFFIX) or all(part.isidentifier() for part in where.split("."))
    if not is_named or not thing.isidentifier():
        raise UsageError(f"{reference!r} names nothing", expected="FILE.py:THING or module:THING", where=point)
    if not where.endswith(SUFFIX):
        top, stated = where.partition(".")[0], ""
        with suppress(PackageNotFoundError):  # pip knows none of its name
            stated = version(top)
        return Plugin(KINDS[word], name, reference, top, stated)
    code = code_of(Path(where))
    if codes.setdefault(code.top, code).path != code.path:
        raise taken(code, codes[code.top].path)
    codes[code.top] = code
    return Plugin(KINDS[word], name, f"{code.module}:{thing}", file=where)


def code_of(path: Path) -> Code:
    """Find out how a file is imported: alone, or as a part of the package that its folder is."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path), expected="a Python file, as FILE.py:THING")
    whole = path.resolve()
    parts, folder = [whole.stem], whole.parent
    while (folder / "__init__.py").is_file():
        whole, folder = folder, folder.parent
        parts.insert(0, whole.name)
    if not all(part.isidentifier() for part in parts) or parts == ["__main__"]:
        raise UsageError("Python cannot import a file of this name", where=str(path), expected="letters, digits and _")
    code = Code(parts[0], whole, ".".join(parts[:-1] if len(parts) > 1 and parts[-1] == "__init__" else parts))
    if code.top not in FINDER.codes:
        found = find_spec(code.top)
        if found is not None and found.origin != str(code.entry):
            raise taken(code, found.origin)
    return code


def taken(code: Code, other: object) -> UsageError:
    """Say that two modules have one name."""
    return UsageError(
        f"another module is called {code.top}", where=str(code.path), found=str(other), expected="a name of its own"
    )


class Carrying:
    """An engine whose workers know the plugins of the recipe too."""

    def __init__(self, engine: Engine) -> None:
        """Take the engine that does the work."""
        self.engine = engine

    @property
    def workers(self) -> int:
        """How many items can be in work at once."""
        return self.engine.workers

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield one result for each item."""
        stated = {}
        for point, reference in {**Chosen.typed, **Chosen.stated}.items():  # a worker may run in another folder
            where, _, thing = reference.rpartition(":")
            stated[point] = f"{Path(where).resolve()}:{thing}" if where.endswith(SUFFIX) else reference
        return self.engine.map(Carried(function, stated), items)


class Carried(Generic[Item, Result]):
    """A function that takes the plugins of the recipe along to where it is called."""

    def __init__(self, function: Callable[[Item], Result], stated: Mapping[str, str]) -> None:
        """Keep both."""
        self.function, self.stated = function, stated
        self.__name__ = function.__name__

    def __call__(self, item: Item) -> Result:
        """Do one item."""
        return self.function(item)

    def __reduce__(self) -> tuple[Any, ...]:
        """Cross process borders: over there the plugins are used first, and what speaks of them is read then."""
        return arrived, (self.stated, bytes(ForkingPickler.dumps(self.function)))


def arrived(stated: Mapping[str, str], function: bytes) -> Carried[Any, Any]:
    """Use the plugins in a worker."""
    use_plugins(stated)
    return Carried(ForkingPickler.loads(function), stated)


def carrying(engine: Engine) -> Engine:
    """Give an engine that takes the plugins of the recipe along; the same where there are none."""
    return Carrying(engine) if Chosen.typed or Chosen.stated else engine
