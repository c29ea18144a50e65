"""The layout that CULTIVate's descriptors were published in, read and written: one JSON file a country.

`{category: {sub-activity: {dimension: [{token, style, necessity}]}}}`, its first dimension called `setting`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product, starmap
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import polars as pl
from pydantic import Field

from culturekit.builders.activities.extracting import ACTIVITY, activity_prompt, spelled_out
from culturekit.builders.country_names import country_code, folded
from culturekit.core.atomic import write_atomically
from culturekit.core.declared import Given, builds
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.schemas import DESCRIPTORS, PROMPTS, PUBLISHED_DESCRIPTORS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_drops, write_table
from culturekit.kg.countries import Country, countries, country_files
from culturekit.metrics.ahead.matching import DIMENSIONS, NOT_EXTRACTED, dimension_name

Layout: TypeAlias = dict[str, dict[str, dict[str, list[dict[str, str]]]]]

ORDER = (*DIMENSIONS, *sorted(NOT_EXTRACTED))
PUBLISHED_NAMES = {"background": "setting"}
KEYS = ("token", "style", "necessity")
INDENTS = (1, 2, 4, None, 3, 8)


@builds(
    "import-descriptors", "descriptors", reads=lambda _: country_files(),
    example="--files iran.json --files nepal.json --out descriptors",
)  # fmt: skip
def read(
    work: Work,
    files: Annotated[Numbered, Field(description="JSON file named after its country, such as iran.json.")],
    prompts: Annotated[
        Path | None,
        Field(description="Prompts that the activities are matched with. [prompts are written for all of them]"),
    ] = None,
    *,
    proposer: Annotated[str, Field(description="Name of whoever proposed them.")] = "published",
) -> Outcome:
    """Read descriptors in the layout they were published in.

    `export` writes them again byte for byte.
    """
    published, differing = read_published(files.places)
    if prompts is None:
        write_table(work.out, PROMPTS, _prompts_of(published))
    ids = {
        _activity_key(row["country"] or "", row["concept"] or "", row.get("activity") or ""): row["prompt_id"]
        for row in read_table(prompts or work.out / "prompts.parquet", PROMPTS).iter_rows(named=True)
    }
    found = _descriptors_of(published, ids, proposer)
    activities = published.unique(["country", "category", "activity"], maintain_order=True)
    lost = [
        {"key": f"{row['country']}/{row['activity']}", "concept": row["category"], "stage": "descriptors.import"}
        | {"reason": "no prompt asks for it", "detail": row["file"]}
        for row in activities.iter_rows(named=True)
        if _activity_key(row["country"], row["category"], row["activity"]) not in ids
    ]
    if found.is_empty():
        raise UsageError(
            "no descriptor of these files belongs to a prompt", where=str(prompts or files.places[0]),
            expected="prompts with the country, the concept (category) and the activity of the files",
            found=", ".join(row["key"] for row in lost[:5]),
        )  # fmt: skip
    write_table(work.out, DESCRIPTORS, found)
    write_table(work.out, PUBLISHED_DESCRIPTORS, published)
    drops = write_drops(work.out, lost)
    findings = [f"{name} is written in a way that `export` cannot repeat byte for byte" for name in differing]
    counts = {"descriptors": found.height, "activities": activities.height, "prompts": found["prompt_id"].n_unique()}
    return Outcome(counts, drops, {"findings": findings} if findings else {})


def _prompts_of(published: pl.DataFrame) -> pl.DataFrame:
    """Write a prompt for each activity of the files."""
    rows: dict[str, dict[str, Any]] = {}
    for row in published.iter_rows(named=True):
        iso, category, activity = _activity_key(row["country"], row["category"], row["activity"])
        prompt_id = "-".join((iso.lower(), *category.split(), *activity.split()))
        prompt = activity_prompt(prompt_id, iso, row["category"], spelled_out(row["activity"]))
        rows.setdefault(prompt_id, {**prompt, "activity": row["activity"]})
    return pl.DataFrame(list(rows.values()), schema={**PROMPTS.schema, **ACTIVITY})


def _published(given: Given) -> Path | None:
    """Find the table of the files that descriptors were read from, beside them where it is not given."""
    beside: Path = given["descriptors"].parent / f"{PUBLISHED_DESCRIPTORS.name}.parquet"
    return given["published"] or (beside if beside.is_file() else None)


@builds(
    "export-descriptors", "published",
    reads=lambda given: country_files() | ({} if (found := _published(given)) is None else {"published": found}),
    example="--descriptors descriptors/descriptors.parquet --prompts prompts/prompts.parquet --out published",
)  # fmt: skip
def export(
    work: Work,
    descriptors: Annotated[Path, Field(description="Descriptors table.")],
    prompts: Annotated[Path, Field(description="Their prompts, with the activity of each.")],
    published: Annotated[
        Path | None,
        Field(
            description="Table of the files they were read from, whose order and form are kept. [beside descriptors]"
        ),
    ] = None,
) -> Outcome:
    """Write descriptors in the layout they were published in.

    One JSON file a country.
    """
    placed = read_table(prompts, PROMPTS).filter(pl.col("country").is_not_null())
    if "activity" not in placed.columns:
        raise UsageError("these prompts name no activity", where=str(prompts), expected="a column `activity`")
    table = read_table(descriptors, DESCRIPTORS)
    strange = sorted(set(table["prompt_id"]) - set(placed["prompt_id"]))
    if strange:
        raise UsageError(f"{len(strange)} prompts of the descriptors are not among the prompts", where=str(prompts),
                         found=", ".join(strange[:5]))  # fmt: skip
    before = _published({"descriptors": descriptors, "published": published})
    files = _written_files(table, placed, None if before is None else read_table(before, PUBLISHED_DESCRIPTORS))
    for file, text in files.items():
        write_atomically(work.out / file, text.encode())
    return Outcome({"files": len(files), "descriptors": table.height})


# The layout itself: how files are written, read into rows, and written again.


@dataclass(frozen=True, slots=True)
class LaidOut:
    """How a file is written, so that it can be written again byte for byte."""

    indent: int | None = 1
    ascii: bool = False
    newline: bool = False

    def write(self, layout: Layout) -> str:
        """Write a file."""
        return json.dumps(layout, indent=self.indent, ensure_ascii=self.ascii) + ("\n" if self.newline else "")


def read_published(files: Sequence[Path]) -> tuple[pl.DataFrame, list[str]]:
    """Read files: a row per descriptor in their order, or per empty list; and which could not be written the same.

    Raises:
        ConfigError: a file is not of the layout; every mistake is listed.
    """
    problems: list[Problem] = []
    rows: list[dict[str, Any]] = []
    differing = []
    for path in files:
        iso = _country_of(path.stem).iso
        try:
            text = path.read_bytes().decode("utf-8")
            layout = json.loads(text, object_pairs_hook=_each_key_once)
        except (ValueError, RecursionError) as error:
            problems.append(Problem(f"not JSON with each key once ({error})", str(path)))
            continue
        found = list(_problems_of(layout))
        problems += [Problem(problem, str(path)) for problem in found]
        if found:
            continue
        ways = starmap(LaidOut, product(INDENTS, (False, True), (False, True)))
        way = next((way for way in ways if way.write(layout) == text), None)
        if way is None:
            differing.append(path.name)
        rows += _rows_of(layout, path.name, iso, way or LaidOut())
    if problems:
        raise ConfigError(problems)
    names = [path.name for path in files]
    if len(set(names)) < len(names):
        raise UsageError("two files have the same name", found=", ".join(names))
    return pl.DataFrame(rows, schema=PUBLISHED_DESCRIPTORS.schema), differing


def _each_key_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Reject an object that has a key twice: the first would be lost."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice")
        found[key] = value
    return found


def _problems_of(layout: object) -> Iterator[str]:
    """Say where a file departs from the layout."""
    if not isinstance(layout, dict):
        yield "expected categories, each with its activities"
        return
    for category, activities in layout.items():
        if not isinstance(activities, dict):
            yield f"{category}: expected activities, each with its dimensions"
            continue
        for activity, dimensions in activities.items():
            where = f"{category}.{activity}"
            if not isinstance(dimensions, dict):
                yield f"{where}: expected dimensions, each with its descriptors"
                continue
            names = [dimension_name(name) for name in dimensions]
            if len(set(names)) < len(names):
                yield f"{where}: setting and background are one dimension, and stand there twice"
            for dimension, descriptors in dimensions.items():
                yield from _problems_in(f"{where}.{dimension}", descriptors)


def _problems_in(where: str, descriptors: object) -> Iterator[str]:
    """Say what is wrong with the descriptors of one dimension."""
    if not isinstance(descriptors, list):
        yield f"{where}: expected a list of descriptors"
        return
    for number, each in enumerate(descriptors):
        fits = isinstance(each, dict) and tuple(each) == KEYS and all(isinstance(text, str) for text in each.values())
        if not fits:
            yield f"{where}[{number}]: expected {', '.join(KEYS)}, in that order, each a text"
        elif not each["token"].strip():
            yield f"{where}[{number}]: the token is empty"


def _rows_of(layout: Layout, file: str, iso: str, way: LaidOut) -> Iterator[dict[str, Any]]:
    """Write the rows of a file, in its order."""
    number = 0
    nothing: list[Mapping[str, str | None]] = [dict.fromkeys(KEYS)]
    for category, activities in layout.items():
        for activity, dimensions in activities.items():
            for dimension, descriptors in dimensions.items():
                keys = {"category": category, "activity": activity, "dimension": dimension}
                for each in descriptors or nothing:
                    yield {"file": file, "number": number, "country": iso, **keys, **each, **asdict(way)}
                    number += 1


def _descriptors_of(
    published: pl.DataFrame, prompts: Mapping[tuple[str, str, str], str], proposer: str
) -> pl.DataFrame:
    """Give the descriptors of rows whose country, category and activity have a prompt, each token once."""
    found: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in published.drop_nulls("token").iter_rows(named=True):
        prompt_id = prompts.get(_activity_key(row["country"], row["category"], row["activity"]))
        if prompt_id is not None:
            dimension = dimension_name(row["dimension"])
            about = {"prompt_id": prompt_id, "dimension": dimension, "proposers": [proposer]}
            found.setdefault((prompt_id, dimension, row["token"]), about | {key: row[key] for key in KEYS})
    return pl.DataFrame(list(found.values()), schema=DESCRIPTORS.schema)


def _activity_key(iso: str, category: str, activity: str) -> tuple[str, str, str]:
    """Identify an activity by country, category and name, however they are written."""
    return iso, folded(category.replace("_", " ")), folded(activity.replace("_", " "))


def _written_files(descriptors: pl.DataFrame, prompts: pl.DataFrame, published: pl.DataFrame | None) -> dict[str, str]:
    """Write the files: as those that were read, where there are some, in their order and form; names and texts.

    A descriptor that was taken away is left out, a new one stands last in its list; an activity without a prompt is not
    written.
    """
    known = {row["prompt_id"]: row for row in prompts.iter_rows(named=True)}
    places = {_activity_key(row["country"], row["concept"] or "", row["activity"]): key for key, row in known.items()}
    now = {(row["prompt_id"], row["dimension"], row["token"]): row for row in descriptors.iter_rows(named=True)}
    files = Files()
    given: set[tuple[str, str, str]] = set()
    for row in [] if published is None else published.sort(PUBLISHED_DESCRIPTORS.key).iter_rows(named=True):
        prompt_id = places.get(_activity_key(row["country"], row["category"], row["activity"]))
        if prompt_id is not None:
            listed = files.listed(prompt_id, row)
            key = prompt_id, dimension_name(row["dimension"]), row["token"]
            if key in now:
                listed.append({name: (row if key in given else now[key])[name] for name in KEYS})
                given.add(key)
    order = {dimension: number for number, dimension in enumerate(ORDER)}
    for key in sorted(now.keys() - given, key=lambda each: (each[0], order.get(each[1], len(ORDER)), each[2])):
        files.listed(key[0], {**known[key[0]], "dimension": key[1]}).append({name: now[key][name] for name in KEYS})
    return files.texts()


class Files:
    """Files on their way, with the lists of each prompt in them."""

    def __init__(self) -> None:
        """Begin without any."""
        self.ways: dict[str, LaidOut] = {}
        self.layouts: dict[str, Layout] = {}
        self.of_country: dict[str, str] = {}
        self.of_prompt: dict[str, dict[str, list[dict[str, str]]]] = {}

    def listed(self, prompt_id: str, row: Mapping[str, Any]) -> list[dict[str, str]]:
        """Find the list of a dimension, or begin one where the row says: of a file, or of a prompt."""
        if prompt_id not in self.of_prompt:
            name = "_".join(countries()[row["country"]].name.lower().split())
            file = row.get("file") or self.of_country.get(row["country"]) or f"{name}.json"
            way = LaidOut(row["indent"], row["ascii"], row["newline"]) if "indent" in row else LaidOut()
            self.ways.setdefault(file, way)
            self.of_country.setdefault(row["country"], file)
            category = row["category"] if "category" in row else row["concept"] or ""
            layout = self.layouts.setdefault(file, {})
            self.of_prompt[prompt_id] = layout.setdefault(category, {}).setdefault(row["activity"], {})
        dimensions, wanted = self.of_prompt[prompt_id], row["dimension"]
        same = [name for name in dimensions if dimension_name(name) == dimension_name(wanted)]
        return dimensions.setdefault(same[0] if same else PUBLISHED_NAMES.get(wanted, wanted), [])

    def texts(self) -> dict[str, str]:
        """Write them."""
        return {file: self.ways[file].write(layout) for file, layout in self.layouts.items()}


def _country_of(stem: str) -> Country:
    """Find the country that a file is named after."""
    words = folded(stem.replace("_", " ").replace("-", " ")).removesuffix(" descriptors")
    known = countries().get(country_code(words) or "")
    if known is not None:
        return known
    raise UsageError(
        "no country is called like this file", where=f"{stem}.json",
        expected="a name or code such as iran.json, south_africa.json or usa_descriptors.json",
        hint="Rename the file, or add the country with --countries-file.",
    )  # fmt: skip
