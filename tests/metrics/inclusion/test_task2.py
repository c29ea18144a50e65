"""Files of Task 2, rates, agreement and unreliable annotators, and themes of the survey."""

import itertools
from collections import defaultdict
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from statsmodels.stats import inter_rater

from culturekit.core.errors import UsageError
from culturekit.core.schemas import DROPS, TASK2
from culturekit.metrics import (
    Task2File,
    Themes,
    consistency_and_representation,
    drop_unreliable,
    in_region_rates,
    read_task2,
    read_task2_file,
    survey_themes,
    task2_agreement,
    triplet_agreement,
)
from culturekit.metrics.inclusion.task2_files import LONGEST_RESULT, parse_result
from tests.metrics.inclusion.task_worlds import (
    HEAD,
    VOTES,
    codes,
    drawn_task1,
    drawn_task2,
    judgement,
    line,
    task1,
    task2,
    write_csv,
)

YES = "{'match': 'ym', 'obj': ['af', 'eu'], 'geo': ['na']}"


def test_the_public_layout_is_read(tmp_path: Path) -> None:
    # The released file begins with a column of row numbers without a name.
    lines = [
        "0," + line("SouthEastAsia_Indonesia_bag_1.jpg", "SouthEastAsia", 0, "Africa", YES),
        "1," + line("Africa_Nigeria_bag_2.jpg", "Africa", 1, "SouthEastAsia", "{'match': 'nm', 'geo': ['af']}"),
        "2," + line("Africa_Nigeria_bag_2.jpg", "Africa", 2, "Europe", "{'geo': ['sea'], 'obj': [], 'match': 'ym'}"),
    ]
    table = read_task2(write_csv(tmp_path / "task2.csv", lines, head=f",{HEAD}"))
    assert TASK2.problems(table) == []
    first, second, third = table.iter_rows(named=True)
    assert first == {
        "img_path": "SouthEastAsia_Indonesia_bag_1.jpg", "object": "bag", "region": "SouthEastAsia",
        "annotator_id": "0", "annotator_loc": "Africa", "shown": True, "object_regions": ["af", "eu"],
        "background_regions": ["na"], "source": "real",
    }  # fmt: skip
    assert (second["shown"], second["object_regions"], second["background_regions"]) == (False, [], ["af"])
    assert (third["shown"], third["object_regions"], third["background_regions"]) == (True, [], ["sea"])


