"""What the answers and images of a run have cost, as its journals say."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from culturekit.llm.journal.journal_file import FILE
from culturekit.llm.journal.journal_places import JournalPlace
from culturekit.llm.money.ledger import read_ledger
from culturekit.report.run_folders import RunFolders
from culturekit.storage.manifest import JOURNAL

__all__ = ["Paid", "paid_lines"]


@dataclass(frozen=True, slots=True)
class Paid:
    """US dollars that a stage paid for the answers of a model."""

    stage: str
    model: str
    usd: float


def paid_lines(run: RunFolders) -> Iterator[Paid]:
    """Give what each finished stage paid to each model; what was free is left out."""
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for stage in run.stages:
        path = run.root / stage / JOURNAL / FILE
        if path.is_file():
            for line in read_ledger([JournalPlace(stage, path, finished=True)]).lines:
                sums[stage, line.model] += line.usd
    for (stage, model), usd in sums.items():
        if usd:
            yield Paid(stage, model, usd)
