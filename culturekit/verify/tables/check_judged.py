"""What models said of images and prompts: each raw reply of a table is in the journal, each value in its raw reply.

Of the questions of a prompt, none was left out.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.score_rows import close
from culturekit.verify.tables.check_verdicts import stored
from culturekit.verify.tables.stored_replies import ANSWERED, StoredReply, answer_in, chance_of_yes, replies_of_stage

__all__ = ["check_answers", "check_judged"]

CHECK = "replies"
TABLES = {"questions": "question_graphs"}
ROUNDING = 1e-6
ASKED = ("question_id", "text", "kind", "fact")

JUDGMENTS = "judgments"
USED = ("ok", "repaired")
WEIGHED = ("vqascore", "judge-stereotypes")


def check_judged(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Look at a stage that put questions about images or prompts."""
    table = TABLES.get(stage.manifest.stage, "judgments")
    rows = pl.read_parquet(stage.folder / f"{table}.parquet").to_dicts()
    answered = [row for row in rows if row["outcome"] in ANSWERED]
    check_raw(tree, stage, table, answered, ledger)
    if stage.manifest.stage in READ_AGAIN:
        READ_AGAIN[stage.manifest.stage](stage, answered, ledger)


def check_raw(tree: RunTree, stage: FinishedStage, table: str, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Find the raw reply of every row among the stored ones, those to the same question where it can be told."""
    path = stored(stage, len(rows), f"rows of {table}", ledger)
    if path is None:
        return
    asked = questions_of(tree, stage)
    texts: dict[str | None, dict[str, int]] = defaultdict(dict)
    unknown = 0
    for reply in replies_of_stage(stage, path):
        text = written(reply, weighed=stage.manifest.stage in WEIGHED)
        unknown += text is None
        if text is not None:
            texts[reply.question.get("question") if asked else None][text] = reply.number
    for row in rows:
        question = asked.get((row["prompt_id"], row["item"])) if asked else None
        if row["raw"] in texts[question]:
            ledger.count("rows compared with stored replies")
        elif unknown:
            ledger.count("rows whose replies have an unknown form (not verifiable)")
        else:
            ledger.broken(
                CHECK, f"{stage.name}/{table}.parquet ({name_of(row)})", "its raw reply is none of the stored ones",
                expected="a reply of the journal", found=row["raw"][:120],
            )  # fmt: skip


def questions_of(tree: RunTree, stage: FinishedStage) -> dict[tuple[str | None, str], str]:
    """Read what each item of a prompt asks; empty where that is not here."""
    source = tree.source(stage, "questions") if stage.manifest.stage == "answers" else None
    if source is None:
        return {}
    rows = pl.read_parquet(source).select("prompt_id", "question_id", "text").iter_rows()
    return {(prompt, question): text for prompt, question, text in rows}


def name_of(row: Mapping[str, Any]) -> str:
    """Name a row by its image and item, or its prompt."""
    return f"{row['image_id']}, {row['item']}" if "image_id" in row else str(row["prompt_id"])


def written(reply: StoredReply, *, weighed: bool) -> str | None:
    """Give a reply as tables have it: its text, or the listing of the tokens that could stand first."""
    if not weighed:
        return None if reply.text is None else reply.text.encode("utf-8", "replace").decode()
    try:
        place = reply.body["choices"][0]["logprobs"]["content"][0]
        found: dict[str, float] = {}
        for item in [*(place.get("top_logprobs") or ()), place]:
            if isinstance(item.get("logprob"), int | float) and 0 < len(item.get("token") or "") <= 64:
                found.setdefault(item["token"], float(item["logprob"]))
    except (LookupError, TypeError, AttributeError):
        return "" if isinstance(reply.body, dict) and "choices" in reply.body else None
    listed = [one for one in list(found.items())[:64] if math.isfinite(one[1])]
    tokens = [{"token": token, "logprob": value} for token, value in sorted(listed, key=lambda one: (-one[1], one[0]))]
    return json.dumps({"tokens": tokens}, ensure_ascii=False, separators=(",", ":"))


def check_graphs(stage: FinishedStage, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Read the questions of each prompt again."""
    table: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    frame = pl.read_parquet(stage.folder / "questions.parquet").sort("prompt_id", "question_id")
    for prompt, *asked, parents in frame.select("prompt_id", *ASKED, "parents").iter_rows():
        table[prompt].append((*asked, tuple(parents)))
    for row in rows:
        found = sorted(asked_in(answer_in(row["raw"], fenced=True) or {}))
        ledger.count("graphs of questions read again")
        if found != table[row["prompt_id"]]:
            where = f"{stage.name}/questions.parquet ({row['prompt_id']})"
            ledger.broken(CHECK, where, "is not what the reply says", expected=found, found=table[row["prompt_id"]])


def asked_in(answer: Mapping[str, Any]) -> Iterator[tuple[Any, ...]]:
    """Give the questions of a reply as the table has them."""
    for one in answer.get("questions", ()):
        parents = tuple(f"q{number:02d}" for number in sorted(one["parents"]))
        yield f"q{one['number']:02d}", one["question"], one["kind"], one["fact"], parents


def check_choices(stage: FinishedStage, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Read the choice or the number of each judgment again."""
    for row in rows:
        answer = answer_in(row["raw"], fenced=True) or {}
        ledger.count("judgments read again")
        if "choice" in answer:
            fits = row["choice"] == answer["choice"]
        else:
            fits = row["choice"] is None and row["value"] is not None and row["value"] == answer.get("value")
        if not fits:
            ledger.broken(
                CHECK, f"{stage.name}/judgments.parquet ({name_of(row)})", "is not what its reply says",
                expected=answer.get("choice", answer.get("value")), found=row["choice"] or row["value"],
            )  # fmt: skip


def check_tags(stage: FinishedStage, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Read again whether an image shows an artifact, and how sure that is, in both tables."""
    matches = pl.read_parquet(stage.folder / "matches.parquet").filter(pl.col("rank") == 1)
    scores = dict(matches.select("image_id", "score").iter_rows())
    for row in rows:
        answer = answer_in(row["raw"], fenced=True) or {}
        sure = [one["sure"] for one in answer.get("artifacts", ()) if answer.get("shown") != "no"]
        most = max(sure) if sure else None
        ledger.count("tags read again")
        value, score = row["value"], scores.get(row["image_id"])
        fits = row["choice"] == answer.get("shown") and (value is None) == (most is None)
        if most is not None:
            fits = fits and abs(value - most) <= 1e-9 * most + ROUNDING
        if not (fits and score is not None and abs(score - (most or 0) / 100) <= ROUNDING):
            ledger.broken(
                CHECK, f"{stage.name}/judgments.parquet ({row['image_id']})", "the tag is not what its reply says",
                expected=(answer.get("shown"), most), found=(row["choice"], value, score),
            )  # fmt: skip


def check_weighed(stage: FinishedStage, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Work out again how probable yes is."""
    of = str(stage.manifest.options.get("of", "yes-no"))
    for row in rows:
        found = chance_of_yes(answer_in(row["raw"]) or {}, of=of)
        ledger.count("probabilities read again")
        if found is None or not close(row["value"], found):
            ledger.broken(
                CHECK, f"{stage.name}/judgments.parquet ({name_of(row)})", "is not what its reply says",
                expected=found, found=row["value"],
            )  # fmt: skip


READ_AGAIN = {"questions": check_graphs, "judge": check_choices, "tag": check_tags, "vqascore": check_weighed}
"""By the kind of the stage, what reads its raw replies again."""


def check_answers(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Look at a stage in which a vision model answered questions."""
    rows = pl.read_parquet(stage.folder / "judgments.parquet").to_dicts()
    ledger.count("answers compared with their replies", len(rows))
    check_replies(stage, rows, ledger)
    check_asked(tree, stage, rows, ledger)


def check_replies(stage: FinishedStage, rows: list[dict[str, Any]], ledger: Ledger) -> None:
    """Compare each answer with the reply that stands beside it; one that failed has none."""
    for row in rows:
        said = yes_or_no(row["raw"]) if row["outcome"] in USED else None
        value = None if said is None else float(said == "yes")
        if (row["choice"], row["value"]) != (said, value):
            ledger.broken(
                JUDGMENTS, f"{stage.name}/judgments.parquet, image {row['image_id']}, question {row['item']}",
                "the answer is not what the reply says", expected=said, found=row["choice"],
            )  # fmt: skip


def yes_or_no(raw: str) -> str | None:
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
        ledger.note(JUDGMENTS, stage.name, "its images or questions are not here")
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
            JUDGMENTS, f"{stage.name}/judgments.parquet", "other questions were asked than those of the image's prompt",
            expected=wanted[image, question], found=f"{asked[image, question]} of image {image}, question {question}",
        )  # fmt: skip
