"""The desk of a form against browsers, other pages, sync clients and kills: nothing answered 200 is lost."""

import http.client
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import orjson
import pytest

from culturekit.people.answer_desk import MOST_BYTES, AnswerDesk
from culturekit.people.answers import answers_in
from culturekit.people.tasks import Quotas
from tests.people.projects import ask, desk_of, entry, export, pictured, serving

NO = {"belongs": "no", "realism": "4"}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("desk")
    export(folder / "project", pictured(folder, [f"i{n}" for n in range(12)]), quotas=Quotas(2), checks=0, repeats=0)
    return folder / "project"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal/answers.jsonl"


def answers_of(desk: AnswerDesk, project: Path, person: str, count: int) -> list[Any]:
    begun = desk.begin({"annotator": person})
    return [
        entry(project, begun["sheet"], task, begun["annotator"], NO) for task in desk.sheets[begun["sheet"]][:count]
    ]


# What hostile requests are made of: a method, a path below the token, headers and a body


def hostile(good: dict[str, Any], rng: random.Random) -> tuple[str, str, dict[str, str], bytes]:
    """Draw a request that nobody may be told 200 for, and that may not harm the desk."""
    body = orjson.loads(orjson.dumps(good))
    annotation = body["annotations"][0]
    junk: Any = rng.choice([None, 1e300, -1, [], {}, "x" * 3000, {"a": [{}]}, True, "\u202e", 2**63, "\x00"])
    kinds: list[Callable[[], Any]] = [
        lambda: body.update(data=junk), lambda: body["data"].update(task=junk), lambda: body.update(meta=junk),
        lambda: body["meta"].update(sheet=junk), lambda: body.update(annotations=junk),
        lambda: body.update(annotations=[junk]), lambda: annotation.update(completed_by=junk),
        lambda: annotation["completed_by"].update(email={"a": 1}), lambda: annotation.update(result=junk),
        lambda: annotation.update(result=[junk]), lambda: annotation["result"][0].update(value=junk),
        lambda: annotation["result"][0].update(from_name=junk), lambda: annotation.update(lead_time="long"),
        lambda: annotation.update(created_at="2026" * 100), lambda: body["meta"].update(study_id="s" * 300),
        lambda: body["data"].update(picture_9="x" * 2000), lambda: body.update(predictions_=junk),
    ]  # fmt: skip
    rng.choice(kinds)()
    content, headers = orjson.dumps(body), {"Content-Length": ""}
    shape = rng.randrange(8)
    if shape == 0:
        content = content[: rng.randrange(len(content))]
    elif shape == 1:
        content = bytes(rng.randrange(256) for _ in range(200))
    elif shape == 2:
        content = b"[" * rng.randrange(1, 100_000)
    elif shape == 3:
        content, headers["Sec-Fetch-Site"] = orjson.dumps(good), rng.choice(["cross-site", "same-site"])
    elif shape == 4:
        content, headers["Origin"] = (
            orjson.dumps(good),
            rng.choice(["null", "http://example.org", "http://127.0.0.1:1"]),
        )
    elif shape == 5:
        headers["Content-Length"] = rng.choice(["-1", "9" * 5000, "x", str(MOST_BYTES + 1), "\u0663"])
    path = rng.choice(["answer", "answer", "answer", "answer", "begin", "answer/", "pictures/..", "%00"])
    return rng.choice(["POST", "POST", "POST", "PUT", "HEAD"]), path, headers, content


def send(address: str, method: str, path: str, headers: dict[str, str], body: bytes) -> int:
    """Send bytes as they are, and give the status; 0 where the desk hung up."""
    host, _, token = address.removeprefix("http://").partition("/")
    connection = http.client.HTTPConnection(host, timeout=20)
    try:
        connection.putrequest(method, f"/{token}{path}", skip_accept_encoding=True)
        for name, value in (headers | {"Content-Length": headers["Content-Length"] or str(len(body))}).items():
            connection.putheader(name, value.encode())
        connection.endheaders()
        connection.send(body)
        return connection.getresponse().status
    except (http.client.HTTPException, ConnectionError):
        return 0
    finally:
        connection.close()


