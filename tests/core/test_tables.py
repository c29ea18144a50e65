import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.schemas import ANNOTATIONS, DROPS, MATCHES, RATED_ITEMS
from culturekit.core.table import declare
from culturekit.core.tables import merge_parts, read_table, read_together, save_parquet, write_drops, write_table
from tests.metrics.corrected.audits_by_hand import matches_of

PETS = declare("pets by name: name str, legs u8, nicknames list[str], owner str?; optional: age u8?")


def pets(*names: str) -> pl.DataFrame:
    rows = {
        "name": list(names), "legs": [4] * len(names), "nicknames": [["x"]] * len(names), "owner": [None] * len(names),
    }  # fmt: skip
    return pl.DataFrame(rows, schema=PETS.schema)


def test_rows_are_written_in_key_order_so_that_equal_rows_give_equal_bytes(tmp_path: Path) -> None:
    first = write_table(tmp_path, PETS, pets("b", "a", "c")).read_bytes()
    second = write_table(tmp_path, PETS, pets("c", "b", "a")).read_bytes()
    assert first == second
    assert read_table(tmp_path / "pets.parquet", PETS)["name"].to_list() == ["a", "b", "c"]
    assert os.listdir(tmp_path) == ["pets.parquet"]


@pytest.mark.endtoend
def test_the_number_of_threads_does_not_show_in_the_bytes(tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; import polars as pl\n"
        "from culturekit.core.tables import save_parquet\n"
        "n = range(400_000)\n"
        "frame = pl.DataFrame({'a': n, 'b': [str(i % 1000) for i in n], 'c': [[str(i)] for i in n]})\n"
        "save_parquet(frame, Path(sys.argv[1]))"
    )
    written = []
    for threads in ("1", "2"):
        path = tmp_path / threads
        environment = {**os.environ, "POLARS_MAX_THREADS": threads}
        subprocess.run([sys.executable, "-c", script, str(path)], check=True, env=environment)
        written.append(path.read_bytes())
    assert written[0] == written[1]


@pytest.mark.parametrize(("frame", "problem"), [
    (pets("a").drop("legs"), "column legs is missing"),
    (pets("a").with_columns(pl.col("legs").cast(pl.Int64)), "column legs is Int64, not UInt8"),
    (pets("a").with_columns(extra=1), "column extra is not declared"),
    (pets("a").with_columns(name=pl.lit(None, pl.String)), "column name has nulls"),
    (pets("a").with_columns(nicknames=pl.Series([["x", None]])), "column nicknames has nulls"),
    (pets("a", "a"), "rows repeat the key"),
])  # fmt: skip
def test_a_table_unlike_its_declaration_is_not_written(tmp_path: Path, frame: pl.DataFrame, problem: str) -> None:
    with pytest.raises(CultureKitError, match=problem):
        write_table(tmp_path, PETS, frame)
    assert os.listdir(tmp_path) == []


def test_an_optional_column_may_be_there_and_others_are_left_out_on_reading(tmp_path: Path) -> None:
    write_table(tmp_path, PETS, pets("a").with_columns(age=pl.lit(3, pl.UInt8)))
    assert read_table(tmp_path / "pets.parquet", PETS)["age"].to_list() == [3]
    save_parquet(pets("a").with_columns(note=pl.lit("mine")), tmp_path / "pets.parquet")
    assert "note" not in read_table(tmp_path / "pets.parquet", PETS).columns


def test_what_is_no_such_table_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no pets table"):
        read_table(tmp_path / "pets.parquet", PETS)
    with pytest.raises(UsageError, match=r"a folder, not a table.*Run the stage"):
        read_table(tmp_path, PETS)
    save_parquet(pets("a"), tmp_path / "pets.parquet")
    with pytest.raises(UsageError, match=r"Name the file in it: .*pets\.parquet"):
        read_table(tmp_path, PETS)
    pl.DataFrame({"name": [1]}).write_parquet(tmp_path / "pets.parquet")
    with pytest.raises(IntegrityError, match="column legs is missing"):
        read_table(tmp_path / "pets.parquet", PETS)


@pytest.mark.parametrize(("content", "said"), [
    (b"PAR1 but no more", "a Parquet file without its end: it was cut"), (b"", "an empty file"),
    (b"\x1f\x8b\x08\x00", "a gzip file, not unpacked"), (b"name,legs\nrex,4\n", "a text that begins 'name,legs'"),
    (b"\n", "a text that begins ''"), (b"\0\0\0\0", "parquet"), (b"PAR1 not it PAR1", "parquet"),
])  # fmt: skip
def test_what_a_file_seems_to_be_is_said_where_it_is_no_table(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "pets.parquet").write_bytes(content)
    with pytest.raises(IntegrityError, match=f"not a readable Parquet file.*found {said}.*run that stage again"):
        read_table(tmp_path / "pets.parquet", PETS)


