"""Draw the figures of docs/fewer-labels.md from what audit_designs.py and audit_looks.py recorded; needs Chromium.

python benchmarks/audit_figures.py
"""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from recording import RESULTS

from culturekit.report import chart_pictures as plot

__all__ = ["main"]

PICTURES = Path(__file__).parents[1] / "docs/pictures"
SECOND = {
    "free": "errors of its own", "tied .5": "half tied", "tied .9": "tied to 9 in 10", "same labels in .5":
    "half copied", "same labels in .9": "9 in 10 copied", "a copy": "a copy",
}  # fmt: skip
BATCHES = ("12", "18", "24", "36", "48")


def cells(name: str, column: str) -> Callable[[str, str], float]:
    """Read a column of a record by the first two cells of a row."""
    head, *table = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["table"]
    found = {(row[0], row[1]): row[head.index(column)] for row in table}
    return lambda world, kind: float(found[world, kind])


def figures() -> Iterator[tuple[str, plot.Picture, int]]:
    """Give each figure with its name and height."""
    width, of_one = cells("audit_designs", "width"), cells("audit_designs", "of one")
    dots = {title: of_one("24 x 40", kind) for kind, title in SECOND.items()}
    yield "second", plot.dots(dots, axis="width, in parts of one instrument's"), 300
    rows = {
        f"{kernel}, {world}": [width(world, f"{count} batches, {kernel}") for count in BATCHES]
        for kernel in ("artifact", "country")
        for world in ("24 x 40", "150 x 8")
    }
    yield "batches", plot.curves(rows, [f"{8 * int(count)}" for count in BATCHES], axis="width, by audited images"), 265
    labels = cells("audit_looks", "labels")
    worlds = ("far apart", "one on top", "two of five equal", "three on top", "equal")
    dots = {f"{world}: {goal}": labels(f"{world}, 3 x 400", goal) for goal in ("order", "top") for world in worlds}
    yield "looks", plot.dots(dots, axis="labels a model, of 150"), 450


def main() -> int:
    """Write the pictures."""
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.stderr.write("the figures are pictures of pages: install Chromium\n")
        return 1
    for name, picture, height in figures():
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "figure.html"
            picture.save(page)
            target = PICTURES / f"audit-{name}.png"
            command = [browser, "--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size=520,{height}"]
            subprocess.run([*command, f"--screenshot={target}", page.as_uri()], check=True, capture_output=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
