"""What a second instrument and whole batches are worth to an audit, in worlds of known truth.

    python benchmarks/audit_designs.py                    # a few runs of each row
    python benchmarks/audit_designs.py --full             # 60 runs of five models for each row
    python benchmarks/audit_designs.py --runs 60 --part instruments --world "150 x 8" --add

Instruments: the second maps the same images as well as the first, or worse, with errors of its own (free), on the same
images as the first in part (tied: a correlation of .5 or .9 between what is hard for both), to the same wrong labels in
part (same labels), or everywhere (a copy). Widths and errors stand beside those of the first instrument alone with 150
audited images. Batches: whole batches of 8, for the kernels of artifacts and countries.
"""

import argparse
import json
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
from numpy.typing import NDArray
from recording import RESULTS, record
from scipy.special import ndtr, ndtri
from simulated_worlds import (
    ARTIFACTS,
    COUNTRIES,
    NONE,
    OF_COUNTRY,
    WORLDS,
    Images,
    World,
    audits_of,
    draw_images,
    drawn_from,
    matches_of,
    shares_of_models,
)

from culturekit.core.errors import UsageError
from culturekit.metrics import audit_sample, vendi_corrected
from culturekit.metrics.corrected.expected_diversity import expected_diversity
from culturekit.metrics.diversity.kernel_diversity import STANDARD_KERNELS

TRIED = {
    "24 x 40": WORLDS["24 x 40"],
    "3 x 400": WORLDS["3 x 400"],
    "1 x 400": WORLDS["1 x 400"],
    "150 x 8": WORLDS["150 x 8"],
    "150 x 8, right in .75": replace(WORLDS["150 x 8"], accuracy=0.75),
    "150 x 8, right in .65": replace(WORLDS["150 x 8"], accuracy=0.65),
    "3 x 400, right in .3": WORLDS["accuracy .3"],
    "noise 0-60 %": WORLDS["noise 0-60 %"],
    "a third mapped worse": WORLDS["a third mapped worse"],
    "accuracy .42-.98": WORLDS["accuracy .42-.98"],
}

SECOND = {
    "free": (0.85, 0.0, 0.0),
    "tied .5": (0.85, 0.5, 0.0),
    "worse, tied .5": (0.7, 0.5, 0.0),
    "tied .9": (0.85, 0.9, 0.0),
    "same labels in .5": (0.85, 0.0, 0.5),
    "same labels in .9": (0.85, 0.0, 0.9),
    "a copy": (0.85, 0.0, 1.0),
    "tied .5, 100 audited": (0.85, 0.5, 0.0),
}
"""Second instruments: how often right, how far the same images are hard for both, how often an error is copied."""

HEAD = ("world", "audit", "models", "refused", "coverage", "worst model", "bias", "width", "of one", "error of one")


