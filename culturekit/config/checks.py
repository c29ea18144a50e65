"""What a value of a recipe must be besides well-formed; each says what is wrong in one line."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.package_data import shipped
from culturekit.core.registry import Registry, parse_spec
from culturekit.core.table import Table
from culturekit.core.tables import read_table, scan_table
from culturekit.generation.backend import FOLDER
from culturekit.generation.folder.folder_detection import stated_list
from culturekit.generation.folder.folder_run import Options, folder_of

SAMPLE = "sample"  # Stands for the Wikidata sample that comes with culturekit
HAND = "card.yaml"  # The fields of the hand-written half of a data card
SHIPPED_HAND = "cspace"  # Stands for the hand-written half of CSpace's card, whose publisher is still to be filled in
BLIND = "rules"  # The judge that reads words only
PROJECT = "project.json"  # What an annotation project keeps of itself
ROWS_READ = 2**20  # of a table that a recipe names, before anything runs
TRUTHFUL = "simulated"  # The backend whose images come with what they show


_DUMP_SUFFIXES = (".json", ".ndjson", ".jsonl", ".nt", ".gz", ".tgz", ".bz2", ".zst")


def dump_files(name: str) -> list[Path]:
    """Find a dump file, or those of a folder by their numbers; `sample` is the bundled one, unless a file is there."""
    here = Path(name)
    if here.is_dir():
        found = [path for path in here.iterdir() if path.suffix in _DUMP_SUFFIXES and path.is_file()]
        if not found:
            raise UsageError(
                "a folder without dump files", where=name, expected=f"files in {', '.join(_DUMP_SUFFIXES)}"
            )
        return sorted(found, key=lambda path: [(len(part), part) for part in re.split(r"(\d+)", path.name)])
    return [here if name != SAMPLE or here.is_file() else shipped("kg/sample/wikidata-sample.json.gz")]


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


def existing_file(name: str) -> str:
    """Accept a file that is there."""
    if not Path(name).is_file():
        raise ValueError(f"there is no file {name!r}")
    return name


def existing_table(table: Table) -> Callable[[str], str]:
    """Make a check that accepts a file with rows of a table of ours."""

    def check(name: str) -> str:
        try:
            rows = scan_table(Path(existing_file(name)), table).select(pl.len()).collect().item()
            if rows <= ROWS_READ:  # of more, the stages that read some at a time find what is wrong
                read_table(name, table)
        except CultureKitError as error:
            raise ValueError(str(error)) from error
        if not rows:
            raise ValueError(f"the table {table.name} of {name!r} has no rows")
        return name

    return check


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


class Named(Protocol):
    """Something with a name."""

    @property
    def name(self) -> str:
        """The name."""


def unique_names(models: Sequence[Named]) -> Sequence[Named]:
    """Accept models that all have a name of their own."""
    names = [model.name for model in models]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two models are called {', '.join(twice)}")
    return models


PUBLISHED = {".parquet": "a .parquet table of culturekit", ".json": "a .json file in the public CUBE layout"}
TYPED = {".csv": "a .csv file with the columns name, concept and country"}
# What may be published, and what may be typed by hand, by the end of the file's name.
TYPED_PROMPTS = {".csv": "a .csv file with the columns prompt and concept"}


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
        meant = [path / one for one in ("cspace.parquet", "prompts.parquet") if (path / one).is_file()]
        raise ValueError(f"{name!r} is a folder; expected {expected}{f', such as {str(meant[0])!r}' if meant else ''}")
    if not path.is_file():
        beside = sorted(one.name for one in path.parent.glob("*") if one.suffix in accepted)
        near = f"; beside it are {', '.join(beside)}" if 0 < len(beside) <= 6 else ""
        raise ValueError(f"there is no file {name!r}; expected {expected}{near}")
    if path.suffix not in accepted:
        raise ValueError(f"{name!r} is none of these: expected {expected}")
    return name
