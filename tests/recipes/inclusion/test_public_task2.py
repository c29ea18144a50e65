"""The authors' own annotations of Task 2 (facebookresearch/DIG-In, task2_geode.csv; not free to ship): rates of theirs.

The file is theirs to give: name it in CULTUREKIT_TASK2_CSV, or lay it at ../shared/data/inclusion/task2_geode.csv.
"""

import ast
import csv
import json
import os
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.recipes.inclusion.scores import TaskOptions, task2
from culturekit.verify.verify_run import verify_run
from tests.conftest import stage_here

NAMED = "CULTUREKIT_TASK2_CSV"
SHARED = Path(__file__).parents[4] / "shared/data/inclusion/task2_geode.csv"
PUBLIC = Path(os.environ.get(NAMED, SHARED))
CODES = {"Africa": "af", "Europe": "eu", "SouthEastAsia": "sea"}

pytestmark = pytest.mark.skipif(not PUBLIC.is_file(), reason=f"needs the authors' task2_geode.csv: {NAMED}")


@pytest.fixture(scope="module")
def raw() -> list[dict[str, Any]]:
    with PUBLIC.open(encoding="utf-8", newline="") as file:
        return [{**row, "said": ast.literal_eval(row["annotation_result"])} for row in csv.DictReader(file)]


def scores_of(folder: Path, *, least: float) -> pl.DataFrame:
    stage_here(task2.stage(PUBLIC, options=TaskOptions(least=least)), folder)
    return pl.read_parquet(folder / "scores.parquet")


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("published") / "all"
    table = scores_of(folder, least=0)
    return folder, [{**row, **json.loads(row["params"])} for row in table.iter_rows(named=True)]


def test_what_the_file_holds(raw: list[dict[str, Any]]) -> None:
    assert len(raw) == 5378
    per_image = Counter(row["img_path"] for row in raw)
    assert Counter(per_image.values()) == {3: 1778, 2: 22}, "22 of 5,400 fell to the authors' own filter"
    cells = Counter((row["object"], row["region"]) for row in {row["img_path"]: row for row in raw}.values())
    assert set(cells.values()) == {100}
    assert len(cells) == 18
    people = Counter(place for _, place in {(row["annotator_id"], row["annotator_loc"]) for row in raw})
    assert people == {"Africa": 20, "Europe": 17, "SouthEastAsia": 15}


def test_every_rate_is_that_of_a_loop_and_the_published_ones_come_out(
    raw: list[dict[str, Any]], published: tuple[Path, list[dict[str, Any]]]
) -> None:
    answers: dict[tuple[object, ...], list[bool]] = defaultdict(list)
    for row in raw:
        side = "in" if row["annotator_loc"] == row["region"] else "out"
        for target, key in (("object", "obj"), ("background", "geo")):
            named = CODES[row["region"]] in row["said"].get(key, ())
            for region in (None, row["region"]):
                for thing in (None, row["object"]):
                    answers[region, thing, side, target].append(named)
    rows = [row for row in published[1] if row["metric"] == "in_region_rate"]
    found = {(row["group"], row["concept"], row["side"], row["target"]): row for row in rows}
    assert len(found) == len(rows) == 4 * (1 + 3 + 6 + 18)
    assert {key: (row["value"], row["n"]) for key, row in found.items()} == {
        key: (pytest.approx(sum(said) / len(said)), len(said)) for key, said in answers.items()
    }
    places = (("in", "object"), ("in", "background"), ("out", "object"), ("out", "background"))
    rates = [round(found[None, None, *place]["value"], 4) for place in places]
    assert rates == [0.7139, 0.6754, 0.5423, 0.4382]
    assert all(row["ci_low"] < row["value"] < row["ci_high"] for row in rows)
    for region in CODES:
        for target in ("object", "background"):
            inside, outside = (found[region, None, side, target] for side in ("in", "out"))
            assert inside["value"] > outside["value"] + 0.1, "of real images people at home see more (figure 3a)"


def test_agreement_is_that_of_a_loop(raw: list[dict[str, Any]], published: tuple[Path, list[dict[str, Any]]]) -> None:
    said: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for row in raw:
        own, answer = CODES[row["region"]], row["said"]
        for question, yes in (("shown", answer["match"] == "ym"), ("object", own in answer.get("obj", ())),
                              ("background", own in answer.get("geo", ()))):  # fmt: skip
            said[row["region"], question, row["img_path"]].append(yes)
    items: dict[tuple[str, str], list[list[bool]]] = defaultdict(list)
    for (region, question, _), answers in said.items():
        items[region, question].append(answers)
    for (region, question), lists in items.items():
        pairs = [[one == other for one, other in combinations(answers, 2)] for answers in lists]
        yes = sum(map(sum, lists)) / sum(map(len, lists))
        chance = yes**2 + (1 - yes) ** 2
        agreed = sum(sum(own) / len(own) for own in pairs) / len(pairs)
        wanted = {"location_agreement": agreed, "location_unanimity": sum(all(own) for own in pairs) / len(pairs),
                  "location_kappa": (agreed - chance) / (1 - chance)}  # fmt: skip
        own_rows = [row for row in published[1] if (row["group"], row.get("criterion")) == (region, question)]
        found = {row["metric"]: row["value"] for row in own_rows if row["pairs"] == "all"}
        assert found == pytest.approx(wanted)


def test_our_filter_takes_more_out_than_the_authors_did(raw: list[dict[str, Any]], tmp_path: Path) -> None:
    """Theirs saw comparison images of Task 1, which are not public; ours sees the photographs of this file."""
    seen: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for row in raw:
        seen[row["annotator_id"], row["object"], row["region"]].append(row["said"]["match"] == "ym")
    low = {cell for cell, found in seen.items() if sum(found) < 0.9 * len(found)}
    kept = [row for row in raw if (row["annotator_id"], row["object"], row["region"]) not in low]
    assert (len(low), len(seen), len(kept)) == (18, 380, 5069)
    rates = scores_of(tmp_path / "kept", least=0.9).filter(
        pl.col("group").is_null(), pl.col("concept").is_null(), metric="in_region_rate"
    )
    inside = rates.filter(pl.col("params").str.contains('"side":"in"', literal=True))
    assert sorted(inside["value"].round(4)) == [0.6819, 0.718]
    left_out = json.loads((tmp_path / "kept/manifest.json").read_text(encoding="utf-8"))["drops"]
    assert left_out["annotations of unreliable annotators"] == 5378 - 5069
    assert left_out["annotators left out of an object and region"] == 18


def test_a_verification_recomputes_all_of_it(published: tuple[Path, list[dict[str, Any]]]) -> None:
    answer = verify_run(published[0])
    assert {verdict.verdict for verdict in answer.verdicts} == {"verified"}
    assert len(answer.verdicts) == len(published[1])
