"""Tables are what their declarations say, whole or in slices; what is not is refused."""

import os
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core import tables as table_slices
from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.schemas import ANNOTATIONS, DROPS, MATCHES, RATED_ITEMS, TABLES
from culturekit.core.table import check_slots, declare
from culturekit.core.tables import (
    merge_parts,
    read_table,
    read_together,
    save_parquet,
    slices_of,
    write_drops,
    write_table,
)
from culturekit.index.raters.picture_spread import repeat_batches
from culturekit.scores.diversity import QvsOptions
from culturekit.scores.qvs import score_qvs
from tests.metrics.corrected.audits_by_hand import matches_of

SPECIFICATION = Path(__file__).resolve().parents[3] / "shared/spec/architecture.md"
LINE = re.compile(r"^\| `(?P<name>[a-z]+)` \| (?P<columns>.*) \|$", re.MULTILINE)


def test_a_declaration_names_types_and_what_may_be_null() -> None:
    table = declare("t by a b: a str, b u16?, c list[str]")
    assert table.key == ("a", "b")
    assert table.schema == {"a": pl.String(), "b": pl.UInt16(), "c": pl.List(pl.String())}
    assert [column.nullable for column in table.columns.values()] == [False, True, False]
    for known in TABLES.values():
        assert set(known.key) <= set(known.columns), known.name


@pytest.mark.parametrize("columns", ["a", "a string", "A str", "a str??", "a str b str"])
def test_a_declaration_that_says_nothing_is_a_mistake(columns: str) -> None:
    with pytest.raises(ValueError, match="a column is declared as"):
        declare(f"t by a: {columns}")


def specified() -> dict[str, str]:
    if not SPECIFICATION.is_file():
        return {}
    return {match["name"]: match["columns"] for match in LINE.finditer(SPECIFICATION.read_text(encoding="utf-8"))}


# Tables whose types the specification spells out column by column, but for a few words that say more
SPELLED_OUT = ["cspace", "prompts", "images", "matches", "quality", "scores"]

# An image of known truth may show no artifact: see docs/decisions
MAY_BE_NULL = {("matches", "artifact_id"), ("matches", "artifact"), ("matches", "country"), ("matches", "continent")}


@pytest.mark.parametrize("name", SPELLED_OUT)
def test_tables_are_as_the_specification_says(name: str) -> None:
    if not specified():
        pytest.skip(f"needs the specification at {SPECIFICATION}")
    text = re.sub(r"\([^)]*\)", "", specified()[name])
    words = [part.split() for part in re.split(r",(?![^\[]*\])", text) if len(part.split()) >= 2]
    assert len(words) >= 3
    table = TABLES[name]
    for column, kind, *_ in words:
        declared = table.columns[column]
        plain = kind.rstrip("?")
        expected = declare(f"x by a: a {plain if plain[0].isalpha() else 'str'}").columns["a"].dtype
        assert declared.dtype == expected, column
        assert declared.nullable == (kind.endswith("?") or (name, column) in MAY_BE_NULL), column


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


@pytest.mark.parametrize(("content", "words"), [
    (b"PAR1 but no more", "a Parquet file without its end: it was cut"), (b"", "an empty file"),
    (b"\x1f\x8b\x08\x00", "a gzip file, not unpacked"), (b"name,legs\nrex,4\n", "a text that begins 'name,legs'"),
    (b"\n", "a text that begins ''"), (b"\0\0\0\0", "parquet"), (b"PAR1 not it PAR1", "parquet"),
])  # fmt: skip
def test_what_a_file_seems_to_be_is_said_where_it_is_no_table(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "pets.parquet").write_bytes(content)
    with pytest.raises(IntegrityError, match=f"not a readable Parquet file.*found {words}.*run that stage again"):
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


THINGS = declare("things by kind name: kind str, name str, size i64?; optional: note str")


def things(*rows: tuple[str, str, int | None]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=THINGS.schema, orient="row")


@pytest.fixture(autouse=True)
def few_rows_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_slices, "ROWS_PER_SLICE", 3)


