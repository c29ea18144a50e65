"""The errors culturekit raises, one leaf per thing a caller would handle differently.

```
CultureKitError               70  ours: please report it
├── UsageError                 2  a flag, a file or a name given by the user is wrong
│   ├── ConfigError            2  a YAML file has problems, all of them listed
│   ├── MissingDependency      2  an optional package or a key is not there
│   ├── NothingScored          2  of all that was given nothing can be scored; in a run, these scores are left out
│   ├── PluginFailure          2  what another package brings failed, or is not what its kind is
│   └── FolderInUse            2  another run holds the folder
├── UpstreamUnavailable        3  a server or a provider did not answer
│   └── UnusableReplies        3  a model answers, and more than half of what it says cannot be used
├── IntegrityError             4  bytes are not what their manifest or their format promises
└── BudgetReached              5  the money allowed is spent; everything bought is kept
```

The number is the exit code of the command line. Besides, 0 is done; 1 is done, with findings or with rows that wait for
a person; 130 is interrupted. 3 is also a disk that is full or fails, too little memory, and a plugin that raised
`TimeoutError`. After 3, 5 and 130 the same command goes on where it was.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

# How words for many end, and how the word for one does.
ONE = (("ies", "y"), ("ches", "ch"), ("sses", "ss"), ("shes", "sh"), ("xes", "x"), ("s", ""))

NOT_MANY = ("ss", "us", "is", "has", "was", "does", "waits", "fits", "lacks")  # How words end that are none for many
DOES = {"are": "is", "have": "has"}  # What one does that many do, where it is not an s more


def counted(count: int, many: str, *, verb: str = "") -> str:
    """Write a number before what it counts, and after it what these do.

    Example:
        >>> counted(1_002, "rows set aside"), counted(1, "rows set aside"), counted(1, "countries", verb="have")
        ('1,002 rows set aside', '1 row set aside', '1 country has')
    """
    if count == 1:
        many, verb = one_of(many), DOES.get(verb, verb and f"{verb}s")
    return f"{count:,} {many} {verb}".rstrip()


def counted_reason(count: int, reason: str) -> str:
    """Write a number before a reason, which is of many, or said of each: drops have a row for each.

    Example:
        >>> counted_reason(2, "images without a text"), counted_reason(2, "no prompt"), counted_reason(1, "no prompt")
        ('2 images without a text', '2 × no prompt', '1 no prompt')
    """
    is_of_each = count != 1 and one_of(reason) == reason
    return f"{count:,} × {reason}" if is_of_each else counted(count, reason)


def one_of(many: str) -> str:
    """Put the first word in the singular, or the second where the first is not what is counted."""
    words = many.split(" ")
    for index, word in enumerate(words[:2]):
        if word.endswith("s") and not word.endswith(NOT_MANY):
            end, instead = next((end, instead) for end, instead in ONE if word.endswith(end))
            return " ".join([*words[:index], word.removesuffix(end) + instead, *words[index + 1 :]])
    return many


JOINERS = "\u200c\u200d"  # Letters of Persian, Hindi and others join by these, and emoji; a terminal obeys neither


def printable(text: str, *, keep: str = "") -> str:
    """Write what is not seen, or would break a line or turn the reading direction, by its code point."""
    return "".join(letter if letter.isprintable() or letter in keep else ascii(letter)[1:-1] for letter in text)


def without_halves(text: str) -> str:
    """Join the halves of characters (surrogates) that stand together; one that stands alone becomes U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class CultureKitError(Exception):
    """Something culturekit can explain: what is wrong, where, and what to do next.

    Example:
        >>> try:
        ...     ck.vendi([])
        ... except ck.CultureKitError as error:
        ...     (str(error), error.exit_code)
        ('labels must be at least one (continent, country, artifact); found []', 2)
    """

    exit_code = 70

    def __init__(self, problem: str, *, where: str = "", expected: str = "", found: str = "", hint: str = "") -> None:
        """Keep the parts apart, so that a caller can show or test each."""
        super().__init__(problem)
        self.problem = problem
        self.where = where
        self.expected = expected
        self.found = found
        self.hint = hint

    def __str__(self) -> str:
        """Say it in one paragraph: where, what, expected, found, what next."""
        text = f"{self.where}: {self.problem}" if self.where else self.problem
        if self.expected:
            text += f"; expected {self.expected}"
        if self.found:
            text += f"{',' if self.expected else ';'} found {self.found}"
        return f"{text}. {self.hint}" if self.hint else text


