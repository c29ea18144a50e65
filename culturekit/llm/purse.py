"""The money of one run: reserved before anything is sent, settled by what came back.

A reservation covers the worst case, so the limit holds at any number of requests at once. With a limit, what may be
spent is also written down before it is: whatever a kill interrupts counts as spent.
"""

from culturekit.llm.budget import Budget
from culturekit.llm.client import Identity, Rate, Usage
from culturekit.llm.journal import Journal
from culturekit.llm.journal_entry import Mode
from culturekit.llm.money import dollars, picodollars
from culturekit.llm.prices import cost_of, worst_cost
from culturekit.llm.question import Question
from culturekit.llm.spent_in_run import spent_in_run
from culturekit.llm.tokens import input_bound

__all__ = ["Purse"]

AHEAD = 32
"""For how many questions at once the journal is told that they may be paid for."""


class Purse:
    """What questions may cost and did cost; without a rate nothing is known of either."""

    def __init__(self, rate: Rate | None, identity: Identity, budget: Budget) -> None:
        """Start with a budget in which earlier spending is counted."""
        self.rate = rate
        self.identity = identity
        self.budget = budget
        self.journal: Journal | None = None
        self.fact = ""
        self.promised = 0.0
        self.tokens = 0
        self.unanswered = 0.0
        """US dollars that are counted for replies that never came, in this process."""

        self.input_factor = self.output_factor = 1.0

    def reserve(self, question: Question) -> bool:
        """Set aside the most that a question can cost, if there is enough."""
        question.reserved = self.worst(question)
        if not self.budget.reserve(question.reserved):
            return False
        if self.journal is not None and self.budget.spent + self.budget.reserved > self.promised:
            self.promise(AHEAD * question.reserved)
        return True

    def worst(self, question: Question) -> float:
        """Give the most that a question can cost."""
        if self.rate is None:
            return 0.0
        question.input_bound = question.input_bound or input_bound(question.outgoing, self.identity)
        tokens_in = round(question.input_bound * self.input_factor)
        tokens_out = round(question.outgoing.max_tokens * self.output_factor)
        return worst_cost(self.rate, input_tokens=tokens_in, output_tokens=tokens_out)

    def cost(self, usage: Usage, mode: Mode = "online") -> float | None:
        """Give what a reply cost, by how it was bought."""
        return None if self.rate is None else cost_of(usage, self.rate, mode=mode)

    def settle(self, question: Question, usage: Usage) -> None:
        """Count what a reply cost; bounds that a provider's count passed are raised from now on."""
        self.budget.settle(question.reserved, self.cost(usage) or 0.0)
        self.tokens += usage.input_tokens + usage.output_tokens
        if question.input_bound:
            self.input_factor = max(self.input_factor, usage.input_tokens / question.input_bound)
        self.output_factor = max(self.output_factor, usage.output_tokens / max(question.outgoing.max_tokens, 1))

    def keep(self, question: Question) -> None:
        """Count a question at its worst, because nobody knows whether it was billed."""
        self.unanswered += question.reserved
        self.budget.settle(question.reserved, question.reserved)

    def free(self, question: Question) -> None:
        """Give back what was set aside for a question that cost nothing."""
        self.budget.settle(question.reserved, 0.0)

    def remember_in(self, journal: Journal, run: str) -> None:
        """Count what earlier processes of this run spent or may have spent, and write down what this one may."""
        self.fact = f"promised:{run}"
        known = journal.recall(self.fact)
        self.promised = 0.0 if known is None else dollars(int(known))
        self.budget.settle(0.0, max(self.promised, spent_in_run(journal.path, run)))
        if self.budget.limit is not None:
            self.journal = journal

    def promise(self, more: float) -> None:
        """Write down that so much may be spent from now on."""
        if self.journal is not None:
            self.promised = self.budget.spent + self.budget.reserved + more
            self.journal.remember(self.fact, str(picodollars(self.promised)).encode())
