import logging
from dataclasses import replace
from pathlib import Path

import pytest

from culturekit.core.digests import JOURNAL
from culturekit.core.errors import UsageError
from culturekit.core.run import StageRun, run_stage
from culturekit.core.stage import Outcome, Stage, Work
from tests.conftest import HeardProgress, HereEngine


def judge(work: Work) -> Outcome:
    (work.out / "table").write_bytes(work.inputs["text"].read_bytes())
    (work.out / JOURNAL).mkdir(exist_ok=True)
    (work.out / JOURNAL / "replies").write_text("paid", encoding="utf-8")
    return Outcome({"table": 1})


@pytest.fixture
def paid(tmp_path: Path) -> Stage:
    (tmp_path / "text").write_text("525 candidates", encoding="utf-8")
    options = {"judge": "openai:m", "roots": {"cuisine": [1, 2]}}
    return Stage("kept", "filter", 3, judge, {"text": tmp_path / "text"}, options, {"draw": 1})


def run(stage: Stage, out: Path, **how: bool) -> StageRun:
    return run_stage(stage, out, engine=HereEngine(), progress=HeardProgress(), **how)


@pytest.mark.parametrize("fresh", [False, True])
def test_what_was_made_from_something_else_is_refused_with_all_that_differs(
    paid: Stage, tmp_path: Path, *, fresh: bool
) -> None:
    before = run(paid, tmp_path / "kept").manifest
    (tmp_path / "text").write_text("340 candidates", encoding="utf-8")
    other = replace(
        paid, options={"judge": "rules", "roots": {"cuisine": [1]}, "more": None}, seeds={"draw": 2},
        inputs={"text": tmp_path / "text", "graph": tmp_path / "text"},
    )  # fmt: skip
    with pytest.raises(UsageError) as refused:
        run(other, tmp_path / "kept", fresh=fresh)
    assert refused.value.exit_code == 2
    for said in (
        "input text (text) has other content", "input graph was not there", 'option judge: "openai:m" -> "rules"',
        "option more: not there -> null", "option roots cuisine: [1,2] -> [1]", "and 1 more", "--replace",
    ):  # fmt: skip
        assert said in str(refused.value)
    assert (
        run(replace(paid, inputs={"text": copy_of(tmp_path, "525 candidates")}), tmp_path / "kept").manifest == before
    )


def copy_of(folder: Path, content: str) -> Path:
    path = folder / "copy"
    path.write_text(content, encoding="utf-8")
    return path


def test_a_replacement_is_said_and_keeps_what_was_paid(
    paid: Stage, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run(paid, tmp_path / "kept")
    with caplog.at_level(logging.WARNING):
        done = run(replace(paid, options={"judge": "rules"}), tmp_path / "kept", replace=True)
    assert done.state == "built"
    [line] = caplog.messages
    assert 'option judge: "openai:m" -> "rules"' in line
    assert f"The replies it paid for stay in {tmp_path / 'kept' / JOURNAL}" in line
    assert (tmp_path / "kept" / JOURNAL / "replies").is_file()


@pytest.mark.parametrize("other", [{"version": 4}, {"exports": ("jsonl",)}])
def test_a_new_version_and_another_form_are_made_from_the_same(
    paid: Stage, tmp_path: Path, other: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    run(paid, tmp_path / "kept")
    assert run(replace(paid, **other), tmp_path / "kept").state == "built"  # type: ignore[arg-type]
    assert not caplog.messages