def second_of(world: World, images: Images, kind: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """Map images by a second instrument, which errs to other countries than the first; artifacts are left out."""
    right, tied, copied = SECOND[kind]
    country, first = np.minimum(images.shown // ARTIFACTS, NONE), images.mapped // ARTIFACTS
    if copied == 1:
        return images.mapped
    continent = world.continent[:-1]
    wrong = np.where(continent[:, None] == continent, 4.0, 1.0) + 4.0 * np.isin(np.arange(COUNTRIES), (10, 11, 12))
    np.fill_diagonal(wrong, 0.0)
    nothing = 0.5 / COUNTRIES + np.isin(np.arange(COUNTRIES), (10, 11, 12)) / 6
    errs = np.vstack([wrong / wrong.sum(axis=1, keepdims=True), nothing])[country]
    missed = first != country
    usual = max(1 - float(missed[country < NONE].mean()), 0.01) if (country < NONE).any() else 0.5
    place = np.where(missed, rng.random(len(country)) * (1 - usual), 1 - usual + rng.random(len(country)) * usual)
    hard = tied * ndtri(np.clip(place, 1e-9, 1 - 1e-9)) + np.sqrt(1 - tied**2) * rng.standard_normal(len(country))
    label = np.where((country == NONE) | (ndtr(hard) < 1 - right), drawn_from(errs, rng), country)
    return np.where(missed & (rng.random(len(label)) < copied), first, label) * ARTIFACTS


def truth_of(images: Images, kernel: str, size: int) -> float:
    """Give the mean diversity of batches over prompts."""
    shares = images.shares
    if kernel == "artifact":
        shares = np.hstack([np.kron(shares[:, :NONE], OF_COUNTRY), shares[:, NONE:]])
    mean = expected_diversity(size=size, continent=0.0, country=1.0, q=1.0, parents=[0] * shares.shape[1])
    return float(mean(shares).mean())


def asked(matches: pl.DataFrame, audits: pl.DataFrame, **how: object) -> tuple[float, float, float]:
    """Ask for the value and its limits; NaN where they are refused."""
    try:
        answer = vendi_corrected(matches, audits, **how)  # type: ignore[arg-type]
    except UsageError as error:
        sys.stderr.write(f"refused: {error.problem}\n")
        return (np.nan,) * 3
    return answer.value, answer.low, answer.high


def drawn_worlds(name: str, world: World, *, runs: int, seed: int) -> Iterator[tuple[int, Images, Sequence[int]]]:
    """Draw the images of each model so many times, with a seed for what is drawn after."""
    for run in range(runs):
        for model, shares in enumerate(shares_of_models(world)):
            seeds = [seed, run, model, zlib.crc32(name.encode())]
            yield model, draw_images(world, shares, np.random.default_rng(seeds)), seeds


def instruments(name: str, world: World, *, runs: int, seed: int) -> Iterator[Sequence[str]]:
    """Correct the kernel of countries by one instrument, and by two."""
    found: dict[str, list[tuple[float, ...]]] = {}
    for model, images, seeds in drawn_worlds(name, world, runs=runs, seed=seed):
        matches, truth = matches_of(world, images), truth_of(images, "country", world.size)
        said = {}
        for n in (150, 100):
            drawn = audit_sample(matches, n=n, rng=np.random.default_rng([*seeds, n]))["image_id"]
            said[n] = audits_of(world, images, drawn)
        for kind in ("one instrument", *SECOND):
            second = None
            if kind in SECOND:
                mapped = second_of(world, images, kind, np.random.default_rng([*seeds, 1]))
                second = matches_of(world, replace(images, mapped=mapped))
            audits, rng = said[100 if "100" in kind else 150], np.random.default_rng([*seeds, 2])
            answer = asked(matches, audits, weights="country", size=world.size, rng=rng, second=second)
            found.setdefault(kind, []).append((model, truth, *answer))
    yield from rows_of(name, found)


def batches(name: str, world: World, *, runs: int, seed: int) -> Iterator[Sequence[str]]:
    """Correct kernels by whole batches."""
    for kernel in ("artifact", "country"):
        found: dict[str, list[tuple[float, ...]]] = {}
        for model, images, seeds in drawn_worlds(name, world, runs=runs, seed=seed):
            matches, truth = matches_of(world, images), truth_of(images, kernel, world.size)
            for count in (12, 18, 24, 36, 48):
                draw = partial(np.random.default_rng, [*seeds, count])
                sample = audit_sample(matches, n=count * world.size, rng=draw(), drawing="batches", size=world.size)
                audits = audits_of(world, images, sample["image_id"])
                how = {"weights": STANDARD_KERNELS[kernel], "size": world.size, "rng": draw(), "sample": sample}
                answer = asked(matches, audits, **how)
                found.setdefault(f"{count} batches, {kernel}", []).append((model, truth, *answer))
        yield from rows_of(name, found)


def rows_of(name: str, found: Mapping[str, list[tuple[float, ...]]]) -> Iterator[Sequence[str]]:
    """Sum up each way to audit, beside the first."""
    base = np.array(next(iter(found.values())))
    for kind, answers in found.items():
        model, truth, value, low, high = np.array(answers).T
        ok = np.isfinite(value) & np.isfinite(base[:, 2])
        holds, away, first = (low <= truth) & (truth <= high), value - truth, base[:, 2] - truth
        if not ok.any():
            yield name, kind, str(len(ok)), str(len(ok)), *[""] * 6
            continue
        worst = min(holds[ok & (model == one)].mean() for one in np.unique(model[ok]))
        width = (high - low)[ok].mean()
        beside = width / (base[:, 4] - base[:, 3])[ok].mean(), np.sqrt((away[ok] ** 2).mean() / (first[ok] ** 2).mean())
        figures = [f"{holds[ok].mean():.3f}", f"{worst:.3f}", f"{away[ok].mean():+.4f}", f"{width:.4f}"]
        yield (
            name,
            kind,
            str(len(ok)),
            str(int((~np.isfinite(value)).sum())),
            *figures,
            *(f"{one:.2f}" for one in beside),
        )


def main() -> int:
    """Run the rows that are asked for, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--full", action="store_true", help="60 runs of each row, of five models")
    parser.add_argument("--runs", type=int, help="runs of each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--add", action="store_true", help="keep the recorded rows of other worlds and parts")
    parser.add_argument("--part", action="append", choices=("instruments", "batches"))
    parser.add_argument("--world", action="append", choices=sorted(TRIED))
    typed = parser.parse_args()
    runs = typed.runs if typed.runs is not None else 60 if typed.full else 2
    rows = []
    for part, ask in (("instruments", instruments), ("batches", batches)):
        few = ("24 x 40", "150 x 8", "150 x 8, right in .65", "3 x 400")
        for name in typed.world or (TRIED if part == "instruments" else few):
            if typed.part is None or part in typed.part:
                for row in ask(name, TRIED[name], runs=runs, seed=typed.seed):
                    rows.append(row)
                    sys.stderr.write(" | ".join(row) + "\n")
    kept = RESULTS / "audit_designs.json"
    before = json.loads(kept.read_text(encoding="utf-8"))["table"][1:] if kept.is_file() and typed.add else []
    rows = list({tuple(row[:2]): row for row in [*before, *rows]}.values())
    record(
        "audit_designs", title="Audits with a second instrument, and of whole batches: 95 % intervals, five models",
        command=" ".join(["python benchmarks/audit_designs.py", *sys.argv[1:]]), table=[list(HEAD), *map(list, rows)],
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
