import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from culturekit.core.errors import IntegrityError, UpstreamUnavailable, UsageError
from culturekit.core.run import StageRun, run_stage
from culturekit.core.stage import Outcome, Stage, Work
from tests.conftest import HeardProgress, HereEngine


def shout(work: Work) -> Outcome:
    text = work.inputs["text"].read_text(encoding="utf-8")
    (work.out / "loud.txt").write_text(text.upper(), encoding="utf-8")
    return Outcome({"letters": len(text)}, {"vowel": 2}, {"note": "loud"})


def stage(text: Path, **options: object) -> Stage:
    return Stage("loud", "shout", 1, shout, {"text": text}, options)


def run(what: Stage, out: Path, *, replace: bool = False) -> StageRun:
    return run_stage(what, out, engine=HereEngine(), progress=HeardProgress(), replace=replace)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("hello", encoding="utf-8")
    return path


def test_a_stage_is_built_once_and_then_reused_unless_a_fresh_run_is_asked_for(tmp_path: Path, text: Path) -> None:
    first = run(stage(text), tmp_path / "out")
    second = run(stage(text), tmp_path / "out")
    assert (first.state, second.state) == ("built", "reused")
    assert first.manifest.counts == {"letters": 5}
    assert second.manifest == first.manifest
    run(stage(text), tmp_path / "out")
    again = run_stage(stage(text), tmp_path / "out", engine=HereEngine(), progress=HeardProgress(), fresh=True)
    assert again.state == "built"


def test_what_a_kill_right_after_publishing_left_is_removed(tmp_path: Path, text: Path) -> None:
    run(stage(text), tmp_path / "out")
    (tmp_path / ".out.partial/scratch").mkdir(parents=True)
    assert run(stage(text), tmp_path / "out").state == "reused"
    assert sorted(os.listdir(tmp_path)) == ["out", "text.txt"]


def leave_a_stray(work: Work) -> Outcome:
    """Do what a stage does whose worker was killed while it wrote a file, which another one then wrote."""
    (work.out / "files").mkdir()
    (work.out / "files/a.txt").write_text("whole", encoding="utf-8")
    if work.inputs["text"].with_name("kill").exists():
        (work.out / "files/.writing-77-a.txt").write_text("wh", encoding="utf-8")
    return Outcome()


def test_a_manifest_does_not_count_what_a_killed_worker_was_writing(tmp_path: Path, text: Path) -> None:
    what = Stage("stray", "stray", 1, leave_a_stray, {"text": text})
    undisturbed = run(what, tmp_path / "undisturbed").manifest
    (tmp_path / "kill").touch()
    assert run(what, tmp_path / "killed").manifest == undisturbed
    assert [path.name for path in (tmp_path / "killed/files").iterdir()] == ["a.txt"]


def test_an_input_is_held_to_a_published_hash(tmp_path: Path, text: Path) -> None:
    digest = hashlib.sha256(b"hello").hexdigest()
    held = Stage("loud", "shout", 1, shout, {"text": text}, expected={"text": digest.upper()})
    assert run(held, tmp_path / "out").state == "built"
    with pytest.raises(IntegrityError, match="not the file that was published"):
        run(Stage("loud", "shout", 1, shout, {"text": text}, expected={"text": "0" * 64}), tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("change", ["input", "option", "version", "seed"])
def test_a_stage_is_built_anew_when_anything_that_decides_it_changes(tmp_path: Path, text: Path, change: str) -> None:
    before = run(stage(text), tmp_path / "out").manifest
    changed = stage(text, loudness=11) if change == "option" else stage(text)
    if change == "input":
        text.write_text("goodbye", encoding="utf-8")
    if change == "version":
        changed = Stage("loud", "shout", 2, shout, {"text": text})
    if change == "seed":
        changed = Stage("loud", "shout", 1, shout, {"text": text}, {}, {"draw": 3})
    after = run(changed, tmp_path / "out", replace=True)
    assert after.state == "built"
    assert after.manifest.key != before.key


def test_the_name_of_an_input_and_where_it_lies_do_not_matter_nor_does_this_machine(tmp_path: Path, text: Path) -> None:
    run(stage(text), tmp_path / "out")
    assert str(tmp_path) not in (tmp_path / "out/manifest.json").read_text(encoding="utf-8")
    record = json.loads((tmp_path / "out/run.json").read_text(encoding="utf-8"))
    assert record["inputs"] == {"text": "../text.txt"}
    before = run(stage(text), tmp_path / "out").manifest
    elsewhere = tmp_path / "deep"
    elsewhere.mkdir()
    shutil.move(text, elsewhere / "renamed.txt")
    assert run(stage(elsewhere / "renamed.txt"), tmp_path / "out").state == "reused"
    assert run(stage(elsewhere / "renamed.txt"), tmp_path / "new").manifest.key == before.key


def test_what_a_stage_wrote_and_somebody_changed_is_not_used(tmp_path: Path, text: Path) -> None:
    run(stage(text), tmp_path / "out")
    (tmp_path / "out/loud.txt").write_text("HELLA", encoding="utf-8")  # as many bytes as before
    for same in (tmp_path / "out/loud.txt", tmp_path / "out"):
        with pytest.raises(IntegrityError, match="changed or removed since its stage finished"):
            run(stage(same), tmp_path / "next")
    (tmp_path / "out/loud.txt").write_text("tampered", encoding="utf-8")
    for given, folder in ((text, "out"), (tmp_path / "out/loud.txt", "next")):
        with pytest.raises(IntegrityError, match="changed or removed since its stage finished"):
            run(stage(given), tmp_path / folder)


def test_a_missing_input_is_the_users_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        run(stage(tmp_path / "none.txt"), tmp_path / "out")
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="not a finished stage folder"):
        run(stage(tmp_path / "folder"), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_stage_that_fails_publishes_nothing_and_the_next_run_goes_on(tmp_path: Path, text: Path) -> None:
    def half(work: Work) -> Outcome:
        (work.scratch / "shard").write_text("done", encoding="ascii")
        raise UsageError("stopped half-way")

    with pytest.raises(UsageError):
        run(Stage("loud", "shout", 1, half, {"text": text}), tmp_path / "out")
    assert not (tmp_path / "out").exists()

    def rest(work: Work) -> Outcome:
        assert (work.scratch / "shard").read_text(encoding="ascii") == "done"
        return shout(work)

    assert run(Stage("loud", "shout", 1, rest, {"text": text}), tmp_path / "out").state == "resumed"
    assert sorted(os.listdir(tmp_path)) == ["out", "text.txt"]


def test_a_full_disk_keeps_the_last_result_and_says_how_to_go_on(tmp_path: Path, text: Path) -> None:
    run(stage(text), tmp_path / "out")

    def full(_: Work) -> Outcome:
        raise OSError(28, "No space left on device", "somewhere/part")

    with pytest.raises(UpstreamUnavailable) as error:
        run(Stage("loud", "shout", 2, full, {"text": text}), tmp_path / "out")
    assert error.value.exit_code == 3
    assert "No space left on device" in str(error.value)
    assert "run the same command again" in str(error.value)
    assert (tmp_path / "out/loud.txt").read_text(encoding="utf-8") == "HELLO"
