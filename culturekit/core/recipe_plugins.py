"""Plugins that one recipe brings: files beside it, or modules that are installed, for as long as that recipe counts."""

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, spec_from_file_location
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from culturekit.core.errors import UsageError
from culturekit.core.plugins import KINDS, OF_RECIPE, POINTS, RETIRED, Plugin, digest_of_code
from culturekit.core.stage import Engine

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
