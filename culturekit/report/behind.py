"""What is behind each number of a page: pages beside it with the images, prompts, replies and answers it came from."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.schemas import SCORES
from culturekit.core.tables import read_table
from culturekit.report.gallery import Gallery, Picture
from culturekit.report.run_folders import RunFolders, plain
from culturekit.report.write import page_of
from culturekit.trail.numbers import Item, NumberWalk

FOLDER = "behind"
SHOWN = 3  # values of a number that are shown: the highest, one in the middle, the lowest; `culturekit trace` has all


@dataclass(frozen=True, slots=True)
class Behind:
    """One number: what it is, how to walk it back further, how many values it is made from, and some of them."""

    rows: tuple[int, ...]
    titles: tuple[str, ...]
    count: int
    values: str
    items: tuple[tuple[Item, tuple[Picture, ...]], ...]


@dataclass(frozen=True, slots=True)
class BehindPage:
    """The numbers of one folder of scores that a page shows."""

    folder: str
    numbers: tuple[Behind, ...]

    @property
    def pictures(self) -> Iterator[Picture]:
        """The pictures that it shows."""
        return (picture for number in self.numbers for _, pictures in number.items for picture in pictures)


def place_of(trace: str) -> str:
    """Name where a number is walked back, from the page that shows it, by its folder and row."""
    folder, _, row = trace.partition("#")
    return f"{FOLDER}/{plain(folder)}.html#r{row}"


def pages_behind(run: RunFolders, traces: Iterable[str]) -> Iterator[BehindPage]:
    """Walk the numbers of a page back, folder by folder; those that are made from the same values stand together."""
    gallery, tables = Gallery(run), dict[tuple[Path, str], pl.DataFrame]()
    wanted: dict[str, set[int]] = {}
    for name, _, place in (trace.partition("#") for trace in traces):
        wanted.setdefault(name, set()).add(int(place))
    for folder, rows in sorted(wanted.items()):
        walk, scores = NumberWalk(run.root / folder, tables), read_table(run.root / folder / "scores.parquet", SCORES)
        found: dict[tuple[object, ...], tuple[list[int], Any]] = {}
        for row in sorted(rows):
            trail = walk.trail(scores.row(row, named=True), count=SHOWN)
            key = (trail.values, trail.count, *((item.name, item.value, item.answers) for item in trail.items))
            found.setdefault(key, ([], trail))[0].append(row)
        yield BehindPage(folder, tuple(
            Behind(
                tuple(together), tuple(_title(scores.row(row, named=True)) for row in together), trail.count,
                trail.values.name, tuple((item, tuple(_pictures(gallery, item))) for item in trail.items),
            )
            for together, trail in found.values()
        ))  # fmt: skip


def _pictures(gallery: Gallery, item: Item) -> Iterator[Picture]:
    """Show the images of a value."""
    return filter(None, (gallery.picture(image.image_id) for image in item.images))


def _title(score: dict[str, Any]) -> str:
    """Say what a number is, as its table does."""
    of = ", ".join(score[name] for name in ("model", "concept", "country", "group") if score[name])
    limits = "" if score["ci_low"] is None else f" [{score['ci_low']:.3f}, {score['ci_high']:.3f}]"
    return f"{score['metric']}, {of} = {'–' if score['value'] is None else format(score['value'], '.3f')}{limits}"


def render_behind(page: BehindPage) -> str:
    """Render the page of one folder of scores."""
    return page_of("behind.html", data=page)
