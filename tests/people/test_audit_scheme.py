"""The scheme audit: from mapped images to audits that scores can be corrected by."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import AUDIT_SAMPLE, AUDITS, CSPACE, MATCHES
from culturekit.core.tables import read_table, write_table
from culturekit.metrics.corrected.audit_gates import drawing_of, gold_answers
from culturekit.people.stages import ExportFiles
from culturekit.people.tasks import Quotas
from culturekit.scores.corrected import score_corrected
from culturekit.scores.diversity import QvsOptions
from culturekit.verify.verify_run import verify_run
from tests.people import projects
from tests.people.projects import (
    Answers,
    answer_all,
    desk_of,
    entry,
    export,
    form_tasks,
    image_row,
    key_of,
    write_images,
)

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


GOLD = {f"r-{n:02}": "Q0JP" if n % 2 else None for n in range(14)}  # Half show a dish of Japan, half no culture


def known_pictures(folder: Path, shows: dict[str, str | None]) -> Path:
    rows = [projects.image_row(image, "photograph", "p") for image in shows]
    return projects.write_images(folder, rows, truth_artifact_id=pl.Series(list(shows.values()), dtype=pl.String))


@pytest.fixture(scope="module")
def with_gold(tmp_path_factory: pytest.TempPathFactory) -> ExportFiles:
    folder = tmp_path_factory.mktemp("gold")
    return audited(folder, known_pictures(folder / "gold", GOLD))


def listed_pictures(folder: Path, rows: list[str]) -> Path:
    """List pictures in a CSV file as a person would: files beside it, names of artifacts, names of countries."""
    projects.write_images(folder, [projects.image_row(str(number), "photo", "p") for number in range(len(rows))])
    lines = [f"files/photo-{number}.png,{shows}" for number, shows in enumerate(rows)]
    (folder / "known.csv").write_text("\n".join(["image,artifact,country", *lines]) + "\n", encoding="utf-8")
    return folder / "known.csv"


def answering(project: Path, wrong: int) -> Any:
    """Say what pictures show; a person names India of the first gold items of the key."""
    mistaken = {image for image in sorted(GOLD)[:wrong] if GOLD[image] is not None}

    def answer(row: dict[str, Any], _: int | str) -> projects.Answers:
        if row["kind"] != "gold":
            return {"shows": "country", "country": TRUE[row["item_id"]]}
        if GOLD[row["item_id"]] is None:
            return {"shows": "none"}
        return {"shows": "country", "country": "IN" if row["item_id"] in mistaken else "JP"}

    return projects.by_key(project, answer)


def test_each_sheet_has_ten_that_look_like_the_others(tmp_path: Path, with_gold: ExportFiles) -> None:
    projects.export(tmp_path / "project", with_gold, "audit", per_sheet=20)
    key = projects.key_of(tmp_path / "project")
    content = projects.form_tasks(tmp_path / "project")
    names = [task["task"] for task in content["tasks"]]
    for sheet in content["sheets"]:
        assert sum(key[names[number]]["kind"] == "gold" for number in sheet["tasks"]) == 10
    asked = {row["item_id"] for row in key.values() if row["kind"] == "gold"}
    assert asked == set(GOLD)  # the sheets go round all of them
    shown = {task["data"]["task"]: task["data"] for task in projects.studio_tasks(tmp_path / "project")}
    plain, gold = ([shown[name] for name in key if key[name]["kind"] == kind] for kind in ("item", "gold"))
    assert {tuple(data) for data in gold} == {tuple(data) for data in plain}
    assert {len(data["artifacts"]) for data in gold} == {len(data["artifacts"]) for data in plain}
    assert not any(name in str(data) for data in gold for name in (*GOLD, "gold", "photograph"))


def test_answers_to_them_stand_beside_what_they_show_and_hold_the_rater(tmp_path: Path, with_gold: ExportFiles) -> None:
    projects.export(tmp_path / "project", with_gold, "audit")
    done = projects.answer_all(tmp_path, (1,), answering(tmp_path / "project", wrong=4))
    assert done.manifest.counts["quarantine"] == 0
    audits = read_table(tmp_path / "rated/audits.parquet", AUDITS)
    gold = audits.filter("gold")
    assert audits.height == len(IMAGES) + gold.height
    assert set(gold["image_id"]) <= set(GOLD)
    for row in gold.iter_rows(named=True):
        assert row["known_artifact_id"] == GOLD[row["image_id"]]
        assert row["known_country"] == ("JP" if GOLD[row["image_id"]] else None)
        assert row["known_continent"] == ("Asia" if GOLD[row["image_id"]] else None)
    assert audits.filter(~pl.col("gold"))["known_country"].null_count() == len(IMAGES)
    assert gold["offered_first"].null_count() == gold.height  # nothing was mapped to what stands first
    ratings = pl.read_parquet(tmp_path / "rated/annotations.parquet")
    assert set(ratings["item_id"]) == set(IMAGES)
    assert verify_run(tmp_path / "rated").exit_code == 0
    options = QvsOptions(kernels=((0.0, 1.0, 0.0),))
    table = read_table(with_gold.matches[0], MATCHES)
    held = score_corrected(table, audits, None, options=options).scores
    alone = score_corrected(table, audits.filter(~pl.col("gold")), None, options=options).scores
    assert "one rater" in alone["params"][0]
    assert "one rater" not in held["params"][0]
    assert held["value"][0] < alone["value"][0]


def test_known_pictures_that_cannot_hold_anybody_are_refused(tmp_path: Path, with_gold: ExportFiles) -> None:
    unreadable = listed_pictures(tmp_path / "known", [","] * 10)
    for picture in (tmp_path / "known/files").iterdir():
        picture.write_text("name,concept\n", encoding="utf-8")
    few = known_pictures(tmp_path / "few", dict(list(GOLD.items())[:9]))
    same = known_pictures(tmp_path / "same", {"m-03": "Q0JP", **GOLD})
    for gold, says in (
        (few, r"too few items are known.*at least 10.*found 9"),
        (same, r"a gold picture is one of the images to judge.*'m-03'"),
        (with_gold.images[0], "a gold picture is one of|truth_artifact_id"),
        (unreadable, "no gold picture can be read.*10 that cannot, such as"),
    ):
        with pytest.raises(UsageError, match=says):
            projects.export(tmp_path / "out", replace(with_gold, gold=gold), "audit")


# By name, by id, the country alone, one that is not in the space, and no culture
LISTED = ['"dish 0, of Japan",Japan', "Q1JP,", ",NG", ",France", ","]
MEANT = [
    ("Q0JP", "JP", "Asia"), ("Q1JP", "JP", "Asia"), (None, "NG", "Africa"), (None, "FR", "Europe"), (None, None, None),
]  # fmt: skip


def test_a_list_says_what_pictures_show_and_another_picture_is_another_form(
    tmp_path: Path, with_gold: ExportFiles
) -> None:
    mine = replace(with_gold, gold=listed_pictures(tmp_path / "mine", LISTED * 3))
    projects.export(tmp_path / "project", mine, "audit")
    known = {f"files/photo-{number}.png": MEANT[number % 5] for number in range(15)}

    def answer(row: dict[str, Any], _: int | str) -> projects.Answers:
        country = known[row["item_id"]][1] if row["kind"] == "gold" else TRUE[row["item_id"]]
        if country == "FR":
            return {"shows": "not_in_list", "place": ("France",)}
        return {"shows": "country", "country": country} if country else {"shows": "none"}

    projects.answer_all(tmp_path, (1,), projects.by_key(tmp_path / "project", answer))
    audits = read_table(tmp_path / "rated/audits.parquet", AUDITS)
    gold = audits.filter("gold").sort("image_id")
    assert gold.height >= 10
    labels = gold.select("known_artifact_id", "known_country", "known_continent").rows()
    assert labels == [known[image] for image in gold["image_id"]]
    assert (gold["country"].fill_null("") == gold["known_country"].fill_null("")).all()
    raters = gold["annotator"].unique()
    countries = gold_answers(audits, raters, "country")
    assert (countries["asked"] == countries["right"]).all()
    assert countries["asked"].sum() == gold.height
    # Of a picture whose country alone is known nobody can be wrong about the artifact.
    assert gold_answers(audits, raters, "artifact_id")["asked"].sum() == sum(
        known[image][1] is None for image in gold["image_id"]
    )
    picture = tmp_path / "mine/files/photo-0.png"
    picture.write_bytes((tmp_path / "mine/files/photo-1.png").read_bytes())
    with pytest.raises(UsageError, match="gold-0"):
        projects.export(tmp_path / "project", mine, "audit")


def test_a_list_that_says_something_else_is_refused_with_every_line(tmp_path: Path, with_gold: ExportFiles) -> None:
    rows = ["no such dish,", '"dish 0, of Japan",Nigeria', ",Atlantis", ","]
    listed = listed_pictures(tmp_path / "mine", rows)
    (listed.parent / "files/photo-3.png").unlink()
    with pytest.raises(ConfigError) as error:
        projects.export(tmp_path / "project", replace(with_gold, gold=listed), "audit")
    assert [problem.line for problem in error.value.problems] == [2, 3, 4, 5]
    shown = str(error.value)
    assert "the space has no artifact 'no such dish'" in shown
    assert "the space has no artifact 'dish 0, of Japan' of Nigeria" in shown
    assert "unknown country 'Atlantis'" in shown
    assert "no file 'files/photo-3.png' beside the list" in shown
    (tmp_path / "other.csv").write_text("picture,shows\na.png,b\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"expected columns image, artifact, country"):
        projects.export(tmp_path / "b", replace(with_gold, gold=tmp_path / "other.csv"), "audit")


KNOWN = [f"k{n}" for n in range(6)]
ITEMS = [f"i{n}" for n in range(8)]


def write_files(folder: Path, scheme: str) -> ExportFiles:
    """Write items of a form, and six of which the right answers are known."""
    images = write_images(folder / "images", [image_row(name, "m", "p") for name in (*ITEMS, *KNOWN)])

    def rows(names: list[str], **right: str) -> list[dict[str, Any]]:
        return [{"item_id": name, "image_id": name, "reference_id": name, "first_id": ITEMS[0], "second_id": ITEMS[1],
                 "object": "car", "region": "Africa", **right} for name in names]  # fmt: skip

    right = {"similar": "first", "shown": "reference|first"} if scheme == "inclusion_task1" else {"obj": "nm"}
    pl.DataFrame(rows(ITEMS)).write_csv(folder / "items.csv")
    pl.DataFrame(rows(KNOWN, **right)).write_csv(folder / "known.csv")
    return ExportFiles([images], items=folder / "items.csv", gold=folder / "known.csv")


def right_of(row: dict[str, Any], scheme: str, *, right: bool = True) -> Answers:
    """Answer as is right of the known items, or not."""
    if scheme == "inclusion_task2":
        return {"obj": "nm"} if right else {"obj": "ym", "object_regions": ["af"], "background_regions": ["na"]}
    where = {name: str(number) for number, name in enumerate(row["places"], 1)}
    shown = sorted([where["reference"], where["first"]])
    chosen = where["first" if right else "second"]
    return {"shown": shown, "similar": chosen, "confidence": "low", "appealing": chosen}


@pytest.mark.parametrize("scheme", ["inclusion_task1", "inclusion_task2"])
def test_answers_count_from_those_who_passed(tmp_path: Path, scheme: str) -> None:
    """Of a trial of four Ana has three right, Bo two; Cy takes none. Two more known items are gold, unmarked."""
    export(tmp_path / "project", write_files(tmp_path, scheme), scheme, quotas=Quotas(3), checks=0, repeats=0,
           trial=4, gold=2)  # fmt: skip
    key = key_of(tmp_path / "project")
    kinds = [row["kind"] for row in key.values()]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"item": 8, "trial": 4, "gold": 2}
    trial = sorted(task for task, row in key.items() if row["kind"] == "trial")

    def answer(data: dict[str, Any], person: int | str) -> Answers | None:
        row, wrong = key[data["task"]], {"ana": trial[:1], "bo": trial[:2], "cy": []}[str(person)]
        if person == "cy" and row["kind"] == "trial":
            return None
        return right_of(row, scheme, right=data["task"] not in wrong)

    taken = answer_all(tmp_path, ["ana", "bo", "cy"], answer)
    assert taken.manifest.counts["quarantine"] == 0
    rated = pl.read_parquet(tmp_path / "rated/annotations.parquet")
    assert set(rated.filter(pl.col("flags").list.contains("trial-failed"))["annotator"]) == {"bo", "cy"}
    assert set(rated["item_id"]) == set(ITEMS)
    checks = pl.read_parquet(tmp_path / "rated/annotation_checks.parquet")
    wrong = checks.filter(~pl.col("held")).select("kind", "annotator").unique().sort("annotator")
    assert wrong.rows() == [("trial", "ana"), ("trial", "bo")]
    assert checks.filter(kind="gold")["annotator"].unique().sort().to_list() == ["ana", "bo", "cy"]


def test_the_desk_begins_with_the_trial_and_ends_there_for_who_fails(tmp_path: Path) -> None:
    project = tmp_path / "project"
    export(project, write_files(tmp_path, "inclusion_task2"), "inclusion_task2", quotas=Quotas(2), checks=0,
           repeats=0, trial=4, gold=0)  # fmt: skip
    sheets = {sheet["name"]: sheet["about"] for sheet in form_tasks(project)["sheets"]}
    assert sheets["Africa-trial-1"] == "4 to try out: most must be right before other answers count"
    with desk_of(project, tmp_path / "journal/answers.jsonl") as desk:
        assert (desk.wanted, desk.size) == (16, "16 answers in all: 16 to judge (8 items, several people each).")
        for person, wrong in (("ana", 1), ("bo", 2)):
            begun = desk.begin({"annotator": person})
            assert begun["sheet"] == "Africa-trial-1"
            for number, task in enumerate(desk.sheets[begun["sheet"]]):
                answers = right_of({}, "inclusion_task2", right=number >= wrong)
                desk.take(entry(project, begun["sheet"], task, person, answers))
        assert desk.begin({"annotator": "ana"})["sheet"] == "Africa-in-2-01-1"
        refused = desk.begin({"annotator": "bo"})
        assert (refused["sheet"], "Too few" in refused["failed"], desk.answered) == (None, True, 0)


def test_a_gold_item_without_a_right_answer_and_too_few_are_refused(tmp_path: Path) -> None:
    files = write_files(tmp_path, "inclusion_task2")
    with pytest.raises(UsageError, match="too few items are known"):
        export(tmp_path / "a", files, "inclusion_task2", trial=4, gold=3)
    known = pl.read_csv(tmp_path / "known.csv")
    known.with_columns(obj=pl.lit(None, pl.String)).write_csv(tmp_path / "known.csv")
    with pytest.raises(UsageError, match="item 'k0': nobody knows what is right"):
        export(tmp_path / "b", files, "inclusion_task2", trial=1, gold=0)


def test_an_audit_has_a_trial_too(tmp_path: Path) -> None:
    """Of fourteen known pictures four are a trial; who says that nothing shows a culture has too few right."""
    files = audited(tmp_path, known_pictures(tmp_path / "gold", dict.fromkeys(GOLD, "Q0JP")))
    export(tmp_path / "project", files, "audit", quotas=Quotas(2), checks=0, repeats=0, trial=4, gold=10)

    def answer(data: dict[str, Any], person: int | str) -> Answers:
        return {"shows": "country", "country": "JP"} if person == "ana" else {"shows": "none"}

    taken = answer_all(tmp_path, ["ana", "bo"], answer)
    assert taken.manifest.notes["flagged"] == {"trial-failed": 60}
    assert set(pl.read_parquet(tmp_path / "rated/audits.parquet")["annotator"]) == {"ana"}
