"""What people of each region are shown, triplets and single images, and the tables of what they answer."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from pydantic import Field

from culturekit.core.atomic import write_atomically
from culturekit.core.declared import Typed, builds, staged
from culturekit.core.digests import digest
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files
from culturekit.core.package_data import shipped
from culturekit.core.schemas import (
    ANNOTATIONS,
    AUDIT_SAMPLE,
    IMAGES,
    OBJECT_ITEMS,
    PROMPTS,
    RATED_ITEMS,
    SURVEY_CODES,
    TASK1,
    TASK2,
    TRIPLETS,
)
from culturekit.core.spreadsheet_cells import csv_text
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, table_outcome, write_table
from culturekit.core.yaml_source import read_yaml
from culturekit.metrics.inclusion.region_rates import NO_REGION, TARGETS, region_code, with_region_codes
from culturekit.metrics.inclusion.task2_files import COLUMNS, REAL, drop_unreliable
from culturekit.metrics.inclusion.triplet_distances import ImageSet, image_set, triplets
from culturekit.people.aggregate import careful
from culturekit.people.stages import items_beside, write_form_tables
from culturekit.people.tasks import ANYWHERE, read_rows
from culturekit.recipes.inclusion.scores import UNCHECKED, UNRELIABLE
from culturekit.scores.inputs import ImageTables, VectorFolders

TASK1_SCHEME, TASK2_SCHEME = "inclusion_task1", "inclusion_task2"
NEAR, FAR = 60, 25  # references of a cell with the nearest neighbours, and with the farthest
PICTURES = ("reference", "first", "second")  # of a triplet
CHOICES = {"similar_id": "similar", "appealing_id": "appealing", "confidence": "confidence"}
NOWHERE = "no region"  # the stratum of images whose prompt names no region

# The two questions about an image that answers to the form of Task 2 become.
SEES_OBJECT, SEES_REGION = "object_seen", "own_region"

UNKNOWN_ITEM = "answers about items that the table of items does not have"
ELSEWHERE = "annotators of no region of the study"
INCOMPLETE = "answers without the first question"


@builds(
    "triplets", "triplets", packages=("numpy", "polars"),
    example="--real real-vectors --fake vectors --photographs real/images.parquet --images images/images.parquet "
    "--prompts prompts/prompts.parquet --out triplets",
)  # fmt: skip
def triplets_of(
    work: Work,
    real: Annotated[VectorFolders, Field(description="Folder of vectors of photographs; repeatable.")],
    fake: Annotated[VectorFolders, Field(description="Folder of vectors of generated images; repeatable.")],
    photographs: Annotated[ImageTables, Field(description="Table of photographs; repeatable.")],
    images: Annotated[ImageTables, Field(description="Table of generated images; repeat it, such as for each model.")],
    prompts: Annotated[
        Files, Field(description="Prompts of the images, with objects as concepts and regions as groups; repeatable.")
    ],
    *,
    near: Annotated[int, Field(ge=0, description="References of a cell with the nearest neighbours.")] = NEAR,
    far: Annotated[int, Field(ge=0, description="References of a cell with the farthest.")] = FAR,
    scaled: Annotated[
        bool, Field(description="Places are those among 100 images, and move with how many there are."),
        Typed("scaled/--exact"),
    ] = True,
) -> Outcome:  # fmt: skip
    """Build the triplets A to E of each model.

    People compare them.
    """
    shown = _image_sets(real, photographs, prompts, work)
    drawn = _image_sets(fake, images, prompts, work)
    if len(shown) != 1:
        found = ", ".join(one.source for one in shown)
        raise UsageError("photographs are of one model", expected=REAL, found=found)
    tables = [triplets(shown[0], one, near=near, far=far, scaled=scaled) for one in drawn]
    return table_outcome(work, TRIPLETS, pl.concat(tables))


def _image_sets(vectors: VectorFolders, images: ImageTables, prompts: Files, work: Work) -> list[ImageSet]:
    """Join the images of each model and their vectors; what has no object is in no set."""
    opened = vectors.vectors(work.scratch)
    assert opened is not None
    rows = pl.DataFrame({"image_id": list(opened.ids), "row": range(len(opened.ids))})
    known = asked_images(images, prompts).drop_nulls("object").join(rows, on="image_id", validate="1:1")
    return [
        image_set(
            part["model"][0], np.asarray(opened.vectors[part["row"].to_numpy()]), ids=part["image_id"].to_list(),
            objects=part["object"].to_list(), regions=part["region"].to_list(),
        )
        for part in known.sort("model", "image_id").partition_by("model", maintain_order=True)
    ]  # fmt: skip


def asked_images(images: ImageTables, prompts: Files) -> pl.DataFrame:
    """Read the images that were made, each with `object` and `region` of its prompt, which two tables may have."""
    asked = prompts.together(PROMPTS).select("prompt_id", object="concept", region="group").unique()
    twice = asked.filter(pl.col("prompt_id").is_duplicated()).sort("prompt_id")
    if twice.height:
        raise UsageError("two tables say different things of a prompt", found=repr(twice["prompt_id"][0]))
    return images.together(IMAGES).filter(status="ok").join(asked, on="prompt_id")


@staged("object-items", "items", seeds={"sample": "seed"})
def object_items_stage(work: Work, images: ImageTables, prompts: Files, *, each: int, seed: int) -> Outcome:
    """Draw images of each model and prompt for people to look at, each with the same chance."""
    drawn = drawn_images(asked_images(images, prompts), each=each, seed=seed)
    items = drawn.select("image_id", "model", "prompt_id", "object", "region", item_id="image_id",
                         img_path="image_id", source="model")  # fmt: skip
    sample = drawn.select("image_id", "model", "prompt_id", "chance", concept="object",
                          stratum=pl.col("region").fill_null(NOWHERE))  # fmt: skip
    write_table(work.out, OBJECT_ITEMS, items.select(list(OBJECT_ITEMS.schema)).sort("item_id"))
    write_table(work.out, AUDIT_SAMPLE, sample.select(list(AUDIT_SAMPLE.schema)).sort("image_id"))
    return Outcome({"object_items": items.height})


def drawn_images(images: pl.DataFrame, *, each: int, seed: int) -> pl.DataFrame:
    """Draw `each` images of each model and prompt, with the chance that each had."""
    ordered = images.sort("image_id")
    cell = ("model", "prompt_id")
    draw = pl.Series("draw", np.random.default_rng(seed).permutation(ordered.height))
    turns = ordered.with_columns(draw).with_columns(
        turn=pl.col("draw").rank("ordinal").over(cell),
        chance=pl.min_horizontal(pl.lit(1.0), each / pl.len().over(cell)),
    )
    return turns.filter(pl.col("turn") <= each)


def tasks_stage(annotations: Path, made_from: Path) -> Stage:
    """Write the tables of Task 1 and Task 2 of what careful people answered, and nothing else."""
    about = items_beside(annotations)

    def run(work: Work) -> Outcome:
        given = read_table(annotations, ANNOTATIONS)
        kept, flagged = careful(given, ())
        written = write_form_tables(work, kept, read_table(about, RATED_ITEMS), read_rows(made_from), asked=given)
        return Outcome(written.counts, {why: n for why, n in sorted({**flagged, **written.drops}.items()) if n})

    inputs = {"annotations": annotations, "items": about, "made-from": made_from}
    return Stage("tasks", "inclusion-tasks", 2, run, inputs, packages=("polars",))


def write_task1(work: Work, answers: pl.DataFrame, items: pl.DataFrame, rows: pl.DataFrame) -> Outcome:
    """Write the table of Task 1 that `score task1` reads.

    `rows` are what the tasks were made of, such as TRIPLETS: the id, combo, object, region, both sources, three images.
    """
    del items
    needed = ("combo", "object", "region", "reference_source", "source", *(f"{name}_id" for name in PICTURES))
    about = _by_id(rows, ("triplet_id", "item_id"), needed)
    left_out = dict.fromkeys((UNKNOWN_ITEM, ELSEWHERE), 0)
    asked = bool(answers["criterion"].str.starts_with("shown/").any())  # then who ticked nothing saw it nowhere
    found = []
    for item, person, home, given in _by_person(answers):
        row = about.get(item)
        if row is None or not _has_home(home):
            left_out[UNKNOWN_ITEM if row is None else ELSEWHERE] += 1
            continue
        shown = [row[f"{name}_id"] for name in PICTURES if given.get(f"shown/{name}", {}).get("value") == 1]
        choices = {column: given.get(criterion, {}).get("choice") for column, criterion in CHOICES.items()}
        found.append({"triplet_id": item, **{name: row[name] for name in needed}, "annotator_id": person,
                      "annotator_loc": home, **choices, "shown": shown if asked else None})  # fmt: skip
    return table_outcome(work, TASK1, pl.DataFrame(found, schema=TASK1.schema).sort(TASK1.key), left_out)


def write_task2(work: Work, answers: pl.DataFrame, items: pl.DataFrame, rows: pl.DataFrame) -> Outcome:
    """Write the table of Task 2 that `score task2` reads, and once more as a file in the public layout.

    `rows` are what the tasks were made of: `item_id` (or `image_id`), `object`, `region`; where they have them also
    `img_path`, else the id stands for it, and `source`, else the model of the item, or `real`.
    """
    about = _by_id(rows, ("item_id", "image_id"), ("object", "region"))
    models = dict(items.select("item_id", "model").iter_rows())
    left_out = dict.fromkeys((UNKNOWN_ITEM, ELSEWHERE, INCOMPLETE), 0)
    found = []
    for item, person, home, given in _by_person(answers):
        row = about.get(item)
        if row is None or not _has_home(home) or "obj" not in given:
            left_out[UNKNOWN_ITEM if row is None else INCOMPLETE if _has_home(home) else ELSEWHERE] += 1
            continue
        region = str(row["region"] or "")
        ticked = {column: [name.rpartition("/")[2] for name, answer in given.items()
                           if name.startswith(f"{column}/") and answer["value"] == 1]
                  for column in TARGETS.values()}  # fmt: skip
        found.append({
            "img_path": row.get("img_path") or item, "object": row["object"],
            "region": None if region.casefold() in NO_REGION else region, "annotator_id": person, "annotator_loc": home,
            "shown": given["obj"]["choice"] == "ym", **ticked,
            "source": row.get("source") or models.get(item) or REAL,
        })  # fmt: skip
    table = pl.DataFrame(found, schema=TASK2.schema).sort(TASK2.key)
    write_atomically(work.out / "task2.csv", public_task2(table))
    return table_outcome(work, TASK2, table, left_out)


def public_task2(table: pl.DataFrame) -> bytes:
    """Write a table of Task 2 in the layout of the public file, with a column that says who made an image."""

    def result(row: Mapping[str, Any]) -> str:
        lists = {"obj": row["object_regions"], "geo": row["background_regions"]} if row["shown"] else {}
        return repr({"match": "ym" if row["shown"] else "nm", **lists})

    rows = ({**row, "region": row["region"] or "", "annotation_result": result(row)} for row in table.to_dicts())
    return csv_text((*COLUMNS, "source"), rows).encode()


def _has_home(region: str) -> bool:
    return region != ANYWHERE and region_code(region) is not None


def _by_person(answers: pl.DataFrame) -> Iterator[tuple[str, str, str, dict[str, dict[str, Any]]]]:
    """Yield item, annotator, region of the annotator, and the rows of their answers by criterion."""
    ordered = answers.sort("item_id", "annotator", "criterion")
    for part in ordered.partition_by("item_id", "annotator", maintain_order=True):
        rows = part.to_dicts()
        by_criterion = {row["criterion"]: row for row in rows}
        yield rows[0]["item_id"], rows[0]["annotator"], rows[0]["annotator_region"], by_criterion


def _by_id(rows: pl.DataFrame, ids: tuple[str, ...], needed: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """Read a table of items by the first id that it has."""
    key = next((name for name in ids if name in rows.columns), None)
    if key is None or not set(needed) <= set(rows.columns):
        raise UsageError(
            "the table of items does not say what was judged", expected=", ".join([ids[0], *needed]),
            found=", ".join(rows.columns), hint="Give the table that `annotate export --items` was given.",
        )  # fmt: skip
    return {str(row[key]): row for row in rows.iter_rows(named=True)}


@staged("seen-marks", "marks")
def seen_marks_stage(work: Work, task2: Path, *, least: float) -> Outcome:
    """Write what people see in each image, the object and its own region, of those who see objects in photographs."""
    marks, left_out = seen_marks(read_table(task2, TASK2), least=least)
    return table_outcome(work, ANNOTATIONS, marks, {why: count for why, count in left_out.items() if count})


def seen_marks(table: pl.DataFrame, *, least: float) -> tuple[pl.DataFrame, dict[str, int]]:
    """Turn a table of Task 2 into answers to two questions, and count what is left out, or could not be checked."""
    reliable = drop_unreliable(table, least=least)
    known = with_region_codes(reliable.annotations)
    seen = pl.any_horizontal(pl.col(column).list.contains(pl.col("own")) for column in TARGETS.values())
    nothing = pl.lit(None, pl.String)
    marked = known.with_columns(
        pl.col("shown").cast(pl.Float64).alias(SEES_OBJECT),
        pl.when(pl.col("own").is_not_null()).then(seen.cast(pl.Float64)).alias(SEES_REGION),
        in_region=pl.col("own") == pl.col("home"), item_id="img_path", annotator="annotator_id",
        annotator_region="annotator_loc", scheme=pl.lit(TASK2_SCHEME), choice=nothing, text=nothing,
        seconds=pl.lit(None, pl.Float64), flags=pl.lit([], pl.List(pl.String)),
    )  # fmt: skip
    index = [column for column in ANNOTATIONS.schema if column not in {"criterion", "value"}]
    rows = marked.unpivot([SEES_OBJECT, SEES_REGION], index=index, variable_name="criterion", value_name="value")
    left_out = {UNRELIABLE: table.height - reliable.annotations.height, UNCHECKED: reliable.unchecked}
    return rows.drop_nulls("value").select(list(ANNOTATIONS.schema)).sort(ANNOTATIONS.key), left_out


# The survey: what people wrote goes out as a sheet for coders, and comes back as a table of codes.

CODES = "recipes/inclusion/survey_codes.yaml"
SHEET_COLUMNS = ("response_id", "location", "topic", "question", "text", "coder")
PRESENT = {"1": True, "x": True, "yes": True, "0": False, "no": False, "": False}  # how coders fill in a cell


@builds(
    "coding-sheet", "coding", reads=lambda given: {"codes": given["codes"] or shipped(CODES)},
    example="--annotations rated/annotations.parquet --out coding",
)  # fmt: skip
def coding_sheet(
    work: Work,
    annotations: Annotated[Path, Field(description="Answers to a survey, as `annotate import` took them in.")],
    codes: Annotated[
        Path | None, Field(description="YAML: each code, and what it means. [the sixteen codes of the study]")
    ] = None,
) -> Outcome:
    """Write a sheet for those who code a survey.

    Each coder fills in a copy: a name in the column `coder` of every response read, 1 under every code that it has.
    """
    meanings = load_codes(codes or shipped(CODES))
    written = read_table(annotations, ANNOTATIONS).filter(pl.col("text").is_not_null())
    rows = [
        {"response_id": f"r{digest([row['annotator'], row['criterion']])[:10]}",
         "location": row["annotator_region"], "topic": row["criterion"].partition("_")[0],
         "question": row["criterion"], "text": row["text"]}
        for row in written.sort("criterion", "annotator").iter_rows(named=True)
    ]  # fmt: skip
    blank = dict.fromkeys(("coder", *meanings), "")
    sheet = csv_text((*SHEET_COLUMNS, *meanings), ({**blank, **row} for row in rows))
    write_atomically(work.out / "coding_sheet.csv", sheet.encode())
    text_of_sheet = csv_text(("code", "meaning"), ({"code": code, "meaning": text} for code, text in meanings.items()))
    write_atomically(work.out / "codes.csv", text_of_sheet.encode())
    return Outcome({"responses": len(rows), "codes": len(meanings)})


def load_codes(path: Path) -> dict[str, str]:
    """Read codes and their meanings."""
    found = read_yaml(path).value
    meanings = {code: text for code, text in found.items() if isinstance(text, str)} if isinstance(found, dict) else {}
    if not meanings or meanings != found:
        raise UsageError("not a list of codes", where=str(path), expected="YAML with a line `code: what it means` each")
    return meanings


@builds("coded-survey", "coded", example="--sheets ana.csv --sheets bo.csv --sheets cy.csv --out coded")
def coded(
    work: Work, sheets: Annotated[Files, Field(description="A coding sheet that was filled in; repeatable.")]
) -> Outcome:
    """Read coding sheets that were filled in.

    The table that they make is what `score survey` takes.
    """
    rows = [row for path in sheets.places for row in _coded_rows(path)]
    table = pl.DataFrame(rows, schema=SURVEY_CODES.schema)
    twice = table.filter(pl.struct(SURVEY_CODES.key).is_duplicated())
    if twice.height:
        row = twice.sort(SURVEY_CODES.key).row(0, named=True)
        raise UsageError("one coder has read a response twice", found=f"{row['coder']!r}, {row['response_id']}")
    return table_outcome(work, SURVEY_CODES, table.sort(SURVEY_CODES.key))


def _coded_rows(path: Path) -> Iterator[dict[str, Any]]:
    frame = read_rows(path)
    codes = [name for name in frame.columns if name not in SHEET_COLUMNS]
    if not codes or not set(SHEET_COLUMNS) <= set(frame.columns):
        raise UsageError("not a coding sheet", where=str(path), expected=", ".join((*SHEET_COLUMNS, "codes")),
                         found=", ".join(frame.columns))  # fmt: skip
    for line, row in enumerate(frame.iter_rows(named=True), start=2):
        cells = {code: str(row[code] or "").strip().casefold() for code in codes}
        strange = next((f"{cell!r} under {code}" for code, cell in cells.items() if cell not in PRESENT), None)
        if strange or not (row["coder"] or "").strip():
            raise UsageError(
                "a response is not coded", where=f"{path}:{line}", found=strange or "nobody in the column coder",
                expected="1 or 0 under each code, and who has read it",
            )  # fmt: skip
        about = {name: row[name] for name in ("response_id", "location", "topic")}
        yield from ({**about, "coder": row["coder"].strip(), "code": code, "present": PRESENT[cell]}
                    for code, cell in cells.items())  # fmt: skip
