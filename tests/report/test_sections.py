"""What sections of the report say, beside the tables that they are read from."""

import io
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from culturekit.core.schemas import IMAGES, VALUES
from culturekit.core.tables import read_table
from culturekit.report.differences import gap_chart, gap_lines
from culturekit.report.report_stage import folders_of
from culturekit.report.run_folders import LONGEST, RunFolders, inert, plain
from culturekit.report.shots import LARGEST_SIDE, Copied, copies, small_copy, thumbnail_name
from culturekit.report.write import ReportData, collect
from culturekit.scores.gaps import GapOptions, score_gaps


@pytest.fixture(scope="module")
def data(small_run: Path) -> ReportData:
    return collect(folders_of(small_run))


def nearest(run: Path, model: str) -> pl.DataFrame:
    return pl.read_parquet(run / f"matches-{model}/matches.parquet").filter(pl.col("rank") == 1)


def test_a_mosaic_counts_what_the_matches_hold(data: ReportData, small_run: Path) -> None:
    assert [found.model for found in data.mosaics] == [line.model for line in data.models]
    for found in data.mosaics:
        matches = nearest(small_run, found.model)
        counts = matches.group_by("artifact_id").len().sort(["len", "artifact_id"], descending=[True, False])
        assert [(one.artifact_id, one.images) for one in found.mosaics] == counts.head(6).rows()
        assert found.asked == found.missing + found.abstained + found.mapped == matches.height
        for one in found.mosaics:
            scores = [each.score for each in one.tiles]
            own = matches.filter(pl.col("artifact_id") == one.artifact_id)
            assert scores == sorted(scores, key=lambda score: -(score or 0))
            assert (scores[0], scores[-1]) == (own["score"].max(), own["score"].min())
            assert one.reference is not None


def test_images_that_the_mapping_abstained_from_are_in_no_mosaic(run_copy: Path) -> None:
    path = run_copy / "matches-broad/matches.parquet"
    table = pl.read_parquet(path)
    ids = table["image_id"].unique().sort()[:5]
    table.with_columns(abstained=pl.col("image_id").is_in(ids.implode())).write_parquet(path)
    found = next(one for one in collect(folders_of(run_copy)).mosaics if one.model == "broad")
    assert found.abstained == 5
    assert found.unmapped == pytest.approx(5 / found.asked)
    shown = {tile.image_id for one in found.mosaics for tile in one.tiles}
    assert shown.isdisjoint(ids)


def test_artifacts_at_both_ends_are_those_of_the_distributions(data: ReportData, small_run: Path) -> None:
    assert data.extremes is not None
    shown = {model: set(nearest(small_run, model)["artifact"]) for model in ("broad", "narrow", "empty")}
    names = set(pl.read_parquet(small_run / "cspace/cspace.parquet")["name"])
    assert data.extremes.artifacts == len(names)
    for line, never in zip(data.models, data.extremes.never, strict=True):
        assert never == len(names - shown[line.model])
    least = [one.name for one in data.extremes.least]
    if len(names - set.union(*shown.values())) >= len(least):
        assert set(least).isdisjoint(set.union(*shown.values()))


def test_each_prompt_shows_the_first_repeat_of_each_model(data: ReportData, small_run: Path) -> None:
    assert {one.prompt_id for one in data.prompt_images} == {line.prompt_id for line in data.prompts}
    for one in data.prompt_images:
        for model, tiles, count in one.models:
            images = pl.read_parquet(small_run / f"images-{model}/images.parquet").filter(
                pl.col("prompt_id") == one.prompt_id
            )
            assert count == images.height
            assert {tile.image_id for tile in tiles} == set(images.filter(pl.col("repeat") == 0)["image_id"])


def test_who_made_mapped_and_judged_is_named_once(data: ReportData) -> None:
    roles = [party.role for party in data.parties]
    assert {"mapping", "quality", "cultural space", "images of broad"} <= set(roles)
    assert len(roles) == len(set(roles))
    assert data.paid == ()
    assert data.gaps is None


def test_gaps_are_read_with_their_countries(tmp_path: Path) -> None:
    rows = [
        {
            "metric": "vs", "model": "m", "benchmark": "cube", "concept": "art", "country": country, "group": None,
            "params": '{"kernel":"artifact","labels":"mapped"}', "item": f"p{country}{n}/0",
            "prompt_id": f"p{country}{n}", "repeat": 0, "value": value + n / 100,
        }
        for country, value in (("IT", 0.8), ("US", 0.7), ("IN", 0.4), ("NG", 0.3))
        for n in range(6)
    ]  # fmt: skip
    values = pl.DataFrame(rows, schema=VALUES.schema)
    groups = {"IT": "GN", "US": "GN", "IN": "GS", "NG": "GS"}
    scores = score_gaps(values, options=GapOptions("cultivate", groups)).scores
    lines = list(gap_lines(RunFolders(tmp_path, ("m",), ()), scores))
    assert len(lines) == 1
    assert (lines[0].first, lines[0].second) == ("Global North", "Global South")
    assert lines[0].countries == (("IT", "US"), ("IN", "NG"))
    assert lines[0].gap.value == pytest.approx(0.4)
    assert lines[0].beyond_chance
    assert 'class="mapped" cx=' in gap_chart(lines)


def test_large_pictures_become_small_ones_and_small_ones_stay(tmp_path: Path) -> None:
    held = io.BytesIO()
    Image.new("RGB", (600, 300), (200, 10, 10)).save(held, "PNG")
    (tmp_path / "large.bin").write_bytes(held.getvalue())
    assert thumbnail_name("a", 600, 300) == "a.jpg"
    assert thumbnail_name("a", LARGEST_SIDE, 3) == "a.png"
    assert small_copy(Copied(tmp_path, "large.bin", tmp_path / "a.jpg"))
    with Image.open(tmp_path / "a.jpg") as small:
        assert (small.format, small.size) == ("JPEG", (LARGEST_SIDE, LARGEST_SIDE // 2))
    assert small_copy(Copied(tmp_path, "large.bin", tmp_path / "a.png"))
    assert (tmp_path / "a.png").read_bytes() == held.getvalue()
    assert not small_copy(Copied(tmp_path, "gone.png", tmp_path / "b.png"))
    assert (tmp_path / "b.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_is_not_the_one_of_its_table_is_not_shown(run_copy: Path, tmp_path: Path) -> None:
    path = f"images-broad/{read_table(run_copy / 'images-broad/images.parquet', IMAGES)['path'][0]}"
    (one,) = copies(run_copy, {"a.png": path}, tmp_path)
    assert small_copy(one)
    (run_copy / path).write_bytes((run_copy / path).read_bytes() + b"x")
    assert not small_copy(one)


@given(st.text(max_size=3 * LONGEST))
def test_text_of_strangers_is_short_and_turns_nothing(text: str) -> None:
    shown = inert(text)
    assert len(shown) <= LONGEST + 40
    assert not set(shown) & set("\0\x1b\u202e\u2066\u2069\u200f")
    assert inert(shown) == shown
    assert plain(text).isascii()
    assert "/" not in plain(text)
    assert not plain(text).startswith(".")


def test_ordinary_text_stays_as_it_is() -> None:
    for text in ("Khakhra", "餃子", "كبة", "a\nb\tc", "crème brûlée", "👩‍🍳"):
        assert inert(text) == text
    assert plain("mirage") == "mirage"
    assert plain("a b") != plain("a  b")
