"""A run as a dataset on a stand-in for the Hub: what is written, what is not, what a cut or a wrong token does."""

import base64
import hashlib
import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from tests.command_line import culturekit
from tests.loopback import served


@dataclass
class StandInHub:
    """What was written: datasets with their files by path, and how many files each commit took."""

    token: str
    private: dict[str, bool] = field(default_factory=dict)
    files: dict[str, dict[str, bytes]] = field(default_factory=dict)
    commits: list[int] = field(default_factory=list)
    breaks_after: int | None = None  # commits after which the connection fails once
    url: str = ""


@contextmanager
def hub_on_loopback(token: str) -> Iterator[StandInHub]:
    hub = StandInHub(token)

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the library
            """Say nothing."""

        def give(self, value: object, status: int = 200) -> None:
            content = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def allowed(self) -> bool:
            if self.headers.get("Authorization") == f"Bearer {hub.token}":
                return True
            self.give({"error": "Invalid credentials"}, 401)
            return False

        def do_GET(self) -> None:
            if not self.allowed():
                return
            place = self.path.partition("?")[0].removeprefix("/api/datasets/")
            name, _, rest = place.partition("/tree/")
            files = hub.files.get(name.partition("/revision/")[0], {})
            if rest:
                self.give([listed(path, content) for path, content in sorted(files.items())])
            else:
                self.give({"id": name, "private": hub.private[name], "siblings": [], "tags": []})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            if self.path == "/api/validate-yaml":
                self.give({"errors": [], "warnings": []})
            elif not self.allowed():
                return
            elif self.path == "/api/repos/create":
                self.create(json.loads(body))
            elif "/preupload/" in self.path:
                asked = json.loads(body)["files"]
                self.give(
                    {"files": [{"path": f["path"], "uploadMode": "regular", "shouldIgnore": False} for f in asked]}
                )
            else:
                self.commit(self.path.removeprefix("/api/datasets/").partition("/commit/")[0], body)

        def create(self, asked: Any) -> None:
            name = f"{asked['organization']}/{asked['name']}" if asked.get("organization") else asked["name"]
            known = name in hub.files
            if not known:
                hub.private[name] = bool(asked.get("private")) or asked.get("visibility") == "private"
                hub.files[name] = {".gitattributes": b"*.parquet filter=lfs\n"}
            self.give({"url": f"{hub.url}/datasets/{name}", "name": name}, 409 if known else 200)

        def commit(self, name: str, body: bytes) -> None:
            if hub.breaks_after is not None and len(hub.commits) >= hub.breaks_after:
                hub.breaks_after = None
                self.give({"error": "it broke"}, 422)
                return
            lines = [json.loads(line) for line in body.splitlines()]
            new = [line["value"] for line in lines if line["key"] == "file"]
            hub.files[name] |= {one["path"]: base64.b64decode(one["content"]) for one in new}
            hub.commits.append(len(new))
            self.give({"commitUrl": f"{hub.url}/datasets/{name}/commit/1", "commitOid": "1" * 40, "success": True})

    with served(Handler) as hub.url:
        yield hub


def listed(path: str, content: bytes) -> dict[str, object]:
    """Describe a file as the Hub does: with the hash that git gives it."""
    blob = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
    return {"type": "file", "path": path, "size": len(content), "oid": blob}


pytest.importorskip("huggingface_hub", reason="needs huggingface_hub, which publishes")
TOKEN = "hf_standin0123456789abcdef"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    with hub_on_loopback(TOKEN) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        yield hub


