"""Pictures of a run beside its scores: strips of examples, linked as small copies that lie beside the page."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import polars as pl

from culturekit.core.roles import REAL_IMAGES, Role
from culturekit.core.schemas import IMAGES, VALUES
from culturekit.core.tables import read_table
from culturekit.report.run_folders import RunFolders
from culturekit.report.thumbnails import thumbnail_name

MOST = 4  # pictures of one kind that a strip shows

Chosen: TypeAlias = Iterable[tuple[str, Sequence[str]]]  # ids of images, each with what is to stand below it


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture of a run: its small copy, its path in the run, what was asked for, and what is said of it."""

    thumbnail: str
    source: str
    prompt: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Strip:
    """Pictures in groups: each has a heading, and its pictures stand side by side."""

    caption: str
    groups: tuple[tuple[str, tuple[Picture, ...]], ...]

    @property
    def pictures(self) -> Iterator[Picture]:
        """Its pictures, in order."""
        return (picture for _, pictures in self.groups for picture in pictures)


class Gallery:
    """All images of a run that were made, by their ids."""

    def __init__(self, run: RunFolders) -> None:
        """Read the tables of images of all stages; of copies the one that was made last counts."""
        self.rows: dict[str, dict[str, Any]] = {}
        for stage in run.stages:
            if (path := run.root / stage / f"{IMAGES.name}.parquet").is_file():
                there = read_table(path, IMAGES).filter(status="ok").with_columns(stage=pl.lit(stage))
                columns = ("stage", "path", "image_id", "width", "height", "prompt_id", "prompt_sent", "model")
                self.rows |= {row["image_id"]: row for row in there.select(columns).iter_rows(named=True)}

    def picture(self, image_id: str, lines: Sequence[str] = ()) -> Picture | None:
        """Show an image with what is said of it; None where it was not made."""
        if (row := self.rows.get(image_id)) is None:
            return None
        name = thumbnail_name(image_id, row["width"], row["height"])
        return Picture(name, f"{row['stage']}/{row['path']}", row["prompt_sent"] or "", tuple(lines))

    def strip(self, caption: str, groups: Iterable[tuple[str, Chosen]]) -> tuple[Strip, ...]:
        """Make a strip of groups of images, each with a heading; none where no image is there to be shown."""
        shown = ((head, tuple(filter(None, (self.picture(*each) for each in chosen)))) for head, chosen in groups)
        there = tuple((head, pictures) for head, pictures in shown if pictures)
        return (Strip(caption, there),) if there else ()

    def ends(self, values: pl.DataFrame, models: Iterable[str], *, most: int = MOST) -> Iterator[tuple[str, Chosen]]:
        """Choose the images of each model that score highest and lowest."""
        for model in models:
            ordered = self._known(values, model).sort("value", "item", descending=[True, False])
            few = min(most, ordered.height // 2)
            for head, part in (("highest", ordered.head(few)), ("lowest", ordered.tail(few).reverse())):
                yield f"{model}, {head}", [(item, [f"{value:.2g}"]) for item, value in part.iter_rows()]

    def apart(
        self, one: tuple[str, pl.DataFrame], other: tuple[str, pl.DataFrame], models: Iterable[str], *, most: int = MOST
    ) -> Iterator[tuple[str, Chosen]]:
        """Choose the images of each model on which two differ most, each a name and its values on one scale."""
        for model in models:
            both = self._known(one[1], model).join(self._known(other[1], model), on="item", suffix="_other")
            distance = (pl.col("value") - pl.col("value_other")).abs()
            far = both.filter(distance > 0).sort(distance, "item", descending=[True, False]).head(most)
            yield model, [(item, [f"{one[0]} {a:.2g}", f"{other[0]} {b:.2g}"]) for item, a, b in far.iter_rows()]

    def beside_real(
        self, values: pl.DataFrame, models: Iterable[str], *, most: int = 2
    ) -> Iterator[tuple[str, Chosen]]:
        """Choose the images of each model that score highest and lowest, each beside a photograph of its prompt."""
        real = {row["prompt_id"]: key for key, row in sorted(self.rows.items(), reverse=True)
                if row["model"] == REAL_IMAGES}  # fmt: skip
        for model in models:
            ordered = self._known(values, model).sort("value", "item", descending=[True, False])
            known = [(item, value) for item, value in ordered.iter_rows() if self.rows[item]["prompt_id"] in real]
            for item, value in dict.fromkeys((*known[:most], *known[-most:])):
                photograph = real[self.rows[item]["prompt_id"]]
                yield "", [(photograph, ["photograph"]), (item, [f"{model} {value:.2g}"])]

    def _known(self, values: pl.DataFrame, model: str) -> pl.DataFrame:
        """Take the mean value of each image of a model that can be shown; `by` parts it from who gave it."""
        named = values.with_columns(pl.col("item").str.split(" by ").list.first())
        known = named.filter(pl.col("item").is_in(list(self.rows)), pl.col("value").is_not_nan(), model=model)
        return known.group_by("item").agg(pl.col("value").sort().mean()).sort("item")


def values_of(
    run: RunFolders, role: Role, where: Mapping[str, str | None], *, models: Iterable[str] = (), variant: str = ""
) -> pl.DataFrame:
    """Read what scores of a role are means of, of some models if it has a folder for each, where columns say so.

    A condition that is no column is on a parameter.
    """
    paths = [run.table(role, model, variant, file=f"{VALUES.name}.parquet") for model in tuple(models) or ("",)]
    there = [read_table(path, VALUES) for path in paths if path.is_file()]
    values = pl.concat([pl.DataFrame(schema=VALUES.schema), *there])
    for name, value in where.items():
        column = pl.col(name) if name in VALUES.schema else pl.col("params").str.json_path_match(f"$.{name}")
        values = values.filter(column.eq_missing(pl.lit(value, pl.String)))
    return values
