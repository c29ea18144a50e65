"""The evenness recomputed, without a line of what scored it."""

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import of_these, t_answer
from culturekit.verify.scores.score_rows import compare_row

HOW = "from the matches: entropy of each repeat of a prompt, mean of repeats and prompts, t interval"


def check_geodiv(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Give a verdict on every row of a stage."""
    paths = [tree.source(stage, role) for role in stage.manifest.inputs]
    here = [path for path in paths if path is not None]
    if len(here) < len(paths):
        for row in rows:
            ledger.judge(stage.name, row, "not verifiable", "its matches are not here")
        return
    level = stage.manifest.options["level"]
    shown: dict[Any, dict[str, dict[int, Counter[str]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(Counter))
    )
    labels: dict[str, set[str]] = defaultdict(set)
    for path in here:
        for match in pl.read_parquet(path).filter(pl.col("rank") == 1).iter_rows(named=True):
            if not match["abstained"] and None not in (match["prompt_id"], match["repeat"], match[level]):
                repeats = shown[match["model"], match["concept"]][match["prompt_id"]]
                repeats.setdefault(match["repeat"], Counter())[match[level]] += 1
                labels[match["concept"]].add(match[level])
    for row in rows:
        prompts, known = shown[row["model"], row["concept"]], max(2, len(labels[row["concept"]]))
        even = [[entropy(one) / math.log(known) for one in repeats.values()] for repeats in prompts.values()]
        images = sum(one.total() for repeats in prompts.values() for one in repeats.values())
        answer = t_answer(of_these(even), stage.manifest.options["confidence"])
        compare_row(stage.name, row, answer, images, HOW, ledger, said={"level": level, "labels": known})


def entropy(counts: Counter[str]) -> float:
    """Give the entropy of shares, in nats."""
    total = counts.total()
    return -math.fsum(count / total * math.log(count / total) for count in counts.values())
