"""Tables of people that are of the right types and cannot be true: each was scored in silence once, and is refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import ANNOTATIONS, AUDITS, MATCHES, SURVEY_CODES, TASK1, TASK2
from culturekit.core.spreadsheet_cells import frame_as_csv
from culturekit.core.table import Table
from culturekit.core.tables import read_table, read_together, write_table
from culturekit.metrics.inclusion.task2_files import read_task2
from culturekit.scores.audited import score_audited
from culturekit.scores.qvs import answers_of
from tests.metrics.corrected.audits_by_hand import COUNTRIES, audits_of, mapped_with_error, matches_of
from tests.metrics.inclusion.task_worlds import drawn_task1, drawn_task2


def annotations() -> pl.DataFrame:
    rows: list[dict[str, object]] = [
        {"item_id": f"i{item}", "annotator": str(person), "annotator_region": "FR", "in_region": True, "scheme": "s",
         "criterion": "c", "value": 1.0 + item % 5, "choice": None, "text": None, "seconds": 9.5, "flags": []}
        for item in range(6) for person in range(3)
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema)


def codes() -> pl.DataFrame:
    rows = [(f"r{one}", "FR", "t", f"coder{coder}", "c", True) for one in range(4) for coder in range(3)]
    return pl.DataFrame(rows, schema=SURVEY_CODES.schema, orient="row")


def first(column: str, value: object) -> pl.Expr:
    """Write another value into the last row only."""
    return pl.when(pl.int_range(pl.len()) == pl.len() - 1).then(pl.lit(value)).otherwise(column).alias(column)


def swapped(one: str, other: str) -> tuple[pl.Expr, pl.Expr]:
    return pl.col(one).alias(other), pl.col(other).alias(one)


Broken = tuple[Table, Callable[[], pl.DataFrame], object, str]

CASES: dict[str, Broken] = {
    "a region by two names": (TASK2, drawn_task2, first("region", "southeastAsia"), "names of region .*be told apart"),
    "an image of two regions": (TASK2, drawn_task2, first("region", "Africa"), "one img_path has two of region"),
    "an image of two objects": (TASK2, drawn_task2, first("object", "car"), "one img_path has two of object"),
    "a person of two regions": (TASK2, drawn_task2, first("annotator_loc", "Africa"), "two of annotator_loc"),
    "regions and homes swapped": (TASK2, drawn_task2, swapped("region", "annotator_loc"), "img_path has two of region"),
    "photographs otherwise called": (TASK2, drawn_task2, first("source", "REAL"), "'real' and 'REAL'"),
    "a zero byte in a name": (TASK2, drawn_task2, first("annotator_id", "sea\0"), "control characters"),
    "one image compared with itself": (TASK1, drawn_task1, pl.col("second_id").alias("first_id"), "first_id is s"),
    "a choice of another image": (TASK1, drawn_task1, first("similar_id", "x"), "similar_id is neither first_id nor"),
    "a shown image of another triplet": (TASK1, drawn_task1, first("shown", ["x"]), "shown is neither reference_id"),
    "a triplet of two objects": (TASK1, drawn_task1, first("object", "car"), "one triplet_id has two of object"),
    "a person as two numbers": (ANNOTATIONS, annotations, first("annotator", "1.0"), "'1' and '1.0'"),
    "a person in full width": (ANNOTATIONS, annotations, first("annotator", "\uff11"), "cannot be told apart"),
    "a person at two homes": (ANNOTATIONS, annotations, first("annotator_region", "JP"), "two of annotator_region"),
    "an infinite rating": (ANNOTATIONS, annotations, first("value", float("inf")), "value is infinite"),
    "infinite seconds": (ANNOTATIONS, annotations, first("seconds", float("-inf")), "seconds is infinite"),
    "a response from two places": (SURVEY_CODES, codes, first("location", "JP"), "one response_id has two of location"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_rows_that_cannot_be_true_are_refused_with_their_row(case: str, tmp_path: Path) -> None:
    table, whole, broken, problem = CASES[case]
    path = tmp_path / f"{table.name}.parquet"
    whole().write_parquet(path)
    assert read_table(path, table).height == whole().height
    whole().with_columns(broken).write_parquet(path)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=rf"{table.name}.parquet, row \d+.*{problem}"):
        read_table(path, table)
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(frame_as_csv(whole().with_columns(broken)), encoding="utf-8")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=rf"sheet.csv(, line \d+|:\d+).*({problem}|NUL|expected a number)"):
        read_table(sheet, table)


def test_a_person_who_moves_between_two_tables_is_refused(tmp_path: Path) -> None:
    for name, home in (("a", "FR"), ("b", "JP")):
        (tmp_path / name).mkdir()
        moved = annotations().with_columns(annotator_region=pl.lit(home), item_id=pl.lit(name) + pl.col("item_id"))
        write_table(tmp_path / name, ANNOTATIONS, moved)
    with pytest.raises(UsageError, match="two of annotator_region"):
        read_together([tmp_path / name / "annotations.parquet" for name in "ab"], ANNOTATIONS)


# Audits, held against the matches that they are about.


def audit() -> tuple[pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(5)
    truth: list[str | None] = [COUNTRIES[position] for position in rng.integers(0, len(COUNTRIES), 200)]
    matches = matches_of(mapped_with_error(truth, accuracy=0.83, rng=rng))
    return matches, audits_of(dict(zip(matches["image_id"].to_list(), truth, strict=True)))


AUDITS_BROKEN: dict[str, tuple[list[pl.Expr], str]] = {
    "ids as addresses": ([pl.format("https://x.org/{}", "artifact_id").alias("artifact_id")], "has codes for"),
    "ids in capitals": ([pl.col("artifact_id").str.to_uppercase()], "has codes for"),
    "ids a row away": ([pl.col("artifact_id").shift(1).fill_null("dish of JP")], "none of its own"),
    "answers a row away": (
        [pl.col(name).shift(1).fill_null(fill) for name, fill in
         (("artifact_id", "dish of JP"), ("country", "JP"), ("continent", "Asia"))],
        "stand a row away",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", AUDITS_BROKEN)
def test_an_audit_that_is_not_about_its_images_is_refused(case: str) -> None:
    matches, audits = audit()
    accuracy = score_audited(matches, audits).scores.filter(metric="mapping_accuracy")["value"]
    assert 0.75 < accuracy.min() < 0.9  # type: ignore[operator]
    broken, problem = AUDITS_BROKEN[case]
    with pytest.raises(UsageError, match=problem):
        score_audited(matches, audits.with_columns(broken))


@pytest.mark.parametrize("seed", range(20))
def test_honest_audits_in_any_order_are_none_of_these(seed: int) -> None:
    rng = np.random.default_rng(seed)
    truth: list[str | None] = [COUNTRIES[position] for position in np.sort(rng.integers(0, len(COUNTRIES), 300))]
    matches = matches_of(mapped_with_error(truth, accuracy=[0.1, 0.5, 0.9][seed % 3], rng=rng))
    audits = audits_of(dict(zip(matches["image_id"].to_list(), truth, strict=True)))
    order = audits if seed % 2 else audits.sort("country")
    assert score_audited(matches, order).scores.height > 0


@pytest.mark.parametrize(("broken", "problem"), [
    (first("continent", "asia "), "names of continent that cannot be told apart"),
    (first("continent", "Africa"), "one country has two of continent"),
    (first("pool", "others"), "one annotator has two of pool"),
])  # fmt: skip
def test_audits_are_held_against_themselves_when_they_are_read(tmp_path: Path, broken: pl.Expr, problem: str) -> None:
    _, audits = audit()
    audits.with_columns(country=pl.lit("JP"), continent=pl.lit("Asia")).with_columns(broken).write_parquet(
        tmp_path / "a"
    )
    with pytest.raises(UsageError, match=problem):
        answers_of(Files([tmp_path / "a"]))


# Sheets as spreadsheets save them: read, or refused with the line.

HEAD = "item_id,annotator,annotator_region,in_region,scheme,criterion,value,choice,text,seconds,flags"
ROW = 'i1,ann,FR,true,s,c,3,,,9.5,"[]"'


@pytest.mark.parametrize("text", [
    f"{HEAD}\n{ROW}\n", f"\ufeff{HEAD}\r\n{ROW}\r\n", f"{HEAD}\n{ROW}".replace(",", ";").replace("9.5", "9,5"),
    f"sep=;\r\n{HEAD}\r\n{ROW}\r\n".replace(",", ";").replace("9.5", "9,5"), f"{HEAD}\n{ROW}".replace(",", "\t"),
    f"{HEAD}\n{ROW}".replace("9.5", '"9,5"'), f",{HEAD.upper()},\n0,{ROW},\n,,,,,,,,,,,,\n",
    f"{HEAD}\n{ROW}".replace("true", "VRAI").replace("3,,,", '3,,"two\nlines",'),
])  # fmt: skip
def test_what_spreadsheets_save_is_read(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(text, encoding="utf-8", newline="")
    [row] = read_table(path, ANNOTATIONS).to_dicts()
    assert (row["annotator"], row["in_region"], row["value"], row["seconds"], row["flags"]) == ("ann", True, 3, 9.5, [])
    assert row["text"] in (None, "two\nlines")


@pytest.mark.parametrize(("text", "problem"), [
    (f"{HEAD},value\n{ROW},4\n", "has the column value twice"),
    (f"{HEAD}\n{ROW},4\n", "answers.csv:2: 12 cells under 11 columns"),
    (f'{HEAD}\n{ROW}\n"i2,ann\n', "answers.csv:3: not a CSV file"),
    (f"{HEAD}\n{ROW}".replace("i1", "02-Jan"), "answers.csv:2: item_id: found '02-Jan'.*spreadsheet"),
    (f"{HEAD}\n{ROW}".replace("ann,", "1.23E+11,", 1), "spreadsheet made a date"),
    (f"{HEAD}\n{ROW}".replace(",3,,", ",,28.11.2026,"), "answers.csv:2: choice: found '28.11.2026'"),
    (f"{HEAD}\n{ROW}".replace("9.5", '"1,234"'), "answers.csv:2: seconds: found '1,234'.*none between thousands"),
    (f"{HEAD}\n{ROW}".replace("9.5", "1e999"), "seconds is infinite"),
    (f"{HEAD}\n{ROW}".replace("true", "maybe"), "expected true or false"),
    (f"{HEAD}\n{ROW}".replace("ann,", "an\0n,"), "answers.csv:2: the sheet holds a NUL"),
    ("item_id;annotator\ni1;ann\n", "column annotator_region is missing"),
])  # fmt: skip
def test_what_is_no_table_is_refused_with_the_line(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "answers.csv"
    path.write_text(text, encoding="utf-8", newline="")
    with pytest.raises(Exception, match=problem):
        read_table(path, ANNOTATIONS)


def test_the_public_layout_is_read_by_the_same_reader(tmp_path: Path) -> None:
    lines = ["img_path;object;region;annotator_id;annotator_loc;annotation_result",
             "a.jpg;bag;Africa;1;Africa;\"{'match': 'nm',\n 'geo': ['na']}\""]  # fmt: skip
    path = tmp_path / "task2.csv"
    path.write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
    assert read_task2(path).height == 1
    path.write_text("\n".join([lines[0], lines[1] + ";x;y"]), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"task2.csv:2: 8 cells under 6 columns"):
        read_task2(path)


def test_the_declarations_hold_what_they_name() -> None:
    for table in (AUDITS, ANNOTATIONS, TASK1, TASK2, SURVEY_CODES, MATCHES):
        known = {*table.columns, *table.optional}
        named = {*table.names, *table.differ, *table.among, *table.allowed, *(n for p in table.belongs for n in p)}
        assert {name.rstrip("?") for name in named} <= known