def test_images_scores_and_card_are_written_once(small_run: Path, hub: StandInHub) -> None:
    done = culturekit("publish", small_run, "--to", "hub:me/cultures", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    files = hub.files["me/cultures"]
    assert (told["private"], hub.private["me/cultures"]) == (True, True)
    assert told["sent"] == [len(files) - 1, sum(map(len, files.values())) - len(files[".gitattributes"])]
    assert max(hub.commits) <= 100
    for table in ("scores", "values"):
        assert files[f"scores/{table}.parquet"] == (small_run / f"scores/{table}.parquet").read_bytes()
    models = {path.split("/")[1] for path in files if path.startswith("images/")}
    for model in models:
        rows = pl.read_parquet(small_run / f"images-{model}/images.parquet").filter(status="ok")
        for path in rows["path"]:
            assert files[f"images/{model}/{path}"] == (small_run / f"images-{model}" / path).read_bytes()
    front = yaml.safe_load(files["README.md"].decode().split("---")[1])
    assert all(one["data_files"] in files for one in front["configs"])
    assert not [path for path in files if "references" in path or "cspace" in path]
    assert TOKEN not in done.stdout + done.stderr
    assert not [path for path, content in files.items() if TOKEN.encode() in content]

    before = len(hub.commits)
    again = culturekit("publish", small_run, "--to", "hub:me/cultures", "--json")
    assert json.loads(again.stdout.splitlines()[-1])["sent"] == [0, 0]
    assert len(hub.commits) == before


def test_a_cut_upload_goes_on_after_the_last_whole_commit(
    small_run: Path, hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("culturekit.recipes.publish_run.BATCH", 30)
    hub.breaks_after = 1
    done = culturekit("publish", small_run, "--to", "hub:me/cultures")
    assert done.returncode == 3, done.stderr
    assert "Run the same command again" in done.stderr
    there = dict(hub.files["me/cultures"])
    again = culturekit("publish", small_run, "--to", "hub:me/cultures", "--public")
    assert again.returncode == 0, again.stderr
    assert "only its owner sees it" in again.stdout  # what is there stays what it is
    assert sum(hub.commits) == len(hub.files["me/cultures"]) - 1 > len(there)


def test_texts_that_may_not_be_passed_on_stay(small_run: Path, hub: StandInHub, tmp_path: Path) -> None:
    run = Path(shutil.copytree(small_run, tmp_path / "run"))
    record = json.loads((run / "recipe.json").read_bytes())
    (run / "recipe.json").write_text(json.dumps({**record, "recipe": "cultivate"}))
    done = culturekit("publish", run, "--to", "hub:me/scenes", "--public")
    assert done.returncode == 0, done.stderr
    assert set(hub.files["me/scenes"]) == {
        ".gitattributes", "README.md", "scores/scores.parquet", "scores/values.parquet"
    }  # fmt: skip
    assert "not published: images and prompts: texts of CulturalAtlas" in done.stdout
    assert "anybody sees it" in done.stdout


@pytest.mark.parametrize(
    ("to", "changed", "code", "words"),
    [
        ("me/cultures", {}, 2, "hub:USER/NAME"),
        ("hub:me", {}, 2, "hub:USER/NAME"),
        ("hub:me/cultures", {"HF_TOKEN": ""}, 2, "the environment variable HF_TOKEN"),
        ("hub:me/cultures", {"HF_TOKEN": "hf_wrong0123456789"}, 2, "does not let this token write"),
        ("hub:me/cultures", {"HF_ENDPOINT": "http://127.0.0.1:1"}, 3, "the Hub did not take the dataset"),
    ],
)
def test_a_wrong_name_or_token_and_a_hub_that_does_not_answer_are_said(
    small_run: Path, hub: StandInHub, monkeypatch: pytest.MonkeyPatch, to: str, changed: dict[str, str], code: int,
    words: str,
) -> None:  # fmt: skip
    for name, value in changed.items():
        monkeypatch.setenv(name, value)
    done = culturekit("publish", small_run, "--to", to)
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "hf_" not in done.stderr, "no token is repeated"
    assert hub.files == {}


def test_a_package_that_is_not_there_is_named(
    small_run: Path, hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    done = culturekit("publish", small_run, "--to", "hub:me/cultures")
    assert done.returncode == 2
    assert "culturekit[publish]" in done.stderr
    assert hub.files == {}
