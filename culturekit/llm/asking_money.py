"""The money of one run: reserved before anything is sent, settled by what came back.

A reservation covers the worst case, so the limit holds at any number of requests at once.
"""

from culturekit.llm.budget import Budget
from culturekit.llm.client import Identity, Rate, Usage
from culturekit.llm.journal_entry import Mode
from culturekit.llm.prices import cost_of
from culturekit.llm.question import Question
from culturekit.llm.tokens import input_bound

__all__ = ["Money"]

MILLION = 1_000_000.0


class Money:
    """What questions may cost and did cost; without a rate nothing is known of either."""

    def __init__(self, rate: Rate | None, identity: Identity, *, limit: float | None, spent: float) -> None:
        """Start with what was spent before."""
        self.rate = rate
        self.identity = identity
        self.budget = Budget(limit, spent)
        self.tokens = 0
        self.input_factor = self.output_factor = 1.0

    def reserve(self, question: Question) -> bool:
        """Set aside the most that a question can cost, if there is enough."""
        question.reserved = self.worst(question)
        return self.budget.reserve(question.reserved)

    def worst(self, question: Question) -> float:
        """Give the most that a question can cost."""
        if self.rate is None:
            return 0.0
        question.input_bound = question.input_bound or input_bound(question.outgoing, self.identity)
        tokens_in = question.input_bound * self.input_factor
        tokens_out = question.outgoing.max_tokens * self.output_factor
        return (tokens_in * self.rate.input + tokens_out * self.rate.output) / MILLION

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
        self.budget.settle(question.reserved, question.reserved)

    def free(self, question: Question) -> None:
        """Give back what was set aside for a question that cost nothing."""
        self.budget.settle(question.reserved, 0.0)
