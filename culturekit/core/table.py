"""What a table is: named columns with types, which may be null, and a key that orders the rows."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from types import MappingProxyType
from unicodedata import category, normalize

import polars as pl

from culturekit.core.errors import UsageError

# How a declaration names a polars type.
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

# Columns whose texts name something: where nothing is known they are null, as a blank would be one more name.
NAMES = frozenset(
    {"annotator", "artifact", "artifact_id", "concept", "continent", "country", "image_id", "pool", "prompt_id"}
)

# Columns of names that people write in any table, and what is called so; a table declares those that it has besides.
# Names are shown as written, and compared by NFKC, without case and surplus spaces, a number without its `.0`.
CALLED = {
    "model": "models", "pool": "pools", "annotator": "annotators", "annotator_id": "annotators",
    "annotator_region": "regions", "annotator_loc": "regions", "coder": "coders", "location": "locations",
}  # fmt: skip

PERSONS = frozenset({"annotator", "annotator_id", "coder"})

_DECLARATION = re.compile(r"^(?P<name>[a-z0-9_]+) (?P<type>[a-z0-9\[\]]+)(?P<nullable>\??)$")


@dataclass(frozen=True, slots=True)
class Column:
    """The type of a column, and whether a cell may be null."""

    dtype: pl.DataType
    nullable: bool


@dataclass(frozen=True, slots=True)
class Fault:
    """Rows, counted from 1, that have the right types and cannot be true; `found` is what the first of them says."""

    problem: str
    rows: tuple[int, ...]
    expected: str
    found: str
    hint: str


@dataclass(frozen=True, slots=True)
class Table:
    """A table that crosses a stage border.

    Attributes:
        names: columns of names besides those of `CALLED`, with a spelling that is known, such as `source=real`.
        belongs: what belongs to what: of one owner a row says the same as any other, of `member?` where it says it.
        differ: columns whose texts differ within a row.
        among: columns that hold, or list, nothing but texts of others in the row.
        allowed: the words that a column holds or lists.
    """

    name: str
    key: tuple[str, ...]
    columns: Mapping[str, Column]
    optional: Mapping[str, Column]
    names: Mapping[str, str] = field(default_factory=dict)
    belongs: Sequence[tuple[str, str]] = ()
    differ: Sequence[str] = ()
    among: Mapping[str, Sequence[str]] = field(default_factory=dict)
    allowed: Mapping[str, Sequence[str]] = field(default_factory=dict)

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
            elif name in NAMES and (frame[name].str.strip_chars() == "").any():
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


def folded_name(name: str) -> str:
    """Give what two spellings of one name have in common."""
    seen = "".join(letter for letter in normalize("NFKC", name) if category(letter) != "Cf")
    return re.sub(r"^(\d+)[.,]0+$", r"\1", " ".join(seen.split()).casefold())


def faults_in(frame: pl.DataFrame, table: Table) -> Iterator[Fault]:
    """Hold the rows of a frame that conforms against everything else that its table declares."""
    there = set(frame.columns)
    for column in filter(there.__contains__, {**CALLED, **table.names}):
        yield from _name_faults(frame, column, table.names.get(column, ""))
    for column, kind in frame.schema.items():
        if kind.is_float() and not PERSONS.isdisjoint(there):  # models may score what they like
            yield from _faults(frame, pl.col(column).is_infinite(), f"{column} is infinite", "a number", [column])
    for owner, member in table.belongs:
        if {owner, name := member.rstrip("?")} <= there:
            yield from _two_owners(frame, owner, name, nullable=member.endswith("?"))
    for one, other in combinations(filter(there.__contains__, table.differ), 2):
        yield from _faults(frame, pl.col(one) == pl.col(other), f"{one} is {other}", "two that differ", [one, other])
    for column, words in {**table.among, **table.allowed}.items():
        if column in there:
            known = pl.concat_list(*words) if column in table.among else pl.lit(list(words), pl.List(pl.String))
            listed = pl.col(column) if frame.schema[column] == pl.List else pl.concat_list(column)
            strange = listed.list.set_difference(known).list.drop_nulls().list.len() > 0
            problem = (
                f"{column} is neither {' nor '.join(words)}" if column in table.among else f"{column} has other words"
            )
            yield from _faults(frame, strange, problem, " or ".join(words), [column])


def _faults(
    frame: pl.DataFrame, wrong: pl.Expr | pl.Series, problem: str, expected: str, shown: Sequence[str],
    hint: str = "Mend these rows, or take them out.", found: str = "",
) -> Iterator[Fault]:  # fmt: skip
    rows = frame.select(wrong).to_series().fill_null(value=False).arg_true()
    if rows.len():
        found = found or ", ".join(f"{name} {frame[name][rows[0]]!r}" for name in shown)
        yield Fault(problem, tuple((rows + 1).to_list()), expected, found, hint)


def _name_faults(frame: pl.DataFrame, column: str, known: str) -> Iterator[Fault]:
    """Find names that are blank, hold a character that nobody sees, or differ from another as spellings of one do."""
    what = CALLED.get(column, column)
    spelled = {folded_name(known): known} if known else {}
    for name in frame[column].unique().drop_nulls().sort().to_list():
        alike = spelled.setdefault(folded_name(name), name)
        if any(category(letter) == "Cc" for letter in name.strip()):
            problem = (f"names of {what} with control characters", "names of letters, digits and signs")
        elif alike != name or not name.strip():
            problem = (f"names of {what} that cannot be told apart", "names that differ in more than case and spaces")
        else:
            continue
        pair = f"{alike!r} and {name!r}" if alike != name else repr(name)
        yield from _faults(frame, pl.col(column) == name, *problem, (), f"Give each of the {what} one name.", pair)


def _two_owners(frame: pl.DataFrame, owner: str, member: str, *, nullable: bool) -> Iterator[Fault]:
    """Find rows that say of an owner what an earlier row does not."""
    pairs = frame.select(owner, member).unique().drop_nulls(owner)
    if (pairs.drop_nulls(member) if nullable else pairs)[owner].is_duplicated().any():
        members = pl.col(member).drop_nulls() if nullable else pl.col(member)
        whole = frame.with_columns(first=members.first().over(owner))
        other = pl.col(member).ne_missing(pl.col("first")) & pl.col(owner).is_not_null()
        other &= pl.col(member).is_not_null() if nullable else True
        row = whole.filter(other).row(0, named=True)
        expected = f"{row['first']!r}, as in another row"
        contradicting = whole.select(other).to_series()
        yield from _faults(frame, contradicting, f"one {owner} has two of {member}", expected, [owner, member])


def has_null(column: pl.Series) -> bool:
    """Tell whether a cell, or an element of a list cell, is null."""
    if column.null_count():
        return True
    return isinstance(column.dtype, pl.List) and column.explode(empty_as_null=False).null_count() > 0


def declare(
    text: str,
    *,
    among: Mapping[str, str] = MappingProxyType({}),
    allowed: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> Table:
    """Declare a table as `NAME by KEY: COLUMNS`, columns in the notation of the documentation, such as `label str?`.

    What it may have and promise besides follows after semicolons: `optional: age u8?`; names, as in
    `names: object region source=real`; and what belongs to what, as in `belongs: image_id: region object`.
    """
    head, *rest = (part.partition(":") for part in text.split(";"))
    name, _, key = head[0].partition(" by ")
    stated = {part.strip(): description for part, _, description in rest}
    owners = (part.partition(":") for part in stated.get("belongs", "").split(",") if part.strip())
    return Table(
        name.strip(), tuple(key.split()), _columns_in(head[2]), _columns_in(stated.get("optional", "")),
        {column: known for column, _, known in (one.partition("=") for one in stated.get("names", "").split())},
        [(owner.strip(), member) for owner, _, members in owners for member in members.split()],
        stated.get("differ", "").split(), {column: others.split() for column, others in among.items()}, allowed,
    )  # fmt: skip


def _columns_in(text: str) -> dict[str, Column]:
    """Read comma-separated `name type` pairs; a question mark after the type allows nulls."""
    columns = {}
    for part in filter(None, (" ".join(part.split()) for part in text.split(","))):
        match = _DECLARATION.match(part)
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
