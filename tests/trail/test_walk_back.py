"""Scores walked back to images, prompts, lines of the dump, answers of people and replies."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.cli.trace_command import trail_lines
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.inputs import Files, upstream
from culturekit.core.schemas import AUDITS, MATCHES
from culturekit.core.tables import read_table, save_parquet, write_table
from culturekit.metrics.statistics.intervals import Interval
from culturekit.report.report_stage import folders_of
from culturekit.scores.diversity import Correction, QvsOptions
from culturekit.scores.family import family_stage, scored, statistic_row
from culturekit.scores.qvs import qvs
from culturekit.trail import evidence
from culturekit.trail.walk_back import find_score, walk_back, walk_images
from tests.command_line import culturekit
from tests.conftest import stage_here
from tests.verify.forging import change_table, reseal
from tests.verify.test_command import made

COUNTRY = "metric=vs&model=broad&concept=art&kernel=country"


def test_a_score_is_found_by_conditions_by_row_and_in_any_folder(small_run: Path) -> None:
    folder, row = find_score(f"{small_run}?{COUNTRY}")
    assert folder == small_run / "scores"
    for reference in (f"{small_run}#{row['row']}", f"{small_run}/scores/scores.parquet#{row['row']}"):
        assert find_score(reference)[1] == row
    assert json.loads(row["params"])["labels"] == "mapped"
    assert json.loads(find_score(f"{small_run}?{COUNTRY}&labels=truth")[1]["params"])["labels"] == "truth"


@pytest.mark.parametrize(("reference", "message"), [
    ("RUN#99999", "no such row"),
    ("RUN#x", "no such row"),
    ("RUN?metric=vs", "must fit one score"),
    ("RUN?metric=fame", "expected metric quality or qvs or vs, found metric=fame"),
    ("RUN?metric=vs&colour=red", "colour left out: scores have no such column, found colour=red"),
    ("RUN?metric=quality&kernel=country", "conditions that hold for one score together"),
    ("RUN/graph#1", "there are no scores"),
])  # fmt: skip
def test_a_reference_that_fits_nothing_or_too_much_is_said(small_run: Path, reference: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_score(reference.replace("RUN", str(small_run)))


def test_the_walk_ends_at_the_line_of_the_dump(small_run: Path) -> None:
    trail = walk_back(*find_score(f"{small_run}?{COUNTRY}"))
    assert len(trail.batch) == 8
    assert trail.image_id in trail.batch
    assert trail.image.is_file()
    assert trail.prompt == "Image of traditional clothing"
    assert trail.people is None, "it is not corrected"
    assert not [line for line in trail_lines(trail) if line.startswith(("people", "said", "speaks"))]
    assert [near.rank for near in trail.neighbours] == [1, 2, 3, 4, 5]
    assert trail.evidence is not None
    assert trail.dump_line is not None
    line = json.loads(trail.dump_line)
    assert line["id"] == trail.neighbours[0].artifact_id == trail.evidence.path[-1].qid
    for before, node in zip(trail.evidence.path, trail.evidence.path[1:], strict=False):
        assert any(said.value == before.qid and said.property in {"P31", "P279"} for said in node.said)
    stated = {
        value["mainsnak"]["datavalue"]["value"]["id"] for p in ("P495", "P17") for value in line["claims"].get(p, [])
    }
    assert {said.value for said in trail.evidence.countries} == stated


def test_the_line_of_a_dump_too_large_to_hash_is_held_against_the_graph(
    run_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "HASHED", 0)
    whole = walk_back(*find_score(f"{run_copy}?{COUNTRY}"))
    assert whole.dump_line is not None
    other = whole.dump_line.replace('"rank":"normal"', '"rank":"preferred"', 1)
    monkeypatch.setattr(evidence, "read_line", lambda *_, **__: other)
    with pytest.raises(IntegrityError, match="the dump is not the one that the graph was made from"):
        walk_back(*find_score(f"{run_copy}?{COUNTRY}"))


def test_every_image_of_a_score_can_be_walked(small_run: Path) -> None:
    folder, row = find_score(f"{small_run}?{COUNTRY}")
    for image_id in walk_back(folder, row).batch:
        assert walk_back(folder, row, image_id=image_id).image_id == image_id
    with pytest.raises(UsageError, match="not behind that score"):
        walk_back(folder, row, image_id="nothing")


def test_a_culture_free_image_has_no_artifact_in_truth_and_one_by_mapping(small_run: Path) -> None:
    about = "metric=vs&model=empty&concept=art&kernel=country"
    truth = walk_back(*find_score(f"{small_run}?{about}&labels=truth"))
    assert (truth.neighbours, truth.evidence, truth.dump_line) == ((), None, None)
    assert any("culture-free" in line for line in trail_lines(truth))
    assert walk_back(*find_score(f"{small_run}?{about}")).evidence is not None


def test_a_quality_score_is_walked_too(small_run: Path) -> None:
    trail = walk_back(*find_score(f"{small_run}?metric=quality&model=broad&concept=art"))
    text = "\n".join(trail_lines(trail))
    assert text.startswith("score      quality = 0.")
    assert "None" not in text.splitlines()[1]
    assert "wikidata-sample.json.gz, line" in text


def test_what_comes_after_a_change_is_not_shown_as_if_it_came_of_it(run_copy: Path) -> None:
    assert folders_of(run_copy).models
    change_table(run_copy / "matches-broad/matches.parquet", lambda table: table.with_columns(abstained=True))
    reseal(run_copy / "matches-broad")  # as a run of a changed recipe that was stopped there leaves it
    with pytest.raises(IntegrityError, match=r"is not the one that \S+ was made from.*Run the recipe again"):
        folders_of(run_copy)


def test_a_tampered_image_or_table_stops_the_walk(run_copy: Path) -> None:
    trail = walk_back(*find_score(f"{run_copy}?{COUNTRY}"))
    trail.image.write_bytes(trail.image.read_bytes() + b"x")
    with pytest.raises(IntegrityError, match="not the one its table describes"):
        walk_back(*find_score(f"{run_copy}?{COUNTRY}"))
    path = run_copy / "matches-broad/matches.parquet"
    save_parquet(read_table(path, MATCHES).with_columns(score=pl.lit(0.5, pl.Float32)), path)
    with pytest.raises(IntegrityError, match="is not the one that scores was made from"):
        walk_back(*find_score(f"{run_copy}?{COUNTRY}"))


def test_a_missing_input_is_named(run_copy: Path) -> None:
    with pytest.raises(UsageError, match="no input 'fame'; expected"):
        upstream(run_copy / "cspace", "fame")
    (run_copy / "filter").rename(run_copy / "moved")
    with pytest.raises(IntegrityError, match="no longer where its run found it"):
        upstream(run_copy / "cspace", "kept")


def test_a_run_that_was_moved_still_finds_what_lay_outside_it(run_copy: Path, tmp_path: Path) -> None:
    before = upstream(run_copy / "graph", "dump-0")
    far = tmp_path / "a" / "long" / "way"
    far.mkdir(parents=True)
    moved = Path(shutil.move(run_copy, far))
    assert upstream(moved / "graph", "dump-0") == before
    assert walk_back(*find_score(f"{moved}?{COUNTRY}")).dump_line is not None


def test_several_images_are_walked_with_margins_and_places(small_run: Path) -> None:
    trails = walk_images(*find_score(f"{small_run}?{COUNTRY}"), count=3)
    assert len({trail.image_id for trail in trails}) == 3
    assert len({trail.batch for trail in trails}) == 3
    matches = read_table(small_run / "matches-broad/matches.parquet", MATCHES)
    assert trails[0].behind.images == matches["image_id"].n_unique()
    for trail in trails:
        own = matches.filter(pl.col("image_id") == trail.image_id).sort("rank")
        assert [near.margin for near in trail.neighbours] == own["margin"].to_list()
        assert [near.country_margin for near in trail.neighbours] == own["country_margin"].to_list()
        assert all(near.place is not None and near.place.offset >= 0 for near in trail.neighbours)
        assert trail.dump_place == trail.neighbours[0].place
        assert json.loads(trail.dump_line or "")["id"] == trail.neighbours[0].artifact_id


def test_a_cell_of_the_country_table_is_walked(small_run: Path, tmp_path: Path) -> None:
    (tmp_path / "asked").mkdir()
    prompts = tmp_path / "asked/prompts.parquet"
    table = pl.read_parquet(small_run / "prompts/prompts.parquet")
    table.with_columns(
        country=pl.when(pl.col("kind") == "underspecified").then(pl.lit("JP")).otherwise("country")
    ).write_parquet(prompts)
    matches = Files([small_run / "matches-broad/matches.parquet"])
    stage = qvs.stage(matches, prompts=prompts, options=QvsOptions(within="country"))
    stage_here(stage, tmp_path / "scores")
    trail = walk_back(*find_score(f"{tmp_path}/scores?metric=vs&model=broad&concept=art&country=JP"))
    assert (trail.score["country"], trail.behind.images, trail.behind.prompts) == ("JP", 24, 1)
    assert trail.dump_line is not None


def test_the_command_tells_several_trails(small_run: Path) -> None:
    told = culturekit("trace", f"{small_run}?{COUNTRY}", "--images", "2", ends=0)
    assert told.stdout.count("nearest 1  ") == 2
    trail = walk_back(*find_score(f"{small_run}?{COUNTRY}"))
    near = replace(trail.neighbours[0], margin=0.5, country_margin=0.25)
    lines = trail_lines(replace(trail, neighbours=(near,)))
    assert any("lead +0.5000, over other countries +0.2500" in line for line in lines)
    data = json.loads(culturekit("trace", f"{small_run}?{COUNTRY}", "--images", "3", "--json").stdout)
    assert len(data["more"]) == 2
    assert {"margin", "country_margin", "score", "place"} <= set(data["more"][0]["neighbours"][0])
    culturekit("trace", f"{small_run}?{COUNTRY}", "--images", "2", "--image", "x", ends=2)


def test_a_score_of_no_image_says_what_is_walked_back(tmp_path: Path) -> None:
    (tmp_path / "told.csv").write_text("x\n", encoding="utf-8")
    answer = Interval(0.5, 0.4, 0.6, 8, "these")
    row = statistic_row("krippendorff_alpha", model="m", benchmark="b", concept=None, country=None, group=None,
                        answer=answer, params={})  # fmt: skip
    stage_here(
        family_stage("agreement", {"told": tmp_path / "told.csv"}, {}, lambda _: scored([row])), tmp_path / "alone"
    )
    said = culturekit("trace", f"{tmp_path}/alone#0", ends=2).stderr
    assert "walked back to images, replies of judges, people's answers, prompts and pages" in said


def answers(matches: pl.DataFrame, folder: Path) -> Path:
    """Two people look at every second image: one says what the mapping says, the other that none is shown."""
    rows = [
        {"image_id": row["image_id"], "pool": "people", "annotator": person, "none_of_these": person == "ben"}
        | {name: row[name] if person == "ann" else None for name in ("artifact_id", "country", "continent")}
        for row in matches.sort("image_id").gather_every(2).to_dicts()
        for person in ("ann", "ben")
    ]
    folder.mkdir()
    return write_table(folder, AUDITS, pl.DataFrame(rows, schema=AUDITS.schema))


@pytest.mark.parametrize(("weights", "level"), [("[0,1,0]", "country"), ("[0,0,1]", "artifact_id")])
def test_a_corrected_score_leads_to_answers_weights_and_images(
    small_run: Path, tmp_path: Path, weights: str, level: str
) -> None:
    path = small_run / "matches-broad/matches.parquet"
    nearest = read_table(path, MATCHES).filter(pl.col("rank") == 1)
    audits = answers(nearest, tmp_path / "answers")
    stage = qvs.stage(Files([path]), audits=Files([audits]), correction=Correction(required=False))
    folder = made(stage, tmp_path / "scores")
    corrected = {
        "metric": "vs", "model": "broad", "concept": "art", "country": None, "group": None, "value": 0.5, "n": 24,
        "ci_low": 0.4, "ci_high": 0.6, "params": f'{{"labels":"corrected","weights":{weights}}}',
    }  # fmt: skip
    trail = walk_back(folder, corrected)
    people = trail.people
    assert people is not None
    assert set(people.weights.values()) == {nearest.height / (nearest.height / 2)}
    assert sum(cell.images for cell in people.cells) == nearest.height
    mapped = dict(nearest.select("image_id", level).iter_rows())
    for cell in people.cells:
        assert {mapped[image] for image in cell.audited} <= {cell.label}
        assert cell.images == list(mapped.values()).count(cell.label)
        if cell.audited:
            assert dict(cell.said) == {cell.label: len(cell.audited), "no culture shown": len(cell.audited)}
    assert trail.image_id in people.answers, "an image that people saw comes first"
    lines = list(trail_lines(trail))
    assert any(line.startswith("said       ann (people): Q") for line in lines)
    assert "said       ben (people): no culture shown" in lines
    assert any(line.startswith("speaks for 2.0 images") for line in lines)
    unseen = next(image for image in mapped if image not in people.answers)
    assert not [line for line in trail_lines(walk_back(folder, corrected, image_id=unseen)) if line.startswith("said")]
