"""Verdicts of a filter and rows of a completion: each is what a stored reply says, and every candidate has one."""

import json
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.tables.stored_replies import (
    StoredReply,
    answer_in,
    ended_by_itself,
    journal_of,
    replies_of_stage,
)

__all__ = ["check_completion", "check_filter", "stored"]

CHECK = "replies"
BEST_FIRST = ("keep", "review", "remove")
VERDICTS = set(BEST_FIRST)
ADDED = ("added", "country added")


@dataclass(frozen=True, slots=True)
class SaidOnce:
    """One reply about a row: its number, its text, whether it came to its end, and what was asked, as a hash."""

    number: int
    text: str | None
    ended: bool
    asked: int


Said: TypeAlias = Mapping[tuple[object, ...], list[SaidOnce]]


def check_filter(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Make sure that every candidate was kept or dropped, nothing else was, and the judge said so."""
    check_candidates(tree, stage, ledger)
    check_replies(stage, ledger)


def check_candidates(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Make sure that every candidate was kept or dropped, and nothing else was."""
    source = tree.source(stage, "candidates")
    if source is None:
        return
    ended = pl.concat([
        pl.read_parquet(stage.folder / "kept.parquet", columns=["concept", "qid"]),
        pl.read_parquet(stage.folder / "drops.parquet").select("concept", qid="key"),
    ])  # fmt: skip
    given = pl.read_parquet(source, columns=["concept", "qid"])
    for problem, rows in (
        ("candidates are neither kept nor dropped", given.join(ended, on=["concept", "qid"], how="anti")),
        ("rows are of no candidate, or stand twice", strangers(ended, given)),
    ):
        if rows.height:
            ledger.broken(CHECK, stage.name, f"{rows.height:,} {problem}", found=rows.row(0))


def strangers(ended: pl.DataFrame, given: pl.DataFrame) -> pl.DataFrame:
    """List what ended without being given, or more than once."""
    unknown = ended.join(given, on=["concept", "qid"], how="anti")
    return pl.concat([unknown, ended.filter(ended.is_duplicated())])


def check_replies(stage: FinishedStage, ledger: Ledger) -> None:
    """Compare every verdict of the judge with the replies about its row."""
    rows = list(judged_rows(stage))
    path = stored(stage, len(rows), "verdicts", ledger)
    if path is None:
        return
    said = gathered(of_wording(stage, replies_of_stage(stage, path)), lambda asked: (asked.get("id"), asked["concept"]))
    for row in rows:
        where = f"{stage.name}/{row['table']}.parquet ({row['qid']}, {row['concept']})"
        check_verdict(row, said.get((row["qid"], row["concept"]), []), where, ledger)


def judged_rows(stage: FinishedStage) -> Iterator[dict[str, Any]]:
    """Give the rows that a judge decided or was asked about; `outcome` is how asking failed, empty where it did not."""
    reason = f"judge {stage.manifest.options.get('model')}"
    kept = pl.read_parquet(stage.folder / "kept.parquet", columns=["qid", "concept", "verdict", "reason"])
    drops = pl.read_parquet(stage.folder / "drops.parquet").select("concept", "reason", qid="key")
    for table, frame in (("kept", kept), ("drops", drops.with_columns(verdict=pl.lit("remove")))):
        for row in frame.filter(pl.col("reason").str.starts_with(reason)).iter_rows(named=True):
            yield {**row, "table": table, "outcome": row["reason"].removeprefix(reason).removeprefix(": ")}


def check_verdict(row: Mapping[str, Any], replies: list[SaidOnce], where: str, ledger: Ledger) -> None:
    """Compare one verdict with the replies about its row."""
    if any(reply.text is None for reply in replies):
        ledger.count("verdicts whose replies have an unknown form (not verifiable)")
        return
    strict = {reply.number: verdict for reply in replies if (verdict := verdict_in(reply, row["qid"]))}
    numbers = ", ".join(str(reply.number) for reply in replies) or "none"
    ledger.count("verdicts compared with stored replies")
    if row["outcome"]:
        ended = {reply.number for reply in replies if reply.ended}
        answers = sorted({verdict for number, verdict in strict.items() if number in ended})
        if answers and len({reply.asked for reply in replies}) == 1:
            ledger.broken(
                CHECK, where, f"is left for review as {row['outcome']}, but a stored reply answers (replies {numbers})",
                expected=" or ".join(answers), found=row["verdict"],
            )  # fmt: skip
        return
    fenced = {reply.number: verdict_in(reply, row["qid"], fenced=True) for reply in replies}
    answers = sorted(best_of(replies, strict if strict else {number: word for number, word in fenced.items() if word}))
    if row["verdict"] not in answers:
        ledger.broken(
            CHECK, where, f"the verdict is not what its stored replies say (replies {numbers})",
            expected=" or ".join(answers) or "no verdict of the judge", found=row["verdict"],
        )  # fmt: skip


def best_of(replies: Sequence[SaidOnce], said: Mapping[int, str]) -> set[str]:
    """List the verdicts on a row that replies can give: it is kept where it is kept for one of its countries.

    Each country is a question of its own; one that nobody answered is left for review. Of several answers to a
    question, of which one was taken, any may be that one.
    """
    asked: dict[int, set[str]] = {}
    for reply in replies:
        asked.setdefault(reply.asked, set()).update(filter(None, [said.get(reply.number, "")]))
    if not said:
        return set()
    possible = {"remove"}
    for answers in asked.values():
        nothing_said = possible if not answers else set()
        possible = nothing_said | {min(a, b, key=BEST_FIRST.index) for a in possible for b in answers or {"review"}}
    return possible


def verdict_in(reply: SaidOnce, qid: str, *, fenced: bool = False) -> str:
    """Read the verdict on an item; empty where a reply is no answer about it."""
    answer = answer_in(reply.text, fenced=fenced)
    if answer is None or set(answer) != {"id", "verdict"} or answer["id"] != qid:
        return ""
    return answer["verdict"] if answer["verdict"] in VERDICTS else ""


def of_wording(stage: FinishedStage, replies: Iterable[StoredReply]) -> Iterator[StoredReply]:
    """Keep the replies to the instructions that a stage noted, where it noted them."""
    noted = stage.manifest.notes.get("wording")
    texts = noted.values() if isinstance(noted, Mapping) else ()
    written = [json.dumps(text, ensure_ascii=False)[1:-1].encode() for text in texts]
    return (reply for reply in replies if not written or any(text in reply.frame for text in written))


def stored(stage: FinishedStage, rows: int, what: str, ledger: Ledger) -> Path | None:
    """Find the journal behind a stage's rows; where there is none, say how many rows cannot be verified."""
    path = journal_of(stage)
    if path is None and rows:
        if isinstance(stage.manifest.options.get("judge"), Mapping):
            ledger.note(CHECK, stage.name, f"its journal of replies is not here: {rows:,} {what} are not verifiable")
        else:
            ledger.count(f"{what} of judges that store no reply (not verifiable)", rows)
    return path if rows else None


def gathered(replies: Iterable[StoredReply], key: Callable[[Mapping[str, Any]], tuple[object, ...]]) -> Said:
    """Gather replies by what their question is about; what asks something else is left out."""
    found: dict[tuple[object, ...], list[SaidOnce]] = defaultdict(list)
    for reply in replies:
        if "id" in reply.question and "concept" in reply.question:
            asked = hash((reply.frame, json.dumps(reply.question, sort_keys=True)))
            once = SaidOnce(reply.number, reply.text, ended_by_itself(reply.body), asked)
            found[key(reply.question)].append(once)
    return found


def check_completion(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Compare every proposal with the reply that made it and the one that checked it, and the rows with proposals."""
    rows = pl.read_parquet(stage.folder / "proposals.parquet").to_dicts()
    check_completed(tree, stage, rows, ledger)
    path = stored(stage, len(rows), "proposals", ledger)
    if path is None:
        return
    said = gathered(replies_of_stage(stage, path), lambda asked: (asked["id"], asked.get("round")))
    for row in rows:
        where = f"{stage.name}/proposals.parquet ({row['proposal_id']})"
        made = said.get((f"{row['concept']}/{row['country']}", row["round"]), [])
        checked = said.get((row["proposal_id"], None), [])
        if any(reply.text is None for reply in (*made, *checked)):
            ledger.count("proposals whose replies have an unknown form (not verifiable)")
            continue
        ledger.count("proposals compared with stored replies")
        if not any(proposes(reply, row) for reply in made):
            numbers = ", ".join(str(reply.number) for reply in made) or "none"
            ledger.broken(CHECK, where, f"no stored reply proposes this (replies {numbers})", found=row["name"])
        problem = check_problem(row, [answer_in(reply.text, fenced=True) or {} for reply in checked])
        if problem:
            numbers = ", ".join(str(reply.number) for reply in checked) or "none"
            ledger.broken(
                CHECK, where, f"the check of it says otherwise (replies {numbers})", expected=problem,
                found=row["outcome"],
            )  # fmt: skip


def proposes(reply: SaidOnce, row: Mapping[str, Any]) -> bool:
    """Tell whether a reply proposes a name at the place where the table has it."""
    artifacts = (answer_in(reply.text, fenced=True) or {}).get("artifacts")
    place = row["position"] - 1
    if not isinstance(artifacts, list) or place >= len(artifacts) or not isinstance(artifacts[place], Mapping):
        return False
    return letters_of(str(artifacts[place].get("name"))) == letters_of(row["name"])


def letters_of(name: str) -> str:
    """Give what of a name can be seen."""
    return "".join(c for c in unicodedata.normalize("NFKC", name) if c.isprintable() and not c.isspace()).casefold()


def check_problem(row: Mapping[str, Any], answers: list[dict[str, Any]]) -> str:
    """Say what the check of a proposal needs to say for its outcome and does not; empty where it fits."""
    detail = row["detail"] or ""
    if row["outcome"] in ADDED or row["outcome"] == "taken back":
        fits = any((answer.get("instance"), answer.get("belongs")) == ("yes", "yes") for answer in answers)
        return "" if fits else "yes to both questions"
    if row["outcome"] != "refused" or not detail.startswith("verified: "):
        return ""
    wanted = {"not of the concept": ("instance", "no"), "not of the country": ("belongs", "no")}
    question, said = wanted.get(detail.removeprefix("verified: "), ("", "unsure"))
    fits = any(said in ({answer.get(question)} if question else set(answer.values())) for answer in answers)
    return "" if fits else f"{said} to {question or 'one of the questions'}"


def check_completed(tree: RunTree, stage: FinishedStage, proposals: list[dict[str, Any]], ledger: Ledger) -> None:
    """Make sure that what was added was proposed, and what was proposed and stands was added."""
    completed = set(pl.read_parquet(stage.folder / "completed.parquet", columns=["concept", "qid"]).iter_rows())
    added = {(row["concept"], row["artifact_id"]) for row in proposals if row["outcome"] in ADDED}
    for concept, qid in sorted(added - completed):
        ledger.broken(CHECK, f"{stage.name}/completed.parquet", "an added artifact is missing", expected=(concept, qid))
    source = tree.source(stage, "kept")
    if source is None:
        return
    given = set(pl.read_parquet(source, columns=["concept", "qid"]).iter_rows())
    for concept, qid in sorted(completed - given - added):
        ledger.broken(
            CHECK, f"{stage.name}/completed.parquet", "an artifact that nobody proposed", found=(concept, qid)
        )
    for concept, qid in sorted(given - completed):
        ledger.broken(CHECK, f"{stage.name}/completed.parquet", "a kept artifact is missing", expected=(concept, qid))