BROKEN = {
    "not a literal": "__import__('os').system('echo broken')",
    "a call": "dict(match='ym')",
    "an operator": "{'match': 'y' + 'm', 'obj': [], 'geo': []}",
    "no dictionary": "['ym']",
    "no match": "{'obj': ['af'], 'geo': ['af']}",
    "another key": "{'match': 'ym', 'obj': [], 'geo': [], 'extra': 1}",
    "another match": "{'match': 'maybe', 'obj': [], 'geo': []}",
    "a match that is a list of two": "{'match': ['ym', 'nm'], 'obj': [], 'geo': []}",
    "another region": "{'match': 'ym', 'obj': ['mars'], 'geo': []}",
    "a number": "{'match': 'ym', 'obj': [1], 'geo': []}",
    "lists in lists": "{'match': 'ym', 'obj': [['af']], 'geo': []}",
    "a key that cannot be one": "{['match']: 'ym'}",
    "seen but no object regions": "{'match': 'ym', 'geo': ['af']}",
    "cut off": "{'match': 'ym', 'obj': ['af'",
    "deeply nested": "(" * 450,
    "long": "{'match': 'ym', 'obj': [" + "'af'," * 2000 + "], 'geo': []}",
    "a backslash": "{'match': '\\d', 'obj': [], 'geo': []}",
    "a keyword against a number": "{'match': 1if 1 else 2}",
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_dropped_with_its_line_and_reason(tmp_path: Path, name: str) -> None:
    lines = [line("a.jpg", "Africa", 0, "Africa", YES), line("b.jpg", "Africa", 0, "Africa", BROKEN[name])]
    file = read_task2_file(write_csv(tmp_path / "task2.csv", lines))
    assert isinstance(file, Task2File)
    assert file.annotations["img_path"].to_list() == ["a.jpg"]
    (drop,) = file.drops.iter_rows(named=True)
    assert DROPS.problems(file.drops) == []
    assert drop["key"] == "line 3"
    assert drop["reason"].startswith("malformed: ")
    assert len(drop["detail"]) <= 80


def test_an_answer_as_long_as_allowed_is_read() -> None:
    text = YES + " " * (LONGEST_RESULT - len(YES))
    assert parse_result(text) == (True, ("af", "eu"), ("na",))
    assert isinstance(parse_result(text + " "), str)
    assert parse_result("{'match': ['ym'], 'obj': 'af', 'geo': ['sea', 'sea']}") == (True, ("af",), ("sea",))


ROWS = {
    "a region without letters": (line("a.jpg", "?", 0, "Africa", YES), "malformed: region is no name of a region"),
    "nobody's location": (line("a.jpg", "Africa", 0, "none", YES), "malformed: annotator_loc is no name of a region"),
    "a region that nothing is of": (
        line("a.jpg", "Africa", 0, "Africa", YES.replace("'eu'", "'mars'")),
        "malformed: obj or geo ticks a region that no image and nobody is of",
    ),
    "no annotator": ('a.jpg,bag,Africa,,Africa,"{}"', "malformed: annotator_id is empty"),
    "too few fields": ("a.jpg,bag,Africa", "malformed: annotator_id is empty"),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_broken_row_is_dropped_with_its_reason(tmp_path: Path, name: str) -> None:
    text, reason = ROWS[name]
    file = read_task2_file(write_csv(tmp_path / "task2.csv", [text]))
    assert file.annotations.height == 0
    assert file.drops["reason"].to_list() == [reason]


def test_a_row_that_repeats_an_annotation_is_dropped(tmp_path: Path) -> None:
    row = line("a.jpg", "Africa", 0, "Africa", YES)
    file = read_task2_file(write_csv(tmp_path / "task2.csv", [row, row]))
    assert file.annotations.height == 1
    assert file.drops["reason"].to_list() == ["repeats an annotation"]


@pytest.mark.parametrize("region", ["", "none", "NA"])
def test_an_image_may_have_no_region(tmp_path: Path, region: str) -> None:
    table = read_task2(write_csv(tmp_path / "task2.csv", [line("a.jpg", region, 0, "Southeast Asia", YES)]))
    assert table["region"].to_list() == [None]


def test_a_column_says_who_made_an_image(tmp_path: Path) -> None:
    rows = [line("a.jpg", "Africa", 0, "Africa", YES) + ",ldm", line("b.jpg", "Africa", 0, "Africa", YES) + ","]
    path = write_csv(tmp_path / "task2.csv", rows, head=f"{HEAD},source")
    assert read_task2(path)["source"].to_list() == ["ldm", "real"]
    with pytest.raises(UsageError, match="sources must be left out"):
        read_task2_file(path, sources={"ldm": "*"})


def test_a_pattern_of_the_path_says_it_too(tmp_path: Path) -> None:
    rows = [line(name, "Africa", 0, "Africa", YES) for name in ("ldm21/a.png", "dm/a.png", "geode/a.jpg")]
    file = read_task2_file(write_csv(tmp_path / "t.csv", rows), sources={"ldm": "ldm21/*", "dm": "dm/*"})
    assert file.annotations["source"].to_list() == ["ldm", "dm", "real"]
    with pytest.raises(UsageError, match=r"a source has no image; .*such as 'ldm21/a.png', found sd as 'sd/\*'"):
        read_task2_file(tmp_path / "t.csv", sources={"sd": "sd/*"})  # its images would count as photographs


def test_a_warning_says_that_rows_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    read_task2(write_csv(tmp_path / "task2.csv", [line("a.jpg", "?", 0, "Africa", YES)]))
    assert "1 rows are left out; the first is line 2: malformed: region" in caplog.text


def test_what_is_no_such_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no such file"):
        read_task2(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="lacks the column object, region"):
        read_task2(write_csv(tmp_path / "few.csv", [], head="img_path,annotator_id"))
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x80,\n")
    with pytest.raises(UsageError, match="not in UTF-8"):
        read_task2(tmp_path / "binary.csv")


def test_an_empty_file_gives_an_empty_table(tmp_path: Path) -> None:
    table = read_task2(write_csv(tmp_path / "task2.csv", []))
    assert table.schema == pl.Schema(TASK2.schema)
    assert table.height == 0


TABLE = task2(
    ("1", "Africa", "a", "Africa", True, "af", "na"),
    ("1", "Africa", "b", "Europe", True, "af eu sea", "af"),
    ("1", "Africa", "c", "SouthEastAsia", False, "", "af"),
    ("2", "Africa", "a", "Africa", True, "eu", "eu"),
    ("3", "Europe", "b", "Europe", True, "eu", "eu af"),
    ("4", None, "a", "Africa", True, "af", "af"),
)


def as_cells(rates: pl.DataFrame) -> dict[tuple[str, str, str], tuple[float, int]]:
    return {(region, side, target): (rate, n) for region, side, target, rate, n in rates.iter_rows()}


def test_rates_are_shares_of_all_annotations_of_a_side() -> None:
    rates = in_region_rates(TABLE)
    assert rates.columns == ["region", "side", "target", "rate", "n"]
    assert as_cells(rates) == {
        ("Africa", "in", "object"): (0.5, 2), ("Africa", "in", "background"): (0.0, 2),
        ("Africa", "out", "object"): (0.5, 2), ("Africa", "out", "background"): (1.0, 2),
        ("Europe", "in", "object"): (1.0, 1), ("Europe", "in", "background"): (1.0, 1),
    }  # fmt: skip
    assert in_region_rates(TABLE.reverse()).equals(rates)
    drawn = drawn_task2()
    twice = in_region_rates(pl.concat([drawn, drawn.sample(fraction=1, shuffle=True, seed=1)]))
    assert twice.equals(in_region_rates(drawn).with_columns(n=2 * pl.col("n")).cast(twice.schema))


def test_regions_are_known_however_they_are_written(tmp_path: Path) -> None:
    answer = "{'match': 'ym', 'obj': ['sea'], 'geo': ['na']}"
    for region, place in (("Southeast Asia", "sea"), ("southeast_asia", "SouthEastAsia")):
        table = read_task2(write_csv(tmp_path / "t.csv", [line("a.jpg", region, 0, place, answer)]))
        assert in_region_rates(table, by=()).rows() == [("in", "background", 0.0, 1), ("in", "object", 1.0, 1)]
    with pytest.raises(UsageError, match="must be the name of a region"):
        in_region_rates(TABLE.with_columns(region=pl.lit(" - ")))


def test_regions_and_countries_of_any_study_are_counted(tmp_path: Path) -> None:
    ticks = "{'match': 'ym', 'obj': ['americas', 'cotedivoire'], 'geo': ['na']}"
    rows = [line(f"{n}.jpg", region, n, place, ticks) for n, (region, place) in enumerate(
        [("Americas", "the Americas"), ("Americas", "AMERICAS"), ("Côte d’Ivoire", "Europe")]
    )]  # fmt: skip
    table = read_task2(write_csv(tmp_path / "t.csv", rows))
    rates = in_region_rates(table, by=("region",)).filter(target="object")
    assert {(row["region"], row["side"]): row["rate"] for row in rates.to_dicts()} == {
        ("Americas", "in"): 1.0, ("Americas", "out"): 1.0, ("Côte d’Ivoire", "out"): 1.0,
    }  # fmt: skip


def test_no_image_with_a_region_gives_no_rows() -> None:
    empty = in_region_rates(TABLE.filter(pl.col("region").is_null()))
    assert (empty.height, empty.columns) == (0, ["region", "side", "target", "rate", "n"])


def test_consistency_stands_beside_representation() -> None:
    table = consistency_and_representation(TABLE, by=("annotator_loc",))
    assert table.rows() == [
        ("Africa", 1.0, 0.5, 0.0, 2), ("Europe", 1.0, 1.0, 1.0, 2), ("SouthEastAsia", 0.0, 0.0, 1.0, 1),
    ]  # fmt: skip
    whole = consistency_and_representation(TABLE, by=()).row(0, named=True)
    rates = in_region_rates(TABLE, by=())
    weighted = rates.filter(target="object").select((pl.col("rate") * pl.col("n")).sum() / pl.col("n").sum()).item()
    assert whole["object"] == pytest.approx(weighted)
    assert whole["n"] == 5


def sightings(annotator: str, seen: list[bool], *, region: str = "Africa", source: str = "real") -> pl.DataFrame:
    return task2(
        *((f"{source}-{region}-{n}", region, annotator, "Africa", each, "af", "af") for n, each in enumerate(seen)),
        source=source,
    )


def test_whoever_sees_fewer_than_nine_in_ten_photographs_is_left_out_of_that_cell_only() -> None:
    careless, careful = [True] * 8 + [False] * 2, [True] * 9 + [False]
    table = pl.concat([
        sightings("bad", careless), sightings("good", careful), sightings("bad", careful, region="Europe"),
        sightings("bad", [True, True], source="ldm"), sightings("good", [False, False], source="ldm"),
    ])  # fmt: skip
    kept = drop_unreliable(table)
    assert kept.annotations.filter(annotator_id="bad")["region"].unique().to_list() == ["Europe"]
    assert kept.annotations.filter(annotator_id="good").height == 12
    assert kept.cells.select("annotator_id", "region", "accuracy", "photographs", "kept").rows() == [
        ("bad", "Africa", 0.8, 10, False), ("bad", "Europe", 0.9, 10, True), ("good", "Africa", 0.9, 10, True),
    ]  # fmt: skip
    assert kept.unchecked == 0
    assert drop_unreliable(kept.annotations).annotations.equals(kept.annotations)
    assert drop_unreliable(table, least=0).annotations.equals(table)


def test_who_saw_no_photograph_is_kept_and_counted() -> None:
    kept = drop_unreliable(sightings("new", [False, True], source="ldm"))
    assert (kept.annotations.height, kept.unchecked) == (2, 2)


def test_triplets_tell_photographs_by_the_source_of_each_place() -> None:
    # Of combo A the reference is a photograph, which checks nobody; of combo E the two images compared are
    seen = [judgement(f"t{n}", "ann", "Africa", "1", "1") for n in range(9)]
    assert drop_unreliable(task1(*seen)).unchecked == 9
    compared = task1(seen[0] | {"combo": "E", "reference_source": "ldm", "source": "real"})
    assert drop_unreliable(compared).cells.select("accuracy", "photographs").row(0) == (0.5, 2)
    assert drop_unreliable(compared).annotations.height == 0
    silent = task1(seen[0] | {"shown": None})
    assert drop_unreliable(silent).unchecked == 1


def agreement_by_hand(rows: list[tuple[str, str]]) -> tuple[float, float, int]:
    """Count agreeing pairs of (item, choice)."""
    items = defaultdict(list)
    for item, choice in rows:
        items[item].append(choice)
    shares = [np.mean([a == b for a, b in itertools.combinations(said, 2)]) for said in items.values()]
    return float(np.mean(shares)), float(np.mean([share == 1 for share in shares])), len(shares)


@pytest.mark.parametrize("seed", range(3))
def test_agreement_is_that_of_all_pairs(seed: int) -> None:
    table = drawn_task1(seed=seed)
    found = triplet_agreement(table, by=("source", "region"))
    assert found.columns == ["source", "region", "criterion", "pairs", "pairwise", "unanimous", "n"]
    assert found.height == 12
    for row in found.iter_rows(named=True):
        cell = table.filter(source=row["source"], region=row["region"])
        column = {"similarity": "similar_id", "appeal": "appealing_id"}[row["criterion"]]
        expected = agreement_by_hand(cell.select("triplet_id", column).rows())
        assert (row["pairwise"], row["unanimous"], row["n"]) == pytest.approx(expected)
        assert row["pairs"] == "all"
    assert triplet_agreement(table.sample(fraction=1, shuffle=True, seed=1), by=("source", "region")).equals(found)


def test_within_and_across_are_told_apart() -> None:
    table = task1(
        judgement("t", "a", "Africa", "1", "1"), judgement("t", "b", "Africa", "1", "2"),
        judgement("t", "c", "Europe", "2", "2"),
    )  # fmt: skip
    found = triplet_agreement(table, by=("annotator_loc",)).select("annotator_loc", "criterion", "pairs", "pairwise")
    assert found.rows() == [
        ("Africa", "appeal", "across", 0.5), ("Africa", "appeal", "within", 0.0),
        ("Africa", "similarity", "across", 0.0), ("Africa", "similarity", "within", 1.0),
        ("Europe", "appeal", "across", 0.5), ("Europe", "similarity", "across", 0.0),
    ]  # fmt: skip


def test_everybody_agreeing_is_one_and_silence_is_no_answer() -> None:
    table = task1(
        judgement("t", "a", "Africa", "1", None), judgement("t", "b", "Europe", "1", "2"),
        judgement("u", "a", "Africa", "2", "2"),
    )  # fmt: skip
    assert triplet_agreement(table, by=()).rows() == [("similarity", "all", 1.0, 1.0, 1)]
    with pytest.raises(UsageError, match="task1 must be a frame with the columns"):
        triplet_agreement(table, by=("colour",))


def test_task2_agreement_is_that_of_all_pairs_and_kappa_statsmodels() -> None:
    table = drawn_task2(images=90, seed=2)
    found = task2_agreement(table, by=("region",))
    assert found.columns == ["region", "question", "pairs", "pairwise", "unanimous", "kappa", "n"]
    for row in found.filter(pl.col("question") == "object").iter_rows(named=True):
        cell = table.filter(region=row["region"])
        code = {"Africa": "af", "Europe": "eu", "SouthEastAsia": "sea"}[row["region"]]
        named = cell.select("img_path", pl.col("object_regions").list.contains(code).cast(pl.String))
        expected = agreement_by_hand(named.rows())
        assert (row["pairwise"], row["unanimous"], row["n"]) == pytest.approx(expected)
        yes = cell.group_by("img_path").agg(pl.col("object_regions").list.contains(code).sum())["object_regions"]
        counts = np.stack([yes.to_numpy(), 3 - yes.to_numpy()], axis=1)
        assert row["kappa"] == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)
    assert set(found["question"]) == {"shown", "object", "background"}
    assert task2_agreement(table.reverse(), by=("region",)).equals(found)


def test_images_without_a_region_count_for_what_they_show_only() -> None:
    table = task2(("1", None, "a", "Africa", True, "af", "af"), ("1", None, "b", "Europe", True, "eu", "eu"))
    assert task2_agreement(table, by=()).rows() == [("shown", "all", 1.0, 1.0, None, 1)]


def test_pools_of_task2_have_no_kappa_across() -> None:
    table = drawn_task2(images=30)
    found = task2_agreement(
        pl.concat([table, table.with_columns(annotator_id=pl.lit("second"))]), by=("annotator_loc",)
    )
    assert found.filter(pairs="across")["kappa"].null_count() == found.filter(pairs="across").height
    # The second annotator of each location copies the first.
    inside = found.filter(pairs="within")
    assert inside["pairwise"].to_list() == [1.0] * 9
    assert inside["kappa"].drop_nulls().to_list() == pytest.approx([1.0] * inside["kappa"].drop_nulls().len())


def test_codes_are_kept_from_a_kappa_on() -> None:
    found = survey_themes(codes(VOTES))
    assert isinstance(found, Themes)
    for row in found.kappas.iter_rows(named=True):
        counts = np.array([(yes, 3 - yes) for yes in VOTES[row["code"]]])
        if row["code"] == "brand":
            assert (row["kappa"], row["kept"]) == (None, False)
            continue
        assert row["kappa"] == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)
        assert row["kept"] == (row["kappa"] >= 0.6)
    assert found.kappas["code"].to_list() == ["people", "nature", "tools", "brand"]
    assert found.kappas.filter("kept")["code"].to_list() == ["people"]
    assert survey_themes(codes(VOTES), least=0.5).kappas["kept"].sum() == 2
    exact = found.kappas["kappa"][1]
    assert survey_themes(codes(VOTES), least=exact).kappas["kept"].to_list()[:2] == [True, True]


