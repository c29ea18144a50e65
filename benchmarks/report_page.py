"""How large the report of many images is, how soon it is ready, and how fast its filter answers, in Chromium."""

import sys
import tempfile
from pathlib import Path
from statistics import median

from recording import record

sys.path.insert(0, str(Path(__file__).parents[1]))

from culturekit.report.write import render
from tests.chromium import Tab, browser
from tests.report.large import MODELS, large_page

SIZES = (5_000, 10_000, 20_000)
ROUNDS = 3
LIMITS = {"bytes": 5_000_000, "ready": 1000.0, "filter": 100.0}

PICTURE = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d76360606000000004000127340a710000000049454e44ae426082"
)

READY = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"
FILTER = """new Promise((done) => {
    const one = document.getElementById('by-model');
    const start = performance.now();
    one.value = NAME;
    one.dispatchEvent(new Event('change', {bubbles: true}));
    document.body.getBoundingClientRect();
    requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - start)));
})"""


def main() -> None:
    """Open pages of several sizes some times, and keep the median of each measure."""
    table = [["images", "bytes", "of 5 MB", "ready, ms", "of 1 s", "filter, ms", "of 100 ms", "bytes, of half as many"]]
    before = 0
    with tempfile.TemporaryDirectory() as folder, browser(Path(folder) / "profile") as running:
        bare = Path(folder) / "bare.html"
        bare.write_text("<!doctype html><title>bare</title>", encoding="utf-8")
        empty = median(opened(running.tab(), bare) for _ in range(ROUNDS))
        table.append(["an empty page", f"{bare.stat().st_size:,}", "", f"{empty:.0f}", "", "", "", ""])
        for images in SIZES:
            path = laid(Path(folder), images)
            size = path.stat().st_size
            ready, filtered = measured(running.tab(), path)
            table.append(
                [
                    f"{images:,}", f"{size:,}", f"{size / LIMITS['bytes']:.2f}", f"{ready:.0f}",
                    f"{ready / LIMITS['ready']:.2f}", f"{filtered:.0f}", f"{filtered / LIMITS['filter']:.2f}",
                    f"{size / before:.2f}" if before else "",
                ]
            )  # fmt: skip
            before = size
    record(
        "report_page",
        title=f"Report page in Chromium, thumbnails linked, five models, median of {ROUNDS}; filter: from choice to "
        "the second frame after it; an empty page is what the machine takes for nothing, and it was busy",
        command="python benchmarks/report_page.py",
        table=table,
    )


def laid(folder: Path, images: int) -> Path:
    """Write a page and its thumbnails."""
    thumbnails = folder / "thumbnails"
    thumbnails.mkdir(exist_ok=True)
    for number in range(images):
        (thumbnails / f"{number:016x}.png").write_bytes(PICTURE)
    for name in ("reference.png", "mirage-1.png", "atlas-1.png"):
        (thumbnails / name).write_bytes(PICTURE)
    path = folder / f"page-{images}.html"
    path.write_text(render(large_page(images)), encoding="utf-8")
    return path


def opened(tab: Tab, path: Path) -> float:
    """Open a page; give the milliseconds until it could be used."""
    tab.open(path)
    return float(tab.run(READY))


def measured(tab: Tab, path: Path) -> tuple[float, float]:
    """Open a page, and filter it by each model in turn."""
    tab.look(width=1440, height=900)
    tab.ask("Page.bringToFront")  # a page behind another one draws no frames
    ready, filtered = [], []
    for _ in range(ROUNDS):
        ready.append(opened(tab, path))
        filtered += [float(tab.run(FILTER.replace("NAME", repr(name)))) for name in (*MODELS, "")]
    return median(ready), median(filtered)


if __name__ == "__main__":
    main()
