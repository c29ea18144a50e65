"""`culturekit doctor`: what this machine has and lacks; `culturekit plugins`: what other packages bring."""

import importlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

import typer

from culturekit.cli.options import AsJson, Prices
from culturekit.cli.showing import aligned, show
from culturekit.core.errors import CultureKitError, MissingDependency, UsageError
from culturekit.core.plugins import POINTS, Plugin, Point, installed
from culturekit.version import VERSION, install_line

MARKS = {"ok": "ok", "absent": "-", "broken": "BROKEN"}

# There and usable; not there, which matters only to whoever needs it; there and not usable, or needed and missing.
Level: TypeAlias = Literal["ok", "absent", "broken"]

REQUIREMENT = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*\])?(?:(?P<how>[=>]=)(?P<version>[0-9.]+))?")
EXTRA = re.compile(r"extra == '(?P<extra>[a-z-]+)'")
GROUPS = ("all", "all-gpu", "dev")  # Extras that only gather others, or that only contributors need

KEYS = {
    "OPENAI_API_KEY": "clients openai:MODEL, of text and of images",
    "GEMINI_API_KEY": "clients google:MODEL; GOOGLE_API_KEY does as well",
    "GOOGLE_API_KEY": "clients google:MODEL",
    "HF_TOKEN": "weights on the Hugging Face hub that ask for a login",
}
# A model as a SPEC names it; what a server elsewhere calls by such a name is its own affair.
NAMED = re.compile(r"\b(openai|google):(?:models/)?([A-Za-z0-9][A-Za-z0-9._-]*+)(?![^\s\"]*base_url=)")

Named: TypeAlias = tuple[str, str]  # A provider, and a model of it

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
LITTLE_DISK, LITTLE_MEMORY = 2e9, 2e9


def doctor(
    workdir: Annotated[Path, typer.Option(help="Where runs would lie, whose disk is looked at.")] = Path("runs"),
    judge: Annotated[
        str, typer.Option(metavar="SPEC", help="Also ask a server whether it can weigh yes against no: two questions.")
    ] = "",
    models: Annotated[
        bool, typer.Option("--models", help="Ask the providers whose key is set which models they list; costs nothing.")
    ] = False,
    recipe: Annotated[Path | None, typer.Option(help="Recipe whose models are looked at: do they end soon?")] = None,
    prices: Prices = None,
    as_json: AsJson = False,
) -> None:
    """Say what is installed, and whether it works.

    Which keys are set, which devices and how much room there are; ends with 1 if broken.
    """
    from culturekit.config.load import find_recipe, load_any_recipe

    asked = "" if recipe is None else load_any_recipe(find_recipe(str(recipe))).model_dump_json()
    named = models_in(f"{asked} {judge}")
    checks = [*all_checks(workdir), *(listed_models(named) if models else ending_models(named))]
    if judge:
        from culturekit.builders.judging.image_judge import probe_judge

        checks += (Check("judge", one.name, one.level, one.found, one.hint) for one in probe_judge(judge))
    broken = [check for check in checks if check.level == "broken"]
    lines = [
        f"{MARKS[check.level]:<8}{check.group:<10}{check.name}: {check.found}"
        + (f"\n{'':<18}{check.hint}" if check.hint else "")
        for check in checks
    ]
    summary = f"{len(broken)} broken" if broken else "nothing is broken"
    show({"ok": not broken, "checks": checks}, [*lines, summary], as_json=as_json)
    if broken:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at: the group it belongs to, its name, how it is, what was found, what to do."""

    group: str
    name: str
    level: Level
    found: str
    hint: str = ""


def all_checks(folder: Path) -> Iterator[Check]:
    """Look at everything; `folder` is where runs would lie."""
    yield Check("core", "python", "ok" if sys.version_info >= (3, 11) else "broken", sys.version.split()[0])
    yield Check("core", "culturekit", "ok", VERSION)
    yield from packages()
    yield from devices()
    yield from keys()
    yield from programs()
    yield from machine(folder)


def packages() -> Iterator[Check]:
    """Look at the packages that culturekit needs, and at those of each extra."""
    try:
        named = requires("culturekit") or []
    except PackageNotFoundError:
        yield Check("core", "packages", "absent", "culturekit runs without being installed", "pip install culturekit")
        return
    core = [one for one in named if "extra ==" not in one]
    if wrong := list(filter(None, map(problem_with, core))):
        yield Check("core", "packages", "broken", "; ".join(wrong), "pip install --upgrade culturekit")
    else:
        yield Check("core", "packages", "ok", f"{len(core)} of {len(core)}")
    extras = sorted(set(metadata("culturekit").get_all("Provides-Extra") or ()) - set(GROUPS))
    for extra in extras:
        members = [one for one in named if (match := EXTRA.search(one)) and match["extra"] == extra]
        if wrong := list(filter(None, map(problem_with, members))):
            absent = len(wrong) == len(members) or all("not installed" in one for one in wrong)
            level: Level = "absent" if absent else "broken"
            yield Check("extras", extra, level, "; ".join(wrong), install_line(extra))
        else:
            yield Check("extras", extra, "ok", ", ".join(sorted(name_of(one) for one in members)))
    builds = [one for one in ("faiss-cpu", "faiss-gpu-cuvs") if problem_with(one) is None]
    if not builds:
        yield Check("extras", "search", "ok", "without FAISS the exact search of culturekit does the work")
    elif len(builds) == 2:
        hint = "pip uninstall one of faiss-cpu, faiss-gpu-cuvs"
        yield Check("extras", "search", "broken", "both builds of FAISS", hint)


def name_of(requirement: str) -> str:
    """Give the package that a requirement names."""
    match = REQUIREMENT.match(requirement)
    return match["name"] if match else requirement


def problem_with(requirement: str) -> str | None:
    """Say how an installed package falls short of a requirement; None where it does not."""
    match = REQUIREMENT.match(requirement)
    name = name_of(requirement)
    try:
        found = version(name)
    except PackageNotFoundError:
        return f"{name} is not installed"
    wanted = match["version"] if match else None
    if wanted and numbers(found) < numbers(wanted):
        return f"{name} {found} is older than {wanted}"
    return None


def numbers(text: str) -> tuple[int, ...]:
    """Read the numbers that a version begins with."""
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def devices() -> Iterator[Check]:
    """Ask torch what it can compute on, if it is there."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    yield Check("devices", "cpu", "ok", f"{cores} cores")
    if problem_with("torch") is not None:
        yield Check("devices", "gpu", "absent", "not asked: torch is not installed")
        return
    try:
        torch = importlib.import_module("torch")
        count = int(torch.cuda.device_count()) if torch.cuda.is_available() else 0
        for number in range(count):
            about = torch.cuda.get_device_properties(number)
            yield Check("devices", f"cuda:{number}", "ok", f"{about.name}, {about.total_memory / 1e9:.0f} GB")
        if torch.backends.mps.is_available():
            yield Check("devices", "mps", "ok", "Apple GPU")
        elif not count:
            yield Check("devices", "gpu", "absent", f"torch {torch.__version__} finds none")
    except (ImportError, OSError, RuntimeError, AttributeError) as error:
        hint = install_line("embed").replace("install", "install --force-reinstall", 1)
        yield Check("devices", "torch", "broken", f"cannot be imported: {error}", hint)


