"""Keys are blanked wherever text leaves the process: in logs, tracebacks, warnings and messages.

What is known to be a key is looked for by its value, in each of the forms it is commonly written in; what only looks
like one is blanked by its shape. An exception that is shown loses the local variables of its frames first, since
handlers that print these would print headers.
"""

import base64
import contextlib
import io
import json
import logging
import os
import re
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import quote, quote_plus

from culturekit.core.errors import MissingDependency, UsageError
from culturekit.core.literal_keys import NAMED_KEY, masked


class Secret:
    """A key that shows only its name; `reveal` gives the value, as late and as briefly as can be.

    Pickled, it is its name, and is looked up again where it is unpickled; a copy is itself; as JSON it is an error.
    """

    __slots__ = ("name", "reveal")

    name: str
    reveal: Callable[[], str]

    def __init__(self, name: str, value: str) -> None:
        """Keep the value where nothing prints it, and have it blanked everywhere."""
        know(name, value)
        self.name = name
        self.reveal = lambda: value

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    def __reduce__(self) -> tuple[Callable[[str], "Secret"], tuple[str]]:
        return key_from_environment, (self.name,)

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, _: object) -> "Secret":
        return self


def resolve_key(option: str) -> Secret:
    """Find the key that the option `api_key=${NAME}` of a SPEC names.

    Raises:
        UsageError: the option is a key itself; it is not repeated.
        MissingDependency: there is no key.
    """
    named = NAMED_KEY.fullmatch(option)
    if named is None:
        raise UsageError(
            "api_key is written out",
            expected="the name of an environment variable, such as api_key=${MY_KEY}",
            hint="Put the key into that variable, and write the SPEC in single quotes.",
        )
    return key_from_environment(named[1])


def key_from_environment(*names: str) -> Secret:
    """Take the key from the first of some environment variables that is set."""
    for name in names:
        value = os.environ.get(name, "").strip()
        if not value:
            continue
        if len(value) < _SHORTEST_KEY:
            raise UsageError(
                "this key is too short to be blanked without harm to other words",
                where=name,
                expected=f"{_SHORTEST_KEY} letters or more",
                found=f"{len(value)}",
                hint="Unset the variable where the server needs no key, or give the server a longer one.",
            )
        if not value.isascii() or not value.isprintable() or " " in value:
            raise UsageError("this is not a key", where=name, expected="one line of printable ASCII without spaces")
        return Secret(name, value)
    raise MissingDependency(
        "there is no key for this provider",
        expected=f"the environment variable {' or '.join(names)}",
        hint="Set it, or name another in the SPEC: '?api_key=${MY_KEY}', in single quotes.",
    )


_SHORTEST = 6  # characters; anything shorter would blank ordinary words
_SHORTEST_KEY = 8  # letters of a key: what is shorter stands in ordinary words, which blanking it would break
_SECRET_VARIABLE = re.compile(
    r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|AUTHORIZATION)S?(?:_|$)|(?:^|_)(?:AUTH|PASS|PWD)$", re.IGNORECASE
)
_PATHS = re.compile(r"(?:/[^/\0:]+)+|\d+|true|false", re.IGNORECASE)

KNOWN: dict[str, str] = {}  # each form of each key, and what stands for it
# The first finds all these forms; each of the others one key as JSON may write it, with escapes.
PATTERNS: list[re.Pattern[str]] = []
_ESCAPABLE = '"\\/'  # characters that JSON may also write behind a backslash as they are
_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})")


def know(name: str, value: str) -> None:
    """Remember a key, so that it is never shown."""
    if len(value) < _SHORTEST:
        return
    encoded = value.encode("utf-8", "surrogateescape")
    forms = {value, quote(encoded), quote(encoded, safe=""), quote_plus(encoded), json.dumps(value)[1:-1]}
    forms |= {json.dumps(value, ensure_ascii=False)[1:-1], repr(value)[1:-1], repr(encoded)[2:-1]}
    forms |= {base64.b64encode(encoded).decode(), base64.urlsafe_b64encode(encoded).decode(), encoded.hex()}
    KNOWN.update(dict.fromkeys(forms, f"[{name}]"))
    longest_first = sorted(KNOWN, key=lambda form: (-len(form), form))
    PATTERNS[:] = [re.compile("|".join(map(re.escape, longest_first))), *PATTERNS[1:], re.compile(in_json(value))]


@cache
def in_json(value: str) -> str:
    """Write a pattern that finds a text in JSON however it is escaped there, also in JSON that is a string of JSON.

    Each character stands there as it is, or as one or two escapes of four hexadecimal digits.
    """
    pattern = ""
    for character in value:
        units = character.encode("utf-16-be", "surrogatepass").hex(" ", 2).split()
        escaped = "".join(rf"\\+u(?i:{unit})" for unit in units)
        plain = (r"\\*" if character in _ESCAPABLE else "") + re.escape(character)
        pattern += f"(?:{plain}|{escaped})"
    return pattern


def redact(text: str) -> str:
    """Blank every known key in a text, and whatever looks like one."""
    return masked(_blanked(text))


