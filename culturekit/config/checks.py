"""What a value of a recipe must be besides well-formed; each says what is wrong in one line."""

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Protocol

from culturekit.builders.prompting.prompts import PromptOptions
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.package_data import shipped
from culturekit.core.registry import Registry, parse_spec
from culturekit.core.table import Table
from culturekit.core.tables import read_table
from culturekit.core.yaml_source import closest
from culturekit.generation.folder.folder_backend import FOLDER, Options, folder_of
from culturekit.generation.folder.folder_detection import stated_list
from culturekit.kg.concepts import concept_path, shipped_concepts
from culturekit.scores.named_in_recipe import check_named

SAMPLE = "sample"
"""Stands for the Wikidata sample that comes with culturekit."""

HAND = "card.yaml"
"""The fields of the hand-written half of a data card."""

SHIPPED_HAND = "cspace"
"""Stands for the hand-written half of CSpace's card, whose publisher is still to be filled in."""

BLIND = "rules"
"""The judge that reads words only."""
PROJECT = "project.json"
"""What an annotation project keeps of itself."""

TRUTHFUL = "simulated"
"""The backend whose images come with what they show."""


def dump_path(name: str) -> Path:
    """Find a dump file; `sample` is the bundled one, where no other is found by that name."""
    here = Path(name)
    return here if name != SAMPLE or here.is_file() else shipped("kg/sample/wikidata-sample.json.gz")


def hand_path(name: str) -> Path:
    """Find the hand-written half of a data card; `cspace` is the shipped one, where no other is found by that name."""
    here = Path(name)
    return here if name != SHIPPED_HAND or (here / HAND).is_file() else shipped(f"release/hand_written/{name}")


def checked_spec(registry: Registry[Any]) -> Callable[[str], str]:
    """Accept a SPEC whose name and options the registry knows."""

    def check(spec: str) -> str:
        registry.check(spec)
        return spec

    return check


def existing_dump(name: str) -> str:
    """Accept a dump that is there."""
    if not dump_path(name).is_file():
        raise ValueError(f"there is no dump file {name!r}; expected a path, or {SAMPLE} for the bundled one")
    return name


def existing_file(name: str) -> str:
    """Accept a file that is there."""
    if not Path(name).is_file():
        raise ValueError(f"there is no file {name!r}")
    return name


def existing_table(table: Table) -> Callable[[str], str]:
    """Make a check that accepts a file with rows of a table of ours."""

    def check(name: str) -> str:
        try:
            rows = read_table(existing_file(name), table).height
        except CultureKitError as error:
            raise ValueError(str(error)) from error
        if not rows:
            raise ValueError(f"the table {table.name} of {name!r} has no rows")
        return name

    return check


def existing_hand(name: str) -> str:
    """Accept the hand-written half of a data card."""
    if not (hand_path(name) / HAND).is_file():
        raise ValueError(
            f"there is no {HAND} in {name!r}; `culturekit card init {name}` begins one, {SHIPPED_HAND} is shipped"
        )
    return name


def existing_project(name: str) -> str:
    """Accept the folder of an annotation project."""
    if not (Path(name) / PROJECT).is_file():
        raise ValueError(
            f"there is no {PROJECT} in {name!r}; expected what `annotate export` or `cspace review export` wrote"
        )
    return name


def existing_folder(backend: str) -> str:
    """Accept a backend; one that takes a folder of images needs it, and the list that it names, to be there."""
    spec = parse_spec(backend)
    if spec.name == FOLDER:
        root, manifest = folder_of(spec), spec.read(Options).manifest
        if manifest:
            stated_list(root, manifest)
    return backend


def knows_truth(backend: str) -> bool:
    """Tell whether the images of a backend come with what they show."""
    return parse_spec(backend).name == TRUTHFUL


def existing_concept(name: str) -> str:
    """Accept a shipped concept, or a root config that is there."""
    if not concept_path(name).is_file():
        names = shipped_concepts()
        raise ValueError(f"there is no concept {name!r}{closest(name, names)}, or the path of a root config")
    return name


