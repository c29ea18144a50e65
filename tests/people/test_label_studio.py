"""A real Label Studio, started from its own environment: project, import, annotate, export, aggregate."""

import http.cookiejar
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.config.load import load_any_recipe
from culturekit.core.engines import LocalEngine
from culturekit.people.aggregate import AggregateOptions
from culturekit.people.stages import AggregateFiles, aggregate_stage
from culturekit.recipes.run_recipe import run_recipe
from tests.people.projects import export, import_files, key_of, pictured, result_of, run
from tests.recipes.inclusion.small_world import small_recipe
from tests.recipes.inclusion.test_people import NOBODY, answer

# Names the program `label-studio` of the environment that has it, or the address of a server that runs already
ENVIRONMENT = "CULTUREKIT_LABEL_STUDIO"

OWNER = (
    os.environ.get("CULTUREKIT_LABEL_STUDIO_USER", "owner@example.org"),
    os.environ.get("CULTUREKIT_LABEL_STUDIO_PASSWORD", "owner-of-the-test"),
)


class Studio:
    def __init__(self, address: str) -> None:
        self.address = address
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))

    def send(self, method: str, path: str, body: bytes | None, kind: str) -> bytes:
        headers = {"Content-Type": kind, "Referer": self.address}
        token = next((cookie.value for cookie in self.jar if cookie.name == "csrftoken"), None)
        if token:
            headers["X-CSRFToken"] = token
        request = urllib.request.Request(self.address + path, data=body, headers=headers, method=method)
        try:
            with self.opener.open(request, timeout=120) as answer:
                content: bytes = answer.read()
                return content
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read()[:600]!r}") from error

    def call(self, method: str, path: str, value: object = None) -> Any:
        """Send JSON, get JSON."""
        body = None if value is None else json.dumps(value).encode()
        content = self.send(method, path, body, "application/json")
        return json.loads(content) if content else None

    def sign_up(self, email: str, password: str, *, invited: str = "") -> "Studio":
        """Make an account; the first one owns the place, others follow an invitation."""
        path = "/user/signup/" + (f"?token={invited}" if invited else "")
        self.send("GET", path, None, "text/html")
        form = urllib.parse.urlencode({"email": email, "password": password, "allow_newsletters": "false"})
        self.send("POST", path, form.encode(), "application/x-www-form-urlencoded")
        return self

    def sign_in(self, email: str, password: str) -> "Studio":
        self.send("GET", "/user/login/", None, "text/html")
        form = urllib.parse.urlencode({"email": email, "password": password, "persist_session": "on"})
        self.send("POST", "/user/login/", form.encode(), "application/x-www-form-urlencoded")
        return self

    def invitation(self) -> str:
        link = self.call("GET", "/api/invite")["invite_url"]
        return str(urllib.parse.parse_qs(urllib.parse.urlsplit(link).query)["token"][0])


@contextmanager
def running_studio(folder: Path, files: Path) -> Iterator[Studio]:
    """Start a server of one's own, as docs/annotating.md says, or use the one that runs; its owner is signed in."""
    program = os.environ[ENVIRONMENT]
    if program.startswith("http"):
        yield Studio(program.rstrip("/")).sign_in(*OWNER)
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    silent = {
        "SENTRY_DSN": "", "FRONTEND_SENTRY_DSN": "", "COLLECT_ANALYTICS": "False", "LATEST_VERSION_CHECK": "False",
    }  # fmt: skip
    serving = {"LABEL_STUDIO_LOCAL_FILES_SERVING_ENABLED": "true", "LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT": str(files)}
    folder.mkdir(parents=True)
    home = {"HOME": str(folder), "PATH": os.environ["PATH"]}
    command = [program, "start", "--no-browser", "--internal-host", "127.0.0.1", "--port", str(port),
               "--data-dir", str(folder / "data"), "--username", OWNER[0], "--password", OWNER[1]]  # fmt: skip
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**home, **silent, **serving}, stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        studio = Studio(f"http://127.0.0.1:{port}")
        for _ in range(900):
            try:
                studio.call("GET", "/api/version")
                break
            except (OSError, AssertionError):
                assert process.poll() is None, (folder / "log").read_text(encoding="utf-8")[-2000:]
                time.sleep(1)
        yield studio.sign_in(*OWNER)
    finally:
        process.terminate()
        process.wait(timeout=60)


