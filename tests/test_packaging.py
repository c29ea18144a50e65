"""What is declared, installed and published."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest

from culturekit import version
from culturekit.version import install_line

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


def test_versions_that_are_known_to_work_are_named_with_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    known = tmp_path / "a checkout/constraints.txt"
    monkeypatch.setattr(version, "CONSTRAINTS", known)
    assert install_line("embed") == "pip install 'culturekit[embed]'"
    assert install_line(packages="protobuf") == "pip install protobuf"
    known.parent.mkdir()
    known.touch()
    assert install_line("embed") == f"pip install -c '{known}' 'culturekit[embed]'"
    monkeypatch.chdir(known.parent)
    assert install_line("embed") == "pip install -c constraints.txt 'culturekit[embed]'"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout, unpacked."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"needs a package index to build a wheel: {done.stderr.strip().splitlines()[-1:]}")
    (wheel,) = folder.glob("culturekit-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


@pytest.mark.endtoend
def test_the_wheel_has_its_data_and_nothing_of_the_checkout(unpacked: Path) -> None:
    for name in (
        "culturekit/recipe_files/cube.yaml",
        "culturekit/recipe_files/cube-release.yaml",
        "culturekit/recipe_files/recipe.schema.json",
        "culturekit/release/hand_written/cspace/card.yaml",
        "culturekit/people/cspace_review.yaml",
        "culturekit/kg/sample/wikidata-sample.json.gz",
        "culturekit/kg/concepts/cuisine.yaml",
        "culturekit/kg/countries.yaml",
        "culturekit/builders/wording/cspace_filter.txt",
        "culturekit/report/templates/report.html",
        "culturekit/py.typed",
    ):
        assert (unpacked / name).is_file(), name
    assert {path.name for path in unpacked.iterdir() if not path.name.endswith(".dist-info")} == {"culturekit"}
    assert list(unpacked.rglob("cube_1k*")) == []
    assert (unpacked / "culturekit/recipe_files/cube.yaml").read_bytes() == (ROOT / "recipes/cube.yaml").read_bytes()


@pytest.mark.endtoend
def test_the_demo_runs_from_the_wheel(unpacked: Path, tmp_path: Path) -> None:
    script = (
        "import culturekit, sys\n"
        "from culturekit.cli import main\n"
        "if __name__ == '__main__':\n"
        "    assert culturekit.__file__.startswith(sys.argv[1]), culturekit.__file__\n"
        "    sys.argv = ['culturekit', 'run', 'cube', '--set', 'images.repeats=1', '--set', 'concepts=[art]']\n"
        "    main()\n"
    )
    (tmp_path / "wheel_demo.py").write_text(script, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "wheel_demo.py", str(unpacked)], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "report: runs/cube/report/report.html"
    assert (tmp_path / "runs/cube/report/report.html").is_file()
