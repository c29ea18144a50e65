"""The stage of a family: inputs that give no score are refused, and not written as an empty table."""

from pathlib import Path

import pytest

from culturekit.errors import UsageError
from culturekit.families.family_stage import family_stage
from culturekit.metrics.scoring.score_rows import scored
from culturekit.pipeline.run_stage import run_stage
from tests.conftest import HeardProgress, HereEngine


def test_nothing_scored_is_a_mistake_that_says_what_was_left_out(tmp_path: Path) -> None:
    stage = family_stage("empty", {}, {}, lambda _: scored([], left_out={"images not described": 45}))
    with pytest.raises(UsageError, match=r"nothing could be scored; .*found images not described: 45"):
        run_stage(stage, tmp_path / "out", engine=HereEngine(), progress=HeardProgress())
    assert not (tmp_path / "out").exists()


def test_a_recipe_can_do_without_scores_that_are_not_required(tmp_path: Path) -> None:
    stage = family_stage("empty", {}, {}, lambda _: scored([], left_out={"few": 1}), required=False)
    assert run_stage(stage, tmp_path / "out", engine=HereEngine(), progress=HeardProgress()).manifest.counts == {
        "scores": 0
    }
