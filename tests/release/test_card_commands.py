"""The commands as a user types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from culturekit.cli.app import app
from culturekit.core.errors import UsageError
from culturekit.release.card_hand import FIELDS_FILE, SECTIONS, TEXT_FILE, empty_fields, read_hand
from tests.release.release_made import write_hand, write_release


def culturekit(*words: str | Path) -> Result:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_card_is_built_and_checked(tmp_path: Path) -> None:
    release, hand = write_release(tmp_path / "run"), write_hand(tmp_path / "hand")
    out = tmp_path / "card"
    done = culturekit("card", "build", release, "--hand", hand, "--out", out, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["counts"]["cspace"] == 4
    assert not (out / "run.json").exists()
    assert culturekit("card", "check", out).exit_code == 0
    again = culturekit("card", "build", release, "--hand", hand, "--out", out, "--json")
    assert json.loads(again.stdout)["state"] == "reused"
    with (out / "README.md").open("a", encoding="utf-8") as file:
        file.write("More.\n")
    answer = culturekit("card", "check", out, "--json")
    assert answer.exit_code == 1
    found = json.loads(answer.stdout)
    assert {finding["code"] for finding in found} == {"page-edited", "file-changed"}
    assert {"file", "code", "expected", "found", "fix"} <= set(found[0])


def test_damage_leaves_with_4(card: Path) -> None:
    (card / "data/cspace/cuisine.parquet").unlink()
    answer = culturekit("card", "check", card)
    assert answer.exit_code == 4
    assert "data/cspace/cuisine.parquet: file-missing: expected a file" in answer.stdout


def test_a_changed_hand_gives_another_card(tmp_path: Path) -> None:
    release, hand = write_release(tmp_path / "run"), write_hand(tmp_path / "hand")
    words = ("card", "build", release, "--hand", hand, "--out", tmp_path / "card", "--json")
    assert culturekit(*words).exit_code == 0
    text = (hand / TEXT_FILE).read_text().replace("What the tests say about motivation.", "Another reason.")
    (hand / TEXT_FILE).write_text(text)
    answer = culturekit("card", "check", tmp_path / "card", "--hand", hand, "--json")
    assert (answer.exit_code, [found["code"] for found in json.loads(answer.stdout)]) == (1, ["hand-changed"])
    assert isinstance(culturekit(*words).exception, UsageError)
    assert json.loads(culturekit(*words, "--replace").stdout)["state"] == "built"
    assert "Another reason." in (tmp_path / "card/README.md").read_text()


def test_a_begun_hand_is_read_and_empty_throughout(tmp_path: Path) -> None:
    done = culturekit("card", "init", tmp_path / "hand", "--name", "mine")
    assert done.exit_code == 0, done.output
    empty = {name for _, name in empty_fields(read_hand(tmp_path / "hand"), dump_dated=True)}
    assert {"contact", "annotators.pay", "licence.id", *SECTIONS} <= empty
    built = culturekit(
        "card", "build", write_release(tmp_path / "run"), "--hand", tmp_path / "hand", "--out", tmp_path / "card"
    )
    assert built.exit_code == 0
    assert "to fill in: card.yaml: title" in built.stderr
    assert culturekit("card", "check", tmp_path / "card").exit_code == 1
    assert isinstance(culturekit("card", "init", tmp_path / "hand", "--name", "mine").exception, UsageError)


@pytest.mark.parametrize("name", [FIELDS_FILE, TEXT_FILE])
def test_a_missing_half_is_the_users_mistake(tmp_path: Path, name: str) -> None:
    hand = write_hand(tmp_path / "hand")
    (hand / name).unlink()
    done = culturekit("card", "build", write_release(tmp_path / "run"), "--hand", hand, "--out", tmp_path / "card")
    assert isinstance(done.exception, UsageError)
