"""Questions put to a client that answers in this process: nothing to journal, nothing to pay, the same for ever."""

from collections.abc import Iterable, Iterator, Mapping

from culturekit.llm.client import FreeClient, Request, Stop
from culturekit.llm.outcomes import Answered, RowOutcome
from culturekit.llm.reply_reading import ParseFailure, read_reply

__all__ = ["free_answers"]

STOPPED: Mapping[Stop, RowOutcome] = {
    "refusal": "refused",
    "blocked": "blocked",
    "length": "truncated",
    "unreadable": "invalid",
}


def free_answers(client: FreeClient, requests: Iterable[Request]) -> Iterator[Answered]:
    """Answer requests one after another, in their order."""
    for request in requests:
        reply = client.ask(request)
        if reply.stop != "end":
            yield Answered(STOPPED[reply.stop], detail=reply.detail, raw=reply.text)
            continue
        answer = read_reply(request, reply.text)
        if isinstance(answer, ParseFailure):
            yield Answered("invalid", detail=answer.code, raw=reply.text)
        else:
            yield Answered("ok", answer, raw=reply.text)
