"""Labels become integer codes, wherever they are equal; and how much their levels count in a kernel."""

import math
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from culturekit.core.errors import argument_error, check_choice
from culturekit.metrics.arguments import polars_frame

if TYPE_CHECKING:
    import polars as pl


LEVELS = ("continent", "country", "artifact")

Label: TypeAlias = str | int | None
# Triples of (continent, country, artifact), an array of them, (n, 3), or a frame with columns of those names. A plain
# label for each item counts on all three levels.
Labels: TypeAlias = "Sequence[Sequence[Label]] | Sequence[Label] | NDArray[Any] | pl.DataFrame"

# Whether a missing label is unlike every other label, or equal to other missing ones
Missing: TypeAlias = Literal["distinct", "equal"]

# One whole number of at least 0 per item; equal labels have equal numbers, and some numbers may not occur
Codes: TypeAlias = NDArray[np.integer[Any]]

PLAIN = frozenset({str, int, np.str_, np.int64, type(None)})  # The types of plain labels

LABEL = "a text, a whole number or None"

SPARE = 4  # Whole numbers that span at most so many times the number of items are codes as they stand


def code_labels(labels: Labels, *, missing: Missing, normalize: bool) -> NDArray[np.int64]:
    """Code labels level by level.

    Args:
        labels: n triples of (continent, country, artifact), or a frame with those columns; None is missing.
        missing: `distinct` gives each missing label a code of its own, `equal` gives all of a level the same.
        normalize: whether case, surrounding spaces and Unicode composition are ignored.

    Returns:
        int64, (n, 3): one code per label. The same labels in another order get the same codes.
    """
    levels = range(len(LEVELS))
    return np.stack(code_levels(labels, levels=levels, missing=missing, normalize=normalize), axis=1, dtype=np.int64)


def code_levels(labels: Labels, *, levels: Sequence[int], missing: Missing, normalize: bool) -> list[Codes]:
    """Code labels as `code_labels` does: one array of n codes for each level asked for, without needless copies."""
    check_choice("missing", missing, ("distinct", "equal"))
    columns = columns_of(labels)
    if len(columns[0]) == 0:
        raise argument_error("labels", "at least one (continent, country, artifact)", labels)
    return [code_column(columns[level], name=LEVELS[level], missing=missing, normalize=normalize) for level in levels]


def columns_of(labels: Labels) -> "list[list[Label]] | list[NDArray[Any]] | list[pl.Series]":
    """Take labels apart into one column per level."""
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] == len(LEVELS):
        whole = labels.dtype.kind in "iu"
        return [column if whole else column.tolist() for column in labels.T]
    if isinstance(labels, str) or not isinstance(labels, Sequence | np.ndarray):
        return columns_of_frame(labels)
    rows = list(labels)
    if set(map(type, rows)) <= PLAIN:
        return [cast(list[Label], rows)] * len(LEVELS)
    check_triples(cast(Sequence[Sequence[Label]], rows))
    return [list(column) for column in zip(*rows, strict=True)]


def check_triples(rows: Sequence[Sequence[Label]]) -> None:
    """Refuse rows of which one is no triple, though others are; a text of three letters is none."""
    if set(map(type, rows)) <= {tuple, list} and set(map(len, rows)) <= {len(LEVELS)}:
        return
    plain = not any(isinstance(row, tuple | list) for row in rows)
    for number, row in enumerate(rows):
        if plain and type(row) not in PLAIN and not hasattr(row, "__len__"):
            raise argument_error(f"labels[{number}]", LABEL, row)
        if plain and type(row) in PLAIN:
            continue
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) != len(LEVELS):
            raise argument_error(f"labels[{number}]", "a triple (continent, country, artifact)", row)


def columns_of_frame(frame: "pl.DataFrame | str") -> "list[pl.Series]":
    """Take the label columns of a frame; a single column has plain labels."""
    rule = "a sequence of labels or of triples, or a frame of polars or pandas"
    column = getattr(frame, "to_frame", None)
    frame = polars_frame("labels", rule, column() if column else frame)
    if column:
        return [frame.to_series()] * len(LEVELS)
    if not set(LEVELS) <= set(frame.columns):
        raise argument_error("labels", f"a frame with the columns {', '.join(LEVELS)}", frame.columns)
    return [frame[level] for level in LEVELS]


