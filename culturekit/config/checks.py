"""What a value of a recipe must be besides well-formed; each says what is wrong in one line."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from culturekit.errors import CultureKitError, UsageError
from culturekit.families.named_in_recipe import check_named
from culturekit.generation.folder.folder_detection import stated_list
from culturekit.generation.folder.folder_options import FOLDER, Options, folder_of
from culturekit.kg.concepts import concept_path, shipped_concepts
from culturekit.records.tables import Table
from culturekit.registry import Registry, parse_spec
from culturekit.storage.package_data import shipped
from culturekit.storage.tables import read_table
from culturekit.storage.yaml_model import closest

__all__ = [
    "BLIND",
    "SAMPLE",
    "checked_spec",
    "dump_path",
    "existing_concept",
    "existing_dump",
    "existing_file",
    "existing_folder",
    "existing_hand",
    "existing_project",
    "existing_table",
    "hand_path",
    "knows_truth",
    "scorable_metrics",
    "seeing",
    "unique_names",
]

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
    return here if name != SHIPPED_HAND or (here / HAND).is_file() else shipped(f"cards/hand_written/{name}")


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
