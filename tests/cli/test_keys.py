"""A key given in the wrong place on the command line is refused, and repeated nowhere."""

import sys
from pathlib import Path

import pytest

from culturekit.core.stage import hold
from tests.command_line import culturekit
from tests.conftest import SMALL

CANARY = "c4n4ry7f3a9d21b"


@pytest.mark.parametrize("spec", [
    f"openai:m?api_key={CANARY}", f"openai:m?api_key=sk-{CANARY}{CANARY}",
    f"openai:m?base_url=http://jane:{CANARY}@127.0.0.1:1/v1", f"openai:sk-{CANARY}{CANARY}", f"rules?password={CANARY}",
    f"?api_key={CANARY}", f"openai:m?api_key:{CANARY}=",
])  # fmt: skip
def test_a_spec_with_a_key_ends_with_2_and_without_an_echo(spec: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(SMALL.read_text(encoding="utf-8"), encoding="utf-8")
    words = ("-v", "run", recipe, "--set", f"judge={spec}", "--workdir", out)
    done = culturekit(*words, env={"OPENAI_API_KEY": CANARY}, ends=2)
    assert "a key is written out here" in done.stderr
    assert CANARY not in done.stdout + done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file() and CANARY in path.read_text(errors="replace")]
    assert written == []


def test_the_command_of_a_lock_shows_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/culturekit", "run", "--llm", f"openai:m?api_key={CANARY}"])
    with hold(tmp_path / "lock"):
        assert '"culturekit run --llm openai:m?api_key=[key]"' in (tmp_path / "lock").read_text()
