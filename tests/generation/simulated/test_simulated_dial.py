from itertools import pairwise

import pytest

from culturekit.core.errors import UsageError
from culturekit.generation.simulated.simulated_backend import Dial, drawn_share, knob_for
from tests.generation.simulated.simulated_models import wide_space

DIALS: tuple[Dial, ...] = ("confusability", "hub_skew", "drift")


@pytest.mark.parametrize("dial", DIALS)
@pytest.mark.parametrize("artifacts", [100, 1000, 10_000])
def test_less_accuracy_takes_more_of_the_knob(dial: Dial, artifacts: int) -> None:
    knobs = [knob_for(dial, accuracy / 100, artifacts=artifacts) for accuracy in range(97, 59, -1)]
    assert all(0 < less < more < 1 for less, more in pairwise(knobs))


def test_what_cannot_be_drawn_away_keeps_its_accuracy() -> None:
    assert knob_for("drift", 0.8, artifacts=1000, drawn=0.5) > knob_for("drift", 0.8, artifacts=1000)
    with pytest.raises(UsageError, match=r"drift cannot bring the accuracy down to 0\.6; expected more than 0\.70"):
        knob_for("drift", 0.6, artifacts=1000, drawn=0.3)


@pytest.mark.parametrize(("accuracy", "artifacts"), [(0.99, 1000), (0.5, 1000), (0.8, 50), (0.8, 20_000)])
def test_the_curves_are_not_stretched_beyond_what_was_measured(accuracy: float, artifacts: int) -> None:
    with pytest.raises(UsageError, match="no curve reaches"):
        knob_for("hub_skew", accuracy, artifacts=artifacts)


def test_the_drawn_share_leaves_out_hubs_and_dominant_countries() -> None:
    cspace = wide_space(80)
    assert drawn_share("confusability", cspace) == 1
    assert drawn_share("hub_skew", cspace) == pytest.approx(77 / 80)
    assert drawn_share("hub_skew", cspace, hubs=8) == pytest.approx(72 / 80)
    assert drawn_share("drift", cspace) == pytest.approx(6 / 8)
    assert drawn_share("drift", cspace, drift_to=("US",)) == pytest.approx(7 / 8)
