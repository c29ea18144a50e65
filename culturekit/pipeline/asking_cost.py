"""What requests would cost, told before any of them is sent."""

from collections.abc import Iterable
from pathlib import Path

from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.money.cost_plan import CostPlan, plan_cost
from culturekit.llm.money.shared_budget import journal_for
from culturekit.llm.money.spending import read_spending

__all__ = ["cost_of"]


def cost_of(client: Client | FreeClient, requests: Iterable[Request], out: Path, *, batch: bool) -> CostPlan | None:
    """Plan what requests cost, by what was asked already in the folder they are for; every request is looked at."""
    if isinstance(client, FreeClient):
        for _ in requests:
            pass
        return None
    journal = journal_for(out)
    spent = [] if journal is None else read_spending(journal)
    outgoing = (client.compose(request) for request in requests)
    return plan_cost(outgoing, client.identity, client.rate, mode="batch" if batch else "online", spent=spent)
