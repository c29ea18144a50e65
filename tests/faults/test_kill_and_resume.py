from pathlib import Path

import pytest

from tests.conftest import SMALL
from tests.effort import examples
from tests.faults.kill_and_resume import content, kill_and_resume, run_command
from tests.pipeline.shipped_recipes import SMALL as SHIPPED

# Small, and with every kind of stage of the recipe.
INCLUSION = (
    "models=[{name: local, backend: 'simulated-objects?crude=0.1'}]", "images.slots=4", "photographs.each=8",
    "extractors=[{name: captioner, encoder: 'simulated-objects?blur=0.9'}]", "people.images=2", "people.far=0",
)  # fmt: skip
CUBE = Path(__file__).parents[2] / "recipes/cube.yaml"


@pytest.mark.endtoend
def test_a_killed_run_ends_in_the_same_bytes(tmp_path: Path) -> None:
    result = kill_and_resume(SMALL, tmp_path, kills=3, seed=7, longest=3.0)
    assert len(result.kills) == 3
    assert result.different == []


@pytest.mark.slow
def test_kills_of_the_cube_recipe_end_in_the_same_bytes(tmp_path: Path) -> None:
    result = kill_and_resume(CUBE, tmp_path, kills=examples(30), seed=3, longest=5.0)
    assert len(result.kills) == examples(30)
    assert result.different == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "stated", "kills"),
    [
        ("c3", SHIPPED["c3"], 30),
        ("cultivate", SHIPPED["cultivate"], 30),
        ("linguistic", SHIPPED["linguistic"], 30),
        ("inclusion", INCLUSION, 6),
    ],
)
def test_kills_of_other_recipes_end_in_the_same_bytes(
    tmp_path: Path, name: str, stated: tuple[str, ...], kills: int
) -> None:
    recipe = CUBE.with_name(f"{name}.yaml")
    result = kill_and_resume(recipe, tmp_path, kills=examples(kills), seed=5, longest=6.0, stated=stated)
    assert len(result.kills) == examples(kills)
    assert result.different == []


def test_the_comparison_sees_a_single_changed_byte(tmp_path: Path) -> None:
    (tmp_path / "stage").mkdir()
    (tmp_path / "stage/table.parquet").write_bytes(b"one")
    (tmp_path / "stage/run.json").write_bytes(b"{}")
    before = content(tmp_path)
    (tmp_path / "stage/table.parquet").write_bytes(b"onf")
    (tmp_path / "stage/run.json").write_bytes(b"other")
    assert [name for name in before if content(tmp_path)[name] != before[name]] == ["stage/table.parquet"]
    assert "--workers" in run_command(CUBE, tmp_path)
