"""A run as a dataset on a stand-in for the Hub: what is written, what is not, and what a cut or a wrong token does."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import yaml

from tests.command_line import culturekit
from tests.recipes.hub_server import StandInHub, hub_on_loopback

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