def code_column(
    column: "Sequence[Label] | NDArray[Any] | pl.Series", *, name: str, missing: Missing, normalize: bool
) -> Codes:
    """Code the labels of one level in their order, and the missing ones after them."""
    if isinstance(column, np.ndarray):
        return code_numbers(column)
    if isinstance(column, list | tuple):
        coded, names = code_list(column, name=name, normalize=normalize)
    else:
        coded, names = code_series(column, name=name, normalize=normalize)  # type: ignore[arg-type]
    gone = coded < 0
    if gone.any():
        coded = coded.astype(np.int64)
        coded[gone] = names + (np.arange(gone.sum()) if missing == "distinct" else 0)
    return coded


def code_list(column: Sequence[Label], *, name: str, normalize: bool) -> tuple[Codes, int]:
    """Code a list of labels, -1 where one is missing, and say how many codes there are."""
    numbers, count = code_names(distinct(column, name=name), normalize=normalize)
    codes: dict[Label, int] = {None: -1}
    codes |= cast(dict[Label, int], numbers)
    return np.fromiter(map(codes.__getitem__, column), np.int64, len(column)), count


def code_names(labels: set[str | int], *, normalize: bool) -> tuple[dict[str | int, int], int]:
    """Number labels in alphabetical order of how they are spelled, and say how many numbers there are."""
    spelled = {label: spell(label) if normalize else label for label in labels}
    ordered = sorted(set(spelled.values()), key=lambda label: (isinstance(label, str), label))
    numbers = {label: code for code, label in enumerate(ordered)}
    return {label: numbers[text] for label, text in spelled.items()}, len(ordered)


def code_series(column: "pl.Series", *, name: str, normalize: bool) -> tuple[Codes, int]:
    """Code a column of a frame as `code_list` does; only distinct labels become Python objects."""
    import polars as pl

    if column.dtype == pl.Null:
        return np.full(len(column), -1, np.int64), 0
    if column.dtype.is_integer() or column.dtype == pl.Boolean:
        present = column.drop_nulls()
        coded = code_numbers(present.cast(pl.Int8).to_numpy() if column.dtype == pl.Boolean else present.to_numpy())
        count = int(coded.max()) + 1 if len(coded) else 0
        if len(present) == len(column):
            return coded, count
        filled = np.full(len(column), -1, np.int64)
        filled[column.is_not_null().to_numpy()] = coded
        return filled, count
    if column.dtype not in (pl.String, pl.Categorical, pl.Enum):
        return code_list(column.to_list(), name=name, normalize=normalize)
    # A category space of its own: the numbers begin at 0, and nothing is kept when the column is gone.
    categories = column.cast(pl.String).cast(pl.Categorical(pl.Categories.random()))
    texts = categories.unique().drop_nulls()
    numbers, count = code_names(set(texts.cast(pl.String)), normalize=normalize)
    if not numbers:
        return np.full(len(column), -1, np.int64), 0
    table = np.zeros(len(numbers) + 1, np.int64)
    table[texts.to_physical().to_numpy()] = [numbers[text] for text in texts.cast(pl.String)]
    coded = table[categories.to_physical().fill_null(0).to_numpy()]
    coded[column.is_null().to_numpy()] = -1
    return coded, count


def code_numbers(column: NDArray[Any]) -> Codes:
    """Code whole numbers, none missing; those that lie close together are moved to 0 at most."""
    if len(column) == 0:
        return column
    lowest, highest = int(column.min()), int(column.max())
    if highest - lowest > SPARE * len(column) + 1000:
        return np.unique(column, return_inverse=True)[1]
    return column if 0 <= lowest <= SPARE * len(column) else column.astype(np.int64) - lowest


def distinct(column: Sequence[Label], *, name: str) -> set[str | int]:
    """Collect the labels of a level that are there."""
    try:
        found = set(column)
    except TypeError as error:
        raise argument_error(f"each {name} label", LABEL, column) from error
    for label in found:
        if not isinstance(label, str | int | np.integer | None):
            raise argument_error(f"each {name} label", LABEL, label)
    return {label for label in found if label is not None}


