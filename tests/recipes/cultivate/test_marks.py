from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.inputs import Numbered
from culturekit.core.lineage import manifest_of
from culturekit.core.schemas import ANNOTATIONS, SCENE_ITEMS, SCORES, VALUES
from culturekit.core.tables import read_table
from culturekit.recipes.cultivate.breakdown import gaps_of_scores_stage, grouped_values_stage
from tests.recipes.built import built, scores_row, stored
from tests.recipes.cultivate.marked_scenes import OFFERED, Rows, blank, marked

ALL: dict[str, Sequence[Any]] = {"shown": [("samovar", "gondola")] * 3, "relevant": [("samovar", "hand drums")] * 3}


def marks_of(folder: Path, item: str = "i-IR") -> dict[str, list[float]]:
    table = read_table(folder / "annotations.parquet", ANNOTATIONS).filter(item_id=item)
    own = table.filter(pl.col("criterion").str.ends_with("_marked"))
    return {name: own.filter(criterion=name)["value"].to_list() for name in ("align_marked", "hal_marked")}


def test_each_thing_is_offered_once_with_its_kind(tmp_path: Path) -> None:
    marked(tmp_path, ALL)
    items = read_table(tmp_path / "items/scene_items.parquet", SCENE_ITEMS)
    row = items.filter(item_id="i-IR").to_dicts()[0]
    assert tuple(row["descriptors"]) == OFFERED, "a samovar and samovar are one thing"
    assert row["dimensions"] == ["attire", "objects", "objects", "objects", "attire"]
    assert (row["country_name"], row["model"], row["activity"]) == ("Iran", "m", "A photo of wrestling.")


def test_align_and_hal_are_those_of_what_most_people_tick(tmp_path: Path) -> None:
    """Objects: 1 of 2 references, 1 of 2 things wrong; attire: nothing shown, which is 0 and 0."""
    assert marks_of(marked(tmp_path, ALL)) == {"align_marked": [0.25] * 3, "hal_marked": [0.25] * 3}


def test_faith_is_made_of_marks_and_of_the_rating_of_exaggeration(tmp_path: Path) -> None:
    """2 of 1 to 5 is 0.25."""
    table = read_table(marked(tmp_path, ALL) / "annotations.parquet", ANNOTATIONS)
    own = table.filter(item_id="i-IR", criterion="faith_marked")["value"].to_list()
    assert own == pytest.approx([(0.25 + 0.75 + 0.75) / 3] * 3)


def test_one_of_three_decides_nothing(tmp_path: Path) -> None:
    ticks = {**ALL, "shown": [("samovar", "gondola"), ("samovar", "gondola"), ("samovar", "gondola", "silk sari")]}
    assert marks_of(marked(tmp_path, ticks))["align_marked"] == [0.25] * 3


def test_what_is_not_listed_is_wrong_where_most_name_it(tmp_path: Path) -> None:
    """Objects: 2 of 3 things are wrong with the drum that two name."""
    named = ["objects: talking drum; attire: fez", "Objects:  Talking Drum", "objects: kite"]
    found = marks_of(marked(tmp_path, {**ALL, "other": named}))
    assert found["hal_marked"] == pytest.approx([(2 / 3 + 0) / 2] * 3)
    assert found["align_marked"] == [0.25] * 3


def test_what_is_named_by_another_name_of_its_kind_counts_and_without_a_kind_is_counted(tmp_path: Path) -> None:
    references = {"objects": ("samovar", "hand drums"), "background": ("bazaar",)}
    named = ["setting: palm tree;", "Background: palm tree; a tall building", "fez"]
    folder = marked(tmp_path, {**ALL, "other": named}, references=references)
    assert marks_of(folder)["hal_marked"] == [(0.5 + 1) / 2] * 3
    manifest = manifest_of(folder)
    assert manifest.drops["things that people name without a kind"] == 2 * 2


def test_who_did_not_read_along_does_not_count(tmp_path: Path) -> None:
    ticks = {**ALL, "shown": [("samovar",), ("samovar",), OFFERED]}
    found = marks_of(marked(tmp_path, ticks, flags=["too-fast"]))
    assert found == {"align_marked": [0.25] * 2, "hal_marked": [0.0] * 2}


