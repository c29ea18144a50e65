"""The stage from candidates to what a judge keeps of them."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from culturekit.builders.filtering.cspace_filter import filter_candidates
from culturekit.builders.filtering.filter_requests import TASK, wording
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.kg.walk.class_labels import class_labels
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import Client, FreeClient
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.journal.journal_file import FILE
from culturekit.llm.money.asking_price import check_asking
from culturekit.pipeline.concept_options import judged_concepts
from culturekit.records.schemas import CANDIDATES
from culturekit.records.work import Outcome, Work
from culturekit.registry import parse_spec
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest_bytes
from culturekit.storage.manifest import JOURNAL
from culturekit.storage.table_slices import TableSlices, slices_of

__all__ = ["filter_stage", "judge_inputs", "judge_options", "labels_of"]

DEFAULTS = LlmOptions()
REPLAY = "replay"


def filter_stage(
    candidates: Path,
    concepts: Sequence[Concept],
    judge: str,
    *,
    llm: LlmOptions = DEFAULTS,
    graph: Path | None = None,
    name: str = "filter",
) -> Stage:
    """Judge candidates; `graph`, where they come from, tells the judge the names of their classes.

    What `llm` says of money and speed decides no verdict and is no part of the key, so that a run that was cut goes on
    with a larger budget or more at a time.
    """
    client = CLIENTS.make(judge)

    def run(work: Work) -> Outcome:
        source = slices_of(candidates, CANDIDATES, scratch=work.scratch)
        return filter_candidates(work, source, concepts, client, llm=llm, labels=labels_of(source, graph))

    return Stage(
        name,
        "filter",
        3,
        run,
        {
            "candidates": candidates,
            **country_files(),
            **({} if graph is None else {"graph": graph}),
            **judge_inputs(judge),
        },
        {
            **judge_options(judge, client),
            "task": TASK,
            "wording": digest_bytes(wording().encode()),
            **judged_concepts(concepts),
        },
        packages=("msgspec", "polars"),
        before=partial(check_asking, client),
    )


def judge_options(spec: str, client: Client | FreeClient) -> Mapping[str, object]:
    """Say who judges and how: what decides the answers and nothing else, so no price, no limit and no secret."""
    if isinstance(client, FreeClient):
        parsed = parse_spec(spec)
        target = "" if parsed.name == REPLAY else parsed.target
        return {"judge": str(replace(parsed, target=target)), "model": client.model, **CLIENTS.brought_by(parsed)}
    judge = {**asdict(client.identity), **client.options}
    return {"judge": judge, "model": client.model, **CLIENTS.brought_by(spec)}


def judge_inputs(spec: str) -> dict[str, Path]:
    """Name the file whose replies are replayed as an input, where there is one: its content decides."""
    parsed = parse_spec(spec)
    if parsed.name != REPLAY:
        return {}
    path = Path(parsed.target)
    within = (path / JOURNAL / FILE, path / FILE)
    return {"replies": next((place for place in within if place.is_file()), path)}


def labels_of(source: TableSlices, graph: Path | None) -> dict[str, str]:
    """Name the classes of candidates, as far as the graph can."""
    return {} if graph is None else class_labels(graph, source.slices(("p31", "p279")))
