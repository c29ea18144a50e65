"""What many requests will cost, told before any is sent: from their sizes alone, or from a pilot of some of them."""

import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from culturekit.core.stage import Left
from culturekit.llm.client import Answers, Client, FreeClient, Identity, Outgoing, Rate, Request
from culturekit.llm.journal import Mode, key_of, shared_length
from culturekit.llm.ledger import Spent
from culturekit.llm.prices import worst_cost
from culturekit.llm.replies import REPAIR_MARK
from culturekit.llm.reply_schema import shape_of
from culturekit.llm.usage import estimate, input_bound

# Bytes at both ends: the instructions and the schema. Requests that share less are known by their keys only.
LEAST_SHARED = 200
_PROBE = 50  # bytes by which the place of an end is looked for
_Floats: TypeAlias = npt.NDArray[np.float64]

_ROWS_PER_STRATUM = 20
_MOST_STRATA = 10
_LETTERS_A_TOKEN = 3  # of short JSON: quotes and brackets are tokens of their own
_FEWEST_ROWS = 5  # below this many rows a stratum borrows the ratio of all


@dataclass(frozen=True, slots=True)
class CostPlan:
    """What is still to be bought, and what it takes.

    Attributes:
        requests: All requests of the plan.
        bought: Those whose answers the journal has: they cost nothing more.
        pilot: Requests of the same kind from whose replies the tokens are estimated; 0 without any.
        input_tokens: Of the requests still to be sent.
        output_tokens: Likewise; without a pilot the most that can come back.
        usd: US dollars; None where the price is not known.
        margin: Half the width of the 95 % interval of `usd`, as far as the pilot tells; None of a single request.
        most: US dollars that surely suffice when nothing has to be asked twice.
        likely: US dollars of replies as long as their schemas let expect; None with a pilot, which tells it better,
            of models that think, and where a schema bounds no reply.
        otherwise: What the best of these guesses is online where `mode` is batch, and the other way round.
    """

    requests: int
    bought: int
    pilot: int
    mode: Mode
    input_tokens: int
    output_tokens: int
    usd: float | None
    margin: float | None
    most: float | None
    basis: Literal["sizes", "pilot"]
    likely: float | None = None
    otherwise: float | None = None

    @property
    def left(self) -> Left:
        """What is left to ask."""
        return Left(self.requests - self.bought, self.input_tokens + self.output_tokens, self.usd)


def plan_requests(
    client: Client | FreeClient, requests: Iterable[Request], *, spent: Sequence[Spent], batch: bool
) -> CostPlan:
    """Plan what requests to a client cost; one that answers in this process takes nothing."""
    if isinstance(client, FreeClient):
        return CostPlan(sum(1 for _ in requests), 0, 0, "online", 0, 0, 0.0, 0.0, 0.0, "sizes")
    mode: Mode = "batch" if batch else "online"
    expected: list[float] = [0.0]
    composed = _composed(client, requests, expected)
    plan = plan_cost(composed, client.identity, client.rate, mode=mode, spent=spent)
    by_pilot = plan.basis == "pilot"
    other: Mode = "online" if batch else "batch"
    outputs = plan.output_tokens if by_pilot else min(expected[0], plan.output_tokens)
    if not by_pilot and math.isinf(expected[0]):
        return plan
    likely, otherwise = (cost(client.rate, plan.input_tokens, outputs, way) for way in (mode, other))
    return replace(plan, likely=None if by_pilot else likely, otherwise=otherwise)


def _composed(client: Client, requests: Iterable[Request], expected: list[float]) -> Iterator[Outgoing]:
    """Compose requests, the same one in a row only once, and add up the tokens that their schemas let expect."""
    last: tuple[Request, Outgoing] | None = None
    for request in requests:
        if last is None or last[0] is not request:
            last = request, client.compose(request)
        thinks = last[1].max_tokens > request.max_tokens  # how much, no schema tells
        expected[0] += math.inf if thinks else expected_tokens(request.schema_type)
        yield last[1]


@cache
def expected_tokens(reply: Answers) -> float:
    """Guess how many tokens an answer of a shape takes; infinite where the shape bounds no text or list in it."""
    return _expected_letters(shape_of(reply).root) / _LETTERS_A_TOKEN


