"""The scheme audit: from mapped images to audits that scores can be corrected by."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.core.errors import UsageError
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS, CSPACE, MATCHES
from culturekit.core.tables import read_table, write_table
from culturekit.metrics.corrected.audit_gates import drawing_of
from culturekit.people.stages import ExportFiles
from culturekit.scores.corrected import score_corrected
from culturekit.scores.diversity import QvsOptions
from culturekit.verify.verify_run import verify_run
from tests.people import projects

COUNTRIES = {"IN": ("India", "Asia"), "JP": ("Japan", "Asia"), "NG": ("Nigeria", "Africa")}
IMAGES = [f"m-{n:02}" for n in range(60)]
TRUE = {image: ("IN", "JP", "NG")[n % 3] for n, image in enumerate(IMAGES)}
MAPPED = {image: "IN" if n % 10 == 1 else TRUE[image] for n, image in enumerate(IMAGES)}


def space(folder: Path, per_country: int) -> Path:
    rows: list[dict[str, Any]] = [
        {"artifact_id": f"Q{n}{code}", "qid": f"Q{n}", "name": f"dish {n}, of {name}",
         "concept": "cuisine", "subconcept": None, "country": code, "country_name": name,
         "continent": continent, "source": "wikidata", "popularity": None, "popularity_source": None, "path": []}
        for code, (name, continent) in COUNTRIES.items()
        for n in range(per_country)
    ]  # fmt: skip
    folder.mkdir()
    return write_table(folder, CSPACE, pl.DataFrame(rows, schema=CSPACE.schema))


def matches(folder: Path) -> Path:
    rows = [
        {"image_id": image, "model": "m", "prompt_id": f"p{n % 4}", "concept": "cuisine", "repeat": n // 8,
         "slot": n % 8, "rank": 1, "artifact_id": f"Q0{MAPPED[image]}", "artifact": "dish 0", "country": MAPPED[image],
         "countries": [MAPPED[image]], "continent": COUNTRIES[MAPPED[image]][1], "score": 0.5, "margin": 0.1,
         "country_margin": 0.1, "abstained": False, "method": "nearest"}
        for n, image in enumerate(IMAGES)
    ]  # fmt: skip
    folder.mkdir()
    return write_table(folder, MATCHES, pl.DataFrame(rows, schema=MATCHES.schema))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ExportFiles:
    return audited(tmp_path_factory.mktemp("audit"))


def audited(folder: Path, gold: Path | None = None) -> ExportFiles:
    rows = [projects.image_row(image, "m", "p") for image in IMAGES]
    images = projects.write_images(folder / "images", rows, concept=pl.lit("cuisine"))
    return ExportFiles([images], cspace=space(folder / "space", 20), matches=[matches(folder / "matches")], gold=gold)


def truthful(project: Path) -> Any:
    """Answer with the artifact where it is listed, else the country; every tenth picture shows nothing."""

    def answer(row: dict[str, Any], person: int | str) -> projects.Answers:
        number = int(row["item_id"][2:])
        if number % 10 == 0:
            return {"shows": "none"}
        country = TRUE[row["item_id"]]
        offered = orjson.loads(row["options"])["artifacts"]
        codes = [code for code, what in offered.items() if what["country"] == country]
        if person == 1 and codes:
            return {"shows": "artifact", "artifact": codes[-1]}  # whatever stands first
        return {"shows": "country", "country": country}

    return projects.by_key(project, answer)


def test_from_a_sample_to_a_corrected_score(tmp_path: Path, files: ExportFiles) -> None:
    projects.export(tmp_path / "project", files, "audit")
    done = projects.answer_all(tmp_path, (1, 2, 3), truthful(tmp_path / "project"), pool="experts")
    assert done.manifest.counts["quarantine"] == 0
    audits = read_table(tmp_path / "rated/audits.parquet", AUDITS)
    assert audits.height == 180
    assert set(audits["pool"]) == {"experts"}
    for row in audits.iter_rows(named=True):
        nothing = int(row["image_id"][2:]) % 10 == 0
        assert row["none_of_these"] == nothing
        assert row["country"] == (None if nothing else TRUE[row["image_id"]])
        assert row["continent"] == (None if nothing else COUNTRIES[TRUE[row["image_id"]]][1])
    assert audits.filter(annotator="1")["artifact_id"].drop_nulls().len() > 40
    table = read_table(files.matches[0], MATCHES)
    scores = score_corrected(table, audits, None, options=QvsOptions(kernels=((0.0, 1.0, 0.0),))).scores
    assert scores["value"].is_between(0, 1).all()


def test_the_mapped_artifact_comes_first_by_chance_and_answers_say_so(tmp_path: Path, files: ExportFiles) -> None:
    projects.export(tmp_path / "project", files, "audit", shortlist=8)
    key, first, places = projects.key_of(tmp_path / "project"), {}, set()
    for row in key.values():
        offered = orjson.loads(row["options"])["artifacts"]
        assert len(offered) == 8
        position = [what["choice"] for what in offered.values()].index(f"Q0{MAPPED[row['item_id']]}")
        first[row["item_id"]] = position == 0
        places.add(position)
    assert len(places) > 5
    assert 20 < sum(first.values()) < 40

    def answer(row: dict[str, Any], _: int | str) -> projects.Answers:
        return {"shows": "artifact", "artifact": f"a{1 + int(row['item_id'][2:]) % 2}"}

    projects.answer_all(tmp_path, (1,), projects.by_key(tmp_path / "project", answer))
    audits = read_table(tmp_path / "rated/audits.parquet", AUDITS)
    assert dict(audits.select("image_id", "offered_first").iter_rows()) == first
    for row in audits.iter_rows(named=True):
        assert row["as_mapped"] == (row["artifact_id"] == f"Q0{MAPPED[row['image_id']]}")


def test_what_was_mapped_to_something_unlisted_was_not_listed_first(tmp_path: Path, files: ExportFiles) -> None:
    elsewhere = pl.col("image_id").is_in(["m-04", "m-05"])  # to artifacts of another concept
    table = read_table(files.matches[0], MATCHES).with_columns(
        artifact_id=pl.when(elsewhere).then(pl.lit("Q9")).otherwise("artifact_id")
    )
    (tmp_path / "matches").mkdir()
    given = replace(files, matches=[write_table(tmp_path / "matches", MATCHES, table)])
    with pytest.raises(UsageError, match=r"artifacts that the cultural space does not have.*found 1, such as 'Q9'"):
        projects.export(tmp_path / "of-another-space", given, "audit")
    dishes = read_table(space(tmp_path / "space", 20), CSPACE)
    art = dishes.head(1).with_columns(artifact_id=pl.lit("Q9"), concept=pl.lit("art"))
    whole = write_table(tmp_path / "space", CSPACE, pl.concat([dishes, art]))
    projects.export(tmp_path / "to-rate", replace(given, cspace=whole), "audit")
    answers = projects.labelled(projects.studio_tasks(tmp_path / "to-rate"), (1,), truthful(tmp_path / "to-rate"))
    (tmp_path / "a.json").write_bytes(orjson.dumps(answers))
    projects.import_files(tmp_path / "rated", tmp_path / "to-rate", tmp_path / "a.json")
    audits = read_table(tmp_path / "rated/audits.parquet", AUDITS)
    shown = audits.filter(elsewhere).select("offered_first", "as_mapped")
    assert shown.rows() == [(False, None)] * 2  # nobody knew, it said, what stood first
    assert audits["offered_first"].null_count() == 0
    assert verify_run(tmp_path / "rated").findings == ()


def test_a_sample_keeps_the_others_out(tmp_path: Path, files: ExportFiles) -> None:
    drawn = [{"image_id": image, "model": "m", "concept": "cuisine", "prompt_id": "p", "stratum": "s", "chance": 0.1}
             for image in IMAGES[:7]]  # fmt: skip
    (tmp_path / "sample").mkdir()
    sample = write_table(tmp_path / "sample", AUDIT_SAMPLE, pl.DataFrame(drawn, schema=AUDIT_SAMPLE.schema))
    with_sample = ExportFiles(files.images, sample=sample, cspace=files.cspace, matches=files.matches)
    projects.export(tmp_path / "project", with_sample, "audit")
    assert {row["item_id"] for row in projects.key_of(tmp_path / "project").values()} == set(IMAGES[:7])
    projects.answer_all(tmp_path, (1,), truthful(tmp_path / "project"))
    answers = pl.read_parquet(tmp_path / "rated/audits.parquet")
    assert set(answers["drawing"]) == {drawing_of(read_table(sample, AUDIT_SAMPLE))}


def test_too_many_artifacts_without_matches_and_no_space_at_all_are_refused(tmp_path: Path, files: ExportFiles) -> None:
    with pytest.raises(UsageError, match="--matches"):
        projects.export(tmp_path / "a", ExportFiles(files.images, cspace=files.cspace), "audit")
    with pytest.raises(UsageError, match="--cspace"):
        projects.export(tmp_path / "b", ExportFiles(files.images), "audit")


def test_flagged_people_are_not_in_the_audits(tmp_path: Path, files: ExportFiles) -> None:
    projects.export(tmp_path / "project", files, "audit")
    right = truthful(tmp_path / "project")
    key = projects.key_of(tmp_path / "project")

    def answer(data: dict[str, Any], person: int | str) -> projects.Answers:
        if person == 3 and key[data["task"]]["kind"] == "check":
            return {"shows": "continent", "continent": "c1"}
        return dict(right(data, person))

    done = projects.answer_all(tmp_path, (1, 2, 3), answer)
    assert done.manifest.drops == {"flagged, and not in the audits": 60}
    assert set(pl.read_parquet(tmp_path / "rated/audits.parquet")["annotator"]) == {"1", "2"}


# Continents are those of the space in their order, Africa and Asia, and then the others of the world
PLACED: dict[str, tuple[projects.Answers, tuple[str | None, ...]]] = {
    "m-01": ({"shows": "not_in_list", "continent": "c1", "place": ("Kenya",)}, ("KE", "Africa", None)),
    "m-02": ({"shows": "not_in_list", "continent": "c1", "place": (" KENYA.",)}, ("KE", "Africa", None)),
    "m-03": ({"shows": "not_in_list", "continent": "c2", "place": ("kenya",)}, ("KE", "Africa", None)),
    "m-04": ({"shows": "not_in_list", "continent": "c3", "place": ("Sápmi",)}, ("sápmi", "Europe", None)),
    "m-05": ({"shows": "not_in_list", "continent": "c3"}, (None, "Europe", "not in the list")),
    "m-06": ({"shows": "cannot_tell"}, (None, None, "cannot tell")),
    "m-07": ({"shows": "none"}, (None, None, "no culture shown")),
    "m-08": ({"shows": "not_in_list", "continent": "c1", "place": ("Japan",)}, ("JP", "Asia", None)),
}


def test_countries_outside_the_space_and_what_none_means(tmp_path: Path, files: ExportFiles) -> None:
    projects.export(tmp_path / "project", files, "audit")

    def answer(row: dict[str, Any], _: int | str) -> projects.Answers:
        return PLACED.get(row["item_id"], ({"shows": "country", "country": "IN"}, ()))[0]

    done = projects.answer_all(tmp_path, (1,), projects.by_key(tmp_path / "project", answer))
    assert done.manifest.counts["quarantine"] == 0
    answers = {row["image_id"]: row for row in read_table(tmp_path / "rated/audits.parquet", AUDITS).to_dicts()}
    for image, (_, (country, continent, means)) in PLACED.items():
        row = answers[image]
        assert (row["country"], row["continent"], row["none_means"]) == (country, continent, means)
        assert row["none_of_these"] == (means is not None)
    assert answers["m-09"]["none_means"] is None
