"""What a recipe `cultivate` is refused for before anything runs."""

from pathlib import Path

import pytest

from culturekit.config.kinds import AnyRecipe
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.errors import UsageError
from tests.conftest import stages_of


def cultivate(*stated: str) -> AnyRecipe:
    return load_any_recipe(find_recipe("cultivate"), stated)


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ("ground.countries=[US,US]", "named twice: US"),
        ("raters=[simulated:a, simulated:a]", "named twice: simulated:a"),
        ("models=[{name: all, backend: simulated-scenes}]", "no model can be called all"),
        ("models=[{name: real, backend: simulated-scenes}]", "no model can be called real"),
        ("scores.confidence=95", "less than or equal to 0.9999"),
    ],
)
def test_names_stand_for_one_thing_and_a_confidence_is_a_share(stated: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        cultivate(stated)


@pytest.mark.parametrize(("scores", "like"), [("quantile: 0.75", "ahead"), ("tau: 0.4", None)])
def test_the_truth_is_scored_at_the_threshold_that_was_found(tmp_path: Path, scores: str, like: str | None) -> None:
    stages = {stage.name: stage for stage in stages_of(cultivate(f"scores={{{scores}}}"), tmp_path)}
    truth = stages["ahead-truth"]
    assert (truth.inputs["like"].parent.name if like else truth.inputs.get("like")) == like
    assert truth.options["tau"] == (None if like else 0.4)
