"""Checks of arguments, missing ones too; each error names the argument, the rule and the value received."""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, formatannotation, signature
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from culturekit.core.errors import UsageError, argument_error

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


def unit_rows(name: str, block: ArrayLike, start: int = 0) -> NDArray[np.float64]:
    """Give rows length 1, float64 (n, dim); the first without a direction is named, counted from `start`."""
    rows = np.asarray(block, np.float64)
    # Lengths of tiny or huge vectors would leave the range of numbers when squared.
    largest = np.abs(rows).max(axis=1, keepdims=True)
    wrong = np.flatnonzero(~(np.isfinite(largest) & (largest > 0)))
    if len(wrong):
        first = int(wrong[0])
        rule, found = ("finite", rows[first]) if rows[first].any() else ("a vector with a direction", "only zeros")
        raise argument_error(f"{name}[{start + first}]", rule, found)
    moderate = rows / largest
    return np.asarray(moderate / np.linalg.norm(moderate, axis=1, keepdims=True))


def polars_frame(name: str, rule: str, table: Any) -> "pl.DataFrame":  # noqa: ANN401 - a frame of either kind
    """Read a table as a frame of polars; one of pandas is copied, what it lacks is null."""
    import polars as pl

    if isinstance(table, pl.DataFrame):
        return table
    if type(table).__module__.partition(".")[0] != "pandas" or not hasattr(table, "columns"):
        raise argument_error(name, rule, table)
    there = table.astype(object).where(table.notna(), None)
    return pl.DataFrame({str(column): there[column].tolist() for column in there}, infer_schema_length=None)


_PREFIX = re.compile(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z_])")
_ARRAY = re.compile(r"ndarray\[tuple\[Any, \.\.\.\], dtype\[(\w+)\]\]")


class _Hint(str):
    """A type hint that `help()` shows as it is."""

    __slots__ = ()
    __repr__ = str.__str__


def front(function: Callable[..., Any], home: str) -> Callable[..., Any]:
    """Make the public face of a function, found as `home.NAME`; its hints are short in `help()`."""
    bound = signature(function)

    @wraps(function)
    def called(*given: object, **named: object) -> Any:  # noqa: ANN401 - what the function returns
        try:
            arguments = bound.bind(*given, **named).arguments
        except TypeError as error:
            asked = f"{function.__name__}({', '.join(_asked(bound))})"
            raise UsageError(f"{function.__name__}: {error}", expected=asked) from None
        for name, value in arguments.items():
            if name == "rng":
                _check_generator(value, bound.parameters[name].default)
            elif _is_complex(value):
                raise UsageError(f"{name} must be real numbers", found="complex numbers")
        return function(*given, **named)

    called.__module__, called.__qualname__ = home, function.__name__
    hints = [each.replace(annotation=_short(each.annotation)) for each in bound.parameters.values()]
    called.__signature__ = Signature(hints, return_annotation=_short(bound.return_annotation))  # type: ignore[attr-defined]
    return called


def _asked(bound: Signature) -> list[str]:
    """Write the arguments of a call, those that may be left out with dots."""
    every = bound.parameters.values()
    params = [each.name if each.default is Parameter.empty else f"{each.name}=..." for each in every]
    named = [index for index, each in enumerate(every) if each.kind is Parameter.KEYWORD_ONLY]
    return [*params[: named[0]], "*", *params[named[0] :]] if named else params


def _check_generator(value: object, default: object) -> None:
    """Refuse seeds and older generators, which NumPy's functions of today do not take."""
    if not isinstance(value, np.random.Generator) and not (value is None and default is None):
        raise UsageError(
            "rng must be a generator of NumPy", expected="numpy.random.default_rng(SEED)", found=repr(value)
        )


def _is_complex(value: object) -> bool:
    """Tell complex numbers, in an array or at the beginning of nested sequences."""
    while isinstance(value, Sequence) and not isinstance(value, str) and value:
        value = value[0]
    return np.iscomplexobj(value) if isinstance(value, np.ndarray) else isinstance(value, complex)


def _short(hint: object) -> object:
    """Write a hint by the names of its types alone."""
    if hint is Signature.empty:
        return hint
    text, every = (
        _PREFIX.sub("", each if isinstance(each, str) else formatannotation(each)) for each in (hint, ArrayLike)
    )
    text = text.replace(every, "ArrayLike").replace(f"{every[:-1]}, NoneType]", "ArrayLike | None")
    return _Hint(_ARRAY.sub(r"NDArray[\1]", text))
