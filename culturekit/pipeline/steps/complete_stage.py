"""The stage from what a judge kept to what a model adds to it."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from culturekit.builders.completing.completion import CompletionInputs, complete
from culturekit.builders.completing.completion_questions import CompletionLimits, wordings
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import country_files
from culturekit.llm.answers import LlmOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.money.asking_price import check_asking
from culturekit.pipeline.steps.filter_stage import judge_inputs, judge_options
from culturekit.pipeline.steps.graph_stages import described
from culturekit.stages.stage import Stage
from culturekit.storage.digests import digest_bytes

__all__ = ["complete_stage"]

DEFAULTS, LIMITS = LlmOptions(), CompletionLimits()


def complete_stage(
    inputs: CompletionInputs,
    concepts: Sequence[Concept],
    proposer: str,
    *,
    limits: CompletionLimits = LIMITS,
    llm: LlmOptions = DEFAULTS,
    name: str = "completion",
) -> Stage:
    """Complete a collection; as with the filter, money and speed decide nothing and are no part of the key."""
    client = CLIENTS.make(proposer)
    looked_up = {"candidates": inputs.candidates, "drops": inputs.drops, "graph": inputs.graph}
    return Stage(
        name,
        "completion",
        2,
        lambda work: complete(work, inputs, concepts, client, limits=limits, llm=llm),
        {
            "kept": inputs.kept,
            **{role: path for role, path in looked_up.items() if path is not None},
            **country_files(),
            **judge_inputs(proposer),
        },
        {
            **judge_options(proposer, client),
            "limits": asdict(limits),
            "wordings": {task: digest_bytes(text.encode()) for task, text in wordings().items()},
            **described(concepts),
        },
        packages=("msgspec", "polars"),
        before=partial(check_asking, client),
    )
