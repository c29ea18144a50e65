"""Whether what a model replies can be used at all: counted as rows end, and asked about before more is bought."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from culturekit.core.choices import ANSWERED
from culturekit.core.errors import UnusableReplies
from culturekit.llm.ledger import shown_text
from culturekit.llm.replies import CODES, FENCED
from culturekit.llm.rows import Answered

LOOKED_AT = 20  # rows that end before their outcomes are judged: by then a model that works shows some answers
_SENTENCES = {str(code): sentence for code, sentence in CODES.items()}


# Outcomes that another SPEC may mend; a refusal or a block is a word of the model or its provider.
BROKEN = ("invalid", "truncated")
_SHOWN = 200  # characters of a reply that are shown
_SAMPLES = 5  # replies that are no answers of which the text is kept, to be shown


@dataclass(frozen=True, slots=True)
class RepliesSeen:
    """What came of rows: those of no use by reason, some of their replies, fences taken off, why it was stopped."""

    rows: int
    unusable: Mapping[str, int]
    unusable_samples: tuple[tuple[str, str], ...]
    fenced: int
    stopped: str

    @property
    def to_mend(self) -> str:
        """Why something is to be mended before more is asked: replies are no answers, or most are of no use."""
        count = sum(self.unusable.values())
        if not any(why.startswith(BROKEN) for why in self.unusable) and 2 * count <= self.rows:
            return ""
        return self.stopped or f"{count:,} of {self.rows:,} replies are no answers: look at them"

    def lines(self) -> Iterator[str]:
        """Yield what could not be used, and show some; what came from outside cannot steer a terminal."""
        if self.fenced:
            yield f"  {self.fenced:,} in a code fence, which was taken off"
        for why, count in self.unusable.items():
            yield f"  {count:,} {why}"
        for outcome, raw in self.unusable_samples:
            yield f"    {outcome:<9} {shown_text(raw, longest=_SHOWN)}"


class ReplyWatch:
    """Counts how the rows of one stage end; several askings of a stage may share one.

    With `go_on` somebody has looked at the replies and wants the rest all the same.
    """

    def __init__(self, *, go_on: bool = False) -> None:
        """Start with no row."""
        self.go_on = go_on
        self.rows = self.fenced = self.in_a_row = 0
        self.began_badly = False
        self.unusable: Counter[str] = Counter()
        self.samples: list[tuple[str, str]] = []

    def count(self, answered: Answered) -> None:
        """Count the next row, so that the same rows always come to the same end."""
        self.rows += 1
        if answered.outcome in ANSWERED:
            self.fenced += answered.detail == FENCED
            self.in_a_row = 0
        else:
            sentence = _SENTENCES.get(answered.detail)
            why = f"{answered.outcome} ({answered.detail}: {sentence})" if sentence else answered.outcome
            self.unusable[why] += 1
            self.in_a_row += 1
            if len(self.samples) < _SAMPLES:
                self.samples.append((answered.outcome, answered.raw))
        if self.rows == LOOKED_AT:
            self.began_badly = 2 * self.unusable.total() > LOOKED_AT

    @property
    def ahead(self) -> int | None:
        """How many rows more may be asked before anything is known of the replies; None where enough is."""
        return None if self.go_on or self.rows >= LOOKED_AT else LOOKED_AT - self.rows

    @property
    def stops(self) -> bool:
        """Whether to stop and ask: the first rows, or as many in a row, brought too little."""
        return not self.go_on and (self.began_badly or self.in_a_row >= LOOKED_AT)

    def stops_before(self, repairs: int) -> bool:
        """Check whether to stop before repairs are asked at once, as in batches: most first replies were no answers."""
        rows = self.rows + repairs
        return not self.go_on and rows >= LOOKED_AT and 2 * (self.unusable.total() + repairs) > rows

    def error(self, model: str, *, repairs: int = 0) -> UnusableReplies:
        """Return what came, and how to go on."""
        why = [f"{count:,} {reason}" for reason, count in self.unusable.most_common(3)]
        why += [f"{repairs:,} first replies that are no answer"] if repairs else []
        count, rows = self.unusable.total() + repairs, self.rows + repairs
        return UnusableReplies(
            f"{count:,} of the first {rows:,} rows brought nothing that can be used, so no more are asked",
            where=model,
            found="; ".join(why),
            hint="Everything bought is kept; `culturekit llm log` shows the replies. Choose another model or mend its "
            "SPEC (schema=); after mending the server, --fresh asks these rows again; --go-on asks the rest as it is.",
        )

    def seen(self, *, stopped: str = "") -> RepliesSeen:
        """Return what was counted."""
        return RepliesSeen(self.rows, dict(self.unusable.most_common()), tuple(self.samples), self.fenced, stopped)

    def notes(self) -> dict[str, int]:
        """Return what was done here to read answers; nothing where nothing was."""
        return {FENCED: self.fenced} if self.fenced else {}
