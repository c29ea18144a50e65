"""Checks of arguments; each error names the argument, the rule and the value received."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import argument_error

if TYPE_CHECKING:
    import polars as pl


NUMBERS = (int, float, np.integer, np.floating)


def check_order(q: object) -> None:
    """Refuse an order of the Vendi score that is not above zero; infinity is an order."""
    if not isinstance(q, NUMBERS) or not q > 0:
        raise argument_error("q", "a number above 0, or infinity", q)


def check_count(name: str, count: object) -> None:
    """Refuse what is not a whole number of at least one, such as a batch size or a number of draws."""
    if not isinstance(count, NUMBERS) or count % 1 != 0 or count < 1:
        raise argument_error(name, "a whole number of at least 1", count)


def check_confidence(confidence: float) -> None:
    """Refuse a confidence that is not a share strictly between 0 and 1."""
    if not 0 < confidence < 1:
        raise argument_error("confidence", "between 0 and 1", confidence)


def float_array(name: str, rule: str, values: object) -> NDArray[np.float64]:
    """Read numbers as float64."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise argument_error(name, rule, values) from error


def finite_vector(name: str, values: ArrayLike, *, length: int | None = None) -> NDArray[np.float64]:
    """Read numbers as float64, (n,); all are finite, and there are `length` of them."""
    vector = float_array(name, "a sequence of numbers", values)
    if vector.ndim != 1 or len(vector) == 0:
        raise argument_error(name, "a sequence of at least one number", values)
    if length is not None and len(vector) != length:
        raise argument_error(name, f"of length {length}, like what it belongs to", f"length {len(vector)}")
    finite = np.isfinite(vector)
    if not finite.all():
        first = int(np.argmin(finite))
        raise argument_error(f"{name}[{first}]", "finite", float(vector[first]))
    return vector


def polars_frame(name: str, rule: str, table: Any) -> "pl.DataFrame":  # noqa: ANN401 - a frame of either kind
    """Read a table as a frame of polars; one of pandas is copied, what it lacks is null."""
    import polars as pl

    if isinstance(table, pl.DataFrame):
        return table
    if type(table).__module__.partition(".")[0] != "pandas" or not hasattr(table, "columns"):
        raise argument_error(name, rule, table)
    there = table.astype(object).where(table.notna(), None)
    return pl.DataFrame({str(column): there[column].tolist() for column in there}, infer_schema_length=None)
