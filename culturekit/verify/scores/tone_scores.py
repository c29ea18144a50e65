"""Shares and spreads of skin tones, with their limits: from the tones of pictures, by a rule and by people."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, TypeAlias

import polars as pl

from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, clustered_share, wilson
from culturekit.verify.scores.people_answers import read_answers
from culturekit.verify.scores.student import t_quantile

__all__ = ["deviation", "distance", "tone_answers"]

Rows: TypeAlias = Sequence[dict[str, Any]]
TONES = range(1, 11)
METRICS = ("tone_share", "tone_std", "tone_mad")
FEWEST_ERRORS, FEWEST_PAIRS, MISSED = 5, 30, 0.05
MOST = {"tone_std": 0.3, "tone_mad": 0.18}


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture: what repeats may share with it, its tone by the rule, and the tones that people named."""

    unit: str
    found: int | None
    named: Sequence[int | None] = ()

    def weights(self) -> list[float]:
        """Give the share of people who named each tone."""
        return [self.named.count(tone) / len(self.named) for tone in TONES]

    def of_skin(self) -> list[float]:
        """Give the share of those who named a tone that named each: who saw nobody says nothing of it."""
        return [weight / fsum(self.weights()) for weight in self.weights()]

    def by_rule(self) -> list[float]:
        """Give the tone that the rule found the whole weight."""
        return [float(self.found == tone) for tone in TONES]


def deviation(numbers: Sequence[float], less: int = 0) -> float:
    """Give the standard deviation, over n or over n less one."""
    middle = fsum(numbers) / len(numbers)
    return math.sqrt(fsum((one - middle) ** 2 for one in numbers) / (len(numbers) - less))


def distance(numbers: Sequence[float]) -> float:
    """Give the mean absolute deviation."""
    middle = fsum(numbers) / len(numbers)
    return fsum(abs(one - middle) for one in numbers) / len(numbers)


SPREADS = {"tone_std": deviation, "tone_mad": distance}


def tone_answers(tree: RunTree, stage: FinishedStage, rows: Rows, values: Rows) -> Iterator[tuple[int, Answer]]:
    """Give what each row of tones should say."""
    confidence, known = float(stage.manifest.options["confidence"]), KnownPictures(tree, stage, values)
    answers: dict[tuple[Any, ...], Mapping[tuple[str, int], Answer]] = {}
    for row in rows:
        about = row["about"]
        if row["metric"] not in METRICS:
            continue
        key = row["model"], row["group"], about.get("pool"), about.get("labels")
        if key not in answers:
            every = known.pictures(*key)
            right = corrected if key[3] else plain
            answers[key] = {} if every is None else right(every, confidence, people=key[2] is not None)
        found = answers[key].get((row["metric"], int(about.get("tone", 0))))
        if found is not None:
            yield row["row"], found


class KnownPictures:
    """The pictures of a stage, with the tones that its rule found and what people say of them."""

    def __init__(self, tree: RunTree, stage: FinishedStage, values: Rows) -> None:
        """Read what the stage read."""
        images, prompts = tree.sources_of(stage, "images.parquet"), tree.source(stage, "prompts")
        asked = {} if prompts is None else dict(pl.read_parquet(prompts).select("prompt_id", "group").iter_rows())
        rule = {one["item"]: round(one["value"]) for one in values if one["metric"] == "mean_tone"
                and one["group"] is None and "pool" not in one["about"]}  # fmt: skip
        self.here = bool(images)
        self.images = [
            (row["image_id"], row["model"], asked.get(row["prompt_id"]), row["prompt_id"] or row["image_id"])
            for _, path in images for row in pl.read_parquet(path).iter_rows(named=True)
            if row["status"] == "ok" and (prompts is None or row["prompt_id"] in asked)
        ]  # fmt: skip
        self.rule = rule
        self.sample = {image for _, path in tree.sources_of(stage, "audit_sample.parquet")
                       for image in pl.read_parquet(path)["image_id"]}  # fmt: skip
        self.said: dict[tuple[str, str], list[int | None]] = defaultdict(list)
        for _, path in tree.sources_of(stage, "annotations.parquet"):
            for one in read_answers(path, "region"):
                if one.criterion == "monk_tone" and (one.value is None or one.value in TONES):
                    self.said[one.pool, one.item].append(None if one.value is None else int(one.value))

    def pictures(self, model: str, group: str | None, pool: str | None, labels: str | None) -> list[Picture] | None:
        """Gather the pictures of a score; what nobody of the pool was asked about, or may count, has no names."""
        if not self.here:
            return None
        return [
            Picture(unit, self.rule.get(image),
                    self.said.get((pool, image), ()) if pool and (labels is None or image in self.sample) else ())
            for image, its_model, its_group, unit in self.images if its_model == model and group in (None, its_group)
        ]  # fmt: skip


