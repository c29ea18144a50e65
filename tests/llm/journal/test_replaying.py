from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from culturekit.llm.client import Outgoing, Reply, Usage
from culturekit.llm.engine import Replay
from culturekit.llm.journal import Journal
from culturekit.llm.journal_file import Entry
from culturekit.llm.purse import Purse
from culturekit.llm.rows import Question, Row
from culturekit.llm.usage import Budget, estimate
from tests.llm.fake_client import FakeClient, answer_for, questions


@dataclass
class StatingClient(FakeClient):
    """Says of every reply that it took the same tokens."""

    stated: Usage = field(default_factory=Usage)

    def read(self, raw: bytes) -> Reply:
        return replace(super().read(raw), usage=self.stated)


@pytest.mark.parametrize(("outcome", "stated"), [("invalid", Usage(0, 10, counted="here")), ("", Usage(1, 10))])
def test_what_a_server_did_not_count_in_a_batch_is_counted_by_the_request(
    outcome: str, stated: Usage, tmp_path: Path
) -> None:
    client, (request,) = StatingClient(stated=stated), questions(1)
    request = replace(request, instructions="Judge whether this is a dish. " * 20)
    purse = Purse(client.rate, client.identity, Budget(None))
    replay = Replay(Journal(tmp_path), purse, client, run="one", tries=3)
    entry = Entry(b"k", "one", 1, "batch", 200, "reply", answer_for("Q0"), b"", outcome=outcome)
    usage = replay.counted(Question(0, Row(request), Outgoing(b""), b"k"), entry).usage
    assert usage.input_tokens == estimate(client.compose(request)) > 100
    assert (usage.output_tokens, usage.counted) == (10, "here")