pytestmark = [
    pytest.mark.external, pytest.mark.labelstudio,
    pytest.mark.skipif(ENVIRONMENT not in os.environ, reason=f"{ENVIRONMENT} names no label-studio program"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]  # fmt: skip

PASSWORD = "one-of-three-people"


def make_project(studio: Studio, folder: Path) -> int:
    wanted = orjson.loads((folder / "label-studio/projects.json").read_bytes())[0]
    template = (folder / "label-studio/template.xml").read_text(encoding="utf-8")
    project = studio.call("POST", "/api/projects/", {"title": wanted["title"], "label_config": template})
    number = int(project["id"])
    studio.call("PATCH", f"/api/projects/{number}/", {"maximum_annotations": wanted["maximum_annotations"]})
    tasks = orjson.loads((folder / "label-studio" / wanted["tasks"]).read_bytes())
    studio.call("POST", f"/api/projects/{number}/import", tasks)
    return number


def answer_all(studio: Studio, project: int, key: dict[str, Any], realism: int) -> int:
    """Answer every task that the server hands to this user, and return how many there were."""
    for count in range(100):
        try:
            task = studio.call("GET", f"/api/projects/{project}/next")
        except AssertionError as error:
            assert "404" in str(error)
            return count
        row = key[task["data"]["task"]]
        answers = {"belongs": "yes", "faithfulness": "4", "realism": str(realism)}
        if row["kind"] == "check":
            answers = orjson.loads(row["expected"])
        studio.call("POST", f"/api/tasks/{task['id']}/annotations/", {"result": result_of(answers), "lead_time": 20.5})
    raise AssertionError("the server hands out tasks without end")


def test_a_round_trip(tmp_path: Path) -> None:
    hostile = '"><img src=x onerror=alert(1)> $note & <b>'
    files = pictured(tmp_path, [f"{m}-{n}" for m in "ab" for n in range(3)], text=hostile)
    export(tmp_path / "project", files, repeats=1)
    key = key_of(tmp_path / "project")
    with running_studio(tmp_path / "studio", tmp_path / "project/hand-out") as owner:
        project = make_project(owner, tmp_path / "project/hand-out")
        invited = owner.invitation()
        people = [
            Studio(owner.address).sign_up(f"{name}-{os.getpid()}@example.org", PASSWORD, invited=invited)
            for name in ("ana", "bo", "cy")
        ]
        done = [answer_all(one, project, key, realism) for one, realism in zip(people, (1, 2, 5), strict=True)]
        tasks = owner.call("GET", f"/api/tasks/?project={project}&page_size=100")["tasks"]
        wrong = next(task for task in tasks if key[task["data"]["task"]]["kind"] == "item")
        bad = {"result": result_of({"belongs": "no", "faithfulness": "9", "realism": "7"}), "lead_time": 20}
        owner.call("POST", f"/api/tasks/{wrong['id']}/annotations/", bad)
        exported = owner.send("GET", f"/api/projects/{project}/export?exportType=JSON", None, "application/json")
    assert done == [9, 9, 9], "6 items, 1 asked again and 2 checks, each for three people"
    (tmp_path / "export.json").write_bytes(exported)
    taken = import_files(tmp_path / "rated", tmp_path / "project", tmp_path / "export.json")
    reasons = pl.read_parquet(tmp_path / "rated/quarantine.parquet")["reason"].to_list()
    assert sorted(reasons) == ["answer to a question not asked", "out of range"]
    assert taken.manifest.notes["slots"] == {"wanted": 18, "filled": 18, "beyond": 0}
    annotations = pl.read_parquet(tmp_path / "rated/annotations.parquet")
    assert annotations["flags"].explode().drop_nulls().to_list() == []
    run(
        aggregate_stage(AggregateFiles(tmp_path / "rated/annotations.parquet"), AggregateOptions()), tmp_path / "people"
    )
    ratings = pl.read_parquet(tmp_path / "people/rating_table.parquet").filter(concept="cuisine", criterion="realism")
    assert ratings.select("model", "mean", "items", "answers").rows() == [("a", 8 / 3, 3, 9), ("b", 8 / 3, 3, 9)]


@pytest.mark.parametrize("task", ["task1", "task2"])
def test_forms_of_inclusion_come_back(tmp_path: Path, task: str) -> None:
    """Triplets with places on the screen, and regions of which several can be ticked; nonsense is set aside."""
    recipe = load_any_recipe(small_recipe(tmp_path / "said"), NOBODY)
    with LocalEngine(1) as engine:
        run_recipe(recipe, tmp_path / "run", engine=engine, until=f"to-rate-{task}")
    project = tmp_path / f"run/to-rate-{task}"
    key = key_of(project)
    with running_studio(tmp_path / "studio", project / "hand-out") as owner:
        number = make_project(owner, project / "hand-out")
        tasks = owner.call("GET", f"/api/tasks/?project={number}&page_size=500")["tasks"]
        for one in tasks:
            words = result_of(answer(task, key[one["data"]["task"]]))
            owner.call("POST", f"/api/tasks/{one['id']}/annotations/", {"result": words, "lead_time": 20})
        wrong = next(one for one in tasks if key[one["data"]["task"]]["kind"] == "item")
        bad = {"obj": "ym", "object_regions": ["mars"]} if task == "task2" else {"similar": "7", "appealing": "2"}
        owner.call("POST", f"/api/tasks/{wrong['id']}/annotations/", {"result": result_of(bad), "lead_time": 20})
        exported = owner.send("GET", f"/api/projects/{number}/export?exportType=JSON", None, "application/json")
    (tmp_path / "export.json").write_bytes(exported)
    taken = import_files(tmp_path / "rated", project, tmp_path / "export.json")
    aside = pl.read_parquet(tmp_path / "rated/quarantine.parquet")
    assert aside["annotation_number"].n_unique() == 1
    assert set(aside["field"]) <= {"object_regions", "background_regions", "similar", "appealing", "confidence", ""}
    items = sum(key[one["data"]["task"]]["kind"] == "item" for one in tasks)
    rated = pl.read_parquet(tmp_path / "rated/annotations.parquet")
    assert rated["item_id"].n_unique() == items
    assert rated["flags"].explode().drop_nulls().to_list() == []
    assert taken.manifest.counts["annotations"] == rated.height
