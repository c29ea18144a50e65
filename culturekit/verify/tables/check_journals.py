"""Journals of replies: what was bought is still what came, and cost what it is said to have cost.

Tokens are as the replies state them, money is tokens times the prices that the journal names.
"""

import json
import sqlite3
import zlib
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeAlias

from culturekit.storage.manifest import JOURNAL
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import RunTree
from culturekit.verify.tables.stored_replies import FILE, StoredReply, read_replies

__all__ = ["check_journals", "check_spending"]

CHECK = "journal"
SHOWN = 3

SPENDING = "spending"
PAYMENTS_SHOWN = 5
UNREAD = ("unreadable", "exhausted")
RATES = "rates"
"""The fact of a journal that lists the prices it was bought at, oldest first, in picodollars a token."""

Rate: TypeAlias = Mapping[str, Any]


def check_journals(tree: RunTree, ledger: Ledger) -> None:
    """Go through the journals of all stages; they outlive runs, so no manifest lists them."""
    for stage in tree.stages.values():
        path = stage.folder / JOURNAL / FILE
        if path.is_file():
            with ledger.guarded(CHECK, f"{stage.name}/{JOURNAL}"):
                check_journal(path, f"{stage.name}/{JOURNAL}/{FILE}", ledger)


def check_journal(path: Path, where: str, ledger: Ledger) -> None:
    """Compare every reply with its checksum, and let SQLite look at its pages."""
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    try:
        pages = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        if pages != ["ok"]:
            ledger.broken(CHECK, where, "the file is damaged", found="; ".join(pages[:SHOWN]))
        wrong = []
        for number, checksum, raw in connection.execute("SELECT number, checksum, raw FROM replies ORDER BY number"):
            ledger.count("replies of journals")
            if zlib.crc32(raw if isinstance(raw, bytes) else str(raw).encode()) != checksum:
                wrong.append(number)
        orphans = connection.execute(
            "SELECT count(*) FROM replies LEFT JOIN requests ON requests.number = replies.request "
            "WHERE requests.number IS NULL"
        ).fetchone()[0]
    except sqlite3.Error as error:
        ledger.broken(CHECK, where, f"the file cannot be read ({error})")
        return
    finally:
        connection.close()
    for number in wrong[:SHOWN]:
        ledger.broken(CHECK, where, f"reply {number} is not what came: its checksum differs")
    if len(wrong) > SHOWN:
        ledger.broken(CHECK, where, f"and {len(wrong) - SHOWN:,} more replies")
    if orphans:
        ledger.broken(CHECK, where, f"{orphans:,} replies belong to no request")


def check_spending(tree: RunTree, ledger: Ledger) -> None:
    """Go through the journals of all stages."""
    for stage in tree.stages.values():
        path = stage.folder / JOURNAL / FILE
        if path.is_file():
            where = f"{stage.name}/{JOURNAL}/{FILE}"
            with ledger.guarded(SPENDING, where):
                check_payments(path, where, ledger)


def check_payments(path: Path, where: str, ledger: Ledger) -> None:
    """Reckon every reply of a journal again."""
    rates = rates_in(path)
    for rate in rates:
        prices = {name: rate[name] for name in ("input", "output", "cached", "batch")}
        if any(value is not None and value < 0 for value in prices.values()):
            ledger.broken(SPENDING, where, f"a price of {rate['model']} is negative", found=prices)
    wrong, unpriced = [], 0
    for reply in read_replies(path):
        if reply.usage is None:
            continue
        ledger.count("replies whose cost was reckoned again")
        problem = usage_problem(reply)
        own = [rate for rate in rates if rate["model"] == reply.model]
        if not problem and reply.picodollars is not None:
            unpriced += not own
            due = sorted({cost(reply, rate) for rate in own})
            if own and reply.picodollars not in due:
                problem = f"cost {reply.picodollars / 1e12:.12f} USD; its tokens cost {due[-1] / 1e12:.12f} USD"
        if problem:
            wrong.append(f"reply {reply.number}: {problem}")
    for problem in wrong[:PAYMENTS_SHOWN]:
        ledger.broken(SPENDING, where, problem)
    if len(wrong) > PAYMENTS_SHOWN:
        ledger.broken(
            SPENDING, where, f"and {len(wrong) - PAYMENTS_SHOWN:,} more replies are noted with another cost or usage"
        )
    if unpriced:
        ledger.count("costs of journals that name no price (not verifiable)", unpriced)


def rates_in(path: Path) -> list[Rate]:
    """Read the prices that a journal names; none in those of earlier versions."""
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        row = connection.execute("SELECT value FROM facts WHERE name = ?", (RATES,)).fetchone()
    return [] if row is None else list(json.loads(row[0]))


def usage_problem(reply: StoredReply) -> str:
    """Say what cannot be about the tokens and the cost of a reply; empty where nothing is wrong."""
    noted = reply.usage or (0, 0, 0, 0)
    if min(noted) < 0 or (reply.picodollars or 0) < 0:
        return f"a negative count or cost ({noted}, {(reply.picodollars or 0) / 1e12:.12f} USD)"
    if reply.outcome in UNREAD and not reply.text:
        return ""  # of what said nothing, the run does not read the usage either
    stated = stated_usage(reply.body) if reply.counted == "provider" else None
    if stated is not None and stated != noted[:2]:
        return f"noted with {noted[0]:,} tokens in and {noted[1]:,} out; the reply says {stated[0]:,} and {stated[1]:,}"
    return ""


def stated_usage(body: Any) -> tuple[int, int] | None:  # noqa: ANN401 - any JSON value
    """Read the tokens in and out that a reply states; None where it states none that are plain counts."""
    if not isinstance(body, Mapping):
        return None
    usage, google = body.get("usage"), body.get("usageMetadata")
    if isinstance(usage, Mapping):
        sent = usage.get("prompt_tokens", usage.get("input_tokens"))
        came = usage.get("completion_tokens", usage.get("output_tokens"))
        return (sent, came) if plain(sent, came) else None
    if isinstance(google, Mapping):
        sent, tools = google.get("promptTokenCount"), google.get("toolUsePromptTokenCount", 0)
        came, thoughts = google.get("candidatesTokenCount", 0), google.get("thoughtsTokenCount", 0)
        return (sent + tools, came + thoughts) if plain(sent, tools, came, thoughts) else None
    return None


def plain(*counts: object) -> bool:
    """Tell whether all are whole numbers that a model can have read or written."""
    return all(type(count) is int and 0 <= count < 10**9 for count in counts)


def cost(reply: StoredReply, rate: Rate) -> int:
    """Reckon the cost of a reply in picodollars; a batch costs its share of the full price, cached tokens too."""
    sent, came, _, cached = reply.usage or (0, 0, 0, 0)
    if reply.mode == "batch":
        due: int = round((sent * rate["input"] + came * rate["output"]) * rate["batch"])
        return due
    known = rate["input"] if rate["cached"] is None else rate["cached"]
    return int((sent - cached) * rate["input"] + cached * known + came * rate["output"])
