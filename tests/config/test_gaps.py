"""The key `gaps` of a recipe."""

from pathlib import Path

import pytest

from culturekit.config.load import load_recipe
from culturekit.errors import ConfigError, UsageError
from tests.conftest import SMALL, stages_of


def test_gaps_come_after_what_is_scored_within_countries(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, ["gaps.scheme=cultivate", "within.repeats=2"])
    stages = {stage.name: stage for stage in stages_of(recipe, tmp_path)}
    assert stages["gaps"].inputs == {"values-0": tmp_path / "within/values.parquet"}
    assert "gaps" in stages["report"].inputs
    assert list(stages).index("within") < list(stages).index("gaps") < list(stages).index("report")


def test_gaps_without_scores_within_countries_are_refused() -> None:
    with pytest.raises(ConfigError, match="nothing is scored within countries"):
        load_recipe(SMALL, ["gaps.scheme=cultivate"])


def test_a_scheme_that_nobody_knows_is_refused(tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, ["gaps.scheme=hemispheres", "within.repeats=2"])
    with pytest.raises(UsageError, match="no scheme 'hemispheres'"):
        stages_of(recipe, tmp_path)
