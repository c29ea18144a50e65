"""Why a run ends before its rows do, said to people: what happened, and what to do next."""

import math
from dataclasses import dataclass

from culturekit.errors import BudgetReached, CultureKitError, UpstreamUnavailable, UsageError
from culturekit.llm.client import Failure

__all__ = ["OutOfMoney", "given_up", "out_of_money", "run_ended_by"]

OF_THE_USER = frozenset({400, 401, 403, 404, 405, 422})
"""Statuses of a fatal failure that a flag, a key or a name mends."""


@dataclass(frozen=True, slots=True)
class OutOfMoney:
    """The next question may cost more than what is left; `unsure` is what of the spent may not have been billed."""

    limit: float
    spent: float
    needed: float
    unsure: float = 0.0


def run_ended_by(failure: Failure, model: str) -> CultureKitError:
    """Make the error of a fatal failure: the user's to mend where a key or a name is wrong, else the provider's."""
    hint = "Everything bought is kept; run the same command again when this is mended."
    kind = UsageError if failure.status in OF_THE_USER or not failure.status else UpstreamUnavailable
    return kind(failure.detail, where=model, found=f"status {failure.status}" if failure.status else "", hint=hint)


def given_up(model: str, *, patience: float, held_for: float, last: str) -> UpstreamUnavailable:
    """Make the error of a provider that has brought nothing for too long, or says that it will not for as long."""
    hint = "Everything bought is kept; run the same command again later."
    if held_for > 0.0:
        return UpstreamUnavailable(
            f"the provider asks to wait {math.ceil(held_for)} s, longer than the patience of {patience:g} s",
            where=model,
            found=last,
            hint=hint,
        )
    if "connection refused" in last:
        hint = (
            "Nobody listens there: start the server, or mend base_url; patience= in the SPEC waits longer. Everything "
            "bought is kept."
        )
    return UpstreamUnavailable(f"no reply for {patience:g} s", where=model, found=last, hint=hint)


def out_of_money(money: OutOfMoney, model: str, *, done: int, total: int | None) -> BudgetReached:
    """Make the error of a budget: how many rows are done, and what the rest needs, as far as can be told."""
    rows = f"{done:,} rows are" if total is None else f"{done:,} of {total:,} rows are"
    more = f"the next question can cost up to ${money.needed:.6f}"
    if total is not None and done and money.spent > 0.0:
        rest = (total - done) * money.spent / done
        more += f", and the rest about ${rest:.4f} at what rows cost so far"
        hint = f"Run the same command again with a budget of ${money.spent + rest + money.needed:.4f} or more."
    else:
        hint = "Run the same command again with a larger budget."
    paid = f"${money.spent - money.unsure:.6f}"
    if money.unsure > 0.0:
        paid += f" and up to ${money.unsure:.6f} for replies that did not come or were not counted"
    return BudgetReached(
        f"the budget of ${money.limit:g} is reached: {rows} done for {paid}, {more}",
        where=model,
        hint=f"Everything bought is kept. {hint}",
    )
