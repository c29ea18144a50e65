"""Tables of ratings against a table worked out by hand, and against a count with no tables at all."""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from culturekit.builders.judging.simulated_people import AskedFor, Shown, SimulatedPeople, answers_of
from culturekit.core.errors import UsageError
from culturekit.core.plugins import digest_of_code
from culturekit.core.schemas import ANNOTATIONS, AUDIT_SAMPLE, IMAGES, PROMPTS, QUALITY, RATED_ITEMS
from culturekit.core.stage import Stage
from culturekit.core.tables import write_table
from culturekit.people.aggregate import (
    AggregateOptions,
    careful,
    choice_table,
    named,
    rating_page,
    rating_table,
    values_of_quality,
)
from culturekit.people.rated_sample import rated_sample
from culturekit.people.stages import AggregateFiles, aggregate_stage, write_form_tables
from tests.conftest import stage_here
from tests.outside_packages import forget, write_package
from tests.people.projects import image_row, prompt_row, run


def row(
    item: str, who: str, criterion: str, value: float | None = None, choice: str | None = None, *,
    region: str = "IN", flags: list[str] | None = None,
) -> dict[str, Any]:  # fmt: skip
    return {
        "item_id": item, "annotator": who, "annotator_region": region, "in_region": True, "scheme": "cube",
        "criterion": criterion, "value": value, "choice": choice, "text": None, "seconds": 9.0, "flags": flags or [],
    }  # fmt: skip


def item(item_id: str, model: str, concept: str | None = "cuisine", country: str = "IN") -> dict[str, Any]:
    return {
        "item_id": item_id, "model": model, "concept": concept, "country": country, "group": None,
        "prompt_id": f"p-{item_id}",
    }  # fmt: skip


