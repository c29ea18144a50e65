"""The served form as its server sees it: who gets in, what is kept, and what a kill leaves."""

import errno
import json
import os
import re
import shlex
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
import polars as pl
import pytest

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.schemas import ANNOTATIONS, KEPT
from culturekit.core.tables import read_table, write_table
from culturekit.people.answer_desk import FormServer
from culturekit.people.answers import answers_in
from culturekit.people.tasks import Quotas
from tests.builders.spaces import rows_of
from tests.command_line import culturekit
from tests.people.projects import (
    answer_sheet,
    ask,
    by_key,
    desk_of,
    entry,
    export,
    form_tasks,
    image_row,
    import_files,
    labelled,
    pictured,
    prompt_row,
    right_answer,
    serving,
    studio_tasks,
    write_images,
    write_prompts,
)

ANSWERS = {f"{model}-{n}": {"belongs": "yes", "faithfulness": "4", "realism": "5"} for model in "ab" for n in range(4)}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight items in two parts, for two people each: four sheets."""
    folder = tmp_path_factory.mktemp("served")
    export(folder / "project", pictured(folder, ANSWERS), quotas=Quotas(2), per_sheet=4, checks=1, repeats=1)
    return folder / "project"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal/answers.jsonl"


def first_task(project: Path, sheet: str) -> str:
    content = form_tasks(project)
    tasks = next(one["tasks"] for one in content["sheets"] if one["name"] == sheet)
    return str(content["tasks"][tasks[0]]["task"])


def test_the_page_and_its_pictures_are_served_under_the_token_and_nothing_else_is(project: Path, journal: Path) -> None:
    with serving(project, journal) as server:
        status, page = ask(server.address)
        assert status == 200
        assert b"connect-src" in page
        assert b'id="sheet"' not in page
        picture = next((project / "hand-out/pictures").iterdir())
        assert ask(f"{server.address}pictures/{picture.name}") == (200, picture.read_bytes())
        keys = ("annotation_key.parquet", "form.html")
        for other in ("pictures/", "pictures/x.png", "../project.json", *keys, "%2e%2e/"):
            assert ask(server.address + other)[0] == 404
        assert ask(f"{server.address}else", {})[0] == 400


def test_a_wrong_token_and_another_name_of_the_machine_are_refused(project: Path, journal: Path) -> None:
    with serving(project, journal) as server:
        root = server.address.removesuffix(f"{server.token}/")
        for wrong in ("", f"{server.token[:-1]}/", f"{server.token}x/", "%C3%A9/"):
            status, words = ask(root + wrong)
            assert (status, b"annotate serve" in words) == (403, True)
            assert ask(f"{root}{wrong}begin", {"annotator": "ana"})[0] == 403
        assert ask(server.address, host="example.org")[0] == 403
        assert ask(server.address, host="localhost:1")[0] == 200
        assert server.desk.holders == {}


def test_only_loopback_is_listened_on(project: Path, journal: Path) -> None:
    with serving(project, journal) as server:
        host, port = server.socket.getsockname()
        assert host == "127.0.0.1"
        with pytest.raises(OSError), socket.create_connection(("127.0.0.2", port), timeout=5):
            pass


def test_two_people_answer_at_once_and_an_import_has_every_answer(project: Path, journal: Path, tmp_path: Path) -> None:
    def work(server: Any, person: str) -> None:
        while answer_by_http(server, project, person):
            pass

    with serving(project, journal) as server:
        people = [threading.Thread(target=work, args=(server, name)) for name in ("ana", "bo")]
        for person in people:
            person.start()
        for person in people:
            person.join()
        assert server.desk.together == f"{server.desk.wanted} of {server.desk.wanted} answers by 2 people"
        assert server.desk.begin({"annotator": "cy"})["sheet"] is None
    done = import_files(tmp_path / "rated", project, journal)
    assert (done.manifest.counts["quarantine"], done.manifest.notes["slots"]["filled"]) == (0, 16)
    assert set(read_table(tmp_path / "rated/annotations.parquet", ANNOTATIONS)["annotator"]) == {"ana", "bo"}


class AnsweredMeanwhile(dict[Any, Any]):
    """Answers of which another thread brings one more while they are counted."""

    def __init__(self, answers: Mapping[Any, Any], bring: Callable[[], object]) -> None:
        super().__init__(answers)
        self.thread = threading.Thread(target=bring)

    def __iter__(self) -> Iterator[Any]:
        for key in super().__iter__():
            if not self.thread.ident:
                self.thread.start()
                self.thread.join(0.5)
            yield key


def test_an_answer_that_comes_while_others_are_counted_waits_for_the_count(project: Path, journal: Path) -> None:
    with desk_of(project, journal) as desk:
        sheet = desk.begin({"annotator": "ana"})["sheet"]
        first, second = (
            entry(project, sheet, task, "ana", right_answer(desk.key[task].row(0, named=True), ANSWERS))
            for task in desk.sheets[sheet][:2]
        )
        desk.take(first)
        answers = AnsweredMeanwhile(desk.journal.answers, lambda: desk.take(second))
        desk.journal.answers = answers
        assert desk.people == ["ana"]
        answers.thread.join()
        assert desk.answered == 2


def answer_by_http(server: Any, project: Path, person: str) -> bool:
    """Take a sheet and answer it, as a browser would; false where nothing is left."""
    sheet = orjson.loads(ask(f"{server.address}begin", {"annotator": person})[1])["sheet"]
    for task in () if sheet is None else server.desk.sheets[sheet]:
        answers = right_answer(server.desk.key[task].row(0, named=True), ANSWERS)
        assert ask(f"{server.address}answer", entry(project, sheet, task, person, answers))[0] == 200
    return sheet is not None


def test_first_sheets_come_first_and_nobody_gets_the_same_items_twice(project: Path, journal: Path) -> None:
    with desk_of(project, journal) as desk:
        first = desk.begin({"annotator": " Ana  B "})
        assert (first["annotator"], first["sheet"]) == ("Ana B", next(iter(desk.sheets)))
        assert desk.begin({"annotator": "ana b"})["sheet"] == first["sheet"]
        got = [answer_sheet(desk, project, "Ana B", ANSWERS) for _ in range(3)]
        assert [sheet and sheet[-1] for sheet in got] == ["1", "1", None]
        assert desk.begin({"annotator": "bo"})["sheet"][-1] == "2"


def test_what_somebody_left_unfinished_is_finished_by_another(project: Path, journal: Path) -> None:
    with desk_of(project, journal) as desk:
        left = [desk.begin({"annotator": name})["sheet"] for name in ("p", "q", "r", "s")]
        assert set(left) == set(desk.sheets)
        assert [answer_sheet(desk, project, "ana", ANSWERS) for _ in range(3)].count(None) == 1
        assert desk.answered == desk.wanted // 2


@pytest.mark.parametrize("name", ["", "  ", "x" * 121, "a\x00b", 7, None])
def test_a_name_that_is_none_is_refused(project: Path, journal: Path, name: object) -> None:
    with desk_of(project, journal) as desk, pytest.raises(UsageError, match="this is no name"):
        desk.begin({"annotator": name})


def test_answers_are_there_again_after_a_kill_and_a_cut_line_is_not(project: Path, journal: Path) -> None:
    with desk_of(project, journal) as desk:
        sheet = desk.begin({"annotator": "ana"})["sheet"]
        task = first_task(project, sheet)
        for realism in ("5", "4"):
            desk.take(entry(project, sheet, task, "ana", {"belongs": "no", "realism": realism}))
        assert desk.answered == 1
    kept = journal.read_bytes()
    journal.write_bytes(kept + kept[: len(kept) // 3])
    with desk_of(project, journal) as desk:
        again = desk.begin({"annotator": "ANA"})
        assert (again["annotator"], again["sheet"], desk.answered) == ("ana", sheet, 1)
        values = {one["from_name"]: one["value"]["choices"] for one in again["answered"][task]["result"]}
        assert values == {"belongs": ["no"], "realism": ["4"]}
    assert journal.read_bytes() == kept


def test_a_damaged_line_is_said_with_its_place(project: Path, journal: Path) -> None:
    journal.parent.mkdir()
    journal.write_bytes(b"{}\n")
    with pytest.raises(IntegrityError, match=r"answers.jsonl:1: not a line"), desk_of(project, journal):
        pass


def test_what_an_import_would_set_aside_is_refused_and_not_kept(project: Path, journal: Path) -> None:
    with serving(project, journal) as server:
        sheet = server.desk.begin({"annotator": "ana"})["sheet"]
        task = first_task(project, sheet)
        good = entry(project, sheet, task, "ana", {"belongs": "no", "realism": "5"})
        for wrong, words in (
            ({**good, "data": {**good["data"], "prompt": "other"}}, "task changed since it was handed out"),
            ({**good, "annotations": []}, "not one answer"),
            (entry(project, sheet, task, "ana", {"belongs": "no"}), "required answer missing"),
            (entry(project, sheet, task, "ana", {"belongs": "perhaps", "realism": "5"}), "unknown choice"),
            (entry(project, sheet, task, "bo", {"belongs": "no", "realism": "5"}), "who was given its sheet"),
            ({**good, "meta": {"sheet": list(server.desk.sheets)[1]}}, "who was given its sheet"),
            ([], "malformed"),
        ):
            status, text = ask(f"{server.address}answer", wrong)
            assert (status, words in text.decode()) == (400, True), text
        assert ask(f"{server.address}answer", good)[0] == 200
        assert len(answers_in(journal)) == 1


def test_an_answer_that_the_disk_refuses_is_not_said_to_be_saved(project: Path, journal: Path) -> None:
    with serving(project, journal) as server:
        sheet = server.desk.begin({"annotator": "ana"})["sheet"]
        good = entry(project, sheet, first_task(project, sheet), "ana", {"belongs": "no", "realism": "5"})
        real, full = os.write, OSError(errno.ENOSPC, "No space left on device")

        def refuses(file: int, content: bytes) -> int:
            if file != server.desk.journal.file:
                return real(file, content)
            real(file, content[:10])
            raise full

        with mock.patch("os.write", refuses):
            status, words = ask(f"{server.address}answer", good)
        assert (status, b"not saved" in words, journal.read_bytes()) == (507, True, b"")
        assert ask(f"{server.address}answer", good)[0] == 200


def test_forms_out_answers_in_tables_out(tmp_path: Path) -> None:
    images = [write_images(tmp_path / m, [image_row(f"{m}-{n}", m, "p") for n in range(3)]) for m in "ab"]
    prompts = write_prompts(tmp_path / "prompts", [prompt_row("p", "Image of food, India", "cuisine", "IN")])
    project, rated, people = (tmp_path / name for name in ("to-rate", "rated", "people"))
    words = ("--images", images[0], "--images", images[1], "--prompts", prompts, "--out", project, "--json")
    assert json.loads(culturekit("annotate", "export", "cube", *words, ends=0).stdout)["counts"]["items"] == 6

    def answer(row: dict[str, object], _: object) -> dict[str, object]:
        return {"belongs": "yes", "faithfulness": 4 if row["model"] == "a" else 1, "realism": 5}

    exported = labelled(studio_tasks(project), (1, 2, 3), by_key(project, answer))
    (tmp_path / "answers.json").write_bytes(orjson.dumps(exported))
    culturekit("annotate", "import", tmp_path / "answers.json", "--project", project, "--out", rated, ends=0)
    options = ("--out", people, "--also", "csv", "--resamples", "99")
    culturekit("annotate", "aggregate", "--annotations", rated / "annotations.parquet", *options, ends=0)
    table = pl.read_parquet(people / "rating_table.parquet").filter(criterion="faithfulness", concept="cuisine")
    assert table.select("model", "mean", "mark").rows() == [("a", 4.0, None), ("b", 1.0, "below 2")]
    assert (people / "rating_table.csv").is_file()
    assert "below-2" in (people / "ratings.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(("words", "spoken"), [
    ("aggregate --annotations a --out b --keep slow", "no such flag"),
    ("export cube --images x --out b --form-at javascript:alert(1)", "no web address"),
    ("serve .", "not the folder of a run"),
])  # fmt: skip
def test_what_cannot_be_is_refused(tmp_path: Path, words: str, spoken: str) -> None:
    assert spoken in culturekit("annotate", *words.split(), cwd=tmp_path, ends=2).stderr


def test_serve_prints_an_address_of_this_machine_and_ends_with_what_was_answered(run_copy: Path) -> None:
    def answered_and_ended(server: FormServer, poll_interval: float = 0.5) -> None:
        sheet = server.desk.begin({"annotator": "ana"})["sheet"]
        task = server.desk.sheets[sheet][0]
        answers = {"shows": "none"}
        server.desk.take(entry(run_copy / "to-audit", sheet, task, "ana", answers))
        server.saved()
        raise KeyboardInterrupt

    words = ("annotate", "serve", run_copy, "--images", "30", "--people", "1")
    with mock.patch.object(FormServer, "serve_forever", answered_and_ended):
        done = culturekit(*words, "--json", ends=0)
        started, ended = map(json.loads, done.stdout.splitlines())
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]{32}/", started["address"])
        assert (ended["answered"], ended["people"]) == (1, ["ana"])
        follows = f"run {run_copy / 'recipe.json'} --workdir {run_copy}"
        assert f"Next: culturekit {follows}" in done.stderr
        again = culturekit(*words, "--intervals")
        assert "after 1 answer, corrected diversity (country kernel):" in again.stderr
        assert again.stdout.splitlines()[-1] == f"1 of {ended['wanted']} answers by 1 person"
    assert culturekit(*follows.split()).returncode in {0, 1}


@pytest.mark.parametrize("form", ["cube", "candidates", "groups of candidates", "check of a space"])
def test_serve_ends_with_a_command_that_takes_its_answers_in(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "a b"  # what is named is quoted
    folder.mkdir()
    project, spoken = folder / "form", {"belongs": "yes", "faithfulness": 4, "realism": 5}
    if form == "cube":
        export(project, pictured(folder, ["a-1"]))
    else:
        same = {"concept": "cuisine", "country_qids": ["Q155"], "roots": ["Q1000"], "path": ["Q1000"], "reason": "m"}
        rows = [{**same, "qid": f"Q{n}", "label": f"dish {n}", "verdict": "review"} for n in range(1, 30)]
        kept, spoken = write_table(folder, KEPT, rows_of(KEPT, *rows).sort(KEPT.key)), {"decision": "accept"}
        words = ["check", "sample"] if form.startswith("check") else ["review", "export"]
        words += ["--groups"] if form.startswith("groups") else []
        culturekit("cspace", *words, "--kept", kept, "--out", project, ends=0)

    def answered_and_ended(server: FormServer, poll_interval: float = 0.5) -> None:
        sheet = server.desk.begin({"annotator": "ana"})["sheet"]
        for task in server.desk.sheets[sheet]:
            given = entry(project, sheet, task, "ana", spoken)
            for one in given["annotations"][0]["result"]:
                one["to_name"] = "picture_1" if form == "cube" else "subject"
            server.desk.take(given)
        raise KeyboardInterrupt

    with mock.patch.object(FormServer, "serve_forever", answered_and_ended):
        ended = culturekit("annotate", "serve", project, ends=0).stderr
    ((_, *words),) = (shlex.split(line)[1:] for line in ended.splitlines() if line.startswith("Next: "))
    done = culturekit(*words)
    assert done.returncode in {0, 1}, done.stderr
    assert done.stdout.strip()