def keys() -> Iterator[Check]:
    """Say which keys are set, by the names of their variables and nothing else."""
    for name, use in KEYS.items():
        value = os.environ.get(name)
        if value is not None and (not value.strip() or value != value.strip()):
            found = "is set, but to nothing" if not value.strip() else "is set, with white space around it"
            yield Check("keys", name, "broken", found, f"export {name}=... without spaces, or unset {name}")
        elif value is None:
            yield Check("keys", name, "absent", "not set", f"needed for {use}")
        else:
            yield Check("keys", name, "ok", f"set, for {use}")


def models_in(text: str) -> set[Named]:
    """Find the models that SPECs in a text name, each with its provider."""
    return {(provider, model.rstrip(".")) for provider, model in NAMED.findall(text)}


def listed_models(named: set[Named]) -> Iterator[Check]:
    """Ask each provider which models it lists, and hold those of the price list and those named against them."""
    from culturekit.llm.price_update import standings

    for provider in ("openai", "google"):
        try:
            found = standings(provider, [model for service, model in named if service == provider])
        except MissingDependency as error:
            yield Check("models", provider, "absent", f"not asked: {error.problem}", error.hint)
            yield from dated_models({one for one in named if one[0] == provider})
            continue
        except CultureKitError as error:
            yield Check("models", provider, "broken", f"gave no list: {error.problem}", str(error.found or ""))
            continue
        for one in found:
            needed = (provider, one.model) in named and one.state in {"shut", "not listed"}
            level: Level = "broken" if needed else "ok" if one.state in {"alive", "shuts"} else "absent"
            yield Check("models", f"{provider}:{one.model}", level, str(one))


def ending_models(named: set[Named]) -> Iterator[Check]:
    """Say which models end: of those named, and of those that are taken by default where there is a key."""
    from culturekit.llm.endpoints import SERVICES
    from culturekit.llm.models import known_models

    yield from dated_models(named)
    keys = {provider for provider, service in SERVICES.items() if any(map(os.environ.get, service.keys))}
    shown = models_in(" ".join(known_models().roles.values())) - named
    for check in dated_models({one for one in shown if one[0] in keys}):
        yield replace(check, level="absent")


def dated_models(models: Iterable[Named]) -> Iterator[Check]:
    """Say of models what the list of prices says of their end."""
    from culturekit.llm.prices import end_of, price_of, today

    for provider, model in sorted(models):
        price = price_of(model, provider=provider)
        if price is not None and (state := end_of(price, today())) != "alive":
            found = f"{state}: {price.shuts}, by the list of prices"
            hint = f"{price.instead} takes its place" if price.instead else ""
            yield Check("models", f"{provider}:{model}", "broken" if state == "shut" else "absent", found, hint)


