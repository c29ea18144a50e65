import numpy as np
import pytest
from scipy import stats

from culturekit.core.errors import UsageError
from culturekit.metrics import rater_model
from culturekit.metrics.corrected.audited_counts import added_distance, doubt_of


def answers(
    accuracy: tuple[float, ...], *, images: int, labels: int, seed: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Answers of raters of known accuracy about images of known labels."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(labels, size=images)
    image = np.repeat(np.arange(images), len(accuracy))
    rater = np.tile(np.arange(len(accuracy)), images)
    wrong = (truth[image] + rng.integers(1, labels, size=len(image))) % labels
    right = rng.random(len(image)) < np.array(accuracy)[rater]
    return truth, image, rater, np.where(right, truth[image], wrong)


def test_it_finds_who_is_good_and_beats_the_majority() -> None:
    truth, image, rater, said = answers((0.95, 0.7, 0.6), images=3000, labels=6, seed=1)
    model = rater_model(image, rater, said, labels=6)
    assert model.accuracy == pytest.approx([0.95, 0.7, 0.6], abs=0.03)
    votes = np.zeros((3000, 6))
    np.add.at(votes, (image, said), 1)
    by_model = (model.shares.argmax(axis=1) == truth).mean()
    assert by_model > (votes.argmax(axis=1) == truth).mean() + 0.02
    assert model.shares.sum(axis=1) == pytest.approx(np.ones(3000))
    assert model.shares.max(axis=1).mean() == pytest.approx(by_model, abs=0.02)  # probabilities mean what they say


def test_agreement_is_the_share_of_pairs_that_agree() -> None:
    image, rater = np.array([0, 0, 0, 1, 1]), np.array([0, 1, 2, 0, 1])
    assert rater_model(image, rater, np.array([2, 2, 1, 0, 0]), labels=3).agreement == pytest.approx(2 / 4)
    assert np.isnan(rater_model(np.arange(3), np.zeros(3, int), np.array([0, 1, 2]), labels=3).agreement)


def test_one_answer_per_image_is_taken_as_it_is() -> None:
    model = rater_model(np.arange(3), np.zeros(3, int), np.array([0, 1, 2]), labels=3)
    assert (model.shares == np.eye(3)).all()


def test_gold_items_tell_how_often_one_rater_is_right() -> None:
    truth, image, rater, said = answers((0.8,), images=2000, labels=6, seed=2)
    model = rater_model(image, rater, said, labels=6, gold=np.array([[200, 160]]))
    assert model.accuracy[0] == pytest.approx(169 / 210)
    assert model.right == pytest.approx((said == truth).mean(), abs=0.02)
    low = stats.beta(model.right * 210 + 0.5, (1 - model.right) * 210 + 0.5).ppf(0.025)
    assert model.doubt == pytest.approx((model.right - low) / 1.959964, rel=1e-6)
    assert model.doubt == pytest.approx((model.right * (1 - model.right) / 211) ** 0.5, rel=0.1)


def test_ten_gold_items_that_are_right_do_not_say_that_all_are() -> None:
    model = rater_model(np.arange(40), np.zeros(40, int), np.arange(40) % 4, labels=4, gold=np.array([[10, 10]]))
    assert model.right - 1.96 * model.doubt == pytest.approx(stats.beta(19.5, 1.5).ppf(0.025), abs=0.01)
    assert model.right - 1.96 * model.doubt < 0.8  # who is right in 80 of 100 meets that in one of nine cases


@pytest.mark.parametrize("seen", [12, 130, 460])
@pytest.mark.parametrize("right", [1.0, 0.99999, 0.999, 0.99])
def test_few_errors_leave_as_much_doubt_as_none(right: float, seen: int) -> None:
    none_seen = 1 - stats.beta(seen + 0.5, 0.5).ppf(0.025)
    assert doubt_of(right, seen) > 0  # it was below 0, or 0
    assert doubt_of(right, seen) * 1.959964 >= none_seen - (1 - right) - 1e-9


def test_what_raters_do_to_all_parts_adds_up_and_the_rest_in_squares() -> None:
    assert added_distance([(0.5, 0.3, 0.3), (0.5, 0.4, 0.4)]) == pytest.approx(0.25)
    assert added_distance([(0.5, 0.5, 0.4), (0.5, 0.5, 0.3)]) == pytest.approx(np.hypot(0.25, (0.3 + 0.4) / 2))
    assert added_distance([(1.0, 0.5, 0.6)]) == pytest.approx(0.5)  # a limit at its end: what is sure is no more


def test_answers_that_nothing_holds_do_not_tell_how_good_a_rater_is() -> None:
    _, image, rater, said = answers((0.8,), images=500, labels=6, seed=3)
    few, many = (rater_model(image[:n], rater[:n], said[:n], labels=6, gold=np.array([[10, 9]])) for n in (100, 500))
    assert few.accuracy == many.accuracy == pytest.approx([0.9])


@pytest.mark.parametrize(("said", "labels"), [([0, 3], 3), ([], 3), ([0, 1, 2], 3)])
def test_wrong_arguments_are_named(said: list[int], labels: int) -> None:
    with pytest.raises(UsageError, match=r"answers must be|labels must be"):
        rater_model(np.arange(2), np.zeros(2, int), np.array(said, int), labels=labels)