def test_what_just_half_of_the_people_tick_is_counted_as_not_shown(tmp_path: Path) -> None:
    folder = marked(tmp_path, {**ALL, "shown": [("samovar", "gondola"), ("samovar",), ()]}, flags=["too-fast"])
    assert marks_of(folder) == {"align_marked": [0.25] * 2, "hal_marked": [0.0] * 2}
    manifest = manifest_of(folder)
    assert manifest.drops["ticks of just half of the people, which do not count"] == 2


def test_where_somebody_was_found_is_no_reason_to_leave_them_out(tmp_path: Path) -> None:
    folder = marked(tmp_path, ALL, flags=["recruitment:prolific"])
    assert marks_of(folder) == {"align_marked": [0.25] * 3, "hal_marked": [0.25] * 3}


def test_people_who_tick_at_random_are_refused(tmp_path: Path) -> None:
    ticks = {**ALL, "shown": [OFFERED[:3], OFFERED[3:], OFFERED[2:4]]}
    with pytest.raises(UsageError, match="the raters disagree too often"):
        marked(tmp_path, ticks)


def test_the_share_of_references_that_matter_is_scored_by_country(tmp_path: Path) -> None:
    scores = read_table(marked(tmp_path, ALL) / "scores.parquet", SCORES)
    assert set(scores["metric"]) == {"descriptor_accuracy"}
    assert scores.select("country", "value", "n").sort("country").rows() == [
        (None, pytest.approx(2 / 3), 18), ("FR", pytest.approx(2 / 3), 9), ("IR", pytest.approx(2 / 3), 9),
    ]  # fmt: skip


def test_an_image_of_which_nobody_ticks_anything_shows_nothing(tmp_path: Path) -> None:
    folder = marked(tmp_path, ALL, change=blank("i-IR"))
    assert marks_of(folder) == {"align_marked": [0.0] * 3, "hal_marked": [0.0] * 3}
    scores = read_table(folder / "scores.parquet", SCORES).filter(country="IR")
    assert scores.select("value", "n").rows() == [(0.0, 9)]


def test_who_ticks_nothing_counts_among_those_who_were_asked(tmp_path: Path) -> None:
    """One of three who names, ticks and finds relevant what the others do not is neither half nor all."""
    ticks: dict[str, Sequence[Any]] = {
        "shown": [("samovar",), (), ()], "relevant": [("samovar",), (), ()], "other": ["objects: kite", "", ""],
    }  # fmt: skip
    folder = marked(tmp_path, ticks)
    assert marks_of(folder) == {"align_marked": [0.0] * 3, "hal_marked": [0.0] * 3}
    scores = read_table(folder / "scores.parquet", SCORES).filter(country="IR")
    assert scores.select("value", "n").rows() == [(pytest.approx(1 / 9), 9)]


def test_what_is_shown_is_put_together_as_the_scores_are(tmp_path: Path) -> None:
    """1 of 3 references in all, 1 of 2 things wrong."""
    found = marks_of(marked(tmp_path, ALL, aggregate="pooled"))
    assert found == {"align_marked": pytest.approx([1 / 3] * 3), "hal_marked": [0.5] * 3}


def test_people_of_other_countries_are_a_pool_apart_that_puts_nothing_right(tmp_path: Path) -> None:
    def joined_by_others(rows: Rows) -> Rows:
        others = [{**row, "annotator": f"{row['annotator']}-abroad", "in_region": False} for row in rows]
        return rows + [{**row, "value": 1.0} if "/" in row["criterion"] else row for row in others]

    folder = marked(tmp_path, ALL, change=joined_by_others)
    assert marks_of(folder) == {"align_marked": [0.25] * 3, "hal_marked": [0.25] * 3}
    manifest = manifest_of(folder)
    assert manifest.drops["answers of people of other countries"] == 2 * 3 * 12
    assert read_table(folder / "scores.parquet", SCORES)["n"].max() == 18