def plain(pictures: Sequence[Picture], confidence: float, *, people: bool) -> dict[tuple[str, int], Answer]:
    """Count what the rule found, or people named, prompt by prompt."""
    seen = [one for one in pictures if (any(one.named) if people else one.found is not None)]
    if not seen:
        return {}
    table = [one.of_skin() if people else one.by_rule() for one in seen]
    units: dict[str, list[int]] = defaultdict(list)
    for place, one in enumerate(seen):
        units[one.unit].append(place)
    found = {}
    for tone in TONES:
        column = [row[tone - 1] for row in table]
        found["tone_share", tone] = clustered_share(column, [[one.unit for one in seen]], confidence)
    sums = [([fsum(table[place][tone] for place in places) for tone in range(10)], len(places))
            for places in units.values()]  # fmt: skip
    for metric, most in MOST.items():
        value, bias, error = jackknife(sums, metric)
        margin = t_quantile(len(sums) - 1, confidence) * error if len(sums) > 1 else math.nan
        found[metric, 0] = around(value, (value, value - bias), margin, most)
    return found


def around(value: float, middles: Sequence[float], margin: float, most: float) -> Answer:
    """Put limits around what a spread may be."""
    if math.isnan(margin):
        return Answer(value, math.nan, math.nan)
    return Answer(value, max(0.0, min(middles) - margin), min(most, max(middles) + margin))


def jackknife(sums: Sequence[tuple[Sequence[float], int]], metric: str) -> tuple[float, float, float]:
    """Leave out one prompt after the other: the spread, its bias, its standard error."""
    spread, k = SPREADS[metric], len(sums)
    total, size = [fsum(own[tone] for own, _ in sums) for tone in range(10)], sum(own for _, own in sums)
    value = spread([one / size for one in total])
    if k < 2:
        return value, math.nan, math.nan
    without = [spread([(one - less) / (size - out) for one, less in zip(total, own, strict=True)]) for own, out in sums]
    middle = fsum(without) / k
    return value, (k - 1) * (middle - value), math.sqrt((k - 1) / k * fsum((one - middle) ** 2 for one in without))


