from itertools import pairwise

import pytest

from tests.generation.simulated.dials import DIALS, Dial, drawn_share, knob_for
from tests.generation.simulated.simulated_models import wide_space


@pytest.mark.parametrize("dial", DIALS)
@pytest.mark.parametrize("artifacts", [100, 1000, 10_000])
def test_less_accuracy_takes_more_of_the_knob(dial: Dial, artifacts: int) -> None:
    knobs = [knob_for(dial, accuracy / 100, artifacts=artifacts) for accuracy in range(97, 59, -1)]
    assert all(0 < less < more < 1 for less, more in pairwise(knobs))


def test_what_cannot_be_drawn_away_keeps_its_accuracy() -> None:
    assert knob_for("drift", 0.8, artifacts=1000, drawn=0.5) > knob_for("drift", 0.8, artifacts=1000)


def test_the_drawn_share_leaves_out_hubs_and_dominant_countries() -> None:
    cspace = wide_space(80)
    assert drawn_share("confusability", cspace) == 1
    assert drawn_share("hub_skew", cspace) == pytest.approx(77 / 80)
    assert drawn_share("hub_skew", cspace, hubs=8) == pytest.approx(72 / 80)
    assert drawn_share("drift", cspace) == pytest.approx(6 / 8)
    assert drawn_share("drift", cspace, drift_to=("US",)) == pytest.approx(7 / 8)
