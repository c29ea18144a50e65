"""The examples of the Python API, run in the order of the page, on the finished run that all tests share."""

import doctest
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_examples_give_what_they_say(small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/cube").symlink_to(small_run)
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8").replace("```python\n", "").replace("```", "")
    example = doctest.DocTestParser().get_doctest(page, {}, "api", "docs/reference/api.md", 0)
    report: list[str] = []
    done = doctest.DocTestRunner().run(example, out=report.append)
    assert done.attempted >= 20
    assert not done.failed, "".join(report)


def test_every_public_name_has_an_example() -> None:
    import culturekit

    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    used = [name for name in culturekit.__all__ if f"ck.{name}" in page]
    assert used == culturekit.__all__