def test_hostile_requests_lose_nothing_and_get_no_traceback(
    project: Path, journal: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(40)
    with serving(project, journal) as server:
        first, second = answers_of(server.desk, project, "ana", 2)
        assert ask(f"{server.address}answer", first)[0] == 200
        statuses = [send(server.address, *hostile(second, rng)) for _ in range(400)]
        assert set(statuses) <= {0, 400, 403, 404, 501}
        assert list(answers_in(journal)) == [("ana", first["data"]["task"])]
        assert ask(f"{server.address}answer", second)[0] == 200
    assert len(answers_in(journal)) == 2
    assert "Traceback" not in capfd.readouterr().err


def test_what_a_browser_adds_is_not_kept(project: Path, journal: Path) -> None:
    with desk_of(project, journal) as desk:
        (answer,) = answers_of(desk, project, "ana", 1)
        answer["drafts"], answer["annotations"][0]["unique_id"] = ["x" * 100_000], "y" * 100_000
        answer["annotations"][0]["result"][0]["meta"] = {"z": "z" * 100_000}
        desk.take(answer)
    assert journal.stat().st_size < 3000


def test_a_journal_cut_anywhere_keeps_every_whole_line(project: Path, journal: Path) -> None:
    with desk_of(project, journal) as desk:
        for answer in answers_of(desk, project, "ana", 12):
            desk.take(answer)
    whole = journal.read_bytes()
    ends = [at for at, byte in enumerate(whole) if byte == 10]
    cuts = sorted({*(at + step for at in ends for step in (-1, 0, 1)), *range(0, len(whole), len(whole) // 100)})
    assert len(cuts) >= 100
    for cut in cuts:
        journal.write_bytes(whole[:cut])
        with desk_of(project, journal) as desk:
            assert desk.answered == sum(end <= cut for end in ends)
        assert journal.read_bytes() == whole[: max([end + 1 for end in ends if end <= cut], default=0)]


def rewrite(journal: Path, content: bytes) -> None:
    journal.with_name("copy").write_bytes(content)
    journal.with_name("copy").replace(journal)


HARMS: dict[str, Callable[[Path], object]] = {
    "removed": Path.unlink,
    "replaced": lambda journal: rewrite(journal, journal.read_bytes()),
    "replaced by an older one": lambda journal: rewrite(journal, journal.read_bytes().split(b"\n")[0] + b"\n"),
    "emptied": lambda journal: journal.write_bytes(b""),
    "cut": lambda journal: journal.write_bytes(journal.read_bytes()[:-100]),
}


@pytest.mark.parametrize("harm", HARMS)
def test_a_journal_touched_by_others_loses_nothing(project: Path, journal: Path, harm: str) -> None:
    with serving(project, journal) as server:
        answers = answers_of(server.desk, project, "ana", 6)
        for number, answer in enumerate(answers):
            assert ask(f"{server.address}answer", answer)[0] == 200
            if number in (1, 3):
                HARMS[harm](journal)
    assert set(answers_in(journal)) == {("ana", answer["data"]["task"]) for answer in answers}


def test_a_journal_replaced_by_another_file_is_said_and_the_answer_is_not_saved(project: Path, journal: Path) -> None:
    with serving(project, journal) as server:
        first, second = answers_of(server.desk, project, "ana", 2)
        assert ask(f"{server.address}answer", first)[0] == 200
        journal.write_bytes(b"a letter\nto somebody\n")
        status, words = ask(f"{server.address}answer", second)
        assert (status, b"not a line of a journal" in words) == (400, True)
        journal.unlink()
        assert ask(f"{server.address}answer", second)[0] == 200
    assert len(answers_in(journal)) == 2


def test_spellings_of_a_name_are_one_person_from_the_first_answer(project: Path, journal: Path) -> None:
    with desk_of(project, journal) as desk:
        (answer,) = answers_of(desk, project, "José Ruiz", 1)
        desk.take(answer)
        for other in ("jose\u0301  RUIZ", "ＪＯＳÉ ruiz"):
            assert desk.begin({"annotator": other})["annotator"] == "José Ruiz"
    lines = [orjson.loads(line) for line in journal.read_bytes().splitlines()]
    lines[0]["annotations"][0]["completed_by"]["email"] = "JOSÉ RUIZ"
    del lines[0]["meta"]
    journal.write_bytes(orjson.dumps(lines[0]) + b"\n")
    with desk_of(project, journal) as desk:
        begun = desk.begin({"annotator": "josé ruiz"})
        assert (begun["annotator"], len(begun["answered"]), desk.people) == ("JOSÉ RUIZ", 1, ["JOSÉ RUIZ"])


def test_a_picture_that_is_gone_is_not_found(project: Path, journal: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with serving(project, journal) as server:
        name, path = next(iter(server.desk.pictures.items()))
        with mock.patch.dict(server.desk.pictures, {name: path.with_name("gone.png")}):
            assert ask(f"{server.address}pictures/{name}")[0] == 404
    assert capfd.readouterr().err == ""


def test_two_windows_of_one_person_answer_at_once(project: Path, journal: Path) -> None:
    with serving(project, journal) as server:
        answers = answers_of(server.desk, project, "ana", 12)
        statuses: list[int] = []

        def work() -> None:
            statuses.extend(ask(f"{server.address}answer", answer)[0] for answer in answers)

        windows = [threading.Thread(target=work) for _ in range(4)]
        for window in windows:
            window.start()
        for window in windows:
            window.join()
        assert (statuses, server.desk.answered) == ([200] * 48, 12)
    assert len(answers_in(journal)) == 12


def test_the_pace_and_the_number_are_said(project: Path, journal: Path) -> None:
    clock = iter(float(second) for second in range(0, 6000, 15))
    with desk_of(project, journal) as desk, mock.patch("time.monotonic", lambda: next(clock)):
        assert desk.pace == ""
        for answer in answers_of(desk, project, "ana", 6):
            desk.take(answer)
        assert desk.pace == "2.0 answers a minute, 0.1 hours left"
        assert desk.size == "24 answers in all: 24 to judge (12 items, several people each)."
