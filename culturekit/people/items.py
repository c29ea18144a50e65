"""What is to be judged: images with the texts of their prompts, or rows that name several images each."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.country_names import country_code, folded
from culturekit.core.atomic import raise_system_error
from culturekit.core.digests import digest_file
from culturekit.core.errors import ConfigError, Problem, UsageError
from culturekit.core.schemas import IMAGES, PROMPTS
from culturekit.core.spreadsheet_cells import read_csv_texts
from culturekit.core.tables import read_table
from culturekit.generation.folder.folder_list import FILE_COLUMNS, Row, bounded, name_problem, plain_name, rows_of
from culturekit.kg.countries import countries
from culturekit.people.scheme import Scheme
from culturekit.scores.family import own_generator

ABSENT = "image not made or not known"
OF_IMAGE = ("model", "concept", "country", "group", "prompt_id")


@dataclass(frozen=True, slots=True)
class Item:
    """One thing to judge.

    Attributes:
        item_id: under which its ratings stand; of a single image, its id.
        pictures: image ids by the name of the picture in the scheme.
        texts: the fields of the item, by name.
        region: where an annotator is at home in it; None for nowhere.
        about: model, concept, country, group and prompt_id, for the tables.
        known: of a gold item, the labels that are right, none where it shows no culture; None of any other item.
        look: before which look at the answers it is judged; 0 where nobody looks on the way.
    """

    item_id: str
    pictures: Mapping[str, str]
    texts: Mapping[str, str]
    region: str | None
    about: Mapping[str, str | None]
    known: Mapping[str, str] | None = None
    look: int = 0


def items_of_images(
    images: pl.DataFrame, prompts: pl.DataFrame | None, scheme: Scheme, left_out: Counter[str]
) -> list[Item]:
    """Make an item of every image that was made, in the order of the ids; what is left out is counted.

    An image's own concept and country stand in for its prompt's, and its own prompt where there is no table of them.
    """
    if len(scheme.pictures) != 1:
        raise UsageError(
            f"the scheme {scheme.name} shows {len(scheme.pictures)} pictures at once",
            expected="a table of items, one column per picture: --items",
        )
    finished = images.filter(status="ok").sort("image_id")
    left_out[ABSENT] += images.height - finished.height
    known = {} if prompts is None else {row["prompt_id"]: row for row in prompts.iter_rows(named=True)}
    return [item_of_image(row, known.get(row["prompt_id"], {}), scheme) for row in finished.iter_rows(named=True)]


def item_of_image(image: Mapping[str, Any], prompt: Mapping[str, Any], scheme: Scheme) -> Item:
    """Make the item of one image."""
    scope = {name: prompt.get(name) or image.get(name) for name in ("concept", "country", "group")}
    text = prompt.get("text") or image.get("prompt_sent")
    known = {"prompt": text, "meaning": prompt.get("meaning") or prompt.get("artifact_id") or text, **scope}
    about = {**scope, "model": image["model"], "prompt_id": image["prompt_id"]}
    return Item(
        image["image_id"], {scheme.pictures[0]: image["image_id"]}, texts_of(known, scheme, image["image_id"]),
        known.get(scheme.region) if scheme.region else None, about,
    )  # fmt: skip


def items_of_rows(rows: pl.DataFrame, images: pl.DataFrame, scheme: Scheme, left_out: Counter[str]) -> list[Item]:
    """Make an item of every row: `item_id` (or `triplet_id`), an image id per picture, and the fields.

    The column of a picture is called as the scheme calls it, or that with `_id` behind. Columns model, concept,
    country, group and prompt_id say what the item is; what is missing comes from its first picture.
    """
    key = next((name for name in ("item_id", "triplet_id", "image_id") if name in rows.columns), None)
    if key is None:
        raise UsageError("the table of items has no ids", expected="a column item_id", found=", ".join(rows.columns))
    columns = {name: column_of(name, rows) for name in scheme.pictures}
    finished = {row["image_id"]: row for row in images.filter(status="ok").iter_rows(named=True)}
    items = []
    for row in unique_rows(rows, key):
        pictures = {name: str(row[column]) for name, column in columns.items()}
        if any(image not in finished for image in pictures.values()):
            left_out[ABSENT] += 1
            continue
        first = finished[next(iter(pictures.values()))] if pictures else {}
        about = {name: text_or_none(row.get(name) or first.get(name)) for name in OF_IMAGE}
        text = row.get("prompt") or first.get("prompt_sent")
        known = {**about, "prompt": text, "meaning": text, **row}
        region = text_or_none(known.get(scheme.region)) if scheme.region else None
        items.append(Item(row[key], pictures, texts_of(known, scheme, row[key]), region, about))
    return items


def unique_rows(rows: pl.DataFrame, key: str) -> Iterator[dict[str, Any]]:
    """Give the rows in the order of their ids, each of which stands once."""
    table = rows.with_columns(pl.col(key).cast(pl.String)).sort(key)
    repeated = table.filter(pl.col(key).is_duplicated() | pl.col(key).is_null())
    if repeated.height:
        raise UsageError("an item has no id of its own", expected="ids that differ", found=repr(repeated[key][0]))
    return table.iter_rows(named=True)


def column_of(picture: str, rows: pl.DataFrame) -> str:
    """Find the column that names a picture."""
    for name in (f"{picture}_id", picture):
        if name in rows.columns:
            return name
    raise UsageError(
        f"the table of items does not say which image is the {picture}",
        expected=f"a column {picture} or {picture}_id", found=", ".join(rows.columns),
    )  # fmt: skip


def texts_of(known: Mapping[str, Any], scheme: Scheme, item_id: str) -> dict[str, str]:
    """Read the fields that a scheme shows."""
    found = {name: text_or_none(known.get(name)) for name in scheme.fields}
    missing = [name for name, text in found.items() if text is None]
    if missing:
        raise UsageError(
            f"the scheme {scheme.name} shows what an item does not have", where=f"item {item_id!r}",
            expected=", ".join(missing), hint="Give --prompts, or --items with these columns.",
        )  # fmt: skip
    return {name: text for name, text in found.items() if text is not None}


def text_or_none(value: object) -> str | None:
    """Read a cell as text."""
    if value is None or value == "":
        return None
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def read_rows(path: Path) -> pl.DataFrame:
    """Read a table of items that the user, or a stage, wrote; every cell of a CSV file is text."""
    if not path.is_file():
        raise UsageError("there is no such table of items", where=str(path))
    try:
        if path.suffix == ".parquet":
            return pl.read_parquet(path)
        return read_csv_texts(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise_system_error(error, path)
        raise UsageError("not a readable table of items", where=str(path), found=str(error)) from error


# Gold items: pictures of which it is known what they show, put among the others so that raters can be held to them.

SEVERAL = "known picture of an artifact of several countries, or of none in the space"
LABELS = ("artifact_id", "country", "continent")


def gold_items(pictures: pl.DataFrame, space: pl.DataFrame, scheme: Scheme, left_out: Counter[str]) -> list[Item]:
    """Make an item of every known picture, in the order of the ids.

    Of `truth_artifact_id` and `truth_country` the first is null where only the country is known, both where a picture
    shows no culture; an artifact of several countries needs both.
    """
    if "truth_artifact_id" not in pictures.columns:
        raise UsageError(
            "nobody knows what these pictures show",
            expected="gold pictures with a column truth_artifact_id, or a list with image, artifact, country",
            found=", ".join(pictures.columns),
        )
    if len(scheme.pictures) != 1 or scheme.fields:
        raise UsageError(
            f"the scheme {scheme.name} shows more than one picture", expected="a scheme without fields for gold items"
        )
    places = space.select("artifact_id", "concept", "country", "continent").unique().sort(pl.all()).to_dicts()
    concepts = sorted({known_place["concept"] for known_place in places})
    found = []
    for row in pictures.filter(status="ok").sort("image_id").iter_rows(named=True):
        known_place = place_of(row, places)
        if known_place is None:
            left_out[SEVERAL] += 1
            continue
        drawn = concepts[int(own_generator(0, "concept", row["image_id"]).integers(len(concepts)))]
        about = {"model": row["model"], "concept": known_place.get("concept") or row.get("concept") or drawn}
        known = {name: str(known_place[name]) for name in LABELS if name in known_place}
        found.append(Item(row["image_id"], {scheme.pictures[0]: row["image_id"]}, {}, None, about, known))
    return found


def place_of(row: Mapping[str, Any], places: Sequence[Mapping[str, str]]) -> Mapping[str, str] | None:
    """Find where what a picture shows belongs in the space: nowhere if it shows no culture, None if not clear."""
    country = row.get("truth_country")
    if row["truth_artifact_id"] is None:
        return {} if country is None else of_country(country, places)
    found = [
        known
        for known in places
        if known["artifact_id"] == row["truth_artifact_id"] and (country is None or known["country"] == country)
    ]
    return found[0] if len({(known["country"], known["continent"]) for known in found}) == 1 else None


def of_country(country: str, places: Sequence[Mapping[str, str]]) -> Mapping[str, str]:
    """Give a country, in the space or not, and where it lies."""
    found = {known["continent"] for known in places if known["country"] == country}
    lies_in = min(found, default=None) or (countries()[country].continent if country in countries() else None)
    return {"country": country} | ({} if lies_in is None else {"continent": lies_in})


def lookalikes(item: Item, items: Sequence[Item], near: Mapping[str, Sequence[str]], seed: int) -> list[str]:
    """Let a gold item that was not mapped be mapped as another picture is, what it shows among that."""
    excluded = [item.known["artifact_id"]] if item.known and "artifact_id" in item.known else []
    others = [one.item_id for one in items if one.about["concept"] == item.about["concept"]]
    lists = [near[one] for one in others if one in near]
    alike = [one for one in lists if set(excluded) <= set(one)] or lists
    if not alike:
        return excluded
    chosen = alike[int(own_generator(seed, "lookalikes", item.item_id).integers(len(alike)))]
    return list(dict.fromkeys([*excluded, *chosen]))


# Gold pictures that a user lists: files beside the list, and the artifact or country that each is known to show.

COLUMNS = ("artifact", "country")
SCHEMA = {
    name: pl.String()
    for name in ("image_id", "path", "sha256", "status", "model", "truth_artifact_id", "truth_country")
}  # fmt: skip

KnownPlace = Mapping[str, str]


def listed_files(path: Path) -> list[Path]:
    """Name the pictures of a list that are there; a table of images knows the hashes of its own."""
    if path.suffix == ".parquet":
        return []
    names = (str(row[file_column(row, path)]) for _, row in rows_of(path) if set(COLUMNS) <= set(row))
    files = (path.parent / plain_name(name) for name in names if not name_problem(name))
    return [file for file in files if file.is_file()]


def known_pictures(path: Path, space: pl.DataFrame, prompts: Path | None = None) -> pl.DataFrame:
    """Read a table of images, or a list of files with the name or id of an artifact, a country, or neither.

    Of a list the id of a picture is its file's name; a row without artifact and country shows no culture. `prompts`
    name what images show that do not say it themselves.

    Raises:
        ConfigError: all problems of a list, each with its line.
    """
    if path.suffix == ".parquet":
        pictures = read_table(path, IMAGES)
        if "truth_artifact_id" in pictures.columns or prompts is None:
            return pictures
        named = read_table(prompts, PROMPTS).select("prompt_id", truth_artifact_id="artifact_id").drop_nulls()
        return pictures.join(named, on="prompt_id", maintain_order="left")
    places = space.select("artifact_id", "name", "country").unique().sort(pl.all()).to_dicts()
    problems: list[Problem] = []
    found: dict[str, tuple[str | None, ...]] = {}
    for line, row in rows_of(path):
        name = str(row[file_column(row, path)] or "")
        known = shown(row, places)
        problem = file_problem(name, path.parent, found) or (known if isinstance(known, str) else "")
        if problem:
            problems.append(Problem(problem, str(path), line))
        elif not isinstance(known, str):
            file = plain_name(name)
            found[file] = file, file, digest_file(path.parent / file), "ok", "gold", *known
    if problems:
        raise ConfigError(bounded(problems, str(path)))
    return pl.DataFrame(list(found.values()), schema=SCHEMA, orient="row")


def file_column(row: Row, path: Path) -> str:
    """Find the column of the files; those of what they show must be there too."""
    column = next((name for name in FILE_COLUMNS if name in row), None)
    if column is None or not set(COLUMNS) <= set(row):
        raise UsageError(
            "the list does not say what gold pictures show", where=str(path),
            expected="columns image, artifact, country; both cells empty for no culture", found=", ".join(row),
        )  # fmt: skip
    return column


def file_problem(name: str, folder: Path, found: Mapping[str, object]) -> str:
    """Say why a picture cannot be taken; an empty text where it can."""
    if not name:
        return "names no file"
    if problem := name_problem(name):
        return problem
    if plain_name(name) in found:
        return f"{name!r} is listed already"
    return "" if (folder / plain_name(name)).is_file() else f"there is no file {name!r} beside the list"


def shown(row: Row, places: Sequence[KnownPlace]) -> tuple[str | None, str | None] | str:
    """Give the artifact and the country that a row names, or say what is wrong with it."""
    artifact, note = (str(row.get(name) or "").strip() for name in COLUMNS)
    country = country_code(note) if note else None
    if note and country is None:
        return f"unknown country {note!r}: expected its name or its code"
    if not artifact:
        return None, country
    named = [one for one in places if artifact == one["artifact_id"] or folded(artifact) == folded(one["name"])]
    ids = sorted({one["artifact_id"] for one in named if country in (None, one["country"])})
    if len(ids) == 1 and (country or len({one["country"] for one in named}) == 1):
        return ids[0], country
    if ids:
        return f"{artifact!r} is several artifacts, or one of several countries: give the id, and the country"
    where = f" of {note}" if named else ""
    return f"the space has no artifact {artifact!r}{where}: leave the cell empty, and the country alone is asked"
