"""Answers to questions about images: each is what its reply says, and no question of a prompt was left out."""

import json
from collections import Counter
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_answers"]

CHECK = "judgments"
USED = ("ok", "repaired")


def check_answers(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Look at a stage in which a vision model answered questions."""
    rows = pl.read_parquet(stage.folder / "judgments.parquet").to_dicts()
    ledger.count("answers compared with their replies", len(rows))
    check_replies(stage, rows, ledger)
    check_asked(tree, stage, rows, ledger)


def check_replies(stage: FinishedStage, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Compare each answer with the reply that stands beside it; one that failed has none."""
    for row in rows:
        said = answer_in(row["raw"]) if row["outcome"] in USED else None
        value = None if said is None else float(said == "yes")
        if (row["choice"], row["value"]) != (said, value):
            ledger.broken(
                CHECK, f"{stage.name}/judgments.parquet, image {row['image_id']}, question {row['item']}",
                "the answer is not what the reply says", expected=said, found=row["choice"],
            )  # fmt: skip


def answer_in(raw: str) -> str | None:
    """Read the answer of a reply; None where there is none."""
    try:
        said = json.loads(raw)["answer"]
    except (ValueError, KeyError, TypeError):
        return None
    return said if said in {"yes", "no"} else None


def check_asked(tree: RunTree, stage: FinishedStage, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Compare what was asked about each image with the questions of its prompt."""
    images, questions = tree.source(stage, "images"), tree.source(stage, "questions")
    if images is None or questions is None:
        ledger.note(CHECK, stage.name, "its images or questions are not here")
        return
    of_prompt: dict[str, set[str]] = {}
    for prompt, question in pl.read_parquet(questions).select("prompt_id", "question_id").iter_rows():
        of_prompt.setdefault(prompt, set()).add(question)
    prompts = dict(pl.read_parquet(images).select("image_id", "prompt_id").iter_rows())
    asked = Counter((row["image_id"], row["item"]) for row in rows)
    seen = {row["image_id"] for row in rows}
    wanted = Counter((image, question) for image in seen for question in of_prompt.get(prompts.get(image) or "", ()))
    for image, question in sorted((wanted - asked) + (asked - wanted)):
        ledger.broken(
            CHECK, f"{stage.name}/judgments.parquet", "other questions were asked than those of the image's prompt",
            expected=wanted[image, question], found=f"{asked[image, question]} of image {image}, question {question}",
        )  # fmt: skip