def scorable_metrics(stated: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Accept families that exist, whose tables a run makes, with options that they take."""
    for name, options in stated.items():
        try:
            check_named(name, options)
        except UsageError as error:
            raise ValueError(f"{name}: {error}") from error
    return stated


def seeing(judge: str) -> str:
    """Accept a judge that looks at pictures, as far as its name tells."""
    if parse_spec(judge).name == BLIND:
        raise ValueError(f"{BLIND} reads words only and sees no image: name a vision model, such as openai:MODEL")
    return judge


class Named(Protocol):
    """Something with a name."""

    @property
    def name(self) -> str:
        """The name."""
        ...


def unique_names(models: Sequence[Named]) -> Sequence[Named]:
    """Accept models that all have a name of their own."""
    names = [model.name for model in models]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two models are called {', '.join(twice)}")
    return models


# What a recipe may take as somebody published it: the cultural space, and prompts.

MAKING = (
    "dump", "concepts", "ingest", "countries", "judge", "llm", "completion", "review", "include", "popularity",
    "release", "card",
)  # fmt: skip
"""The keys that say how a cultural space is made."""

PUBLISHED = {
    ".parquet": "a .parquet table of culturekit",
    ".json": "a .json file in the public CUBE layout",
}
TYPED = {".csv": "a .csv file with the columns name, concept and country"}
TYPED_PROMPTS = {".csv": "a .csv file with the columns prompt and concept"}
"""What may be published, and what may be typed by hand, by the end of the file's name."""


@dataclass(frozen=True, slots=True)
class RecipePrompts(PromptOptions):
    """Which prompts to build, or the `file` that has them: a prompts table, one in the public CUBE layout, or your CSV.

    `review` asks for a sheet that people fill in.
    """

    file: str | None = None

    def check(self) -> None:
        """Refuse options that would decide nothing beside a file, or contradict each other."""
        stated = [one.name for one in fields(PromptOptions) if getattr(self, one.name) != one.default]
        if self.file is not None and stated:
            raise ValueError(
                f"file takes prompts as they are, so {', '.join(stated)} would decide nothing: leave it out"
            )
        PromptOptions.check(self)

    def built(self) -> PromptOptions:
        """Give the options of prompts that are built."""
        settings = asdict(self)
        del settings["file"]
        return PromptOptions(**settings)


def existing_prompts(name: str) -> str:
    """Accept prompts that are there: published, or typed by hand."""
    return existing(name, PUBLISHED | TYPED_PROMPTS)


def existing_space(name: str) -> str:
    """Accept a cultural space that is there: published, or typed by hand."""
    return existing(name, PUBLISHED | TYPED)


def existing(name: str, accepted: Mapping[str, str]) -> str:
    """Accept a file that is there and whose name ends as one of those that are accepted."""
    path = Path(name)
    *first, last = accepted.values()
    expected = f"{', '.join(first)}, or {last}"
    if path.is_dir():
        raise ValueError(f"{name!r} is a folder; expected {expected}{inside(path)}")
    if not path.is_file():
        raise ValueError(f"there is no file {name!r}; expected {expected}{nearby(path, accepted)}")
    if path.suffix not in accepted:
        raise ValueError(f"{name!r} is none of these: expected {expected}")
    return name


def inside(folder: Path) -> str:
    """Name a file in a folder that may have been meant."""
    for name in ("cspace.parquet", "prompts.parquet"):
        if (folder / name).is_file():
            return f", such as {str(folder / name)!r}"
    return ""


def nearby(path: Path, accepted: Collection[str]) -> str:
    """Name the files beside one that is not there, where there are few."""
    beside = sorted(one.name for one in path.parent.glob("*") if one.suffix in accepted) if path.parent.is_dir() else []
    return f"; beside it are {', '.join(beside)}" if 0 < len(beside) <= 6 else ""


def checked_prompts(options: RecipePrompts) -> RecipePrompts:
    """Accept prompts whose options fit together, and whose file is there."""
    options.check()
    if options.file is not None:
        existing_prompts(options.file)
    return options


def check_sources(stated: Set[str], *, cspace: str | None) -> None:
    """Make sure that a cultural space is made, or taken as it was published, and not both.

    Args:
        stated: the keys that stand in the recipe.
        cspace: the published cultural space.
    """
    if cspace is not None:
        idle = [key for key in MAKING if key in stated]
        if idle:
            raise ValueError(
                f"cspace is taken as it was published, so {', '.join(idle)} would decide nothing: "
                "leave that out, or leave cspace out"
            )
        return
    missing = [key for key in ("dump", "concepts") if key not in stated]
    if missing == ["dump", "concepts"]:
        raise ValueError(
            "a cultural space is missing: give dump and concepts to make one, or cspace: FILE, one that was published"
        )
    if missing:
        raise ValueError(f"{missing[0]} is missing: a cultural space is made from both, dump and concepts")
