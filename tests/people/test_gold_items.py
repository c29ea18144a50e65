"""Gold items: pictures that are known, among those of an audit, and what the answers to them become."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.schemas import AUDITS, MATCHES
from culturekit.core.tables import read_table
from culturekit.metrics.corrected.audit_gates import gold_answers
from culturekit.people.stages import ExportFiles
from culturekit.scores.corrected import score_corrected
from culturekit.scores.diversity import QvsOptions
from culturekit.verify.verify_run import verify_run
from tests.people import projects
from tests.people.test_audit_scheme import IMAGES, TRUE, audited

GOLD = {f"r-{n:02}": "Q0JP" if n % 2 else None for n in range(14)}  # Half show a dish of Japan, half no culture


def known_pictures(folder: Path, shows: dict[str, str | None]) -> Path:
    rows = [projects.image_row(image, "photograph", "p") for image in shows]
    return projects.write_images(folder, rows, truth_artifact_id=pl.Series(list(shows.values()), dtype=pl.String))


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> ExportFiles:
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


def test_each_sheet_has_ten_that_look_like_the_others(tmp_path: Path, files: ExportFiles) -> None:
    projects.export(tmp_path / "project", files, "audit", per_sheet=20)
    key = projects.key_of(tmp_path / "project")
    content = projects.form_tasks(tmp_path / "project")
    names = [task["task"] for task in content["tasks"]]
    for sheet in content["sheets"]:
        assert sum(key[names[place]]["kind"] == "gold" for place in sheet["tasks"]) == 10
    asked = {row["item_id"] for row in key.values() if row["kind"] == "gold"}
    assert asked == set(GOLD)  # the sheets go round all of them
    shown = {task["data"]["task"]: task["data"] for task in projects.studio_tasks(tmp_path / "project")}
    plain, gold = ([shown[name] for name in key if key[name]["kind"] == kind] for kind in ("item", "gold"))
    assert {tuple(data) for data in gold} == {tuple(data) for data in plain}
    assert {len(data["artifacts"]) for data in gold} == {len(data["artifacts"]) for data in plain}
    assert not any(name in str(data) for data in gold for name in (*GOLD, "gold", "photograph"))


def test_answers_to_them_stand_beside_what_they_show_and_hold_the_rater(tmp_path: Path, files: ExportFiles) -> None:
    projects.export(tmp_path / "project", files, "audit")
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
    table = read_table(files.matches[0], MATCHES)
    held = score_corrected(table, audits, None, options=options).scores
    alone = score_corrected(table, audits.filter(~pl.col("gold")), None, options=options).scores
    assert "one rater" in alone["params"][0]
    assert "one rater" not in held["params"][0]
    assert held["value"][0] < alone["value"][0]


def test_known_pictures_that_cannot_hold_anybody_are_refused(tmp_path: Path, files: ExportFiles) -> None:
    unreadable = listed_pictures(tmp_path / "known", [","] * 10)
    for picture in (tmp_path / "known/files").iterdir():
        picture.write_text("name,concept\n", encoding="utf-8")
    few = known_pictures(tmp_path / "few", dict(list(GOLD.items())[:9]))
    same = known_pictures(tmp_path / "same", {"m-03": "Q0JP", **GOLD})
    for gold, says in (
        (few, r"too few items are known.*at least 10.*found 9"),
        (same, r"a gold picture is one of the images to judge.*'m-03'"),
        (files.images[0], "a gold picture is one of|truth_artifact_id"),
        (unreadable, "no gold picture can be read.*10 that cannot, such as"),
    ):
        with pytest.raises(UsageError, match=says):
            projects.export(tmp_path / "out", replace(files, gold=gold), "audit")


# By name, by id, the country alone, one that is not in the space, and no culture
LISTED = ['"dish 0, of Japan",Japan', "Q1JP,", ",NG", ",France", ","]
MEANT = [
    ("Q0JP", "JP", "Asia"), ("Q1JP", "JP", "Asia"), (None, "NG", "Africa"), (None, "FR", "Europe"), (None, None, None),
]  # fmt: skip


def test_a_list_says_what_pictures_show_and_another_picture_is_another_form(tmp_path: Path, files: ExportFiles) -> None:
    mine = replace(files, gold=listed_pictures(tmp_path / "mine", LISTED * 3))
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


def test_a_list_that_says_something_else_is_refused_with_every_line(tmp_path: Path, files: ExportFiles) -> None:
    rows = ["no such dish,", '"dish 0, of Japan",Nigeria', ",Atlantis", ","]
    listed = listed_pictures(tmp_path / "mine", rows)
    (listed.parent / "files/photo-3.png").unlink()
    with pytest.raises(ConfigError) as error:
        projects.export(tmp_path / "project", replace(files, gold=listed), "audit")
    assert [problem.line for problem in error.value.problems] == [2, 3, 4, 5]
    told = str(error.value)
    assert "the space has no artifact 'no such dish'" in told
    assert "the space has no artifact 'dish 0, of Japan' of Nigeria" in told
    assert "unknown country 'Atlantis'" in told
    assert "no file 'files/photo-3.png' beside the list" in told
    (tmp_path / "other.csv").write_text("picture,shows\na.png,b\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"expected columns image, artifact, country"):
        projects.export(tmp_path / "b", replace(files, gold=tmp_path / "other.csv"), "audit")
