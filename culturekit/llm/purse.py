"""The money of one run: reserved before anything is sent, settled by what came back.

A reservation covers the worst case, so the limit holds at any number of requests at once. It is also written down
before a request leaves, and taken away by what came of it: what a kill interrupts is known to the request, counts at
its worst, and `llm cost` shows it.
"""

import json
import logging

from culturekit.core.digests import canonical_json
from culturekit.core.errors import UsageError
from culturekit.llm.client import Client, FreeClient, Identity, KeyHolder, Rate, Usage
from culturekit.llm.journal import Fact, Journal, Mode, Reading
from culturekit.llm.ledger import PROMISED, UNDER_WAY, UNSURE, count_unsound, paid_in_journal, spent_in_run, unsure_of
from culturekit.llm.prices import check_alive, cost_of, per_token, worst_cost
from culturekit.llm.rows import Question
from culturekit.llm.usage import Budget, dollars, input_bound, picodollars


def check_asking(client: Client | FreeClient, *, go_on: bool = False) -> None:
    """Make sure, before any other work, that a client could be asked: its price, its package and its key are there.

    Raises:
        UsageError: one of them is not, or the model is shut and nobody said to `go_on`.
    """
    if isinstance(client, FreeClient):
        return
    check_alive(client.identity, go_on=go_on)
    check_price(client)
    if isinstance(client, KeyHolder):
        client.ready()


def check_price(client: Client) -> None:
    """Reject a client whose price is unknown; one that costs nothing says so in its SPEC."""
    if client.rate is None:
        raise UsageError(
            f"the price of {client.model} is not known",
            where=client.identity.base_url or client.model,
            hint="State one in the SPEC, in US dollars per million tokens in/out, such as price=0.15/0.60, or "
            "price=0/0 where nothing is charged.",
        )


_RATES = "rates"  # the fact of a journal that lists the prices it was bought at, oldest first; `verify` reckons by them
logger = logging.getLogger(__name__)


