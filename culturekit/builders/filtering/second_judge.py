"""A second judge of what the first left open: what it is sure enough of is settled, and the rest waits for people."""

from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.builders.asking import Asked, asks
from culturekit.builders.filtering.candidate_review import SETTLED, Cells, table_beside, with_verdicts, write_stays
from culturekit.builders.filtering.cspace_filter import (
    FilterReply,
    as_drops,
    filter_candidates,
    judged_concepts,
    parted,
    questions_about,
    stated_qids,
    words_of,
)
from culturekit.core.choices import VerdictWord
from culturekit.core.declared import Typed, rules_of
from culturekit.core.inputs import roles_among
from culturekit.core.schemas import KEPT, REMOVED
from culturekit.core.tables import read_table, write_table
from culturekit.core.work import Outcome
from culturekit.kg.concepts import Roots
from culturekit.kg.countries import country_files
from culturekit.kg.store import GraphTables
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.models import quoted


@asks(
    "settle", "settled", "cspace.settle", words="cspace_filter", unit="questions",
    key=lambda unit: str(unit[0]["qid"]),
    reads=lambda given: {**roles_among({"removed": table_beside(given["kept"])}), **country_files()},
    decides=lambda given: {**judged_concepts(given["roots"]), "sure": given["sure"]},
    example=f"--kept kept/kept.parquet --roots cuisine --llm {quoted('text')} --out settled",
)  # fmt: skip
def settle(
    asked: Asked,
    kept: Annotated[Path, Field(description="Table that `cspace filter`, `complete` or `review import` wrote.")],
    graph: Annotated[Path | None, Field(description="Graph of the candidates, which names their classes.")] = None,
    *,
    roots: Roots,
    judge: Annotated[str, rules_of(filter_candidates, "judge"), Typed("llm")],
    sure: Annotated[
        float, Field(ge=0.5, le=1, description="How sure the second judge has to be that it is right; else it waits.")
    ] = 0.9,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Let a second judge settle what it is sure of.

    The other candidates that wait for a person wait on.
    """
    concepts, rows = {concept.concept: concept for concept in roots}, read_table(kept, KEPT)
    units = [(row, iso) for row in rows.filter(pl.col("concept").is_in(list(concepts))).iter_rows(named=True)
             for iso, word in words_of(row).items() if word == "review"]  # fmt: skip
    questions = questions_about(roots, {} if graph is None else GraphTables(graph).class_names([rows]))
    answers = asked.every(
        units, lambda unit: questions.about_country(unit[0], concepts[unit[0]["concept"]], unit[1]), unit="questions"
    )
    settled: dict[tuple[str, str], dict[str, VerdictWord]] = {}
    for (row, iso), answer in zip(units, answers, strict=True):
        reply = answer.value
        if isinstance(reply, FilterReply) and reply.verdict != "review" and (reply.confidence or 0) >= 100 * sure:
            settled.setdefault((row["concept"], row["qid"]), {})[iso] = reply.verdict
    rule = f"judge {asked.client.model}, at least {sure:.0%} sure"
    decided = dict[tuple[str, str], Cells]()
    for row, _ in units:
        key = (row["concept"], row["qid"])
        verdict, *parts = parted(stated_qids(row), {**words_of(row), **settled.get(key, {})})
        because = row["reason"] if verdict == "review" else rule
        decided[key] = (*key, verdict, because, row.get("reviewer"), row.get("reviewed_on"), None, *parts)
    judged = with_verdicts(rows, pl.DataFrame(list(decided.values()), schema=SETTLED, orient="row"))
    stays, goes = write_stays(asked.work, judged)
    before = table_beside(kept)
    columns = [name for name in (*REMOVED.columns, *REMOVED.optional) if name in goes.columns]
    removed = [goes.select(columns), *([] if before is None else [read_table(before, REMOVED)])]
    write_table(asked.work.out, REMOVED, pl.concat(removed, how="diagonal").sort(REMOVED.key))
    drops = as_drops(goes.with_columns(detail=pl.lit(None, pl.String))).with_columns(stage=pl.lit("settle"))
    asked.drops += drops.to_dicts()
    counts = {"kept": stays.height, "review": stays.filter(verdict="review").height, "drops": drops.height}
    return asked.outcome(asked.work, counts | {"settled": sum(map(len, settled.values()))}, rule=rule)
