"""The shares recomputed, without a line of what scored them."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer, mean, t_answer
from culturekit.verify.scores.score_rows import compare_row

HOW = "from matches and prompts: shares of each country, mean of countries, t interval"


def check_cure(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Give a verdict on every row of a stage."""
    paths = {role: tree.source(stage, role) for role in stage.manifest.inputs}
    here = {role: path for role, path in paths.items() if path is not None}
    if len(here) < len(paths):
        for row in rows:
            ledger.judge(stage.name, row, "not verifiable", "what it was scored from is not here")
        return
    prompts = pl.read_parquet(here.pop("prompts"))
    named = dict(zip(prompts["prompt_id"], prompts["country"], strict=True))
    shown: dict[Any, dict[str | None, list[set[str]]]] = defaultdict(lambda: defaultdict(list))
    for path in here.values():
        for match in pl.read_parquet(path).filter(pl.col("rank") == 1).iter_rows(named=True):
            if match["prompt_id"] in named:
                seen = set() if match["abstained"] else set(match["countries"])
                shown[match["model"], match["concept"]][named[match["prompt_id"]]].append(seen)
    for row in rows:
        images = shown[row["model"], row["concept"]]
        values = []
        for country in set(images) - {None}:
            told, untold = (sum(country in seen for seen in images[one]) / len(images[one]) for one in (country, None))
            values.append(told - untold if row["metric"] == "cure_gain" else told)
        about = mean(values)
        answer = t_answer(about, stage.manifest.options["confidence"])
        answer = answer if len(values) >= 20 else Answer(about.value, math.nan, math.nan)
        compare_row(stage.name, row, answer, sum(map(len, images.values())), HOW, ledger)
