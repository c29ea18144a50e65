"""The stage of a family: where nothing can be scored, a command refuses what it was given, and a run goes on."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from culturekit.core.errors import NothingScored
from culturekit.core.roles import Role
from culturekit.core.run import Run, run_stage
from culturekit.core.schemas import ANNOTATIONS, MATCHES, SCORES, TASK1, TASK2
from culturekit.core.tables import read_table, write_table
from culturekit.recipes.c3.scores import score_c3
from culturekit.recipes.inclusion.scores import score_task1, score_task2
from culturekit.scores.family import Scored, family_stage, scored
from culturekit.scores.inputs import LabelledVectors
from culturekit.scores.ratings import RatingOptions, score_ratings
from tests.command_line import culturekit
from tests.conftest import HereEngine, stage_here

NOBODY: dict[str, Callable[[], Scored]] = {
    "no rows": lambda: scored([], left_out={"images not described": 45}),
    "task1": lambda: score_task1(pl.DataFrame(schema=TASK1.schema)),
    "task2": lambda: score_task2(pl.DataFrame(schema=TASK2.schema)),
    "c3": lambda: score_c3({"target": LabelledVectors(np.ones((1, 4), np.float32), ["a"])}).scored,
    "ratings": lambda: score_ratings(pl.DataFrame(schema=ANNOTATIONS.schema), options=RatingOptions()),
}


def test_nothing_scored_is_a_mistake_that_says_what_was_left_out(tmp_path: Path) -> None:
    stage = family_stage("empty", {}, {}, lambda _: NOBODY["no rows"]())
    with pytest.raises(NothingScored, match=r"nothing could be scored; .*found images not described: 45"):
        stage_here(stage, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("family", list(NOBODY))
def test_a_command_refuses_what_gives_no_score_and_a_run_goes_on_without_it(family: str, tmp_path: Path) -> None:
    stage = family_stage(family, {}, {}, lambda _: NOBODY[family]())
    with pytest.raises(NothingScored):
        run_stage(stage, tmp_path / "alone", engine=HereEngine())
    run = Run(tmp_path)
    run.add(stage, Role("nobody", holds="scores"))
    (step,) = run.steps
    done = run_stage(step.stage, tmp_path / "nobody", engine=HereEngine())
    assert done.manifest.counts == {"scores": 0}
    assert done.manifest.drops
    assert read_table(tmp_path / "nobody/scores.parquet", SCORES).is_empty()


@pytest.mark.parametrize("command", ["qvs", "distribution"])
def test_matches_of_which_nothing_can_be_said_are_refused(command: str, tmp_path: Path) -> None:
    matches = write_table(tmp_path, MATCHES, pl.DataFrame(schema=MATCHES.schema))
    done = culturekit("score", command, "--matches", matches, "--out", tmp_path / "out")
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing could be scored" in done.stderr or "no image has a nearest match" in done.stderr