@pytest.mark.parametrize(("names", "found"), [
    (["Atlas", "atlas"], "'Atlas' and 'atlas'"), (["atlas", " atlas"], "' atlas' and 'atlas'"),
    (["a  b", "a b"], "'a  b' and 'a b'"), ([" ", "b"], "' '"),
    (["mod\u00e8le", "mode\u0300le"], "'mode\u0300le' and 'mod\u00e8le'"), (["sdxl", "sdxl-turbo"], ""),
])  # fmt: skip
def test_names_that_differ_in_case_and_spaces_are_refused(tmp_path: Path, names: list[str], found: str) -> None:
    rated = [pl.DataFrame([{"item_id": name, "model": name}], schema=RATED_ITEMS.schema) for name in names]
    for number in range(len(names)):
        (tmp_path / f"{number}").mkdir()
    paths = [write_table(tmp_path / f"{number}", RATED_ITEMS, one) for number, one in enumerate(rated)]
    whole = write_table(tmp_path, RATED_ITEMS, pl.concat(rated))
    for read in (partial(read_table, whole, RATED_ITEMS), partial(read_together, paths, RATED_ITEMS)):
        if not found:
            assert read().height == 2
            continue
        with pytest.raises(UsageError, match=f"names of models that cannot be told apart.*found {re.escape(found)}"):
            read()


@pytest.mark.parametrize(("column", "what", "other"), [
    ("annotator", "annotators", "Ann "), ("annotator_region", "regions", "fr"), ("annotator", "annotators", "ann"),
])  # fmt: skip
def test_one_person_or_region_by_two_names_is_refused(tmp_path: Path, column: str, what: str, other: str) -> None:
    row = dict.fromkeys(ANNOTATIONS.schema) | {"annotator": "Ann", "annotator_region": "FR", "scheme": "s", "flags": []}
    rows = [row | {"item_id": "1", "criterion": "c"}, row | {"item_id": "2", "criterion": "c"} | {column: other}]
    path = write_table(tmp_path, ANNOTATIONS, pl.DataFrame(rows, schema=ANNOTATIONS.schema))
    with pytest.raises(UsageError, match=f"names of {what} that cannot be told apart.*Give each of the {what} one"):
        read_table(path, ANNOTATIONS)


@pytest.mark.parametrize("blank", ["", " ", "\t"])
def test_a_blank_is_no_name(tmp_path: Path, blank: str) -> None:
    nearest = matches_of(["FR", "JP"])
    path = write_table(tmp_path, MATCHES, nearest)
    assert read_table(path, MATCHES).equals(nearest)
    nearest.with_columns(country=pl.lit(blank)).write_parquet(path)
    with pytest.raises(CultureKitError, match="column country has blank texts; what is not known is null"):
        read_table(path, MATCHES)


def test_parts_are_joined_in_the_order_given(tmp_path: Path) -> None:
    for number, name in enumerate("ba"):
        save_parquet(pets(name), tmp_path / str(number))
    assert merge_parts([tmp_path / "0", tmp_path / "1"], PETS.schema)["name"].to_list() == ["b", "a"]
    assert merge_parts([], PETS.schema).is_empty()


@pytest.mark.parametrize("as_table", [False, True])
def test_what_is_left_out_is_written_and_counted_by_reason(tmp_path: Path, as_table: bool) -> None:
    rows = [("Q2", "food", "filter", "too old", None), ("Q3", None, "filter", "no label", "seen"),
            ("Q1", None, "filter", "too old", None)]  # fmt: skip
    table = pl.DataFrame(rows, schema=DROPS.schema, orient="row").select("detail", *list(DROPS.schema)[:-1])
    assert list(write_drops(tmp_path, table if as_table else rows).items()) == [("no label", 1), ("too old", 2)]
    assert read_table(tmp_path / "drops.parquet", DROPS).rows() == sorted(rows)


def test_drops_may_be_none_and_of_those_that_repeat_the_key_the_first_is_written_where_asked(tmp_path: Path) -> None:
    assert write_drops(tmp_path, []) == {}
    assert read_table(tmp_path / "drops.parquet", DROPS).is_empty()
    rows = [{"key": "Q1", "stage": "filter", "reason": reason} for reason in ("second thoughts", "first thoughts")]
    with pytest.raises(CultureKitError, match="repeat the key"):
        write_drops(tmp_path, rows)
    assert write_drops(tmp_path, rows, once=True) == {"second thoughts": 1}
