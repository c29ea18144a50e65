"""What a judge really said of an artifact: the entries of a stage's journal, found by the row they are about."""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field

from culturekit.llm.journal.journal_file import FILE, errors_explained, open_for_reading
from culturekit.storage.manifest import JOURNAL
from culturekit.trail.space.behind import SpaceBehind

__all__ = ["JournalEntries"]

ROW = re.compile(rb'\\*"id\\*": ?\\*"((?:Q\d+|LLM:[^"\\]+))\\*"')
CONCEPT = re.compile(rb'\\*"concept\\*": ?\\*"([a-z0-9_-]+)\\*"')

EXCHANGES = """
SELECT replies.number, templates.head || requests.middle || templates.tail, raw, coalesce(outcome, kind)
FROM replies JOIN requests ON requests.number = replies.request JOIN templates ON templates.number = requests.template
LEFT JOIN readings ON readings.number = replies.number ORDER BY replies.number
"""

SHOWN = 300


@dataclass(slots=True)
class JournalEntries:
    """The journals of both filters; each is read through once, for the rows that are asked about."""

    sides: Sequence[SpaceBehind]
    wanted: frozenset[str]
    found: list[dict[tuple[str, str], list[str]]] = field(default_factory=list)

    def replies(self, side: int, artifact_id: str, concept: str) -> list[str]:
        """Say what was replied about an artifact in a run, the last reply last; empty where nobody was paid."""
        if not self.found:
            self.found = [entries(own, self.wanted) for own in self.sides]
        return self.found[side].get((artifact_id, concept), [])[-1:]


def entries(side: SpaceBehind, wanted: Iterable[str]) -> dict[tuple[str, str], list[str]]:
    """Read the replies about some rows, by artifact and concept."""
    file = side.folders["filter"] / JOURNAL / FILE
    rows = {row.encode() for row in wanted}
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    if not file.is_file() or not rows:
        return found
    with errors_explained(file), closing(open_for_reading(file)) as connection:
        for number, request, raw, outcome in connection.execute(EXCHANGES):
            body = request if isinstance(request, bytes) else str(request).encode()
            about, concept = ROW.search(body), CONCEPT.search(body)
            if about is not None and concept is not None and about[1] in rows:
                said = bytes(raw).decode("utf-8", "replace")
                text = said if len(said) <= SHOWN else f"{said[:SHOWN]}..."
                found[about[1].decode(), concept[1].decode()].append(f"journal entry {number} ({outcome}): {text}")
    return found