def redact_bytes(content: bytes) -> bytes:
    """Blank every known key in bytes; nothing else of them changes."""
    text = content.decode("utf-8", "surrogateescape")
    clean = _blanked(text)
    return content if clean == text else clean.encode("utf-8", "surrogateescape")


def _blanked(text: str) -> str:
    for pattern in PATTERNS if "\\" in text else PATTERNS[:1]:
        text = pattern.sub(_shown_for, text)
    return text


def _shown_for(match: re.Match[str]) -> str:
    return KNOWN.get(match[0]) or KNOWN.get(_ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), match[0]), "[key]")


def scrub(error: BaseException) -> None:
    """Take out of an exception, and of those behind it, all that may hold a key: locals of frames, requests, texts."""
    for each in _chain(error):
        traceback.clear_frames(each.__traceback__)
        with contextlib.suppress(Exception):
            each.args = tuple(_redacted(argument) for argument in each.args)
        for name, value in list(getattr(each, "__dict__", {}).items()):
            with contextlib.suppress(Exception):
                setattr(each, name, None if name in {"request", "response"} else _redacted(value))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, what caused it, and what it groups, each once."""
    waiting, met = [error], set[int]()
    while waiting:
        each = waiting.pop()
        if id(each) in met:
            continue
        met.add(id(each))
        yield each
        causes = [each.__cause__, each.__context__, *getattr(each, "exceptions", ())]
        waiting += [one for one in causes if isinstance(one, BaseException)]


def _redacted(value: Any) -> Any:  # noqa: ANN401 - any value of any exception
    """Blank keys in texts, bytes and containers of them; other values stay."""
    match value:
        case str():
            return redact(value)
        case bytes():
            return redact_bytes(value)
        case dict():
            return {_redacted(key): _redacted(below) for key, below in value.items()}
        case list():
            return [_redacted(item) for item in value]
        case tuple() if type(value) is tuple:
            return tuple(_redacted(item) for item in value)
    return value


class KeyFilter(logging.Filter):
    """Blanks keys in a record that is about to be handled: its message, its traceback, and what was put beside them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record, and let it pass."""
        _clean_record(record)
        for name in record.__dict__.keys() - {"msg", "args", "exc_info", "exc_text", "stack_info"}:
            record.__dict__[name] = _redacted(record.__dict__[name])
        return True


def _clean_record(record: logging.LogRecord) -> None:
    """Write the message and the traceback of a record out as text without keys."""
    try:
        record.msg, record.args = redact(record.getMessage()), ()
    except Exception:  # the arguments do not fit the message: logging says so itself, and prints both
        record.msg, record.args = redact(str(record.msg)), ()
    if record.exc_info and record.exc_info[1] is not None:
        record.exc_text = redact("".join(traceback.format_exception(record.exc_info[1])).rstrip("\n"))
        record.exc_info = None
    elif record.exc_text:
        record.exc_text = redact(record.exc_text)
    if record.stack_info:
        record.stack_info = redact(record.stack_info)


def install_redaction() -> None:
    """Blank keys in everything that this process logs, and in the exceptions, warnings and tracebacks it shows.

    Variables of the environment whose name is one of a key are known from now on. A second call only looks at the
    environment again.
    """
    for name, value in os.environ.items():
        if _SECRET_VARIABLE.search(name) and not _PATHS.fullmatch(value):
            know(name, value.strip())
    if getattr(sys.excepthook, "redacts", False):
        return
    factory = logging.getLogRecordFactory()
    if factory.__name__ == "clean_factory":
        return

    def clean_factory(*arguments: Any, **options: Any) -> logging.LogRecord:  # noqa: ANN401 - as logging calls it
        record = factory(*arguments, **options)
        _clean_record(record)
        return record

    logging.setLogRecordFactory(clean_factory)
    for handler in logging.getLogger().handlers:
        handler.addFilter(KeyFilter())
    sys.excepthook = _quietly(sys.excepthook, lambda arguments: arguments[1])
    threading.excepthook = _quietly(threading.excepthook, lambda arguments: arguments[0].exc_value)
    sys.unraisablehook = _quietly(sys.unraisablehook, lambda arguments: arguments[0].exc_value)
    warnings.showwarning = _quietly(warnings.showwarning, lambda arguments: arguments[0])


def _quietly(hook: Callable[..., Any], error_of: Callable[[tuple[Any, ...]], object]) -> Callable[..., Any]:
    """Let a hook write, and blank keys in what it wrote; the exception is scrubbed before the hook sees it."""

    def clean_hook(*arguments: Any, **options: Any) -> None:  # noqa: ANN401 - whatever the hook takes
        error = error_of(arguments)
        if isinstance(error, BaseException):
            scrub(error)
        written = io.StringIO()
        with contextlib.redirect_stderr(written), contextlib.redirect_stdout(written):
            hook(*arguments, **options)
        if sys.stderr is not None:
            sys.stderr.write(redact(written.getvalue()))

    clean_hook.redacts = True  # type: ignore[attr-defined]
    return clean_hook