def test_a_phrase_that_two_dimensions_ask_for_is_shown_in_both(tmp_path: Path) -> None:
    references = {"objects": ("samovar", "hand drums"), "attire": ("samovar",)}
    assert marks_of(marked(tmp_path, ALL, references=references)) == {
        "align_marked": [0.75] * 3, "hal_marked": [0.25] * 3,
    }  # fmt: skip
    items = read_table(tmp_path / "items/scene_items.parquet", SCENE_ITEMS).filter(item_id="i-IR").row(0, named=True)
    offered = list(zip(items["descriptors"], items["dimensions"], strict=True))
    assert [kind for token, kind in offered if token == "samovar"] == ["attire", "objects"]


def test_what_the_extractor_is_not_asked_for_is_no_part_of_marks_either(tmp_path: Path) -> None:
    references = {"objects": ("samovar", "hand drums"), "attire": ("silk sari",), "people": ("beret",)}
    folder = marked(tmp_path, ALL, references=references)
    assert marks_of(folder) == {"align_marked": [0.25] * 3, "hal_marked": [0.25] * 3}


def test_values_stand_under_groups_of_countries_too(tmp_path: Path) -> None:
    row = {"metric": "align", "model": "m", "benchmark": "b", "params": "{}", "item": "i", "value": 0.5}
    values = stored(tmp_path / "values", VALUES, [
        {**row, "country": "IR", "prompt_id": "p"}, {**row, "country": "SE", "item": "j", "prompt_id": "q"},
        {**row, "metric": "faith", "country": "FR", "item": "k", "prompt_id": "r"},
    ])  # fmt: skip
    folder = built(grouped_values_stage(values, scheme="cultivate", metrics=["align"]), tmp_path / "by-group")
    found = read_table(folder / "values.parquet", VALUES).select("item", "country", "group").sort("item", "country")
    assert found.rows() == [("i", None, "GS"), ("i", "IR", None), ("j", "SE", None)]


def gap_rows(root: Path) -> pl.DataFrame:
    """Subtract scores of two groups as judged, put right and true."""
    pair = [
        ("GN", '{"labels":"judged"}', 0.7, 0.68, 0.72), ("GS", '{"labels":"judged"}', 0.4, 0.37, 0.43),
        ("GN", '{"labels":"corrected","pool":"in"}', 0.6, 0.5, 0.7),
        ("GS", '{"labels":"corrected","pool":"in"}', 0.6, None, None),
    ]  # fmt: skip
    judged = stored(root / "judged", SCORES, [
        scores_row("align", group=group, params=params, value=value, ci_low=low, ci_high=high)
        for group, params, value, low, high in pair
    ])  # fmt: skip
    truth = stored(root / "truth", SCORES, [
        *(scores_row("align", group=group, value=0.5) for group in ("GN", "GS")), scores_row("sdiv", group="GN"),
        scores_row("sdiv", group="GS"),
    ])  # fmt: skip
    folder = built(gaps_of_scores_stage(Numbered([judged]), truth, scheme="cultivate"), root / "gaps")
    return read_table(folder / "scores.parquet", SCORES)


def test_each_pair_of_groups_has_a_gap(tmp_path: Path) -> None:
    judged = stored(tmp_path / "judged", SCORES, [
        scores_row("align", group=group, value=value)
        for group, value in (("Europe", 0.5), ("Asia", 0.75), ("Oceania", 0.25))
    ])  # fmt: skip
    folder = built(gaps_of_scores_stage(Numbered([judged]), None, scheme="un-m49-region"), tmp_path / "gaps")
    found = read_table(folder / "scores.parquet", SCORES).sort("group")
    assert found.select("group", "value").rows() == [
        ("Asia - Europe", 0.25), ("Asia - Oceania", 0.5), ("Europe - Oceania", 0.25),
    ]  # fmt: skip


def test_gaps_of_scores_are_judged_corrected_and_true(tmp_path: Path) -> None:
    found = gap_rows(tmp_path).with_columns(labels=pl.col("params").str.json_path_match("$.labels")).sort("labels")
    assert found["labels"].to_list() == ["corrected", "judged", "truth"]
    assert set(found["group"]) == {"GN - GS"}
    assert found["value"].to_list() == pytest.approx([0.0, 0.3, 0.0])
    judged = found.row(1, named=True)
    assert judged["ci_high"] - judged["value"] == pytest.approx((0.02**2 + 0.03**2) ** 0.5)
    assert found["ci_low"].to_list()[::2] == [None, None]
    assert found["n"].to_list() == [18] * 3
