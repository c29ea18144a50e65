"""Corrected diversity of continents and countries: labels imputed by prompt, put right by what people saw.

Three chains of imputed labels leave out a third of the audited images each. These say by how much the diversity
of the imputed labels is off.
"""

import hashlib
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

from culturekit.core.arrays import Array
from culturekit.core.arrays import Counts as Whole
from tests.oracles.audited_cells import Audit
from tests.oracles.averages import RatedAnswer
from tests.oracles.batch_chances import mean_diversity
from tests.oracles.corrected_bends import bends_of
from tests.oracles.corrected_imputations import Chain, chains_of
from tests.oracles.rater_errors import NONE, gold_of, raters_of

PARTS = 3
STEP, NUDGE = 1e-5, 0.02
WIDER = 1.05
MOST_ROWS, FEWEST_ROUNDS = 6_000, 30
BLOCK = 8_192  # Rows of shares worked on at a time
TOLD = 9  # Digits of what people say of an image that count

Mean: TypeAlias = Callable[..., Array]


@dataclass(frozen=True, slots=True)
class CorrectionOf:
    """What is corrected, and the key of its draws."""

    weights: tuple[float, float, float]
    q: float
    size: int
    confidence: float
    seed: int
    model: str
    concept: str | None
    supposed: str = ""

    def generator(self, part: str) -> np.random.Generator:
        """Make the generator of this model and concept that a level, or a kernel, draws from."""
        key = f"{self.seed}\0{self.model}\0{self.concept}\0{self.supposed}\0{part}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "big"))


@dataclass(frozen=True, slots=True)
class Counts:
    """Labels and the continent of each, images by prompt and mapped label, and the audited ones by id."""

    labels: list[str]
    parents: list[int]
    mapped: Whole
    audit: Audit
    right: float
    doubt: float


def corrected_labels(images: pl.DataFrame, audits: pl.DataFrame, of: CorrectionOf) -> tuple[RatedAnswer, int]:
    """Give the corrected diversity of one model and concept, and how many images were audited."""
    level = "country" if of.weights[1] > 0 else "continent"
    counts = counted(images, audits, level)
    outer, inner = (of.weights[0], of.weights[1]) if of.weights[1] > 0 else (0.0, 1.0)

    def diversity(rows: Array, taken: int = 0) -> Array:
        parts = np.array_split(rows, range(BLOCK, len(rows), BLOCK))
        about = {"continent": outer, "country": inner, "q": of.q, "size": of.size, "taken": taken}
        return np.concatenate([mean_diversity(part, counts.parents, **about) for part in parts])  # type: ignore[arg-type]

    rng, audit = of.generator(level), counts.audit
    audited = len(audit.prompts)
    part = (np.arange(audited) % PARTS)[rng.permutation(audited)]
    none = counts.labels.index(NONE)
    parts = [without(audit, part == number) for number in range(PARTS)]
    chains = chains_of(counts.mapped, parts, np.array(counts.parents), none, rng)
    taken = [some_rounds(chain, of.size) for chain in chains]
    draws = [values_of(counts, diversity, of.size) for counts in taken]
    again = of.generator(str(of.weights))
    scatter = of_images(counts.mapped, np.array([chain.some for chain in chains]), diversity, of.size, again)
    slopes = [slopes_of(chain.shares, diversity) * weights_of(counts.mapped, of.size)[:, None] for chain in chains]
    shift, variance, alone, erring, new = put_right(counts, part, chains, slopes)
    new *= max(-math.log(2 * (1 - of.confidence)), 0.0) / audited  # so rare a label is missed one time in ten
    unexplained = not_sloped(draws, taken, np.mean(slopes, axis=0))
    bent, bending, trust = bends_of(counts.mapped, audit, part, chains, diversity, of.size, again)
    value = statistics.fmean(float(each.mean()) for each in draws) + shift + bent
    away = np.concatenate([each - each.mean() for each in draws])
    spread = float(np.sqrt((away**2).mean() - away.mean() ** 2))
    bow = bow_of(chains, slopes, weights_of(counts.mapped, of.size), diversity)
    seen = sum(bool((audit.shown[:, label] > 0.5).any()) for label in range(len(counts.labels)))

    def limits(raters: float) -> tuple[float, float]:
        error = (variance + (variance * bow) ** 2 / 2 + scatter + unexplained + raters) ** 0.5
        below, above = sides(max(spread, error), 3 * bow * variance**2, of.confidence)
        widest = 2 * normal(of.confidence) * (alone + (alone * bow) ** 2 / 2 + unexplained + raters) ** 0.5
        part = min(widest / (above - below), 1.0) if above > below else 1.0
        low = lowest if seen == 1 else value - math.hypot(part * below, bending, (1 - trust) * max(shift, 0))
        return low, value + math.hypot(part * above, new, bending)

    lowest = 1 / of.size
    inside = min(max(value, lowest), 1.0)
    (low, high), sure = (
        (min(max(low, lowest), inside), max(min(high, 1.0), inside)) for low, high in (limits(erring), limits(0.0))
    )
    return RatedAnswer(inside, low, high, sure), audited


