"""Scores of what judges said, worked out again in other words; a judgment that was changed is found."""

import json
import math
from pathlib import Path

import polars as pl
import pytest

from culturekit.families.faithfulness import faithfulness
from culturekit.families.handles.image_levels import MeanOptions
from culturekit.families.handles.inputs import Numbered
from culturekit.families.questions import QuestionOptions, QuestionReads
from culturekit.records.schemas import IMAGES, JUDGMENTS, QUALITY, QUESTIONS
from culturekit.storage.tables import write_table
from culturekit.verify.verify_run import verify_run
from tests.builders.spaces import rows_of
from tests.conftest import stage_here
from tests.verify.forging import change_table, reseal

PARENTS = {"q1": list[str](), "q2": ["q1"], "q3": ["q1", "q2"]}


def listing(number: int) -> tuple[str, float]:
    yes, no = 0.1 + 0.8 * (number % 7) / 7, 0.1
    tokens = [{"token": " Yes", "logprob": math.log(yes)}, {"token": "No", "logprob": math.log(no)}]
    return json.dumps({"tokens": tokens}), yes / (yes + no)


def judged(image: int) -> list[dict[str, object]]:
    place = {"image_id": f"i{image:02d}", "prompt_id": f"p{image % 3}"}
    rows: list[dict[str, object]] = [
        {**place, "judge": "seer", "task": "dsg", "item": question, "raw": "", "outcome": "ok",
         "choice": "no" if (image * 5 + number) % 4 == 0 else "yes"}
        for number, question in enumerate(PARENTS)
    ]  # fmt: skip
    if image == 4:
        rows[1] |= {"choice": None, "outcome": "refused"}
    raw, value = listing(image)
    return [*rows, {**place, "judge": "vqascore:seer?of=yes-no", "task": "vqascore", "item": "prompt", "raw": raw,
                    "value": value, "outcome": "ok"}]  # fmt: skip


@pytest.fixture(params=["all", "valid"])
def scored(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    for name in ("images", "judgments", "quality", "questions"):
        (tmp_path / name).mkdir()
    about = {"path": "", "rewriter": "off", "provider_params": "{}", "sha256": "", "width": 1, "height": 1}
    made = [
        {**about, "image_id": f"i{n:02d}", "prompt_id": f"p{n % 3}", "model": f"m{n % 2}", "status": "ok"}
        for n in range(24)
    ]
    quality = [{"image_id": f"i{n:02d}", "scorer": "clipscore", "value": n / 30} for n in range(24)]
    asked = [
        {"prompt_id": f"p{prompt}", "question_id": question, "parents": above, "text": "Is it?", "kind": "entity"}
        for prompt in range(3)
        for question, above in PARENTS.items()
    ]
    images = write_table(tmp_path / "images", IMAGES, rows_of(IMAGES, *made))
    answers = rows_of(JUDGMENTS, *(row for n in range(24) for row in judged(n)))
    given = QuestionReads(
        Numbered({"images-m": images}),
        Numbered({"answers-m": write_table(tmp_path / "judgments", JUDGMENTS, answers)}),
        write_table(tmp_path / "questions", QUESTIONS, rows_of(QUESTIONS, *asked)),
        Numbered({"quality-m": write_table(tmp_path / "quality", QUALITY, rows_of(QUALITY, *quality))}),
    )
    stage = faithfulness(given, QuestionOptions(request.param, MeanOptions(by=(("concept",),), benchmark="cube")))
    stage_here(stage, tmp_path / "faithfulness")
    return tmp_path / "faithfulness"


def test_every_score_is_verified(scored: Path) -> None:
    found = verify_run(scored)
    assert [str(finding) for finding in found.findings if finding.severity == "broken"] == []
    assert {(verdict.metric, verdict.verdict) for verdict in found.verdicts} == {
        ("dsg", "verified"), ("vqascore", "verified"), ("quality", "verified"),
    }  # fmt: skip


@pytest.mark.parametrize("column", ["value", "ci_low", "n"])
@pytest.mark.parametrize("metric", ["dsg", "vqascore", "quality"])
def test_a_score_that_was_changed_is_found(scored: Path, metric: str, column: str) -> None:
    change = pl.when(pl.col("metric") == metric).then(pl.col(column) - (1 if column == "n" else 0.01))
    change_table(
        scored / "scores.parquet",
        lambda t: t.with_columns(change.otherwise(pl.col(column)).cast(t.schema[column]).alias(column)),
    )
    reseal(scored)
    wrong = {verdict.metric for verdict in verify_run(scored).verdicts if verdict.verdict == "wrong"}
    assert wrong == {metric}


def test_a_score_that_was_taken_out_is_missed(scored: Path) -> None:
    change_table(scored / "scores.parquet", lambda t: t.filter(pl.col("metric") != "vqascore"))
    reseal(scored)
    assert any("a score is missing" in str(finding) for finding in verify_run(scored).findings)
