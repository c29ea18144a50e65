"""Journals of replies: what was bought is still what came."""

import sqlite3
import zlib
from pathlib import Path

from culturekit.storage.manifest import JOURNAL
from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import RunTree

__all__ = ["check_journals"]

CHECK = "journal"
FILE = "replies.sqlite"
SHOWN = 3


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