def spell(label: str | int) -> str | int:
    """Write a label without case, surrounding spaces, and differences of Unicode composition."""
    if not isinstance(label, str):
        return label
    # Case folding can take a composed letter apart, so the text is composed again after it.
    folded = unicodedata.normalize("NFC", label.strip()).casefold()
    return unicodedata.normalize("NFC", folded)


# Items with equal labels are one class: millions of images become a table of thousands of rows.

ITEMS = "items of a class"  # A column that no table of labels has

WIDEST = 2**62  # Above this, keys of several columns no longer fit one number


@dataclass(frozen=True, slots=True)
class LabelClasses:
    """The combinations of labels that occur, in the order of their labels."""

    labels: NDArray[np.int64]  # int64, (n_classes, n_levels): codes, coarse levels first; the rows differ
    counts: NDArray[np.int64]  # int64, (n_classes,): how many items carry them, at least 1

    @property
    def items(self) -> int:
        """How many items there are."""
        return int(self.counts.sum())

    def on(self, levels: Sequence[int]) -> "LabelClasses":
        """Keep some of the levels: classes that now have equal labels become one."""
        if len(levels) == self.labels.shape[1]:
            return self
        return grouped([self.labels[:, level] for level in levels], self.counts)


def classes_of_labels(
    labels: "Labels | pl.LazyFrame", *, levels: Sequence[int], missing: Missing, normalize: bool
) -> LabelClasses:
    """Count the classes of labels; those of a lazy frame are counted as they are read, and never all held at once."""
    if not hasattr(labels, "collect"):
        return label_classes(code_levels(labels, levels=levels, missing=missing, normalize=normalize))
    rows = counted(cast("pl.LazyFrame", labels), [LEVELS[level] for level in levels], missing=missing)
    return grouped(code_levels(rows, levels=levels, missing=missing, normalize=normalize), rows[ITEMS].to_numpy())


def counted(labels: "pl.LazyFrame", names: Sequence[str], *, missing: Missing) -> "pl.DataFrame":
    """Count rows with the same labels; `distinct` leaves each row that lacks one by itself."""
    import polars as pl

    known = labels.collect_schema().names()
    if not set(names) <= set(known):
        raise argument_error("labels", f"a frame with the columns {', '.join(LEVELS)}", known)
    rows = labels.group_by(names).agg(pl.len().alias(ITEMS)).collect(engine="streaming")
    if missing == "distinct":
        gone = pl.any_horizontal(pl.col(names).is_null())
        each = rows.filter(gone).select(pl.all().repeat_by(ITEMS).explode())
        rows = pl.concat([rows.filter(~gone), each.with_columns(pl.lit(1, rows[ITEMS].dtype).alias(ITEMS))])
    return rows.with_columns(pl.lit(None).alias(name) for name in LEVELS if name not in names)


def label_classes(levels: Sequence[Codes]) -> LabelClasses:
    """Count the classes of items in one pass over their codes, one array (n,) per level, coarse levels first.

    Most labels nest: an artifact has one country and one continent. So one place per code of the finest level
    remembers labels of the coarser ones, and the items that fit it are counted by that code alone, with nothing
    sorted. The items that do not fit are few, and are sorted.
    """
    *coarse, finest = levels
    finest = narrow(finest)
    size = int(finest.max()) + 1
    places = np.zeros((size, len(levels)), np.int64)
    places[:, -1] = np.arange(size)
    fits: NDArray[np.bool_] | None = None
    for number, level in enumerate(coarse):
        places[finest, number] = level
        same = np.ascontiguousarray(places[:, number]).astype(level.dtype)[finest] == level
        fits = same if fits is None else fits & same
    if fits is None or fits.all():
        counts = np.bincount(finest, minlength=size)
        return ordered(places[counts > 0], counts[counts > 0])
    counts = np.bincount(finest[fits], minlength=size)
    others = grouped([*(level[~fits] for level in coarse), finest[~fits]])
    seen = counts > 0
    return ordered(np.concatenate([places[seen], others.labels]), np.concatenate([counts[seen], others.counts]))


def narrow(codes: Codes) -> Codes:
    """Renumber codes from 0 where they are much larger than the number of items; counting them takes memory."""
    if int(codes.max()) <= 8 * len(codes) + 1000:
        return codes
    return np.unique(codes, return_inverse=True)[1]


