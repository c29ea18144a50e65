"""Files that are held against each other."""

from pathlib import Path

import polars as pl
import pytest

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import Files
from culturekit.core.schemas import MATCHES
from culturekit.core.tables import write_table
from culturekit.scores.inputs import asked, tables_of_matches
from culturekit.scores.routes import routes
from culturekit.scores.stability import named_tables


def test_a_file_is_not_compared_with_itself(tmp_path: Path) -> None:
    here, again = tmp_path / "scores.parquet", tmp_path / "." / "up" / ".." / "scores.parquet"
    with pytest.raises(UsageError, match="a ranking is compared with itself; expected another file on each side"):
        named_tables([f"clip={here}", f"siglip={again}"])
    with pytest.raises(UsageError, match="a route is compared with itself"):
        routes.stage(Files([here]), Files([tmp_path / "other.parquet", again]))


@pytest.mark.parametrize("content", [b"", b"prompt_id,text\np,x\n"])
def test_prompts_that_are_no_table_of_ours_are_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "prompts.parquet").write_bytes(content)
    with pytest.raises(IntegrityError, match="not a readable Parquet file; expected the table prompts"):
        asked(tmp_path / "prompts.parquet", tmp_path)


def matches(folder: Path, *countries: str | None) -> Path:
    """Write matches of images, one of each country."""
    row = {
        "model": "m", "rank": 1, "artifact_id": "Q1", "artifact": "x", "countries": [], "method": "nearest",
        "score": 0.5, "margin": 0.1, "country_margin": 0.1, "abstained": False, "continent": "Europe",
    }  # fmt: skip
    rows = [row | {"image_id": f"{folder.name}-{n}", "country": place} for n, place in enumerate(countries)]
    folder.mkdir()
    return write_table(folder, MATCHES, pl.DataFrame(rows, schema=MATCHES.schema))


@pytest.mark.parametrize("tables", [(("FR", "IT", "France"),), (("FR", "IT"), ("South Korea",))])
def test_matches_with_the_name_of_a_country_among_codes_are_refused(
    tmp_path: Path, tables: tuple[tuple[str, ...], ...]
) -> None:
    files = Files([matches(tmp_path / str(number), *places) for number, places in enumerate(tables)])
    for read in (lambda: tables_of_matches(files.places), lambda: files.together(MATCHES)):
        with pytest.raises(UsageError, match=r"codes for others.*(FR, found 'France'|KR, found 'South K)"):
            read()


def test_a_country_on_two_continents_is_refused(tmp_path: Path) -> None:
    one, other = (matches(tmp_path / name, "FR", "IT") for name in ("one", "other"))
    pl.read_parquet(other).with_columns(continent=pl.lit("Asia")).write_parquet(other)
    for read in (lambda: tables_of_matches([one, other]), lambda: Files([one, other]).together(MATCHES)):
        with pytest.raises(
            UsageError,
            match=r"one country has two of continent; expected 'Europe'.*found country 'FR', continent 'Asia'",
        ):
            read()


@pytest.mark.parametrize("places", [("FR", None, "XX"), ("France", "Italy", "UK", "Nowhere"), ("FR", "Nowhere")])
def test_matches_with_codes_throughout_or_names_throughout_are_read(tmp_path: Path, places: tuple[str, ...]) -> None:
    files = Files([matches(tmp_path / "one", *places)])
    assert files.together(MATCHES).equals(tables_of_matches(files.places)[0].select(list(MATCHES.schema)))
