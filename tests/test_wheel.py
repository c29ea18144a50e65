"""What is published works on its own, without the checkout around it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.endtoend

ROOT = Path(__file__).parents[1]


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
