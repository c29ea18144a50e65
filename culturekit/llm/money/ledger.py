"""What was asked, what it took and what it cost: the sums of journals, exact to the token and to the picodollar."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from culturekit.llm.journal.exchanges import OUTCOME
from culturekit.llm.journal.journal_file import PAID, SOUND, errors_explained, open_for_reading, paid
from culturekit.llm.journal.journal_places import JournalPlace
from culturekit.llm.money.budget import dollars
from culturekit.llm.money.shared_budget import unsure_runs

__all__ = ["Ledger", "LedgerLine", "read_ledger", "total_of"]

SUMS = f"""
SELECT model, mode, {OUTCOME} AS ended, count(*),
       coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
       coalesce(sum(thinking_tokens), 0), coalesce(sum(cached_tokens), 0), {PAID},
       coalesce(sum(counted = 'here'), 0), sum(counted IS NOT NULL AND picodollars IS NULL),
       sum(kind = 'reply' AND counted IS NULL), sum(kind IN ('timeout', 'connection'))
FROM replies
JOIN runs ON runs.number = replies.run
LEFT JOIN readings ON readings.number = replies.number AND {SOUND}
GROUP BY model, mode, ended
ORDER BY model, mode, ended
"""


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """The sums of all requests of a stage to a model that ended in one way.

    Attributes:
        outcome: The outcome of the replies, `unread` where a kill came before reading, or the kind of the failure.
        requests: All that left, retries and repairs included.
        counted_here: Replies whose usage the server did not tell, or not truly: their tokens were counted here.
        unpriced: Replies of which the tokens are known and the price is not.
        unread: Replies of which neither is known yet; the next run reads them, for nothing.
        perhaps_billed: Requests whose reply never came; the provider may have made one, and billed it. In a total also
            those that were under way when their process died, or are now.
        picodollars_unsure: In a total, the most that may be billed beside `picodollars`, which a budget counts too.
    """

    stage: str
    model: str
    mode: str
    outcome: str
    requests: int
    input_tokens: int
    output_tokens: int
    thinking_tokens: int
    cached_tokens: int
    picodollars: int
    counted_here: int
    unpriced: int
    unread: int
    perhaps_billed: int
    picodollars_unsure: int = 0

    @property
    def usd(self) -> float:
        """US dollars."""
        return dollars(self.picodollars)

    @property
    def usd_unsure(self) -> float:
        """US dollars that may be billed on top."""
        return dollars(self.picodollars_unsure)


@dataclass(frozen=True, slots=True)
class Ledger:
    """The lines of some journals, and their sum."""

    lines: tuple[LedgerLine, ...]
    total: LedgerLine


def read_ledger(places: Sequence[JournalPlace]) -> Ledger:
    """Add up journals, by stage, model, mode and outcome; a run may be writing to them meanwhile."""
    lines = tuple(line for place in places for line in lines_of(place))
    total, unsure = total_of(lines), [unsure for place in places for unsure in unsure_runs(place.path)]
    billed = total.perhaps_billed + sum(each.requests for each in unsure)
    picodollars = sum(each.picodollars for each in unsure)
    return Ledger(lines, replace(total, perhaps_billed=billed, picodollars_unsure=picodollars))


def lines_of(place: JournalPlace) -> list[LedgerLine]:
    """Add up one journal."""
    with errors_explained(place.path), closing(open_for_reading(place.path)) as connection:
        rows = connection.execute(SUMS)
        return [LedgerLine(place.stage, *(*row[:8], paid(*row[8:10]), *row[10:])) for row in rows]


def total_of(lines: Iterable[LedgerLine]) -> LedgerLine:
    """Add lines up."""
    listed = list(lines)

    def added(name: str) -> int:
        return sum(getattr(line, name) for line in listed)

    return LedgerLine(
        "total",
        "",
        "",
        "",
        requests=added("requests"),
        input_tokens=added("input_tokens"),
        output_tokens=added("output_tokens"),
        thinking_tokens=added("thinking_tokens"),
        cached_tokens=added("cached_tokens"),
        picodollars=added("picodollars"),
        counted_here=added("counted_here"),
        unpriced=added("unpriced"),
        unread=added("unread"),
        perhaps_billed=added("perhaps_billed"),
    )
