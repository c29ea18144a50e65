"""What a recipe `cultivate` is refused for before anything runs."""

import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.errors import UsageError


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
        load_any_recipe(find_recipe("cultivate"), [stated])
