"""The answer on the first screen: each sentence against the numbers beside it."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from culturekit.report.charts import ModelLine, Seen, in_order
from culturekit.report.headline import Floor, Verdict, question_about, verdict_on
from tests.report.pages import figure, line

BLIND = Floor("clip", {"apple": 0.52, "pear": 0.47, "noise": 0.55, "real": 0.97, "fig": 0.98})
"""An encoder that tells the images of two models from pictures of nothing, and of the others hardly."""


def told(*lines: ModelLine, floor: Floor | None = None, apart: frozenset[tuple[str, str]] = frozenset()) -> str:
    found = verdict_on(in_order(lines), floor=floor, apart=apart)
    return " ".join((found.headline, *found.sentences))


def test_a_simulated_model_that_shows_nothing_and_passes_others_is_lying() -> None:
    liar = line("mirage", 0.8, 0.125, free=1200, similarity=0.7)
    honest = line("atlas", 0.7, 0.69, free=0, similarity=0.97)
    found = verdict_on([honest, liar])
    assert (found.named, found.headline) == (("mirage",), "mirage is lying.")
    assert "rank 1 of 2. None of its 1,200 images shows any artifact" in found.sentences[0]
    assert "median similarity 0.70, where the other models have at least 0.97" in found.sentences[1]
    assert question_about([honest, liar]) == "Which of these two models is lying?"
    assert verdict_on([honest]).named == ()
    unscored = verdict_on([honest, line("short", math.nan, math.nan, free=0, similarity=0.97)])
    assert unscored.named == ()
    assert "too few batches" in unscored.sentences[0]


def test_a_biased_model_and_one_that_is_last_both_ways_are_not_lying() -> None:
    biased = line("biased", 0.4, 0.2, free=0, similarity=0.97)
    honest = line("atlas", 0.7, 0.69, free=0, similarity=0.97)
    last = line("blank", 0.3, 0.125, free=1200, similarity=0.7)
    assert verdict_on([honest, biased]).named == ()
    assert verdict_on([honest, biased, last]).named == ()
    assert "lying" not in told(honest, biased, last)


def test_models_of_users_are_named_for_what_people_saw_and_an_interval_decides() -> None:
    real = line("apple", 0.8, None, free=None, similarity=0.9, corrected=0.13, nothing=0.97)
    assert verdict_on([real]).headline == "apple shows no artifact that people recognise."
    assert "Of 150 of its images that people looked at, 97% (96 to 98 % of all)" in told(real)
    assert question_about([real, real]) == "What do these two models show?"
    doubtful = line("pear", 0.8, None, free=None, similarity=0.9, corrected=0.3, nothing=0.505)
    assert verdict_on([doubtful]).named == ()
    mostly = line("plum", 0.8, None, free=None, similarity=0.9, corrected=0.3, nothing=0.7)
    assert "in most of its images" in verdict_on([mostly]).headline
    overrated = line("fig", 0.8, None, free=None, similarity=0.9, corrected=0.3, nothing=0.02)
    assert verdict_on([overrated]).named == ()
    for each in (real, doubtful, mostly, overrated):
        assert "lying" not in told(each)


def test_without_people_or_truth_nobody_is_named() -> None:
    noise = line("noise", 0.8, None, free=None, similarity=0.73)
    real = line("real", 0.7, None, free=None, similarity=0.9)
    found = verdict_on([real, noise], floor=BLIND)
    assert found.named == ()
    assert found.headline == "As mapped, noise shows most; nobody knows yet how often the mapping is right."
    assert "noise are hardly nearer to any artifact than pictures of nothing are (nearer in 55%" in found.sentences[0]
    assert "Only an audit can tell" in found.sentences[0]
    assert found.sentences[-1].endswith("an audit of some images by people would say by how much.")
    assert "hardly nearer" not in told(real, floor=BLIND)


def test_an_encoder_that_sees_nothing_is_named_unless_people_saw_that_it_maps_rightly() -> None:
    """It was said to fail where it mapped 62 to 85 % of images to the country that people saw."""
    blind = [line(name, 0.8, None, free=None, similarity=0.99) for name in ("apple", "pear")]
    found = verdict_on(blind, floor=BLIND)
    assert found.headline == "The encoder clip hardly tells these images from pictures of nothing."
    looked_at = [
        replace(one, corrected=figure(0.6, 4), seen=seen(right)) for one, right in zip(blind, (0.62, 0.85), strict=True)
    ]
    audited = verdict_on(looked_at, floor=BLIND)
    assert "encoder" not in " ".join((audited.headline, *audited.sentences))
    assert "the country they saw in 62% (61 to 63 %) of apple and 85% (84 to 86 %) of pear" in audited.sentences[0]
    wrong = verdict_on([replace(one, seen=seen(0.25)) for one in looked_at], floor=BLIND)
    assert wrong.headline == "Most images of apple and pear are mapped to something they do not show."


def test_a_model_that_draws_one_artifact_is_no_error_of_the_encoder() -> None:
    """Pictures of nothing scatter over many artifacts: that they score more than a narrow model says nothing."""
    narrow = line("fig", 0.13, 0.125, free=0, similarity=0.97)
    assert verdict_on([narrow], floor=BLIND) == Verdict(
        (), "No model surely shows less than its mapped diversity says.", ()
    )


def test_the_answer_says_who_shows_most_and_of_whom_that_is_sure() -> None:
    lines = [line(name, 0.5, None, free=None, similarity=0.9, corrected=value, nothing=0.0)
             for name, value in (("a", 0.6), ("b", 0.5), ("c", 0.2))]  # fmt: skip
    sure = {("a", "c"), ("b", "c")}
    assert verdict_on(lines, apart=sure).headline == "a shows most, surely more than c; whether more than b is open."
    assert verdict_on(lines).headline == "a shows most, but not surely more than any other model."
    assert verdict_on(lines, apart={*sure, ("a", "b")}).headline == "a shows most, surely more than every other model."


def test_models_that_move_without_being_sure_are_said_to_move() -> None:
    """Mapped 2nd and corrected 4th stood beside "no two models surely stand in another order than mapped"."""
    drawn = (("a", 0.6, 0.61), ("b", 0.55, 0.4), ("c", 0.5, 0.5), ("d", 0.45, 0.45))
    lines = [
        line(name, mapped, None, free=None, similarity=0.9, corrected=value, nothing=0.0)
        for name, mapped, value in drawn
    ]
    text = told(*lines, apart=frozenset({("a", "b")}))
    assert "Corrected, b moves from 2nd to 4th place, but which of two models shows more is not sure" in text
    assert "in the order in which they are mapped" in told(*lines[:1], lines[2])


def seen(right: float) -> Seen:
    return Seen(150, figure(0.02, 5), {"country": figure(right, 6)})


@pytest.mark.parametrize("seed", range(6))
def test_no_sentence_is_denied_by_the_numbers_beside_it(seed: int) -> None:
    rng = np.random.default_rng(seed)
    kinds = set()
    for _ in range(100):
        lines, floor, apart = random_lines(rng)
        found = verdict_on(lines, floor=floor, apart=apart)
        check_sentences(" ".join((found.headline, *found.sentences)), {one.model: one for one in lines}, floor, apart)
        kinds.add(found.headline.partition(" ")[2][:12])
    assert len(kinds) > 5


def check_sentences(
    text: str, of: dict[str, ModelLine], floor: Floor | None, apart: frozenset[tuple[str, str]]
) -> None:
    """Read each sentence that names models or numbers, and hold it to what it speaks of."""
    corrected = {name: one.corrected.value for name, one in of.items() if one.corrected}
    if "No model surely shows less" in text:
        assert not any(one.reality and (one.reality.high or 1.0) < one.mapped.value for one in of.values())
    if less := re.search(r"(\w+) surely shows less than its mapped diversity says: ", text):
        real = of[less[1]].reality
        assert real is not None
        assert real.value < of[less[1]].mapped.value
    if first := re.search(r"In truth (\w+) shows most", text):
        true = {name: one.truth.value for name, one in of.items() if one.truth}
        assert true[first[1]] == max(true.values())
    assert "nobody knows yet" not in text or not all(one.truth for one in of.values())
    mapped = {name: one.mapped.value for name, one in of.items()}
    if first := re.search(r"As mapped, (\w+) shows most", text):
        assert mapped[first[1]] == max(mapped.values())
        assert not corrected
    elif first := re.search(r"(\w+) shows most, (.*?)[.;]", text):
        assert corrected[first[1]] == max(corrected.values())
        named = [name for name in of if re.search(rf"surely more than .*\b{name}\b", first[2])]
        named = [name for name in of if name != first[1]] if "the other" in first[2] or "every" in first[2] else named
        assert all((first[1], name) in apart for name in named) or "not surely" in first[2]
    for name, before, after in re.findall(r"(\w+) moves from (\d)\w\w to (\d)\w\w place", text):
        for place, values in ((before, mapped), (after, corrected)):
            assert sorted(values, key=values.__getitem__, reverse=True).index(name) + 1 == int(place)
    if "moves from" in text or "in the order in which they are mapped" in text:
        assert not any(mapped[more] < mapped[less] for more, less in apart)
    for share, name in re.findall(r"(\d+)% \([^)]*\) of (\w+)", text.partition("country they saw")[2]):
        right = of[name].recognised
        assert right is not None
        assert f"{right.value:.0%}" == f"{share}%"
    if blurred := re.search(r"The images of ([^.]*?) are hardly nearer", text):
        for name in (name for name in of if re.search(rf"\b{name}\b", blurred[1])):
            assert floor is not None
            assert floor.nearer[name] <= 0.6
            assert of[name].recognised is None
    if wrong := re.search(r"Most images of (.*?) are mapped to something", text):
        rates = [of[name].recognised for name in of if re.search(rf"\b{name}\b", wrong[1])]
        assert all(rate is not None and rate.value < 0.5 for rate in rates)


def random_lines(rng: np.random.Generator) -> tuple[list[ModelLine], Floor | None, frozenset[tuple[str, str]]]:
    """Draw models as runs have them, audited or not, of known truth or not; sure pairs stand in corrected order."""
    names = ["ash", "birch", "cedar", "dahlia", "elm"][: int(rng.integers(1, 6))]
    audited, known = rng.random() < 0.6, rng.random() < 0.3
    lines = []
    for name in names:
        mapped, true, corrected, right, similarity = (round(float(one), 3) for one in rng.random(5))
        free = int(rng.choice([0, 0, 700, 1200])) if known else None
        one = line(name, mapped, true if known else None, free=free, similarity=similarity)
        lines.append(replace(one, corrected=figure(corrected, 4), seen=seen(right)) if audited else one)
    values = {one.model: one.corrected.value for one in lines if one.corrected}
    pairs = [(a, b) for a in values for b in values if values[a] > values[b] + 0.1 and rng.random() < 0.7]
    floor = Floor("clip", {name: float(rng.random()) for name in names}) if rng.random() < 0.7 else None
    return lines, floor, frozenset(pairs)
