"""Looking things up in the tables of a graph: a few items or statements out of hundreds of millions.

Rows stand in the order of their numbers and every row group knows its smallest and largest, so a look-up reads only
the groups it needs.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.kg.countries import by_qid
from culturekit.kg.qids import QID
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES, EDGE_PROPERTIES, flags_of, mask_of
from culturekit.storage.manifest import read_manifest

__all__ = ["GraphTables", "ItemFacts", "Place", "Said", "among", "counted_values", "titled", "with_counts"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a dump describes an item: the file, the gzip member, the byte in it, and the line of the file from 1."""

    file: str
    member: int
    offset: int
    line: int

    def __str__(self) -> str:
        """Say it as a reader would look it up; what no dump says has no line."""
        return f"{self.file}, line {self.line} (member {self.member}, byte {self.offset})" if self.line else self.file


@dataclass(frozen=True, slots=True)
class ItemFacts:
    """What a graph knows of an item that a dump describes."""

    number: int
    label: str | None
    label_language: str | None
    description: str | None
    place: Place


@dataclass(frozen=True, slots=True)
class Said:
    """A statement; `value` is None for somevalue and novalue, `counts` says whether a walk hears it."""

    number: int
    property: str
    value: int | None
    snak: str
    rank: str
    qualified: bool
    ended: bool
    counts: bool


class GraphTables:
    """The tables of a graph folder, read row group by row group."""

    def __init__(self, folder: Path) -> None:
        """Find the tables and the names of the dump files."""
        self.folder = folder
        for name in ("items", "statements"):
            if not (folder / f"{name}.parquet").is_file():
                raise UsageError(
                    "not a graph store",
                    where=str(folder),
                    expected=f"a folder with {name}.parquet",
                    hint="Make it with: culturekit kg ingest",
                )
        manifest = read_manifest(folder)
        self.files = {role: record.name for role, record in manifest.inputs.items()} if manifest else {}

    @property
    def items(self) -> pl.LazyFrame:
        """All items."""
        return pl.scan_parquet(self.folder / "items.parquet")

    @property
    def statements(self) -> pl.LazyFrame:
        """All statements."""
        return pl.scan_parquet(self.folder / "statements.parquet")

    def facts(self, numbers: Iterable[int]) -> dict[int, ItemFacts]:
        """Look up items; one that the dump only mentions is left out."""
        rows = among(self.items, numbers).select(
            "number", "label", "label_language", "description", "file", "member", "offset", "line"
        )
        return {
            number: ItemFacts(number, label, language, description, Place(self.file_name(file), member, offset, line))
            for number, label, language, description, file, member, offset, line in rows.collect().iter_rows()
        }

    def labels(self, numbers: Iterable[int]) -> dict[int, str | None]:
        """Name items: by label, a country without one by its name, others not at all."""
        wanted = sorted(set(numbers))
        found = dict(among(self.items, wanted).select("number", "label").collect().iter_rows())
        return {number: found.get(number) or country_name(number) for number in wanted}

    def names(self, qids: Iterable[str]) -> dict[str, str]:
        """Name items by QID; those without a label are left out, and so is what is no QID."""
        numbers = {int(qid[1:]): qid for qid in qids if QID.match(qid) and int(qid[1:]) < 2**32}
        labels = self.labels(numbers) if numbers else {}
        return {numbers[number]: label for number, label in labels.items() if label}

    def class_names(self, candidates: Iterable[pl.DataFrame]) -> dict[str, str]:
        """Name the classes of candidates (their `p31` and `p279`) by QID; a class without a label is left out."""
        qids: set[str] = set()
        for frame in candidates:
            for column in ("p31", "p279"):
                qids.update(frame[column].explode(empty_as_null=False).unique())
        return self.names(qids)

    def stated(self, numbers: Iterable[int], properties: Sequence[str], mask: int) -> list[Said]:
        """List what items say with properties of one family; `mask` chooses the statements that count."""
        rows = among(self.statements, numbers).filter(pl.col("property").is_in(list(properties)))
        counted = with_counts(rows.collect().sort("number", "property", "position"), family_of(properties), mask)
        columns = ("number", "property", "value", "snak", "rank", "qualified", "ended", "counts")
        return [Said(*row) for row in counted.select(columns).iter_rows()]

    def file_name(self, file: int) -> str:
        """Name a dump file; by its place among the dump files where the folder has no manifest."""
        return self.files.get(f"dump-{file}", f"dump file {file}")


def among(rows: pl.LazyFrame, numbers: Iterable[int]) -> pl.LazyFrame:
    """Keep the rows of some items."""
    return rows.filter(pl.col("number").is_in(pl.Series(sorted(set(numbers)), dtype=pl.UInt32).implode()))


def family_of(properties: Sequence[str]) -> tuple[str, ...]:
    """Give the family by which the bits of these properties are laid out."""
    return COUNTRY_PROPERTIES if properties[0] in COUNTRY_PROPERTIES else EDGE_PROPERTIES


def with_counts(statements: pl.DataFrame, family: Sequence[str], mask: int) -> pl.DataFrame:
    """Add to the statements of a family whether each one counts; without a value it never does."""
    own = statements.filter(pl.col("property").is_in(list(family))).with_row_index("row")
    flags = flags_of(own, family)["flags"]
    valued = own.filter(pl.col("value").is_not_null()).select("row", counts=(flags & mask) != 0)
    joined = own.join(valued, on="row", how="left").with_columns(pl.col("counts").fill_null(value=False))
    return joined.sort("row").drop("row")


def counted_values(statements: pl.DataFrame, family: Sequence[str], mask: int) -> pl.DataFrame:
    """Give number, property and value of the statements of a family that count.

    Nearly all items have only statements of normal rank without an end; these need no ranking among themselves,
    which is most of the work for millions of items.
    """
    special = statements.filter((pl.col("rank") != "normal") | pl.col("ended")).select("number").unique()
    heard = [name for name in family if mask & mask_of((name,), family, ranks="truthy", ended="drop")]
    plain = statements.join(special, on="number", how="anti").filter(
        pl.col("property").is_in(heard), pl.col("value").is_not_null()
    )
    ranked = with_counts(statements.join(special, on="number", how="semi"), family, mask)
    columns = ("number", "property", "value")
    return pl.concat([plain.select(columns), ranked.filter(pl.col("counts")).select(columns)])


def country_name(number: int) -> str | None:
    """Name a country that culturekit knows."""
    country = by_qid().get(f"Q{number}")
    return country.name if country else None


def titled(qid: str | None, label: str | None) -> str:
    """Write an item as `Q42 (label)`, without a label as `Q42`."""
    return f"{qid} ({label})" if label else f"{qid}"
