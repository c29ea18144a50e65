"""Plans of batch jobs: what is lost, doubled, misnamed, exchanged, out of order, out of time."""

import asyncio
import json
from typing import Any

import pytest

from tests.llm.server import Fault, JobPlan, Rule, Script, When, running_server
from tests.llm.server.conversations import batch_file, openai_client

_ROWS = {f"key-{at}": f"Q{at}" for at in range(40)}


def _run(script: Script) -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """Run one job of forty rows; give the job, its output, its errors and the server's statistics."""

    async def talk() -> tuple[Any, list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
        with running_server(script) as server:
            async with openai_client(server) as client:
                file = await client.files.create(file=("rows.jsonl", batch_file(_ROWS)), purpose="batch")
                job = await client.batches.create(
                    input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h"
                )
                job = await client.batches.retrieve(job.id)
                written = []
                for name in (job.output_file_id, job.error_file_id):
                    text = (await client.files.content(name)).text if name else ""
                    written.append([json.loads(line) for line in text.splitlines()])
            return job, written[0], written[1], server.stats()

    return asyncio.run(talk())


def _id_said(line: dict[str, Any]) -> str:
    said: str = json.loads(line["response"]["body"]["choices"][0]["message"]["content"])["id"]
    return said


def _right(output: list[dict[str, Any]]) -> set[str]:
    return {line["custom_id"] for line in output if _ROWS.get(line["custom_id"]) == _id_said(line)}


@pytest.mark.parametrize(
    "plan",
    [
        JobPlan(shuffled=True),
        JobPlan(missing=0.3),
        JobPlan(duplicated=0.3),
        JobPlan(misnamed=0.3),
        JobPlan(swapped=0.3),
        JobPlan(shuffled=True, missing=0.2, duplicated=0.2, misnamed=0.2, swapped=0.2, salt="all"),
    ],
)
def test_what_reaches_the_client_is_what_counts_as_bought(plan: JobPlan) -> None:
    _, output, errors, stats = _run(Script(job=plan))
    assert errors == []
    assert stats["batch"]["replies"] == 40
    assert stats["bought"] == len(_right(output))
    names = [line["custom_id"] for line in output]
    assert (names != sorted(names, key=list(_ROWS).index)) == plan.shuffled if not plan.misnamed else True
    assert (len(set(names)) < len(names)) == (plan.duplicated > 0)
    assert (len(_ROWS.keys() - set(names)) > 0) == (plan.missing > 0 or plan.misnamed > 0)
    assert (len(set(names) - _ROWS.keys()) > 0) == (plan.misnamed > 0)
    wrong = [line for line in output if line["custom_id"] in _ROWS and _ROWS[line["custom_id"]] != _id_said(line)]
    assert (len(wrong) > 1) == (plan.swapped > 0)


def test_an_expired_job_keeps_a_part_and_names_the_rest() -> None:
    job, output, errors, stats = _run(Script(job=JobPlan(ends="expired", share=0.25)))
    assert job.status == "expired"
    assert (len(output), len(errors)) == (10, 30)
    assert {line["error"]["code"] for line in errors} == {"batch_expired"}
    assert {line["custom_id"] for line in output + errors} == _ROWS.keys()
    assert stats["batch"]["replies"] == 10


def test_an_expired_job_may_keep_silent_about_the_rest() -> None:
    job, output, errors, _ = _run(Script(job=JobPlan(ends="expired", share=0.25, rest_told=False)))
    assert (job.error_file_id, len(output), errors) == (None, 10, [])


def test_a_failed_job_brings_and_costs_nothing() -> None:
    job, output, errors, stats = _run(Script(job=JobPlan(ends="failed")))
    assert job.status == "failed"
    assert job.errors.data[0].code == "internal_error"
    assert (output, errors, stats["usd"]) == ([], [], 0)


def test_lines_fail_one_by_one_and_say_odd_things() -> None:
    rules = (
        Rule(Fault("server-error"), When(rows=("Q1", "Q2"), modes=("batch",))),
        Rule(Fault("busy"), When(rows=("Q3",))),
        Rule(Fault("wrong-id"), When(rows=("Q4",))),
        Rule(Fault("no-usage"), When(rows=("Q5",))),
        Rule(Fault("refusal"), When(rows=("Q6",))),
        Rule(Fault("error-in-200"), When(rows=("Q7",))),
    )
    _, output, errors, stats = _run(Script(rules=rules))
    assert sorted((line["custom_id"], line["response"]["status_code"]) for line in errors) == [
        ("key-1", 500),
        ("key-2", 500),
        ("key-3", 429),
    ]
    said = {line["custom_id"]: line["response"]["body"] for line in output}
    assert "usage" not in said["key-5"]
    assert said["key-6"]["choices"][0]["message"]["refusal"]
    assert said["key-7"].keys() == {"error"}
    assert json.loads(said["key-4"]["choices"][0]["message"]["content"])["id"] == "Q999999999"
    assert stats["batch"]["replies"] == 37
    assert stats["bought"] == 34


def test_a_batch_costs_half() -> None:
    job, *_, stats = _run(Script())
    sold = stats["batch"]
    assert (job.usage.input_tokens, job.usage.output_tokens) == (sold["input_tokens"], sold["output_tokens"])
    full = (sold["input_tokens"] * 0.15 + sold["output_tokens"] * 0.60) / 1e6
    assert stats["usd"] == pytest.approx(full / 2)


def test_jobs_follow_their_plans_in_turn() -> None:
    job, *_ = _run(Script(jobs=(JobPlan(ends="expired"),), job=JobPlan(ends="failed")))
    assert job.status == "expired"
