import json
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from culturekit.cli import doctor_command
from culturekit.cli.doctor_command import KEYS, Check, keys, packages, problem_with
from tests.command_line import culturekit


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name, raising=False)


def test_the_command_looks_at_everything(tmp_path: Path) -> None:
    answer = culturekit("doctor", "--workdir", tmp_path / "not/yet/there", "--json")
    data = json.loads(answer.stdout)
    assert answer.returncode == (0 if data["ok"] else 1)
    assert {check["group"] for check in data["checks"]} == {"core", "extras", "devices", "keys", "data", "machine"}
    text = culturekit("doctor", "--workdir", tmp_path).stdout
    assert "machine" in text
    assert text.rstrip().endswith("broken")


def test_a_key_is_told_by_name_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-quite-secret-1234567890")
    monkeypatch.setenv("HF_TOKEN", "  ")
    monkeypatch.setenv("GOOGLE_API_KEY", "abc123 ")
    found = {check.name: check for check in keys()}
    assert found["OPENAI_API_KEY"].level == "ok"
    assert "secret" not in str(found)
    assert "abc123" not in str(found)
    assert found["HF_TOKEN"].level == "broken"
    assert found["GOOGLE_API_KEY"].level == "broken"
    assert found["GEMINI_API_KEY"].level == "absent"


def extras() -> dict[str, Check]:
    return {check.name: check for check in packages()}


def with_versions(monkeypatch: pytest.MonkeyPatch, installed: dict[str, str]) -> None:
    def version(name: str) -> str:
        if name not in installed:
            raise PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(doctor_command, "version", version)


def test_an_extra_that_is_not_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with_versions(monkeypatch, {"openai": "2.1", "google-genai": "2.0.0"})
    found = extras()
    assert found["llm"].level == "ok"
    assert found["embed"].level == "absent"
    assert found["embed"].hint == "pip install -c constraints.txt 'culturekit[embed]'"
    assert found["packages"].level == "broken"
    assert "numpy is not installed" in found["packages"].found


def test_a_package_that_is_too_old_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    with_versions(
        monkeypatch, {"openai": "1.9", "google-genai": "2.0.0", "faiss-cpu": "1.10", "faiss-gpu-cuvs": "1.10"}
    )
    found = extras()
    assert found["llm"].level == "broken"
    assert "openai 1.9 is older than 2" in found["llm"].found
    assert found["search"].level == "broken"
    assert problem_with("openai>=1.2") is None
    assert problem_with("openai>=1.10") == "openai 1.9 is older than 1.10"
