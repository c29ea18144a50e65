"""What a table is: named columns with types, which may be null, and a key that orders the rows."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from unicodedata import normalize

import polars as pl

from culturekit.core.errors import UsageError

TYPES: Mapping[str, pl.DataType] = {
    "str": pl.String(),
    "bool": pl.Boolean(),
    "u8": pl.UInt8(),
    "u16": pl.UInt16(),
    "u32": pl.UInt32(),
    "u64": pl.UInt64(),
    "i64": pl.Int64(),
    "f32": pl.Float32(),
    "f64": pl.Float64(),
    "datetime": pl.Datetime("us", "UTC"),
    "list[str]": pl.List(pl.String()),
}
"""How a declaration names a polars type."""

NAMES = frozenset(
    {"annotator", "artifact", "artifact_id", "concept", "continent", "country", "image_id", "pool", "prompt_id"}
)
"""Columns whose texts name something: where nothing is known they are null, as a blank would be one more name."""

CALLED = {
    "model": "models", "pool": "pools", "annotator": "annotators", "annotator_id": "annotators",
    "annotator_region": "regions", "annotator_loc": "regions",
}  # fmt: skip
"""Columns of names that people write, and what is called so."""

DECLARATION = re.compile(r"^(?P<name>[a-z0-9_]+) (?P<type>[a-z0-9\[\]]+)(?P<nullable>\??)$")


@dataclass(frozen=True, slots=True)
class Column:
    """The type of a column, and whether a cell may be null."""

    dtype: pl.DataType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table that crosses a stage border."""

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, Column]
    optional: Mapping[str, Column]

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """The polars schema of the columns that are always there."""
        return {name: column.dtype for name, column in self.columns.items()}

    def problems(self, frame: pl.DataFrame) -> list[str]:
        """List every way in which a frame departs from the declaration; empty when it conforms."""
        known, schema = {**self.columns, **self.optional}, frame.schema
        found = [f"column {name} is missing" for name in self.columns if name not in schema]
        for name in schema:
            if name not in known:
                found.append(f"column {name} is not declared")
            elif schema[name] != known[name].dtype:
                found.append(f"column {name} is {frame.schema[name]}, not {known[name].dtype}")
            elif not known[name].nullable and has_null(frame[name]):
                found.append(f"column {name} has nulls and may not")
            elif name in NAMES and has_blank(frame[name]):
                found.append(f"column {name} has blank texts; what is not known is null")
        if not found and self.repeated(frame).height:
            found.append(f"rows repeat the key ({', '.join(self.key)})")
        return found

    def repeated(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Give the rows that repeat the key, in its order."""
        return repeated(frame, self.key)


def repeated(frame: pl.DataFrame, key: Sequence[str]) -> pl.DataFrame:
    """Give the rows that repeat a key, in its order.

    Hashes are looked at first: of ten million rows in a third of the time, and they are seldom equal.
    """
    keys = frame.select(key)
    if not key or keys.select(pl.struct(pl.all()).hash().n_unique()).item() == frame.height:
        return frame.clear()
    return frame.filter(keys.is_duplicated()).sort(key)


def doubtful_names(frame: pl.DataFrame) -> tuple[str, str] | None:
    """Say of what two names look alike but for case and spaces, or one is blank, and which: nobody can tell them apart.

    A model, or a person, by two names would count as two.
    """
    for column, what in CALLED.items():
        names = frame[column].unique().drop_nulls().sort().to_list() if column in frame.columns else []
        folded: dict[str, str] = {}
        for name in names:
            alike = folded.setdefault(" ".join(normalize("NFKC", name).split()).casefold(), name)
            if alike != name or not name.strip():
                return what, f"{alike!r} and {name!r}" if alike != name else repr(name)
    return None


def has_null(column: pl.Series) -> bool:
    """Tell whether a cell, or an element of a list cell, is null."""
    if column.null_count():
        return True
    return isinstance(column.dtype, pl.List) and column.explode(empty_as_null=False).null_count() > 0


def has_blank(column: pl.Series) -> bool:
    """Tell whether a text has nothing but spaces."""
    return bool((column.str.strip_chars().str.len_bytes() == 0).any())


def declare(name: str, *, key: str, columns: str, optional: str = "") -> Table:
    """Declare a table in the notation of the documentation, such as `qid str, label str?`."""
    return Table(name, tuple(key.split()), parse(columns), parse(optional))


def parse(text: str) -> dict[str, Column]:
    """Read comma-separated `name type` pairs; a question mark after the type allows nulls."""
    columns = {}
    for part in filter(None, (" ".join(part.split()) for part in text.split(","))):
        match = DECLARATION.match(part)
        if match is None or match["type"] not in TYPES:
            raise ValueError(f"a column is declared as `name type` or `name type?`, not {part!r}")
        columns[match["name"]] = Column(TYPES[match["type"]], bool(match["nullable"]))
    return columns


# The slots of a repeat: each holds one image, in whose order batches are made.

SLOT = ("model", "concept", "prompt_id", "repeat", "slot")


def check_slots(images: pl.DataFrame) -> None:
    """Refuse two images in one slot, as of two generations put together: half a batch would show what the other does.

    Args:
        images: image_id, model, prompt_id, repeat, slot, and concept where that is known, of images that are there.
    """
    slot = [name for name in SLOT if name in images.columns]
    twice = repeated(images.drop_nulls(["prompt_id", "repeat", "slot"]), slot).sort(*slot, "image_id")
    if twice.height:
        one, other = twice["image_id"].head(2)
        raise UsageError(
            "two images are in one slot of a repeat", where=f"{twice.height:,} images, such as {one!r} and {other!r}",
            expected="one image in each slot of a model's prompt and repeat",
            hint="Score one generation of a model, or name each; where no slots are known leave them empty.",
        )  # fmt: skip
