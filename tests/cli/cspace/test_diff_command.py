import json
import shutil
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from culturekit.core.schemas import DIFF
from culturekit.core.tables import read_table
from tests.command_line import culturekit
from tests.release.sheets import clean_rows, write
from tests.trail.space_world import BRAZIL, DISH, DRINK, World, document, make_run, statements

FIRST = World(verdicts={"Q7": "remove"})
SECOND = replace(
    FIRST.with_item("Q3", "Sushi", statements(DISH, BRAZIL)), roots=((DISH, None), (DRINK, None)), verdicts={}
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        make_run(folder / "a", FIRST, patch)
        make_run(folder / "b", SECOND, patch)
    return folder


def run(*words: object) -> tuple[int, str, str]:
    answer = culturekit("cspace", "diff", *map(str, words))
    return answer.returncode, answer.stdout, answer.stderr


def test_differences_leave_with_one_and_their_causes_are_told(runs: Path, tmp_path: Path) -> None:
    code, told, _ = run(runs / "a", runs / "b", "--out", tmp_path / "changes", "--also", "csv")
    assert code == 1
    assert "what differs: dump, config (cuisine.roots), model" in told
    assert "2 added, 0 removed, 0 renamed, 2 reclassified" in told
    assert "added cuisine BR Q5 Caipirinha: config (extract)\n    config: cuisine.roots: + Q2000 (drink)" in told
    assert "added cuisine IT Q7 Polenta: model (filter)" in told
    assert "reclassified cuisine JP Q3 country JP -> BR: dump (ingest)" in told
    table = read_table(tmp_path / "changes/diff.parquet", DIFF)
    assert table["causes"].to_list() == [["config"], ["model"], ["dump"], ["dump"]]
    assert (tmp_path / "changes/diff.csv").is_file()
    manifest = json.loads((tmp_path / "changes/manifest.json").read_text(encoding="utf-8"))
    assert manifest["notes"]["causes"] == {"dump": {"reclassified": 2}, "config": {"added": 1}, "model": {"added": 1}}
    code, told, _ = run(runs / "a", runs / "b", "--show", "1")
    assert code == 1
    assert "... and 3 more; --out writes all of them" in told


def test_the_same_bytes_again(runs: Path, tmp_path: Path) -> None:
    for name in ("x", "y"):
        run(runs / "a", runs / "b", "--out", tmp_path / name)
    assert (tmp_path / "x/diff.parquet").read_bytes() == (tmp_path / "y/diff.parquet").read_bytes()
    assert (tmp_path / "x/manifest.json").read_bytes() == (tmp_path / "y/manifest.json").read_bytes()


def test_equal_spaces_leave_with_none(runs: Path) -> None:
    code, told, _ = run(runs / "a/cspace", runs / "a/cspace/cspace.parquet", "--json")
    assert (code, json.loads(told)["rows"], json.loads(told)["counts"]) == (0, [], {"diff": 0})


def test_machines_get_every_change(runs: Path) -> None:
    code, told, _ = run(runs / "b", runs / "a", "--json")
    said = json.loads(told)
    assert code == 1
    assert {(row["change"], row["qid"], *row["causes"]) for row in said["rows"]} == {
        ("removed", "Q5", "config"), ("removed", "Q7", "model"), ("reclassified", "Q3", "dump"),
    }  # fmt: skip
    assert said["factors"] == ["dump", "config (cuisine.roots)", "model"]


def test_a_release_alone_is_compared_and_its_causes_are_left_open(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "a/cspace", tmp_path / "elsewhere/cspace")
    shutil.copy(runs / "a/cspace/cspace.parquet", tmp_path / "alone.parquet")
    for before, why in (
        (tmp_path / "elsewhere", "release: the kept of this stage is no longer where its run found it"),
        (tmp_path / "alone.parquet", "no manifest tells what alone.parquet was made from"),
    ):
        code, told, _ = run(before, runs / "b")
        assert code == 1
        assert f"not to be walked back: first: {why}" in told
        assert "undecided: dump or config or wording or model or code" in told


def test_a_public_file_is_compared_too(tmp_path: Path, runs: Path) -> None:
    path = write(tmp_path, [*clean_rows()])
    assert run(path, path)[0] == 0
    code, told, _ = run(path, runs / "a", "--json")
    said = json.loads(told)
    assert code == 1
    assert {row["change"] for row in said["rows"]} >= {"added", "renamed"}
    assert {tuple(row["undecided"]) for row in said["rows"]} == {("dump", "config", "wording", "model", "code")}


def test_what_is_no_space_or_was_changed_by_hand_is_refused(tmp_path: Path, runs: Path) -> None:
    code, _, error = run(tmp_path, runs / "b")
    assert code == 2
    assert "there is no cultural space here" in error
    code, _, error = run(runs / "a", runs / "b", "--wait")
    assert code == 2
    assert "--out as well" in error
    copy = Path(shutil.copytree(runs / "a/cspace", tmp_path / "cspace"))
    pl.read_parquet(copy / "cspace.parquet").head(2).write_parquet(copy / "cspace.parquet")
    code, _, error = run(copy, runs / "b")
    assert code == 4
    assert "not the cultural space that its stage wrote" in error


def test_releases_with_countries_of_their_own_are_compared_as_a_user_types_it(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(culturekit("roots", "init", "--country", "GH", "--country", "BE").stdout, encoding="utf-8")
    root, ghana, belgium = "Q746549", "Q117", "Q31"
    for name, of in (("spring", ghana), ("autumn", belgium)):
        items = {root: ("dish", {}), "Q1": ("Waakye", statements(root, ghana)), "Q2": ("Frites", statements(root, of))}
        lines = [document(qid, *each) for qid, each in items.items()]
        (tmp_path / f"{name}.json").write_text("\n".join(lines), encoding="utf-8")
        words = [f"dump=[{tmp_path / name}.json]", "concepts=[cuisine]", "countries=[GH,BE]"]
        culturekit(
            "--countries-file", own, "run", "cube-release", "--until", "cspace", "--workdir", tmp_path / name,
            *(word for setting in words for word in ("--set", setting)), ends=0,
        )  # fmt: skip
        shutil.copytree(tmp_path / name / "cspace", tmp_path / f"{name}-released")
    code, told, _ = run(tmp_path / "spring", tmp_path / "autumn")
    assert (code, "reclassified cuisine GH Q2 country GH -> BE: dump (ingest)" in told) == (1, True)
    code, told, _ = run(tmp_path / "spring-released", tmp_path / "autumn-released")
    assert (code, "reclassified cuisine GH Q2 country GH -> BE" in told) == (1, True), "what others were given"