@settings(max_examples=40, deadline=None)
@given(keys=st.sets(st.tuples(st.sampled_from("ab"), st.text("xyzäß", max_size=3)), max_size=12))
def test_slices_come_in_key_order(tmp_path_factory: pytest.TempPathFactory, keys: set[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("table")
    ordered = write_table(folder, THINGS, things(*((kind, name, len(name)) for kind, name in keys)))
    expected = pl.read_parquet(ordered)
    shuffled = folder / "shuffled.parquet"
    save_parquet(expected.sample(fraction=1, shuffle=True, seed=len(keys)), shuffled)
    for path in (ordered, shuffled):
        source = slices_of(path, THINGS, scratch=folder)
        read = list(source.slices())
        assert source.rows == len(keys)
        assert all(0 < frame.height <= 3 for frame in read)
        assert pl.concat([expected.clear(), *read]).equals(expected)
    assert (slices_of(ordered, THINGS, scratch=folder).path) == ordered


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    source = slices_of(write_table(tmp_path, THINGS, things(("a", "x", 1))), THINGS, scratch=tmp_path)
    assert [frame.columns for frame in source.slices(("size", "name"))] == [["size", "name"]]
    frame = things(("a", "x", 1)).with_columns(note=pl.lit("n"), mine=pl.lit(1))
    save_parquet(frame, tmp_path / "t.parquet")
    source = slices_of(tmp_path / "t.parquet", THINGS, scratch=tmp_path)
    assert next(source.slices()).columns == ["kind", "name", "size", "note"], "the user's own columns are left out"
    assert set(source.table.optional) == {"note"}


@pytest.mark.parametrize("rows", [[("a", "x", 1), ("a", "x", 2)], [*(("a", c, 1) for c in "klm"), ("a", "m", 2)]])
def test_a_key_that_is_there_twice_is_refused(tmp_path: Path, rows: list[tuple[str, str, int]]) -> None:
    save_parquet(things(*rows), tmp_path / "t.parquet")
    with pytest.raises(IntegrityError, match="repeat the key"):
        slices_of(tmp_path / "t.parquet", THINGS, scratch=tmp_path)


def test_what_is_not_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no things table"):
        slices_of(tmp_path / "t.parquet", THINGS, scratch=tmp_path)
    (tmp_path / "t.parquet").write_bytes(b"PAR1 not quite")
    with pytest.raises(IntegrityError, match="not a readable Parquet file"):
        slices_of(tmp_path / "t.parquet", THINGS, scratch=tmp_path)
    save_parquet(things().drop("size"), tmp_path / "t.parquet")
    with pytest.raises(IntegrityError, match="column size is missing"):
        slices_of(tmp_path / "t.parquet", THINGS, scratch=tmp_path)
    save_parquet(things(("a", "x", 1)).with_columns(name=pl.lit(None, pl.String)), tmp_path / "t.parquet")
    with pytest.raises(IntegrityError, match="column name has nulls"):
        list(slices_of(tmp_path / "t.parquet", THINGS, scratch=tmp_path).slices())


ONE = matches_of(["FR", "JP"] * 8)
OTHER = ONE.with_columns(pl.col("image_id") + "-again")


def test_two_images_in_a_slot_are_not_scored() -> None:
    check_slots(ONE)
    twice = "32 images, such as 'm-000000' and 'm-000000-again': two images are in one slot of a repeat"
    with pytest.raises(UsageError, match=twice):
        score_qvs(pl.concat([ONE, OTHER]), None, options=QvsOptions())
    pictures = pl.concat([ONE, OTHER]).with_columns(status=pl.lit("ok"), path=pl.lit("x.png"), sha256=pl.lit("0"))
    with pytest.raises(UsageError, match=twice):
        repeat_batches(pictures, 8)


@pytest.mark.parametrize("unknown", ["slot", "repeat", "prompt_id"])
def test_where_no_slot_is_known_nothing_is_said_of_it(unknown: str) -> None:
    check_slots(pl.concat([ONE, OTHER]).with_columns(pl.lit(None, ONE.schema[unknown]).alias(unknown)))


@pytest.mark.parametrize("other", [{"model": "n"}, {"concept": "art"}, {"prompt_id": "q"}, {"repeat": 9}, {"slot": 9}])
def test_other_models_concepts_prompts_and_repeats_have_slots_of_their_own(other: dict[str, object]) -> None:
    there = {name: pl.lit(value, ONE.schema[name]) for name, value in other.items()}
    one = ONE.filter(repeat=0, slot=0)
    check_slots(pl.concat([one, one.with_columns(pl.col("image_id") + "-again", **there)]))
