"""A sample of a cultural space that people judge: how it is drawn, what follows, and how a release carries it."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import polars as pl
import pytest

from culturekit.builders.space.checked import OTHERWISE, UNCHECKED
from culturekit.builders.space.cspace import ReleaseOptions, release_stage
from culturekit.core.errors import UsageError
from culturekit.core.schemas import KEPT, REMOVED, SPACE_CHECK, SPACE_SAMPLE, VERDICTS
from culturekit.core.tables import read_table, write_table
from culturekit.kg.concepts import Concept, Root
from culturekit.kg.countries import countries
from culturekit.people.answers import journal_in
from culturekit.people.space_check import CELL, UNIT, chances, check_rows, draw_sample, sample, score
from culturekit.release.card_build import card_stage, check_card
from culturekit.trail.space_causes import space_diff_stage
from tests.builders.spaces import rows_of
from tests.conftest import stage_here
from tests.people.projects import key_of
from tests.people.serving import desk_of, entry

COUNTRIES = ("BR", "JP", "NG")
CUISINE = Concept(concept="cuisine", hops=2, roots=(Root(qid="Q1000", label="dish"),), countries=COUNTRIES)
WRONG = {"keep": 0.06, "remove": 0.1, "review": 0.5}


def world(seed: int) -> pl.DataFrame:
    """Cells of very different sizes, in which verdicts err more or less often."""
    rng, rows = np.random.default_rng(seed), list[tuple[object, ...]]()
    for concept in ("art", "cuisine"):
        for country in COUNTRIES:
            for verdict, size in (("keep", 700), ("remove", 400), ("review", 150)):
                many = int(size * rng.lognormal(0, 0.8)) + 2
                errs = rng.random(many) < min(WRONG[verdict] * rng.lognormal(0, 0.5), 0.9)
                rows += [
                    (concept, f"Q{len(rows) + number}", country, verdict, f"R{number % 3}", 0.5 + number % 50 / 100,
                     float(err != (verdict == "keep")))
                    for number, err in enumerate(errs)
                ]  # fmt: skip
    columns = ["concept", "qid", "country", "verdict", "root", "confidence", "truth"]
    return pl.DataFrame(rows, schema=columns, orient="row")


def test_draws_are_shared_out_by_the_roots_of_sizes_and_none_is_drawn_beyond_what_there_is() -> None:
    sizes = np.array([1, 4, 100, 10_000])
    chance = chances(sizes, 300)
    assert (sizes * chance).sum() == pytest.approx(300)
    assert chance.max() == 1.0
    assert (sizes * chance)[3] / (sizes * chance)[2] == pytest.approx(10)
    assert (chances(sizes, 10**6) == 1).all()


@pytest.mark.parametrize("seed", range(3))
def test_a_sample_has_the_wanted_size_spreads_over_cells_and_roots_and_says_its_chances(seed: int) -> None:
    units = world(seed).drop("truth")
    sample = draw_sample(units, {"keep": 120, "remove": 60, "review": 0}, rng=np.random.default_rng(seed))
    counts = Counter(sample["verdict"])
    assert abs(counts["keep"] - 120) <= 1
    assert abs(counts["remove"] - 60) <= 1
    assert counts["review"] == 0
    drawn = sample.filter(verdict="keep").group_by(CELL).agg(pl.len(), pl.col("chance").first())
    sizes = units.filter(verdict="keep").group_by(CELL).len("units").join(drawn, on=CELL)
    assert ((sizes["len"] - sizes["chance"] * sizes["units"]).abs() <= 1).all()
    by_root = sample.filter(verdict="keep").group_by(*CELL, "root").len()
    assert by_root.height == 3 * drawn.height


@pytest.mark.parametrize("draws", [pytest.param(40), pytest.param(200, marks=pytest.mark.slow)])
def test_intervals_hold_the_truth_in_93_of_100_draws(draws: int) -> None:
    held: dict[tuple[str, int], list[bool]] = {}
    for draw in range(draws):
        units = world(draw)
        cells = units.group_by(*CELL, "verdict").agg(units=pl.len().cast(pl.UInt32))
        wanted = {"keep": 150, "remove": 100, "review": 50}
        drawn = draw_sample(units.drop("truth"), wanted, rng=np.random.default_rng(draw))
        shown = drawn.join(units.select(*UNIT, people="truth"), on=UNIT, how="left", maintain_order="left")
        for row in check_rows(shown, cells):
            known = truth(units, row["measure"], row["concept"], row["country"])
            level = (row["concept"] is not None) + (row["country"] is not None)
            inside = row["ci_low"] - 1e-9 <= known <= row["ci_high"] + 1e-9
            held.setdefault((row["measure"], level), []).append(inside)
    assert len(held) == 4 * 3
    shares = {key: float(np.mean(inside)) for key, inside in held.items()}
    assert min(shares.values()) >= (0.93 if draws == 200 else 0.9), shares


def truth(units: pl.DataFrame, measure: str, concept: str | None, country: str | None) -> float:
    where = {name: value for name, value in (("concept", concept), ("country", country)) if value is not None}
    if measure == "artifacts":
        return float(units.filter(**where)["truth"].sum())
    word = {"wrong keeps": "keep", "wrong removes": "remove", "undecided that belong": "review"}[measure]
    share = float(units.filter(**where, verdict=word)["truth"].mean())  # type: ignore[arg-type]
    return 1 - share if word == "keep" else share


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """90 dishes of which every tenth keep is wrong, one kept for two countries, and 30 that the judge removed."""
    qids = {iso: countries()[iso].qids[0] for iso in COUNTRIES}
    same = {"concept": "cuisine", "roots": ["Q1000"], "path": ["Q1000"], "reason": "judge m"}
    rows = [
        {**same, "qid": f"Q{n}", "label": f"dish {n}", "country_qids": [qids[COUNTRIES[n % 3]]],
         "verdict": "keep" if n <= 60 else "review" if n <= 90 else "remove"}
        for n in range(1, 121)
    ]  # fmt: skip
    rows[0]["country_qids"] = [qids["BR"], qids["JP"]]
    write_table(tmp_path, KEPT, rows_of(KEPT, *rows[:90]).sort(KEPT.key))
    write_table(tmp_path, REMOVED, rows_of(REMOVED, *rows[90:]).sort(REMOVED.key))
    return tmp_path / "kept.parquet"


def answered(project: Path, people: int) -> None:
    """Let people find every tenth keep, and every tenth removed, wrong; of numbers that end in 5 nobody can tell."""
    rows = read_table(project / f"{SPACE_SAMPLE.name}.parquet", SPACE_SAMPLE).to_dicts()
    answers = {}
    for row in rows:
        number = int(row["qid"][1:])
        yes = (number % 10 != 0) if row["verdict"] == "keep" else number % 10 == 0
        word = "open" if number % 10 == 5 else "accept" if yes else "reject"
        answers[" ".join(row[name] for name in UNIT)] = word
    fill_in(project, answers, [f"person {number}" for number in range(people)])


def fill_in(project: Path, decisions: Mapping[str, str], people: Sequence[str]) -> None:
    """Let people take sheets from the desk, in turn, until nothing is left for them."""
    key = key_of(project)
    with desk_of(project, journal_in(project)) as desk:
        waiting = list(people)
        while waiting:
            person = waiting.pop(0)
            sheet = desk.begin({"annotator": person})["sheet"]
            for task in () if sheet is None else desk.sheets[sheet]:
                given = entry(project, sheet, task, person, {"decision": decisions[key[task]["item_id"]]})
                for one in given["annotations"][0]["result"]:
                    one["to_name"] = "subject"
                desk.take(given)
            waiting += [person] if sheet else []


def test_a_sample_is_judged_scored_and_carried_by_release_card_croissant_and_diff(judged: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="annotate serve"):
        score.stage(tmp_path / "to-check")
    manifest = stage_here(sample.stage(judged, keeps=40, removes=20, undecided=12), tmp_path / "to-check").manifest
    assert manifest.counts["units"] == 121
    form = (tmp_path / "to-check/hand-out/form.html").read_text(encoding="utf-8")
    assert "judge m" not in form
    answered(tmp_path / "to-check", 2)
    scored = stage_here(score.stage(tmp_path / "to-check"), tmp_path / "checked").manifest
    table = read_table(tmp_path / "checked/space_check.parquet", SPACE_CHECK)
    of_all = table.filter(pl.col("concept").is_null(), pl.col("country").is_null())
    whole = {row["measure"]: row for row in of_all.to_dicts()}
    keeps = whole["wrong keeps"]
    assert keeps["ci_low"] < 6 / 54 < keeps["ci_high"]
    assert keeps["answered"] < keeps["drawn"] <= 41
    assert whole["artifacts"]["judged"] == 61
    assert scored.notes["agreement of people"]["pairs that agree"] == 1
    assert any(line.startswith("wrong keeps: ") for line in scored.notes["summary"])

    options, check = ReleaseOptions((CUISINE,)), tmp_path / "checked/space_check.parquet"
    stage_here(release_stage([judged], options, check), tmp_path / "with/cspace")
    stage_here(release_stage([judged], options), tmp_path / "without/cspace")
    hand = Path(__file__).parents[2] / "culturekit/release/hand_written/cspace"
    for name in ("with", "without"):
        stage_here(card_stage(tmp_path / name / "cspace", hand), tmp_path / name / "card")
    pages = {name: (tmp_path / name / "card/README.md").read_text(encoding="utf-8") for name in ("with", "without")}
    assert UNCHECKED in pages["without"]
    assert re.search(r"\| wrong keeps \| all \| .* % \\\(.* to .*\\\) \| \d+ of 61 \|", pages["with"])
    croissant = orjson.loads((tmp_path / "with/card/croissant.json").read_bytes())
    assert any(text.startswith("wrong keeps, BR: ") for text in croissant["rai:dataAnnotationAnalysis"])
    assert "space_check" in {each["@id"] for each in croissant["recordSet"]}
    assert {each.code for each in check_card(tmp_path / "with/card")} <= {"hand-empty"}
    notes = stage_here(space_diff_stage(*(tmp_path / name / "cspace" for name in ("without", "with"))),
                       tmp_path / "diff").manifest.notes  # fmt: skip
    assert any(re.fullmatch(r"wrong keeps, all: not checked -> .*", line) for line in notes["checks"])

    kept = read_table(judged, KEPT).with_columns(label=pl.col("label") + "!")
    other = write_table(tmp_path / "with", KEPT, kept)
    done = stage_here(replace(release_stage([other], options, check), name="others"), tmp_path / "others").manifest
    assert done.notes["checked"] == OTHERWISE


def test_how_sure_the_judge_was_spreads_a_sample_where_it_is_known(judged: Path, tmp_path: Path) -> None:
    rows = read_table(judged, KEPT).filter(verdict="keep")
    lines = [
        ("cuisine", row["qid"], iso, "keep", "ok", 0.5 + int(row["qid"][1:]) / 200, "a dish")
        for row in rows.to_dicts() for iso in COUNTRIES if countries()[iso].qids[0] in row["country_qids"]
    ]  # fmt: skip
    write_table(tmp_path, VERDICTS, pl.DataFrame(lines, schema=VERDICTS.schema, orient="row").sort(VERDICTS.key))
    stage_here(sample.stage(judged, keeps=30, removes=0, undecided=0), tmp_path / "to-check")
    drawn = read_table(tmp_path / "to-check/space_sample.parquet", SPACE_SAMPLE)
    for part in drawn.partition_by("country"):
        assert (part["confidence"] < 0.65).sum() == pytest.approx(part.height / 2, abs=1)