class UsageError(CultureKitError, ValueError):
    """The command line or an argument asks for something that cannot be done; Python code may catch a ValueError."""

    exit_code = 2


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the file in errors about what it holds."""
    try:
        yield
    except UsageError as error:
        if path.name not in str(error):
            error.where = f"{path}: {error.where}" if error.where else str(path)
        raise


class MissingDependency(UsageError):
    """An optional package, a key or a program is needed and is not there."""


class NothingScored(UsageError):
    """Of all that was given nothing can be scored: a command refuses it, and a run goes on without these scores."""

    left_out: Mapping[str, int] | None = None

    @classmethod
    def because(cls, problem: str, left_out: Mapping[str, int], *, where: str = "", expected: str = "") -> Self:
        """Say what was found in place of something to score: what was left out, or no rows at all."""
        found = ", ".join(counted_reason(count, reason) for reason, count in left_out.items() if count)
        return cls(problem, where=where, expected=expected, found=found or "no rows").counting(left_out)

    def counting(self, left_out: Mapping[str, int]) -> Self:
        """Say what was left out, counted by reason; counts that are all 0 say nothing."""
        found = {reason: count for reason, count in left_out.items() if count}
        self.left_out = found if found or not left_out else None
        return self


class PluginFailure(UsageError):
    """What another package brings raised something, or does not do what its kind promises."""


class FolderInUse(UsageError):
    """Another run is working in the folder."""


class UpstreamUnavailable(CultureKitError):
    """A server did not answer, or answered that it cannot serve now."""

    exit_code = 3


class UnusableReplies(UpstreamUnavailable):
    """A model's replies are mostly no answers: whoever pays decides whether the rest is asked."""


class IntegrityError(CultureKitError):
    """Bytes on disk are not what their format or their manifest promises."""

    exit_code = 4


class BudgetReached(CultureKitError):
    """The next request could cost more than what is left of the budget."""

    exit_code = 5


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a file the user wrote, with its place."""

    message: str
    where: str
    line: int = 0
    key: str = ""

    def __str__(self) -> str:
        """Write `file:line: key: message`, leaving out what is not known."""
        where = f"{self.where}:{self.line}" if self.line else self.where
        return f"{where}: {self.key}: {self.message}" if self.key else f"{where}: {self.message}"


class ConfigError(UsageError):
    """A file the user wrote has problems; all of them are listed, in file order."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        """Order the problems as the reader meets them in the file."""
        self.problems = tuple(sorted(problems, key=lambda p: (p.where, p.line, p.key, p.message)))
        super().__init__(counted(len(self.problems), "problems"))

    def __reduce__(self) -> tuple[type["ConfigError"], tuple[tuple[Problem, ...]]]:
        """Cross process borders whole."""
        return type(self), (self.problems,)

    def __str__(self) -> str:
        """Write one line per problem."""
        return "\n".join(str(problem) for problem in self.problems)


LONGEST_SHOWN = 80


def argument_error(name: str, rule: str, value: object) -> UsageError:
    """Make the error for an argument that breaks its rule; a long value is cut."""
    shown = repr(value)
    if len(shown) > LONGEST_SHOWN:
        shown = f"{shown[:LONGEST_SHOWN]}..."
    return UsageError(f"{name} must be {rule}", found=shown)


def check_choice(name: str, value: object, choices: Sequence[str]) -> None:
    """Refuse a value that is not one of the choices."""
    if value not in choices:
        raise argument_error(name, " or ".join(map(repr, choices)), value)