def grouped(columns: Sequence[Codes], counts: NDArray[np.int64] | None = None) -> LabelClasses:
    """Count rows with equal labels by sorting them; `counts` says how many items each row stands for."""
    _, firsts, numbers = np.unique(combined(columns), return_index=True, return_inverse=True)
    summed = np.bincount(numbers, weights=counts, minlength=len(firsts)).astype(np.int64)
    return LabelClasses(np.stack([column[firsts].astype(np.int64) for column in columns], axis=1), summed)


def ordered(labels: NDArray[np.int64], counts: NDArray[np.int64]) -> LabelClasses:
    """Order classes by their labels, so that sums over them do not depend on the order of the items."""
    order = np.argsort(combined(list(labels.T)))
    return LabelClasses(labels[order], counts[order])


def combined(columns: Sequence[NDArray[Any]]) -> NDArray[np.int64]:
    """Number rows by several columns of whole numbers of at least -1; the numbers follow the order of the rows."""
    key = np.zeros(len(columns[0]), np.int64)
    spread = 1
    for column in columns:
        width = int(column.max(initial=0)) + 2
        if spread * width > WIDEST:
            key = np.unique(key, return_inverse=True)[1].astype(np.int64)
            spread = len(key) + 1
        if spread * width > WIDEST:
            column = np.unique(column, return_inverse=True)[1]
            width = len(column) + 2
        key = key * width + (column.astype(np.int64) + 1)
        spread *= width
    return key


# The weights of the label kernel, and the five triples that CUBE reports (Table 4 of the paper).

# How much the same continent, the same country and the same artifact count
Weights: TypeAlias = tuple[float, float, float]

STANDARD_KERNELS: Mapping[str, Weights] = MappingProxyType(
    {
        "continent": (1.0, 0.0, 0.0),
        "country": (0.0, 1.0, 0.0),
        "artifact": (0.0, 0.0, 1.0),
        "hierarchical": (0.5, 0.5, 0.0),
        "uniform": (1 / 3, 1 / 3, 1 / 3),
    }
)

Kernel: TypeAlias = str | Sequence[float]  # A standard kernel by its name, or weights

ROUNDING = 1e-9  # How far typed weights may be from their exact values, such as 0.3333333333 from 1/3


def check_weights(weights: Kernel) -> Weights:
    """Give the weights as three floats, by name or as they stand, or say why they are no kernel: k(i, i) must be 1."""
    rule = "three numbers of at least 0 that sum to 1, for (continent, country, artifact)"
    if isinstance(weights, str):
        check_choice("weights", weights, tuple(STANDARD_KERNELS))
        return STANDARD_KERNELS[weights]
    try:
        continent, country, artifact = (float(weight) for weight in weights)
    except (TypeError, ValueError) as error:
        raise argument_error("weights", rule, weights) from error
    if not min(continent, country, artifact) >= 0 or not abs(continent + country + artifact - 1) <= ROUNDING:
        raise argument_error("weights", rule, weights)
    return continent, country, artifact


def several_weights(weights: Kernel | Sequence[Kernel]) -> list[Weights]:
    """Read one kernel, or several."""
    if not hasattr(weights, "__len__"):
        raise argument_error("weights", "a triple of numbers, or triples", weights)
    return [check_weights(kernel) for kernel in ([weights] if is_single(weights) else weights)]  # type: ignore[arg-type]


def is_single(weights: Kernel | Sequence[Kernel]) -> bool:
    """Tell one kernel from several."""
    return isinstance(weights, str) or len(weights) == 0 or not all(hasattr(kernel, "__len__") for kernel in weights)


def counting_levels(weights: Weights) -> list[int]:
    """List the levels whose labels matter: 0 for the continent, 1 for the country, 2 for the artifact."""
    return [level for level, weight in enumerate(weights) if weight > 0]


def kernel_name(weights: Weights) -> str | None:
    """Name a triple of weights, when it is one of the standard ones."""
    for name, standard in STANDARD_KERNELS.items():
        if all(math.isclose(mine, theirs, abs_tol=ROUNDING) for mine, theirs in zip(weights, standard, strict=True)):
            return name
    return None
