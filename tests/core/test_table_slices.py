from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.core import tables as table_slices
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.table import declare
from culturekit.core.tables import save_parquet, slices_of, write_table

TABLE = declare("things by kind name: kind str, name str, size i64?; optional: note str")


def things(*rows: tuple[str, str, int | None]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=TABLE.schema, orient="row")


@pytest.fixture(autouse=True)
def few_rows_a_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_slices, "ROWS_PER_SLICE", 3)


@settings(max_examples=40, deadline=None)
@given(keys=st.sets(st.tuples(st.sampled_from("ab"), st.text("xyzäß", max_size=3)), max_size=12))
def test_slices_come_in_key_order(tmp_path_factory: pytest.TempPathFactory, keys: set[tuple[str, str]]) -> None:
    folder = tmp_path_factory.mktemp("table")
    ordered = write_table(folder, TABLE, things(*((kind, name, len(name)) for kind, name in keys)))
    expected = pl.read_parquet(ordered)
    shuffled = folder / "shuffled.parquet"
    save_parquet(expected.sample(fraction=1, shuffle=True, seed=len(keys)), shuffled)
    for path in (ordered, shuffled):
        source = slices_of(path, TABLE, scratch=folder)
        read = list(source.slices())
        assert source.rows == len(keys)
        assert all(0 < frame.height <= 3 for frame in read)
        assert pl.concat([expected.clear(), *read]).equals(expected)
    assert (slices_of(ordered, TABLE, scratch=folder).path) == ordered


def test_only_the_columns_asked_for_are_read(tmp_path: Path) -> None:
    source = slices_of(write_table(tmp_path, TABLE, things(("a", "x", 1))), TABLE, scratch=tmp_path)
    assert [frame.columns for frame in source.slices(("size", "name"))] == [["size", "name"]]


def test_columns_of_the_users_own_are_left_out_and_optional_ones_stay(tmp_path: Path) -> None:
    frame = things(("a", "x", 1)).with_columns(note=pl.lit("n"), mine=pl.lit(1))
    save_parquet(frame, tmp_path / "t.parquet")
    source = slices_of(tmp_path / "t.parquet", TABLE, scratch=tmp_path)
    assert next(source.slices()).columns == ["kind", "name", "size", "note"]
    assert set(source.table.optional) == {"note"}


@pytest.mark.parametrize("rows", [[("a", "x", 1), ("a", "x", 2)], [*(("a", c, 1) for c in "klm"), ("a", "m", 2)]])
def test_a_key_that_is_there_twice_is_refused(tmp_path: Path, rows: list[tuple[str, str, int]]) -> None:
    save_parquet(things(*rows), tmp_path / "t.parquet")
    with pytest.raises(IntegrityError, match="repeat the key"):
        slices_of(tmp_path / "t.parquet", TABLE, scratch=tmp_path)


def test_what_is_not_the_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no things table"):
        slices_of(tmp_path / "t.parquet", TABLE, scratch=tmp_path)
    (tmp_path / "t.parquet").write_bytes(b"PAR1 not quite")
    with pytest.raises(IntegrityError, match="not a readable Parquet file"):
        slices_of(tmp_path / "t.parquet", TABLE, scratch=tmp_path)
    save_parquet(things().drop("size"), tmp_path / "t.parquet")
    with pytest.raises(IntegrityError, match="column size is missing"):
        slices_of(tmp_path / "t.parquet", TABLE, scratch=tmp_path)
    save_parquet(things(("a", "x", 1)).with_columns(name=pl.lit(None, pl.String)), tmp_path / "t.parquet")
    with pytest.raises(IntegrityError, match="column name has nulls"):
        list(slices_of(tmp_path / "t.parquet", TABLE, scratch=tmp_path).slices())
