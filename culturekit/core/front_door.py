"""The front door of the library: missing arguments, complex numbers and seeds in place of generators are our errors."""

import re
from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, formatannotation, signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from culturekit.core.errors import UsageError

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
    said = [each.name if each.default is Parameter.empty else f"{each.name}=..." for each in every]
    named = [place for place, each in enumerate(every) if each.kind is Parameter.KEYWORD_ONLY]
    return [*said[: named[0]], "*", *said[named[0] :]] if named else said


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