class Purse:
    """What questions may cost and did cost; without a rate nothing is known of either."""

    def __init__(self, rate: Rate | None, identity: Identity, budget: Budget) -> None:
        """Start with a budget in which earlier spending is counted."""
        self.rate, self.identity, self.budget, self.run = rate, identity, budget, ""
        self.left = self.lost = self.picodollars_unsure = self.picodollars_read = self.tokens = 0
        self.misled = self.warned = False
        self.input_factor = self.output_factor = 1.0

    def reserve(self, question: Question) -> bool:
        """Set aside the most that a question can cost, if there is enough."""
        question.reserved = self.worst(question)
        return self.budget.reserve(question.reserved)

    def leaves(self, question: Question) -> list[Fact]:
        """Return what is to be on disk before a question leaves; nothing where it costs nothing."""
        if not question.reserved:
            return []
        self.left += 1
        question.ticket = f"{UNDER_WAY}{self.run}:{self.left}"
        return [(question.ticket, str(picodollars(question.reserved)).encode())]

    def came(self, question: Question, *, sold: bool = False) -> list[Fact]:
        """Return what is to be on disk together with what came; where nothing did that may be `sold`, it is counted."""
        if sold:
            self.doubt(question.reserved)
        if not question.ticket:
            return []
        ticket, question.ticket = question.ticket, ""
        return [(ticket, None), *([self.unsure_fact()] if sold else [])]

    def doubt(self, usd: float) -> None:
        """Count money of which nobody knows whether it will be billed."""
        self.picodollars_unsure += picodollars(usd)

    def unsure_fact(self) -> Fact:
        """Write down what may be owed beyond what replies cost."""
        return f"{UNSURE}{self.run}", f"{self.lost} {self.picodollars_unsure}".encode()

    @property
    def unsure(self) -> float:
        """US dollars counted as spent that may never be billed."""
        return dollars(self.picodollars_unsure)

    def worst(self, question: Question) -> float:
        """Return the most that a question can cost."""
        if self.rate is None:
            return 0.0
        tokens_in = round(self.bound(question) * self.input_factor)
        tokens_out = round(question.outgoing.max_tokens * self.output_factor)
        return worst_cost(self.rate, input_tokens=tokens_in, output_tokens=tokens_out)

    def bound(self, question: Question) -> int:
        """Return the most input tokens that a question can take."""
        question.input_bound = question.input_bound or input_bound(question.outgoing, self.identity)
        return question.input_bound

    def cost(self, usage: Usage, mode: Mode = "online") -> float | None:
        """Return what a reply cost, by how it was bought."""
        return None if self.rate is None else cost_of(usage, self.rate, mode=mode)

    def reading(self, outcome: str, usage: Usage, mode: Mode = "online") -> Reading:
        """Make the reading of a reply that was not read before, and count what it cost among what was paid."""
        usd = self.cost(usage, mode)
        self.picodollars_read += picodollars(usd or 0.0)
        return Reading(outcome, usage, usd)

    @property
    def paid(self) -> float | None:
        """US dollars that all replies cost which were read, as `llm cost` adds them up; None without a price."""
        return None if self.rate is None else dollars(self.picodollars_read)

    @property
    def paid_in_words(self) -> str:
        """What was paid, for the progress line."""
        return "cost unknown" if self.paid is None else f"${self.paid:,.4f}"

    def settle(self, question: Question, usage: Usage) -> None:
        """Count what a reply cost, or could cost where that is in doubt.

        Bounds that a provider's count passed are raised from now on.
        """
        cost = self.cost(usage) or 0.0
        if usage.doubt:
            self.warn_of_doubt(usage.doubt)
        elif cost > question.reserved:
            asked = f"{question.input_bound:,} and {question.outgoing.max_tokens:,}"
            counts = f"{usage.input_tokens:,} tokens in and {usage.output_tokens:,} out"
            self.warn(f"counts {counts}, where at most {asked} were asked for; they are paid as counted")
        most = cost if usage.counted == "provider" else max(cost, question.reserved)
        self.budget.settle(question.reserved, most)
        self.doubt(most - cost)
        self.tokens += usage.input_tokens + usage.output_tokens
        if question.input_bound:
            self.input_factor = max(self.input_factor, usage.input_tokens / question.input_bound)
        self.output_factor = max(self.output_factor, usage.output_tokens / max(question.outgoing.max_tokens, 1))

    def warn_of_doubt(self, doubt: str) -> None:
        """Report that counts cannot be true, and what is done about it."""
        remedy = "What is missing or cannot be true is counted here, and a budget reckons such replies at their worst"
        self.warn(f"does not count its tokens as it should ({doubt}). {remedy}")

    def warn(self, what: str) -> None:
        """Say once in a run that what the provider counts cannot be relied on, if that costs money."""
        if not self.warned and self.rate is not None and max(self.rate.input, self.rate.output) > 0.0:
            self.warned = True
            logger.warning("%s %s; said once.", self.identity.model, what)

    def keep(self, question: Question) -> None:
        """Count a question at its worst, because nobody knows whether it was billed, which `came` wrote down."""
        self.budget.settle(question.reserved, question.reserved)

    def free(self, question: Question) -> None:
        """Return back what was set aside for a question that cost nothing."""
        self.budget.settle(question.reserved, 0.0)

    def look_back(self, journal: Journal) -> None:
        """Sum what all replies in a journal cost, before any more is read or asked.

        Where a count in it cannot be true, what an earlier version promised by it is not believed either.
        """
        self.picodollars_read = paid_in_journal(journal.path)
        self.misled = count_unsound(journal.path) > 0

    def remember_in(self, journal: Journal, run: str) -> None:
        """Count what earlier processes of this run spent or may have spent.

        Nobody else holds the journal: what left and has no end by now has lost its process, and may have been sold.
        """
        journal.write_now([(PROMISED + run, None)] if self.misled else [])
        self.run = run
        unsure = unsure_of(journal.path, run)
        self.lost, read_again = unsure.requests, self.picodollars_unsure
        self.picodollars_unsure += unsure.picodollars
        if unsure.open or read_again:
            journal.write_now([*((name, None) for name in unsure.open), self.unsure_fact()])
        self.budget.settle(0.0, spent_in_run(journal.path, run) + self.unsure)


def remember_rate(journal: Journal, model: str, rate: Rate | None) -> None:
    """Write into a journal what the tokens of a model cost from now on, unless that price stands there already."""
    if rate is None:
        return
    known = json.loads(journal.recall(_RATES) or b"[]")
    cached = None if rate.cached is None else per_token(rate.cached)
    price = {"model": model, "input": per_token(rate.input), "output": per_token(rate.output), "cached": cached}
    now = price | {"batch": rate.batch}
    if now not in known:
        journal.remember(_RATES, canonical_json([*known, now]))
