"""A run: which folder a role has, and what a reader who has only the names of folders makes of them."""

from pathlib import Path

import pytest

from culturekit.core import roles
from culturekit.core.errors import UsageError
from culturekit.core.roles import Role
from culturekit.core.run import Run
from culturekit.core.stage import Outcome, Stage
from culturekit.recipes.cube.keys import load_recipe
from tests.conftest import SMALL, stages_of

STAGE = Stage("any", "nothing", 1, lambda _: Outcome(), {})


def test_a_stage_has_the_folder_of_its_role_and_gives_its_table(tmp_path: Path) -> None:
    run = Run(tmp_path, ("a", "b"))
    assert run.add(STAGE, roles.TRUTH, "a") == tmp_path / "truth-a/matches.parquet"
    assert run.add(STAGE, roles.INDEX) == tmp_path / "index"
    assert run.add(STAGE, roles.MATCHES_BY, "a", "words") == tmp_path / "matches-a-by-words/matches.parquet"
    assert [step.stage.name for step in run.steps] == ["truth-a", "index", "matches-a-by-words"]
    assert run.tables(roles.TRUTH) == {"truth-a": tmp_path / "truth-a/matches.parquet"}
    assert run.by_model(roles.TRUTH, file="x.csv") == {"a": tmp_path / "truth-a/x.csv"}
    assert run.tables(roles.MATCHES_BY, "words") == {"matches-a-by-words": run.table(roles.MATCHES_BY, "a", "words")}


def test_two_stages_never_share_a_folder(tmp_path: Path) -> None:
    run = Run(tmp_path, ("a", "a-by-b"))
    run.add(STAGE, roles.MATCHES, "a-by-b")
    with pytest.raises(UsageError, match="would write the folder 'matches-a-by-b'"):
        run.add(STAGE, roles.MATCHES_BY, "a", "b")
    settings = ["models.0.name=real", "realism.per_concept=false"]
    with pytest.raises(UsageError, match="would write the folder 'vectors-real'"):
        stages_of(load_recipe(SMALL, settings), tmp_path)


def test_every_role_has_a_name_that_is_read_back_by_the_models_that_are_known() -> None:
    forms = [each.form for each in vars(roles).values() if isinstance(each, Role)]
    assert len(set(forms)) == len(forms)
    run = Run(Path(), ("a-b", "b"), ("scorer-1-a-b", "scorer-2-b", "quality-b", "scores"))
    assert (run.variants(roles.SCORER, "a-b"), run.variants(roles.SCORER, "b")) == (["1"], ["2"])
    assert roles.IMAGES.read("images-c", ["a"]) is None
    assert roles.SCORES.read("scores", []) == ("", "")


def test_stages_that_share_a_budget_know_each_other_those_that_join_later_too(tmp_path: Path) -> None:
    run = Run(tmp_path, ["a"])
    first = run.sharing("llm", run.folder(roles.FILTER))
    run.sharing("images of a", run.folder(roles.IMAGES, "a"))
    second = run.sharing("llm", run.folder(roles.QUESTIONS))
    assert (list(first), list(second)) == ([run.folder(roles.QUESTIONS)], [run.folder(roles.FILTER)])
