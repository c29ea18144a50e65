"""Candidates to artifacts: rules first, then a judge with two questions; every drop has a reason."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import msgspec
import polars as pl

from culturekit.builders.name_rules import name_problem
from culturekit.builders.scope import countries_in_scope
from culturekit.kg.concepts import Concept
from culturekit.llm.client import FreeClient, Request
from culturekit.llm.reply_reading import ParseFailure, read_reply
from culturekit.records.schemas import CANDIDATES, DROPS, KEPT
from culturekit.records.work import Outcome, Work
from culturekit.storage.tables import read_table, write_table

__all__ = ["TASK", "filter_candidates", "wording"]

TASK = "cspace.filter"


class FilterReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the judge answers about one candidate."""

    id: str
    verdict: Literal["keep", "remove", "review"]


def wording() -> str:
    """Read the judge's instructions; their hash is part of what decides a verdict."""
    return files("culturekit.builders").joinpath("wording/cspace_filter.txt").read_text(encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a candidate: `keep`, `review` or `remove`, and why."""

    verdict: str
    reason: str
    detail: str = ""


def filter_candidates(work: Work, candidates_path: Path, concepts: Sequence[Concept], client: FreeClient) -> Outcome:
    """Judge candidates; write the kept and the dropped."""
    by_name = {concept.concept: concept for concept in concepts}
    candidates = read_table(candidates_path, CANDIDATES)
    work.progress.begin(candidates.height, "candidates")
    instructions = wording()
    verdicts = []
    for row in candidates.iter_rows(named=True):
        verdicts.append(rule_verdict(row, by_name.get(row["concept"])) or ask(row, client, instructions))
        work.progress.advance(1)
    kept, drops = split(candidates, verdicts)
    write_table(work.out, KEPT, kept)
    write_table(work.out, DROPS, drops)
    reasons = Counter(drops["reason"].to_list())
    counts = {"kept": kept.height, "drops": drops.height, "review": sum(v.verdict == "review" for v in verdicts)}
    return Outcome(counts, dict(sorted(reasons.items())), {"judge": client.model, "caveat": client.caveat})


def rule_verdict(row: Mapping[str, Any], concept: Concept | None) -> Verdict | None:
    """Remove what needs no judge; None leaves the candidate to the judge."""
    if concept is None:
        return Verdict("remove", "concept not in the root configs given", row["concept"])
    problem = name_problem(row["label"], languages=concept.languages)
    if problem is not None:
        return Verdict("remove", *problem)
    if concept.countries != "all" and not countries_in_scope(row["country_qids"], concept):
        return Verdict("remove", "country out of scope")
    return None


def ask(row: Mapping[str, Any], client: FreeClient, instructions: str) -> Verdict:
    """Put the two questions to the judge; what cannot be read is left for people to review."""
    data = {"id": row["qid"], **{key: row[key] for key in ("label", "description", "concept", "country_qids", "p31")}}
    request = Request(TASK, instructions, data, FilterReply, {"id": (str(row["qid"]),)})
    answer = read_reply(request, client.ask(request).text)
    if isinstance(answer, FilterReply):
        return Verdict(answer.verdict, f"judge {client.model}")
    code = answer.code if isinstance(answer, ParseFailure) else ""
    return Verdict("review", "the judge's reply could not be read", code)


def split(candidates: pl.DataFrame, verdicts: Sequence[Verdict]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Part the candidates by verdict."""
    rows = candidates.with_columns(
        verdict=pl.Series([v.verdict for v in verdicts], dtype=pl.String),
        reason=pl.Series([v.reason for v in verdicts], dtype=pl.String),
        detail=pl.Series([v.detail or None for v in verdicts], dtype=pl.String),
    )
    removed = rows.filter(pl.col("verdict") == "remove")
    drops = removed.select("concept", "reason", "detail", key="qid", stage=pl.lit("filter"))
    return rows.filter(pl.col("verdict") != "remove").drop("detail"), drops.select(list(DROPS.columns))