def normal(confidence: float) -> float:
    """Give how many standard errors a normal law keeps within so often."""
    return statistics.NormalDist().inv_cdf((1 + confidence) / 2)


def without(audit: Audit, held: NDArray[np.bool_]) -> Audit:
    """Leave some audited images out."""
    return Audit(audit.prompts[~held], audit.mapped[~held], audit.shown[~held])


def some_rounds(chain: Chain, size: int) -> Whole:
    """Take some rounds of a chain, evenly: fewer where many prompts have images for a batch."""
    rounds, prompts = len(chain.counts), int((chain.counts[0].sum(axis=1) >= size).sum())
    times = min(rounds, max(MOST_ROWS // prompts, FEWEST_ROUNDS))
    return chain.counts[[round(place) for place in np.linspace(0, rounds - 1, times).tolist()]]


def values_of(counts: Whole, diversity: Mean, size: int) -> Array:
    """Give the mean diversity of the prompts in some rounds."""
    counts = counts[:, counts[0].sum(axis=1) >= size]
    values = diversity(counts.reshape(-1, counts.shape[2]).astype(np.float64), taken=1)
    return np.asarray(values.reshape(counts.shape[:2]).mean(axis=1))


def not_sloped(draws: list[Array], counts: list[Whole], slope: Array) -> float:
    """Give the variance of the draws of all chains around what the shares of labels alone would make of them."""
    rest = [
        values - (some * slope).sum(axis=(1, 2)) / some[0].sum() for values, some in zip(draws, counts, strict=True)
    ]
    together = np.concatenate(rest)
    return float(((together - together.mean()) ** 2).mean())


def weights_of(mapped: Whole, size: int) -> Array:
    """Say how much an image of each prompt counts, where prompts with images for a batch count alike."""
    images = mapped.sum(axis=1)
    enough = images >= size
    return np.asarray(np.where(enough, images.sum() / (enough.sum() * images), 0.0))


def of_images(mapped: Whole, some: Array, diversity: Mean, size: int, rng: np.random.Generator) -> float:
    """Draw images from shares of all chains; give the variance of their mean diversity around that of the shares."""
    images = mapped.sum(axis=1)
    shares = some[:, :, images >= size]
    drawn = rng.multinomial(images[images >= size], shares / shares.sum(axis=3, keepdims=True))
    flat = (-1, mapped.shape[1])
    away = diversity(drawn.reshape(flat).astype(np.float64), taken=1) - diversity(shares.reshape(flat))
    return float((away**2).mean() / shares.shape[2])


def slopes_of(shares: Array, diversity: Mean) -> Array:
    """Say how the diversity of each prompt changes with the share of each label, less the usual change."""
    slopes = np.empty_like(shares)
    now = diversity(shares)
    for label in range(shares.shape[1]):
        moved = shares.copy()
        moved[:, label] += STEP
        slopes[:, label] = (diversity(moved) - now) / STEP
    return np.asarray(slopes - (slopes * shares).sum(axis=1)[:, None])


def put_right(counts: Counts, part: Whole, chains: list[Chain], sloped: list[Array]) -> tuple[float, ...]:
    """Say by how much the imputed diversity is too low, the variance of that and of labels alone, and of raters."""
    images = counts.mapped.sum(axis=1)
    total, audited, audit = images.sum(), len(part), counts.audit
    people, taken, evenly, expected, usual, share = (np.zeros(audited) for _ in range(6))
    unseen = 0.0
    for number, (chain, slopes) in enumerate(zip(chains, sloped, strict=True)):
        of_cell = (chain.chances * slopes[:, None, :]).sum(axis=2)
        hidden = counts.mapped.copy()
        for image in np.flatnonzero(part != number):
            hidden[audit.prompts[image], audit.mapped[image]] -= 1
        held = np.flatnonzero(part == number)
        for image in held:
            prompt = audit.prompts[image]
            people[image] = slopes[prompt][audit.shown[image].argmax()]
            taken[image], evenly[image] = audit.shown[image] @ slopes[prompt], slopes[prompt].mean()
            expected[image] = of_cell[prompt, audit.mapped[image]]
        usual[held], share[held] = (of_cell * hidden).sum() / hidden.sum(), hidden.sum() / total
        unseen += len(held) / audited * (images * slopes.max(axis=1)).sum() / total
    half, wrong = evenly.mean() / 2, 1 - counts.right
    erring = (wrong * half / counts.right) ** 2
    furthest = max(abs(people.mean()), abs(people.mean() - 2 * half))
    erring += (furthest / counts.right**2 * counts.doubt) ** 2
    people = (people - wrong / 2 * evenly) / counts.right
    spread = float(((expected - expected.mean()) ** 2).mean())
    both = float(((people - people.mean()) * (expected - expected.mean())).sum()) / (audited - 1)
    trust = min(max(both / spread, 0.0), 1.0) if spread > 1e-15 else 0.0
    rest = people - trust * expected
    shift = float((share * (rest - (1 - trust) * usual) + (1 - share) * (people - taken)).mean())
    variance = statistics.variance(rest.tolist()) * (1 / audited - 1 / total)
    return shift, float(variance), statistics.variance(people.tolist()) / audited, float(erring), unseen


def bow_of(chains: Sequence[Chain], slopes: Sequence[Array], weights: Array, diversity: Mean) -> float:
    """Give the second difference of the score along shares times slopes, over the square of what that moves it by."""
    bends, moves = [], []
    for chain, slope in zip(chains, slopes, strict=True):
        for shares, by, weight in zip(chain.shares, slope, weights, strict=True):
            if weight > 0:
                step = NUDGE / max(float(np.abs(by).max()), NUDGE)
                near, middle, far = diversity(np.array([shares * (1 + times * step * by) for times in (-1, 0, 1)]))
                bends.append(float(near - 2 * middle + far) / step**2)
                moves.append(math.fsum(shares * by**2) / weight)
    moved = statistics.fmean(moves)
    return statistics.fmean(bends) / moved**2 if moved >= 1e-12 else 0.0


def sides(error: float, third: float, confidence: float) -> tuple[float, float]:
    """Give the distances of the limits: those of a gamma law as wide as the error, leaning as its third cumulant."""
    margin = normal(confidence)
    if error == 0:
        return 0.0, 0.0
    skewness = min(max(third / error**3 * (margin**2 + 1) / max(margin**2 - 1, 1.0), -2.0), 2.0)
    if abs(skewness) < 2e-3:
        return -WIDER * error * margin, WIDER * error * margin
    lower, upper = (max(1 + skewness * z / 6 - skewness**2 / 36, 0.0) for z in (-margin, margin))
    return WIDER * error * (lower**3 - 1) * 2 / skewness, WIDER * error * (upper**3 - 1) * 2 / skewness


def counted(images: pl.DataFrame, audits: pl.DataFrame, column: str) -> Counts:
    """Count what was mapped and what was found, label by label."""
    own = set(images["image_id"])
    answers: dict[str, dict[str, str]] = {}
    parents: dict[str, str] = {NONE: NONE}
    for said in audits.filter(pl.col("image_id").is_in(list(own))).iter_rows(named=True):
        label = NONE if said["none_of_these"] else said[column]
        if label is None:
            continue  # of this level the answer says nothing
        answers.setdefault(said["image_id"], {})[said["annotator"]] = label
        parents.setdefault(label, said["continent"] or f"(the continent of {label})")
    for label, continent in images.select(label=pl.col(column).fill_null(NONE), parent="continent").iter_rows():
        parents.setdefault(label, continent or f"(the continent of {label})")
    labels = sorted(parents)
    prompts = sorted({prompt or "" for prompt in images["prompt_id"]})
    mapped = np.zeros((len(prompts), len(labels)), np.int64)
    place: dict[str, tuple[int, int]] = {}
    for image, prompt, label in images.select("image_id", "prompt_id", pl.col(column).fill_null(NONE)).iter_rows():
        place[image] = prompts.index(prompt or ""), labels.index(label)
        mapped[place[image]] += 1
    raters = raters_of(answers, gold_of(audits, column), labels)
    found = raters.shares
    ids = sorted(found)
    shown = np.array([[round(found[image][label], TOLD) for label in labels] for image in ids])
    audit = Audit(np.array([place[image][0] for image in ids]), np.array([place[image][1] for image in ids]), shown)
    continents = sorted(set(parents.values()))
    return Counts(
        labels, [continents.index(parents[label]) for label in labels], mapped, audit, raters.right, raters.doubt
    )