def frames(rows: list[dict[str, Any]], items: list[dict[str, Any]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    return pl.DataFrame(rows, schema=ANNOTATIONS.schema), pl.DataFrame(items, schema=RATED_ITEMS.schema)


BY_HAND = [
    # one picture: 1, 2 and 3 by three people, mean 2; another: 2 and nothing from those who said no; a third: 1.
    row("a1", "x", "faithfulness", 1), row("a1", "y", "faithfulness", 2), row("a1", "z", "faithfulness", 3),
    row("a2", "x", "faithfulness", 2), row("a3", "z", "faithfulness", 1),
    row("b1", "x", "faithfulness", 5), row("b1", "y", "faithfulness", 4),
    row("a1", "x", "belongs", choice="yes"), row("a1", "y", "belongs", choice="maybe"),
    row("a1", "z", "belongs", choice="yes"), row("a2", "x", "belongs", choice="yes"),
    row("a2", "y", "belongs", choice="no"), row("a3", "z", "belongs", choice="maybe"),
]  # fmt: skip
ITEMS = [item("a1", "a"), item("a2", "a"), item("a3", "a"), item("b1", "b")]


def test_the_table_worked_out_by_hand() -> None:
    answers, strange = named(*frames(BY_HAND, ITEMS))
    assert strange == 0
    table = rating_table(answers).filter(concept="cuisine")
    assert table.select("model", "mean", "items", "annotators", "answers", "mark").rows() == [
        ("a", pytest.approx(5 / 3), 3, 3, 5, "below 2"),
        ("b", 4.5, 1, 2, 2, None),
    ]
    assert table["sd"].to_list() == [pytest.approx(math.sqrt(1 / 3)), None]
    assert table["within"].to_list() == [1.0, pytest.approx(math.sqrt(0.5))]
    shares = {r["choice"]: r["rate"] for r in choice_table(answers).filter(concept="cuisine").iter_rows(named=True)}
    assert shares == {"yes": pytest.approx(7 / 18), "maybe": pytest.approx(8 / 18), "no": pytest.approx(3 / 18)}


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_every_cell_is_what_a_plain_count_gives(data: st.DataObject) -> None:
    items = [
        item(f"i{n}", data.draw(st.sampled_from("ab")), data.draw(st.sampled_from(["art", "cuisine"])),
             data.draw(st.sampled_from(["IN", "JP"])))
        for n in range(data.draw(st.integers(1, 6)))
    ]  # fmt: skip
    rows = [
        row(one["item_id"], who, "realism", float(data.draw(st.integers(1, 5))), region=region)
        for one in items
        for who, region in (("x", "IN"), ("y", "IN"), ("z", "JP"))
        if data.draw(st.booleans())
    ]
    about = {one["item_id"]: one for one in items}
    cells: dict[tuple[Any, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for rating in rows:
        one = about[rating["item_id"]]
        for concept in (one["concept"], None):
            cell = (rating["annotator_region"], one["model"], concept, one["country"])
            cells[cell][rating["item_id"]].append(rating["value"])
    expected = {}
    for cell, by_item in cells.items():
        scores = [statistics.fmean(values) for values in by_item.values()]
        mean = statistics.fmean(scores)
        spread = statistics.stdev(scores) if len(scores) > 1 else None
        mark = "below 2" if round(mean, 9) < 2 else "below 3" if round(mean, 9) < 3 else None
        expected[cell] = (round(mean, 9), None if spread is None else round(spread, 9), len(scores), mark)
    found = {
        (r["pool"], r["model"], r["concept"], r["country"]): (
            round(r["mean"], 9), None if r["sd"] is None else round(r["sd"], 9), r["items"], r["mark"]
        )
        for r in rating_table(named(*frames(rows, items))[0]).iter_rows(named=True)
    }  # fmt: skip
    assert found == expected


def test_flagged_answers_are_left_out_and_counted_once() -> None:
    rows = [
        row("a1", "x", "realism", 1, flags=["attention-failed", "too-fast"]),
        row("a1", "y", "realism", 5),
        row("a1", "z", "realism", 3, flags=["too-fast"]),
    ]
    kept, counts = careful(pl.DataFrame(rows, schema=ANNOTATIONS.schema), ())
    assert kept["annotator"].to_list() == ["y"]
    assert {flag: count for flag, count in counts.items() if count} == {
        "flagged attention-failed": 1, "flagged too-fast": 1,
    }  # fmt: skip
    assert careful(pl.DataFrame(rows, schema=ANNOTATIONS.schema), ("too-fast",))[0]["annotator"].to_list() == ["y", "z"]


def written(folder: Path, rows: list[dict[str, Any]], items: list[dict[str, Any]]) -> Path:
    folder.mkdir()
    answers, about = frames(rows, items)
    write_table(folder, RATED_ITEMS, about)
    return write_table(folder, ANNOTATIONS, answers)


def test_the_stage_writes_agreement_and_correlation_with_intervals(tmp_path: Path) -> None:
    items = [item(f"i{n:02}", "ab"[n % 2]) for n in range(24)]
    rows = [
        row(one["item_id"], who, "realism", float(1 + (n + shift) % 5))
        for n, one in enumerate(items)
        for shift, who in enumerate("xy")
    ]
    path = written(tmp_path / "rated", rows, items)
    (tmp_path / "q").mkdir()
    quality = [{"image_id": one["item_id"], "scorer": "s", "value": float(n % 5)} for n, one in enumerate(items)]
    scored = write_table(tmp_path / "q", QUALITY, pl.DataFrame(quality, schema=QUALITY.schema))
    done = run(
        aggregate_stage(AggregateFiles(path, quality=[scored]), AggregateOptions(resamples=199)), tmp_path / "people"
    )
    scores = pl.read_parquet(tmp_path / "people/scores.parquet")
    assert {"krippendorff_alpha", "human_correlation"} <= set(scores["metric"])
    both = scores.filter(metric="human_correlation", model="all")
    assert both["ci_low"].null_count() == 0
    assert done.manifest.drops == {}
    again = run(
        aggregate_stage(AggregateFiles(path, quality=[scored]), AggregateOptions(resamples=199)), tmp_path / "again"
    )
    assert again.manifest.sha256 == done.manifest.sha256


@pytest.mark.parametrize(("scorer", "value", "twice", "words"), [
    ("s", float("nan"), False, "the quality of 1 images is not finite"),
    ("embedded", 58.0, False, "lies off the scale of its scorer; expected from 0 to 1"),
    ("s", 0.5, True, "two tables of quality have the same rows"),
])  # fmt: skip
def test_quality_without_people_is_refused(tmp_path: Path, scorer: str, value: float, twice: bool, words: str) -> None:
    path = written(tmp_path / "rated", [row("a1", "x", "realism", 1)], [item("a1", "a")])
    rows = pl.DataFrame([("a1", scorer, value)], schema=QUALITY.schema, orient="row")
    scored = write_table(tmp_path, QUALITY, rows)
    files = AggregateFiles(path, quality=[scored] * (2 if twice else 1))
    with pytest.raises(UsageError, match=words):
        run(aggregate_stage(files, AggregateOptions()), tmp_path / "people")


def test_nothing_left_other_items_and_ratings_off_their_scale_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "rated", [row("a1", "x", "realism", 1, flags=["too-fast"])], [item("a1", "a")])
    with pytest.raises(UsageError, match="no answer is left"):
        run(aggregate_stage(AggregateFiles(path), AggregateOptions()), tmp_path / "people")
    path = write_table(tmp_path, ANNOTATIONS, pl.DataFrame(BY_HAND, schema=ANNOTATIONS.schema))
    write_table(tmp_path, RATED_ITEMS, pl.DataFrame([item("b7", "a")], schema=RATED_ITEMS.schema))
    with pytest.raises(UsageError, match=r"known item.*about items such as 'b7'.*13 about others, such as 'a1'"):
        run(aggregate_stage(AggregateFiles(path), AggregateOptions()), tmp_path / "people")
    path = written(tmp_path / "honest", [row("a1", "x", "realism", 3)], [item("a1", "a")])
    other = written(tmp_path / "other", [row("a1", "y", "realism", 50)], [item("a1", "a")])
    with pytest.raises(UsageError, match=r"other.*1 ratings lie off their scale.*50 for realism, by 'y' of 'a1'"):
        run(aggregate_stage(AggregateFiles(path, more=[other]), AggregateOptions()), tmp_path / "people")
    with pytest.raises(UsageError, match="two tables of annotations have the same rows"):
        run(aggregate_stage(AggregateFiles(path, more=[path]), AggregateOptions()), tmp_path / "people")


def test_values_are_of_rated_images_only() -> None:
    _, items = frames([], [item("a1", "a")])
    quality = pl.DataFrame({"image_id": ["a1", "z"], "scorer": ["s", "s"], "value": [0.5, 0.1]})
    assert values_of_quality(quality, items).select("item", "model", "value").rows() == [("a1", "a", 0.5)]


def test_the_page_shades_low_cells_and_shows_hostile_names_as_text() -> None:
    hostile = "<script>alert(1)</script>"
    answers, _ = named(*frames(BY_HAND, [*ITEMS[:3], item("b1", hostile)]))
    page = rating_page(rating_table(answers), choice_table(answers), scheme="cube", notes=[hostile])
    assert '<td class="below-2">1.7 ± 0.6' in page
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "default-src &#39;none&#39;" in page or "default-src 'none'" in page


def test_phrases_that_one_item_lists_make_no_table_of_their_own(tmp_path: Path) -> None:
    """Of 216 forms each phrase was a scale, held against each metric: 226,380 rows in 223 seconds."""
    items = [item(f"i{n:02}", "ab"[n % 2]) for n in range(24)]
    rows = [
        row(one["item_id"], who, criterion, float((n + shift) % 2))
        for n, one in enumerate(items)
        for shift, who in enumerate("xy")
        for criterion in ("exag", "kind/photograph", f"shown/thing {n}", f"shown/thing {n + 1}")
    ]
    done = run(
        aggregate_stage(AggregateFiles(written(tmp_path / "rated", rows, items)), AggregateOptions(resamples=99)),
        tmp_path / "people",
    )
    for table in ("scores", "values"):
        frame = pl.read_parquet(tmp_path / f"people/{table}.parquet")
        about = "\n".join(frame["params"].unique())
        assert '"kind/photograph"' in about
        assert "thing" not in about
    assert done.manifest.drops == {"ticks of what only some items list, which have no table": 24 * 2 * 2}
    assert pl.read_parquet(tmp_path / "people/annotations.parquet").height == len(rows), "the answers stay"


WRITES = """
from culturekit.core.stage import Outcome


def write(work, answers, items, rows):
    (work.out / "seen.txt").write_text(" ".join([*answers["item_id"], *rows["name"]]))
    return Outcome({"seen": answers.height}, {"left out": 1})
"""


@pytest.fixture
def own_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    write_package(tmp_path / "site", "kitchens", {"form.kitchen": "kitchens:write"}, WRITES, monkeypatch)
    yield
    forget("kitchens")


def tables_of(scheme: str, out: Path) -> dict[str, int]:
    answer = {"item_id": "i1", "annotator": "a", "annotator_region": "PE", "scheme": scheme, "criterion": "stove",
              "choice": "yes", "flags": []}  # fmt: skip
    answers = pl.DataFrame([answer], schema=ANNOTATIONS.schema)
    items, rows = pl.DataFrame(schema=RATED_ITEMS.schema), pl.DataFrame({"name": ["kitchen 1"]})
    stage = Stage("tables", "tables", 1, lambda work: write_form_tables(work, answers, items, rows), {}, {})
    return dict(stage_here(stage, out).manifest.counts)


@pytest.mark.usefixtures("own_form")
def test_the_answers_to_a_form_of_another_package_become_its_tables(tmp_path: Path) -> None:
    assert tables_of("kitchen", tmp_path / "out") == {"seen": 1}
    assert (tmp_path / "out/seen.txt").read_text() == "i1 kitchen 1"


@pytest.mark.usefixtures("own_form")
def test_what_writes_tables_is_part_of_the_stage_where_they_are_asked_for(tmp_path: Path) -> None:
    def options(made_from: Path | None) -> object:
        files = AggregateFiles(tmp_path / "annotations.parquet", made_from=made_from)
        return aggregate_stage(files, AggregateOptions()).options.get("form_plugins")

    assert options(None) is None
    assert options(tmp_path / "items.csv") == {"kitchen": {"code": digest_of_code("kitchens")}}


def test_answers_to_forms_without_tables_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no answers are to a form with tables of its own.*inclusion_task2.*kitchen"):
        tables_of("kitchen", tmp_path / "out")


DISH, OTHER = Shown("Q1", "IN", "Asia"), Shown("Q2", "JP", "Asia")
NOTHING = Shown(None, None, None)
ASKED = AskedFor("Q1", "IN", "Asia")
SURE = SimulatedPeople(accuracy=1, scatter=0, careless=0)


def test_people_who_never_err_say_what_is_shown() -> None:
    for shown, belongs in ((DISH, "yes"), (OTHER, "no"), (NOTHING, "no")):
        lines = [answers_of(f"p{n}", "IN", f"i{n}", shown, ASKED, SURE, seed=1) for n in range(40)]
        assert {one["belongs"] for one in lines} == {belongs}
        assert all(("faithfulness" in one) == (belongs == "yes") for one in lines)
        realism = np.mean([int(one["realism"]) for one in lines])
        assert realism == pytest.approx(1.8 if shown is NOTHING else 3.9, abs=0.4)


def test_an_answer_depends_on_the_person_the_item_and_the_seed() -> None:
    how = SimulatedPeople()
    words = answers_of("p", "IN", "i", DISH, ASKED, how, seed=1)
    assert words == answers_of("p", "IN", "i", DISH, ASKED, how, seed=1)
    others = [answers_of("p", "IN", f"i{n}", DISH, ASKED, how, seed=1) for n in range(30)]
    assert len({tuple(one.items()) for one in others}) > 2
    again = [answers_of("p", "IN", f"i{n}", DISH, ASKED, how, seed=1, again=True) for n in range(30)]
    assert [one["belongs"] for one in again] == [one["belongs"] for one in others]


def test_doubt_and_carelessness_come_as_often_as_they_are_told_to() -> None:
    how = SimulatedPeople(accuracy=0.7, doubt=1, careless=0)
    words = Counter(answers_of(f"p{n}", "IN", "i", DISH, ASKED, how, seed=1)["belongs"] for n in range(400))
    assert words["maybe"] == pytest.approx(120, abs=35)
    assert words["no"] == 0
    careless = SimulatedPeople(accuracy=1, careless=1)
    anything = Counter(answers_of(f"p{n}", "IN", "i", DISH, ASKED, careless, seed=1)["belongs"] for n in range(300))
    assert set(anything) == {"yes", "no", "maybe"}


def tables(countries: list[str | None]) -> tuple[pl.DataFrame, pl.DataFrame]:
    prompts = [prompt_row(f"p{n}", "t", "art", country) for n, country in enumerate(countries)]
    images = [
        image_row(f"{model}-{row['prompt_id']}-{slot}", model, row["prompt_id"]) | {"slot": slot,
            "path": "x"} for model in "ab" for row in prompts for slot in range(2)
    ]  # fmt: skip
    return pl.DataFrame(images, schema=IMAGES.schema), pl.DataFrame(prompts, schema=PROMPTS.schema)


def test_prompts_are_spread_over_countries_and_every_model_has_its_first_image() -> None:
    images, prompts = tables(["IN"] * 8 + ["JP"] * 2 + [None] * 4)
    sample = rated_sample(images, prompts, count=4, rng=np.random.default_rng(0))
    assert AUDIT_SAMPLE.problems(sample) == []
    assert Counter(sample["stratum"]) == {"IN art": 4, "JP art": 4}
    assert all(image.endswith("-0") for image in sample["image_id"])
    assert dict(sample.select("stratum", "chance").unique().iter_rows()) == {"IN art": 0.25, "JP art": 1.0}
    assert rated_sample(images, prompts, count=99, rng=np.random.default_rng(0))["prompt_id"].n_unique() == 10


def test_images_of_no_country_cannot_be_rated() -> None:
    with pytest.raises(UsageError, match="nobody can say whether these images show their country"):
        rated_sample(*tables([None]), count=4, rng=np.random.default_rng(0))
