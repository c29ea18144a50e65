"""How wide `culturekit audit plan` says that intervals will be, held against those that audits then have.

    python benchmarks/corrected_forecasts.py --images 1
    python benchmarks/corrected_forecasts.py --images 3 --journal answers.jsonl   # widths seen by corrected_worlds.py

A first audit of 60 images, or the accuracy of the mapping alone, forecasts the width with 150 in the worlds of
`corrected_worlds.py`. Forecast and seen are roots of mean squares, over images drawn anew.
"""

import argparse
import sys
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from corrected_worlds import AUDITED, Answer, answers_asked_for
from recording import record
from simulated_worlds import ROWS, WORLDS, audits_of, draw_images, matches_of, shares_of_models

from culturekit.metrics import audit_sample
from culturekit.metrics.corrected.audit_sampling import audit_forecast
from culturekit.metrics.diversity.labels import STANDARD_KERNELS

KERNEL, PILOT = "country", 60
ASKED = ("1 x 400", "3 x 400", "24 x 40")


def forecasts(name: str, model: int, images: int) -> tuple[float, float]:
    """Give the forecast width from a first audit, and from the accuracy: roots of mean squares."""
    world = WORLDS[name]
    widths = []
    for number in range(images):
        rng = np.random.default_rng([number, zlib.crc32(name.encode()), model])
        drawn = draw_images(world, shares_of_models(world)[model], rng)
        matches = matches_of(world, drawn)
        pilot = audits_of(world, drawn, audit_sample(matches, n=PILOT, rng=rng)["image_id"])
        asked: Any = {"weights": STANDARD_KERNELS[KERNEL], "size": world.size, "rng": rng}
        widths.append(
            [
                audit_forecast(matches, pilot=pilot, **asked).width(AUDITED),
                audit_forecast(matches, accuracy=world.accuracy, **asked).width(AUDITED),
            ]
        )
    first, stated = np.sqrt(np.square(widths).mean(axis=0))
    return float(first), float(stated)


def row_of(name: str, answers: Sequence[Answer], images: int) -> list[str]:
    """Write forecasts in parts of the widths seen, of all models and of the farthest one."""
    seen = [[one.high - one.low for one in answers if (one.world, one.model) == (name, model)] for model in range(5)]
    widths = np.array([float(np.sqrt(np.square(each).mean())) for each in seen])
    told = np.array([forecasts(name, model, images) for model in range(5)])
    cells = [name, str(len(seen[0])), f"{np.sqrt(np.square(widths).mean()):.3f}"]
    names = list(ROWS[WORLDS[name].models])
    for each in told.T:
        parts = each / widths
        farthest = int(np.abs(np.log(parts)).argmax())
        cells += [f"{np.sqrt(np.square(each).mean() / np.square(widths).mean()):.2f}"]
        cells += [f"{parts[farthest]:.2f} ({names[farthest]})"]
    return cells


def main() -> int:
    """Forecast in each world, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--images", type=int, default=1, help="models' images drawn anew for so many forecasts")
    answers, asked_for = answers_asked_for(parser, KERNEL, ASKED, runs=5)
    head = [
        "world",
        "audits",
        "width seen",
        "forecast / seen, first audit",
        "farthest",
        "from the accuracy",
        "farthest",
    ]
    record(
        "corrected_forecasts",
        title=f"Widths of corrected intervals with {AUDITED} audited images, forecast from {PILOT} or the accuracy",
        command=" ".join(["python benchmarks/corrected_forecasts.py", *sys.argv[1:]]),
        table=[head, *(row_of(name, answers, asked_for.images) for name in ASKED)],
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