def test_the_majority_decides_and_shares_are_by_location() -> None:
    found = survey_themes(codes(VOTES), least=0.4)
    assert found.votes.filter(code="nature").sort("response_id")["present"].to_list() == [
        True, True, False, False, True, False,
    ]  # fmt: skip
    assert found.shares.filter(code="nature").select("location", "share", "n").rows() == [
        ("Africa", pytest.approx(1 / 3), 3), ("Europe", 1.0, 2), ("SouthEastAsia", 0.0, 1),
    ]  # fmt: skip


def test_the_order_of_rows_and_names_of_coders_do_not_matter() -> None:
    table = codes(VOTES)
    renamed = table.with_columns(coder=pl.col("coder").replace({"c0": "c2", "c2": "c0"}))
    for other in (table.sample(fraction=1, shuffle=True, seed=0), renamed):
        found, again = survey_themes(table), survey_themes(other)
        for name in ("kappas", "votes", "shares"):
            assert getattr(again, name).equals(getattr(found, name)), name


def test_arguments_are_checked() -> None:
    table = codes(VOTES)
    with pytest.raises(UsageError, match="were not read by 3 coders"):
        survey_themes(table.slice(1))
    with pytest.raises(UsageError, match="coders must be an odd number"):
        survey_themes(table, coders=2)
    with pytest.raises(UsageError, match="codes must be a frame with the columns"):
        survey_themes(table.drop("topic"))