def programs() -> Iterator[Check]:
    """Look for what is not Python: WordNet's files and a browser."""
    folders = [Path(one) for one in os.environ.get("NLTK_DATA", "").split(os.pathsep) if one]
    folders += [Path.home() / "nltk_data", Path(sys.prefix) / "nltk_data", Path("/usr/share/nltk_data")]
    yield wordnet(folders)
    browser = next((path for path in map(shutil.which, BROWSERS) if path), None)
    yield Check(
        "data", "Chromium", "ok" if browser else "absent", browser or "no browser on the path",
        "" if browser else "only the tests of the report need one: apt install chromium",
    )  # fmt: skip


def wordnet(folders: Sequence[Path]) -> Check:
    """Look for WordNet in NLTK's folders: whole, half there, or only as Debian has it."""
    from culturekit.recipes.linguistic.wordnet import DEBIAN, GET, MENDING, lacking

    found = next(filter(None, map(lacking, folders)), None)
    if found is not None and not found[1]:
        return Check("data", "WordNet", "ok", str(found[0]))
    if found is not None:
        return Check("data", "WordNet", "broken", f"{found[0]} lacks {', '.join(sorted(found[1]))}", GET)
    if lacking(DEBIAN) is not None:
        return Check("data", "WordNet", "absent", f"{DEBIAN} is Debian's, which NLTK cannot read", MENDING)
    return Check("data", "WordNet", "absent", "in none of NLTK's folders", GET)


def machine(folder: Path) -> Iterator[Check]:
    """Look at the room there is, on the disk of runs and in memory."""
    there = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())
    free = shutil.disk_usage(there).free
    writable = os.access(there, os.W_OK)
    found = f"{free / 1e9:.1f} GB free in {there}" if writable else f"{there} cannot be written to"
    hint = "" if writable and free >= LITTLE_DISK else "choose another place with --workdir or --out"
    yield Check("machine", "disk", "ok" if writable and free >= LITTLE_DISK else "broken", found, hint)
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        stated = [float(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
        memory: float | None = [*stated, float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))][0]
    except (OSError, ValueError):
        memory = None
    if memory is not None:
        level: Level = "ok" if memory >= LITTLE_MEMORY else "broken"
        yield Check("machine", "memory", level, f"{memory / 1e9:.1f} GB", "" if level == "ok" else "use --workers 1")


@dataclass(frozen=True, slots=True)
class Listed:
    """Something that a package brings, and why it does not work; empty where it does."""

    plugin: Plugin
    problem: str


def plugins_command(
    kinds: Annotated[
        bool, typer.Option("--kinds", help="List instead what another package, or a recipe, can bring.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List what other packages bring, and what fails.

    Kind, name, package and version; ends with 1 if something fails.
    """
    if kinds:
        show(
            POINTS, (f"{f'{one.kind}.NAME':<18}{one.brings}\n{'':<18}{one.contract}" for one in POINTS), as_json=as_json
        )
        return
    listed = looked_at(installed())
    rows = [
        ("FAILS" if one.problem else "ok   ", of.kind, of.name, of.file or of.package, of.version, of.place)
        for one, of in ((one, one.plugin) for one in listed)
    ]
    lines = []
    for line, one in zip(aligned(rows), listed, strict=True):
        lines += [line, *([f"{'':<7}{one.problem}"] if one.problem else [])]
    nothing = ["no other package brings anything; culturekit plugins --kinds lists what one can bring"]
    data = [{**asdict(one.plugin), "problem": one.problem} for one in listed]
    show(data, lines or nothing, as_json=as_json)
    if any(one.problem for one in listed):
        raise typer.Exit(1)


def looked_at(plugins: Sequence[Plugin]) -> list[Listed]:
    """Import everything, and say of each what is wrong."""
    points = {point.kind: point for point in POINTS}
    names = [(one.kind, one.name) for one in plugins]
    return [Listed(one, problem_of(one, points, alone=names.count((one.kind, one.name)) == 1)) for one in plugins]


def problem_of(plugin: Plugin, points: dict[str, Point], *, alone: bool) -> str:
    """Say why nobody can use something; empty where it works, as far as an import tells."""
    point = points.get(plugin.kind)
    if point is None or not plugin.name:
        return f"there is no kind {plugin.kind!r}; expected KIND.NAME, of the kinds {', '.join(points)}"
    if not alone:
        return f"another package brings the {plugin.kind} {plugin.name} too; remove one of them"
    module, _, name = point.registry.partition(":")
    registry = getattr(importlib.import_module(module), name)
    if plugin.name in registry.entries:
        return f"the {registry.kind} {plugin.name} of culturekit itself is used; choose another name"
    try:
        if plugin.kind == "metric":
            from culturekit.scores.listing import family_named

            family_named(plugin.name)
        else:
            registry.load(plugin.name)
    except UsageError as error:
        return str(error)
    return ""