def corrected(pictures: Sequence[Picture], confidence: float, *, people: bool) -> dict[tuple[str, int], Answer]:
    """Add to what people say of their pictures what the rule says of all, less what it says of theirs."""
    del people
    seen = [one for one in pictures if one.named]
    n, size = len(seen), len(pictures)
    said, machine = [one.weights() for one in seen], [one.by_rule() for one in seen]
    everywhere = [sum(one.found == tone for one in pictures) / size for tone in TONES]
    y, f = ([fsum(row[at] for row in table) / n for at in range(10)] for table in (said, machine))
    both = fsum((a[t] - y[t]) * (b[t] - f[t]) for a, b in zip(said, machine, strict=True) for t in range(10))
    alone = fsum((b[t] - f[t]) ** 2 for b in machine for t in range(10))
    trust = min(max(both / alone, 0.0), 1.0) if alone > 0 else 0.0
    told = [[a[t] + trust * (everywhere[t] - b[t]) for t in range(10)] for a, b in zip(said, machine, strict=True)]
    skin = fsum(map(fsum, told)) / n
    shares = [fsum(row[t] for row in told) / n / skin for t in range(10)]
    rows = [[shares[t] + (row[t] - shares[t] * fsum(row)) / skin for t in range(10)] for row in told]
    added, lost, doubt, met = errors(seen, y, (1 - confidence) / 2)
    t, unseen, found = t_quantile(n - 1, confidence), 1 - n / size, {}
    most = n / unseen if unseen > 0 else math.inf
    for at, value in enumerate(min(max(share, 0.0), 1.0) for share in shares):
        differ = sum(a[at] != b[at] for a, b in zip(said, machine, strict=True))
        scatter = fsum((row[at] - shares[at]) ** 2 for row in rows) / (n - 1) / n
        scatter = (scatter + (differ < FEWEST_ERRORS) / n**2) * unseen + doubt[at] / skin**2
        worth = most
        if scatter > 0 and 0 < value < 1:
            worth = max(value * (1 - value) / scatter, min(most, t / math.sqrt(scatter)))
        low, high = (wilson(min(max(value + move / skin, 0.0), 1.0), worth, t) for move in (-added[at], lost[at]))
        top = high[1] if met[at] else max(high[1], wilson(0.0, most, t)[1])
        found["tone_share", at + 1] = Answer(value, low[0] if met[at] else 0.0, top)
    freed = [share + (away - more) / skin for share, away, more in zip(shares, lost, added, strict=True)]
    for metric, ceiling in MOST.items():
        value, bias, error = jackknife([(row, 1) for row in rows], metric)
        middles = value, value - unseen * bias, SPREADS[metric](freed)
        found[metric, 0] = around(value, middles, t * error if unseen > 0 else 0.0, ceiling)
    return found


def errors(
    seen: Sequence[Picture], y: Sequence[float], alone: float
) -> tuple[list[float], list[float], list[float], list[bool]]:
    """Say what people's errors may add to each tone and take away, the variance of that, and which tones are there."""
    labels: list[int | None] = [*TONES]
    answers = sum(len(one.named) for one in seen)
    pairs = sum(len(one.named) * (len(one.named) - 1) / 2 for one in seen)
    often = {label: sum(one.named.count(label) for one in seen) for label in (None, *labels)}
    if pairs < FEWEST_PAIRS:
        beside, nobody = [0.0, *y, 0.0], 1 - fsum(y)
        chance = [MISSED * ((beside[at] + beside[at + 2]) / 2 + nobody / 10) for at in range(10)]
        added, lost, doubt = chance, [MISSED * one for one in y], [0.0] * 10
    else:
        agreed = {label: sum(one.named.count(label) * (one.named.count(label) - 1) for one in seen) for label in often}
        chance, added, lost, doubt = [], [], [], []
        for label in labels:
            into = out = every = 0.0
            for other in (one for one in often if one != label):
                apart = sum(one.named.count(label) * one.named.count(other) for one in seen)
                wrong = (agreed[other] + 1e-9) / (agreed[other] + agreed[label] + 2e-9)
                into, out, every = into + apart * wrong, out + apart * (1 - wrong), every + apart
            chance.append((into + 0.5) / (2 * pairs))
            added.append(max(into - out, 0.0) / (2 * pairs))
            lost.append(max(out - into, 0.0) / (2 * pairs))
            doubt.append(every * (answers / len(seen) - 1) / (2 * pairs) ** 2)
    there = [often[label] > 0 and at_least(often[label], answers * mean) < alone
             for label, mean in zip(labels, chance, strict=True)]  # fmt: skip
    return added, lost, doubt, there


def at_least(count: int, mean: float) -> float:
    """Give the chance of so many events, or more, where so many are expected: Poisson's."""
    fewer, term = 0.0, math.exp(-mean)
    for number in range(count):
        fewer += term
        term *= mean / (number + 1)
    return 1 - fewer
