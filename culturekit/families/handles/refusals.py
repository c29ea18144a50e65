"""Why numbers could not be had: counted by reason, with the first case of each told whole."""

from collections import Counter
from collections.abc import Callable

from culturekit.errors import CultureKitError, NothingScored

__all__ = ["Refusals"]


class Refusals:
    """Gathers what was refused, case by case."""

    def __init__(self) -> None:
        """Begin with nothing refused."""
        self.counts: Counter[str] = Counter()
        self.cases: dict[str, str] = {}
        self.hint = ""

    def note(self, error: CultureKitError, *whose: str | None) -> None:
        """Count a refusal; `whose` numbers it concerns is said of the first of its kind."""
        self.counts[error.problem] += 1
        said = [f"expected {error.expected}" if error.expected else "", f"found {error.found}" if error.found else ""]
        case = ": ".join(filter(None, (", ".join(filter(None, (*whose, error.where))), ", ".join(filter(None, said)))))
        self.cases.setdefault(error.problem, f"{error.problem} ({case})" if case else error.problem)
        self.hint = self.hint or error.hint

    def left_out(self, prefix: str) -> dict[str, int]:
        """Count by reason, as manifests do."""
        return {f"{prefix}{self.cases[why]}": self.counts[why] for why in sorted(self.counts)}

    def refusal(self, problem: str, counted: Callable[[int], str], *, expected: str = "") -> NothingScored:
        """Say that nothing could be had, with every reason."""
        found = "; ".join(f"{self.cases[why]}: {counted(self.counts[why])}" for why in self.counts)
        return NothingScored(problem, expected=expected, found=found or "nothing", hint=self.hint)
