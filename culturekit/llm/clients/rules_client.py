"""The embedded client: fixed rules over the data of a request, offline and the same for ever.

It reads names, not the world. It finds what gives itself away by its wording, and lets the rest pass.
"""

import re
from collections.abc import Callable, Mapping

import msgspec

from culturekit.core.errors import UsageError
from culturekit.core.registry import Spec
from culturekit.llm.client import Reply, Request

_ORGANISATION = re.compile(
    r"\b(company|corporation|brand|restaurant chain|manufacturer|organi[sz]ation|inc\.?|ltd\.?)\b"
)
_EVENT_OR_WORK = re.compile(r"\b(film|album|song|novel|episode|video game|television series|human|person)\b")
FRAGMENT = re.compile(r"\b(fragment|drawing|sketch|study|photograph) of\b")


class RulesClient:
    """Answers the tasks it has rules for."""

    model = "rules-1"
    caveat = "The rules judge reads wording only: it cannot tell whether a dish is really eaten in a country."

    def ask(self, request: Request) -> Reply:
        """Apply the rule of the task."""
        rule = _RULES.get(request.task)
        if rule is None:
            raise UsageError(
                f"the rules client has no rules for {request.task}",
                expected=" or ".join(sorted(_RULES)),
                hint="Name a language model instead.",
            )
        return Reply(msgspec.json.encode(rule(request.data)).decode())


def _judge_candidate(data: Mapping[str, object]) -> dict[str, str]:
    """Judge a candidate for the cultural space by the words of its label and description."""
    text = f"{data.get('label') or ''} {data.get('description') or ''}".casefold()
    verdict, why = "keep", ""
    if _ORGANISATION.search(text) or _EVENT_OR_WORK.search(text):
        verdict, why = "remove", "its words name an organisation, an event or a work"
    elif FRAGMENT.search(text):
        verdict, why = "review", "its words name a part of something"
    return {"id": str(data["id"]), "verdict": verdict, **({"why": why} if why else {})}


def _propose_nothing(data: Mapping[str, object]) -> dict[str, object]:
    return {"id": str(data["id"]), "wrong": [], "artifacts": []}


def _check_proposal(data: Mapping[str, object]) -> dict[str, object]:
    """Check a proposal by its words, and its country by what the graph says; rules know no more than that."""
    item = data.get("item")
    about: Mapping[str, object] = item if isinstance(item, Mapping) else {}
    words = f"{data.get('name')} {data.get('what')} {about.get('description') or ''}".casefold()
    countries = about.get("countries")
    stated = isinstance(countries, list) and data.get("country") in countries
    named = str(about.get("label") or "").casefold() == str(data.get("name")).casefold()
    return {
        "id": str(data["id"]),
        "instance": "no" if _ORGANISATION.search(words) or _EVENT_OR_WORK.search(words) else "yes",
        "belongs": "yes" if stated else "unsure",
        "item": ("same" if named else "other") if about else "none",
    }


def _take_the_first(data: Mapping[str, object]) -> dict[str, object]:
    """Keep the first descriptors of the union as they are: rules do not know which of them are right."""
    candidates, most = data["candidates"], data["at_most"]
    assert isinstance(candidates, list)
    assert isinstance(most, int)
    numbers = [str(each["number"]) for each in candidates]
    kept = [{"number": number, "merges": []} for number in numbers[:most]]
    return {
        "id": str(data["id"]),
        "kept": kept,
        "left_out": [{"number": number, "reason": "too many"} for number in numbers[most:]],
    }


_RULES: Mapping[str, Callable[[Mapping[str, object]], Mapping[str, object]]] = {
    "cspace.filter": _judge_candidate,
    "cspace.propose": _propose_nothing,
    "cspace.verify": _check_proposal,
    "descriptors.refine": _take_the_first,
}


def make(spec: Spec) -> RulesClient:
    """Make the client; it takes no options."""
    spec.refuse_options()
    return RulesClient()
