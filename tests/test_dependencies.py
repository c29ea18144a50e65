"""What is declared is imported, also where deptry cannot see it: packages that are imported by name, when asked for."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
BY_NAME = re.compile(r"""(?:import_module|needed_package)\(\s*["']([A-Za-z_0-9]+)""")


@pytest.fixture(scope="module")
def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_what_deptry_is_told_to_pass_over_is_imported_by_name(project: dict[str, Any]) -> None:
    """Deptry sees `import x`, and not `module = importlib.import_module("x")`."""
    sources = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "culturekit").rglob("*.py"))
    imported = {*BY_NAME.findall(sources), "faiss"}  # one of two packages that give it
    names = project["tool"]["deptry"]["package_module_name_map"]
    passed_over = project["tool"]["deptry"]["per_rule_ignores"]["DEP002"]
    assert {name for name in passed_over if names[name] not in imported} == set()


def test_extras_that_gather_others_gather_all_of_them(project: dict[str, Any]) -> None:
    extras = project["project"]["optional-dependencies"]
    for gathering, search in (("all", "faiss-cpu"), ("all-gpu", "faiss-gpu")):
        (line,) = extras[gathering]
        expected = extras.keys() - {"all", "all-gpu", "dev", "faiss-cpu", "faiss-gpu"} | {search}
        assert set(line.removeprefix("culturekit[").removesuffix("]").split(",")) == expected