def _expected_letters(node: Mapping[str, Any]) -> float:
    if "enum" in node:
        return 2 + max(len(str(value)) for value in node["enum"])
    if "properties" in node:
        return 2 + sum(len(name) + 4 + _expected_letters(below) for name, below in node["properties"].items())
    if node.get("type") == "string":
        return 2 + float(node.get("maxLength", math.inf)) / 2
    return {"boolean": 5, "integer": 4, "number": 6}.get(str(node.get("type")), math.inf)


def plan_cost(
    requests: Iterable[Outgoing],
    identity: Identity,
    rate: Rate | None,
    *,
    mode: Mode = "online",
    spent: Sequence[Spent] = (),
) -> CostPlan:
    """Plan requests; nothing is sent. `spent` is what the journal knows of some of them.

    The pilot are requests whose cost is known: those of the plan, and others of their kind, with their repairs. What
    else a journal holds, such as the other question of a task with two, tells nothing about these.
    """
    known: dict[bytes, Spent] = {one.key: one for one in spent}
    parts = array("d"), array("d"), array("d")
    seen: dict[bytes, tuple[float, Spent]] = {}
    kind, count, bought, words_only = RequestKind(), 0, 0, True
    for outgoing in requests:
        count += 1
        guess = estimate(outgoing, identity)
        one = known.get(key_of(identity, outgoing)) if known else None
        if known:
            kind.add(outgoing.body)
            words_only = words_only and not outgoing.images
        if one is not None:
            seen[one.key] = guess, one
        if one is not None and one.answered:
            bought += 1
            continue
        for part, value in zip(parts, (guess, input_bound(outgoing, identity), outgoing.max_tokens), strict=True):
            part.append(value)
    estimates, bounds, outputs = (np.frombuffer(part) if part else np.zeros(0) for part in parts)
    most = cost(rate, bounds.sum(), outputs.sum(), mode)
    of_kind = [one for one in known.values() if one.key not in seen and words_only and kind.asks(one.body)]
    pilot = [*seen.values(), *((estimate(Outgoing(one.body), identity), one) for one in of_kind)]
    if not pilot:
        tokens = int(estimates.sum()), int(outputs.sum())
        return CostPlan(count, bought, 0, mode, *tokens, cost(rate, *tokens, mode), None, most, "sizes")
    table = np.array([(guess, one.input_tokens, one.output_tokens) for guess, one in pilot], dtype=np.float64)
    repairs = [(one.input_tokens, one.output_tokens) for one in spent if kind.repairs(one.body)]
    repeated = np.array(repairs, dtype=np.float64).reshape(-1, 2).sum(axis=0) / np.maximum(table[:, 1:].sum(axis=0), 1)
    totals, errors = (part * (1 + repeated) for part in _estimate_total(estimates, table))
    (sent, came), (spread_in, spread_out) = totals.tolist(), (1.96 * errors).tolist()
    usd = cost(rate, sent, came, mode)
    margin = None if math.isnan(spread_in + spread_out) else cost(rate, spread_in, spread_out, mode)
    return CostPlan(count, bought, len(pilot), mode, round(sent), round(came), usd, margin, most, "pilot")


def cost(rate: Rate | None, inputs: float, outputs: float, mode: Mode) -> float | None:
    """Compute what tokens cost, where the price is known."""
    if rate is None:
        return None
    return worst_cost(rate, input_tokens=round(inputs), output_tokens=round(outputs), mode=mode)


def cost_plan_lines(plan: CostPlan) -> Iterator[str]:
    """Describe a plan in words."""
    left = plan.requests - plan.bought
    yield f"{plan.requests:,} requests, {plan.bought:,} answered in the journal, {left:,} to send ({plan.mode})"
    if plan.basis == "pilot":
        yield f"{plan.input_tokens:,} tokens in, {plan.output_tokens:,} out, from a pilot of {plan.pilot:,}"
    else:
        yield f"about {plan.input_tokens:,} tokens in, at most {plan.output_tokens:,} out; a pilot tells this better"
    if plan.usd is None or plan.most is None:
        yield "the price of the model is not known: state one in the SPEC, ?price=IN/OUT in USD per million tokens"
        return
    spread = "" if plan.margin is None else f", give or take {amount(plan.margin)}"
    word = "at most about " if plan.basis == "sizes" else ""
    suffices = amount(plan.most, up=True)
    if plan.likely is not None:
        yield f"probably about {amount(plan.likely)} USD: replies seldom take more than their schema asks for"
    if plan.otherwise is not None and plan.mode == "online":
        yield f"about {amount(plan.otherwise)} USD with --batch, where the provider has batches"
    elif plan.otherwise is not None:
        yield f"about {amount(plan.otherwise)} USD online, without --batch"
    yield f"{word}{amount(plan.usd)} USD{spread}; a budget of {suffices} USD surely suffices, repairs apart"


def amount(usd: float, *, up: bool = False) -> str:
    """Write dollars so that small sums can be told from nothing; `up` never says less than it is."""
    digits = 2 if usd >= 1 or usd == 0 else 1 - math.floor(math.log10(usd))
    step = 10.0**-digits
    return f"{math.ceil(usd / step) * step if up else usd:,.{digits}f}"


class RequestKind:
    """What requests of one task have in common, so that earlier ones, and their repairs, can be told from all others.

    These are the ends that their bodies share: before and after the data.
    """

    def __init__(self) -> None:
        """Start with no request."""
        self.head = self.tail = b""
        self.seen = 0

    def add(self, body: bytes) -> None:
        """Add a request."""
        if not self.seen:
            self.head = self.tail = body
        elif not self.frames(body):
            self.head = body[: shared_length(self.head, body)]
            self.tail = body[len(body) - shared_length(self.tail[::-1], body[::-1]) :]
        self.seen += 1

    @property
    def telling(self) -> bool:
        """Whether there is enough in common to know a kind by."""
        return self.seen > 1 and len(self.head) + len(self.tail) >= LEAST_SHARED

    def frames(self, body: bytes) -> bool:
        """Check whether a body begins and ends as those of this kind."""
        return body.startswith(self.head) and body.endswith(self.tail)

    def asks(self, body: bytes) -> bool:
        """Check whether a request is of this kind, and no repair."""
        return self.telling and self.frames(body) and REPAIR_MARK not in body

    def repairs(self, body: bytes) -> bool:
        """Check whether a request asks once more what one of this kind asked: the same, up to the note at the end."""
        before, mark, _ = body.partition(REPAIR_MARK)
        if not mark or not self.telling:
            return False
        if len(before) <= len(self.head):
            return len(before) >= LEAST_SHARED and self.head.startswith(before)
        start = before.rfind(self.tail[:_PROBE])
        return before.startswith(self.head) and start >= 0 and self.tail.startswith(before[start:])


def _estimate_total(estimates: _Floats, pilot: _Floats) -> tuple[_Floats, _Floats]:
    """Estimate what requests take in and out from what a pilot took, each with its standard error.

    Requests are parted by size into groups of about equal number. In each part the input is in proportion to its
    estimate (Cochran 1977, Sampling Techniques, section 6.10, the separate ratio estimate), and the output is the mean
    of the part.
    """
    guesses, inputs, outputs = pilot.T
    strata = min(_MOST_STRATA, max(1, len(guesses) // _ROWS_PER_STRATUM))
    inner = np.linspace(0, 1, strata + 1)[1:-1]
    edges = np.unique(np.quantile(np.concatenate([estimates, guesses]), inner)) if len(inner) else np.zeros(0)
    parts, pilot_parts = np.digitize(estimates, edges), np.digitize(guesses, edges)
    totals, variances = np.zeros(2), np.zeros(2)
    for part in range(len(edges) + 1):
        size, rows = estimates[parts == part], pilot_parts == part
        if not len(size):
            continue
        if rows.sum() < _FEWEST_ROWS:
            rows = np.ones_like(rows)
        ratio = inputs[rows].sum() / max(guesses[rows].sum(), 1.0)
        totals += ratio * size.sum(), outputs[rows].mean() * len(size)
        spread = _variance(inputs[rows] - ratio * guesses[rows]), _variance(outputs[rows])
        variances += np.array(spread) * len(size) ** 2
    return totals, np.sqrt(variances)


def _variance(values: _Floats) -> float:
    return float(values.var(ddof=1) / len(values)) if len(values) > 1 else math.nan
