"""A stage is built once and reused; it keeps what it paid for, and a run knows each of its stages by role."""

import hashlib
import json
import os
import shutil
from pathlib import Path

import pytest

from culturekit.core import roles
from culturekit.core.digests import digest_file
from culturekit.core.errors import IntegrityError, UpstreamUnavailable, UsageError
from culturekit.core.roles import Role
from culturekit.core.run import Run, StageRun, run_stage
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.llm.journal import Entry, Journal, run_tag
from culturekit.recipes.cube.keys import load_recipe
from tests.conftest import SMALL, HeardProgress, HereEngine, stages_of


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


KEYS = [bytes([number]) * 32 for number in range(4)]


def buying(wanted: int, *, cut: bool = False) -> Stage:
    def buy(work: Work) -> Outcome:
        tag = run_tag(work)
        with Journal(work.out / "journal") as journal:
            found = journal.found(KEYS[:wanted], run=tag)
            missing = [key for key in KEYS[:wanted] if key not in found]
            journal.append_all([Entry(key, tag, 1, "online", 200, "reply", b"{}", b"{}") for key in missing])
        if cut:
            raise KeyboardInterrupt
        (work.out / "table").write_text(f"{wanted}", encoding="ascii")
        return Outcome(notes={"bought": len(missing)})

    return Stage("buy", "buy", 1, buy, {}, {"wanted": wanted})


def bought_by(what: Stage, out: Path, *, fresh: bool = False, replace: bool = True) -> StageRun:
    return run_stage(what, out, engine=HereEngine(), progress=HeardProgress(), fresh=fresh, replace=replace)


def bought(ended: StageRun) -> object:
    return ended.manifest.notes["bought"]


def test_replies_go_from_run_to_run(tmp_path: Path) -> None:
    first = bought_by(buying(2), tmp_path / "buy")
    assert bought(first) == 2
    assert list(first.manifest.outputs) == ["table"], "the manifest does not know the journal"
    with pytest.raises(KeyboardInterrupt):
        bought_by(buying(4, cut=True), tmp_path / "buy")
    assert bought_by(buying(2), tmp_path / "buy").state == "reused"
    assert bought(bought_by(buying(3), tmp_path / "buy")) == 0
    again = bought_by(buying(4), tmp_path / "buy", fresh=True)
    assert (again.state, bought(again)) == ("built", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["buy"]


def nothing(work: Work) -> Outcome:
    (work.out / "x").write_bytes(b"")
    return Outcome()


def state_of_run(path: Path, out: Path) -> str:
    what = Stage("s", "s", 1, nothing, {"dump": path})
    return run_stage(what, out, engine=HereEngine(), progress=HeardProgress(), replace=True).state


@pytest.fixture
def hashed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Hear of every file that is hashed as an input; everything counts as large."""
    seen: list[Path] = []

    def heard(path: Path) -> str:
        seen.append(path)
        return digest_file(path)

    monkeypatch.setattr("culturekit.core.stage.digest_file", heard)
    monkeypatch.setattr("culturekit.core.run.WORTH_REMEMBERING", 0)
    return seen


def test_a_large_input_is_hashed_once_and_a_changed_one_again(tmp_path: Path, hashed: list[Path]) -> None:
    dump = tmp_path / "dump"
    dump.write_bytes(b"large")
    assert [state_of_run(dump, tmp_path / "out") for _ in range(3)] == ["built", "reused", "reused"]
    assert hashed == [dump]
    dump.write_bytes(b"LARGE")
    os.utime(dump, ns=(1, 1))
    assert state_of_run(dump, tmp_path / "out") == "built"
    assert hashed == [dump, dump]


def test_a_small_input_is_always_hashed(tmp_path: Path, hashed: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("culturekit.core.run.WORTH_REMEMBERING", 10)
    dump = tmp_path / "dump"
    dump.write_bytes(b"small")
    assert [state_of_run(dump, tmp_path / "out") for _ in range(2)] == ["built", "reused"]
    assert hashed == [dump, dump]


STAGE = Stage("any", "nothing", 1, lambda _: Outcome(), {})


def test_a_stage_has_the_folder_of_its_role_and_gives_its_table(tmp_path: Path) -> None:
    run = Run(tmp_path, ("a", "b"))
    assert run.add(STAGE, roles.TRUTH, "a") == tmp_path / "truth-a/matches.parquet"
    assert run.add(STAGE, roles.INDEX) == tmp_path / "index"
    assert run.add(STAGE, roles.MATCHES_BY, "a", "words") == tmp_path / "matches-a-by-words/matches.parquet"
    assert [step.stage.name for step in run.steps] == ["truth-a", "index", "matches-a-by-words"]
    assert run.tables(roles.TRUTH) == {"truth-a": tmp_path / "truth-a/matches.parquet"}
    assert run.by_model(roles.TRUTH, file="x.csv") == {"a": tmp_path / "truth-a/x.csv"}
    assert run.tables(roles.MATCHES_BY, "words") == {"matches-a-by-words": run.table(roles.MATCHES_BY, "a", "words")}


def test_two_stages_never_share_a_folder(tmp_path: Path) -> None:
    run = Run(tmp_path, ("a", "a-by-b"))
    run.add(STAGE, roles.MATCHES, "a-by-b")
    with pytest.raises(UsageError, match="would write the folder 'matches-a-by-b'"):
        run.add(STAGE, roles.MATCHES_BY, "a", "b")
    settings = ["models.0.name=real", "realism.per_concept=false"]
    with pytest.raises(UsageError, match="would write the folder 'vectors-real'"):
        stages_of(load_recipe(SMALL, settings), tmp_path)


def test_every_role_has_a_name_that_is_read_back_by_the_models_that_are_known() -> None:
    forms = [each.form for each in vars(roles).values() if isinstance(each, Role)]
    assert len(set(forms)) == len(forms)
    run = Run(Path(), ("a-b", "b"), ("scorer-1-a-b", "scorer-2-b", "quality-b", "scores"))
    assert (run.variants(roles.SCORER, "a-b"), run.variants(roles.SCORER, "b")) == (["1"], ["2"])
    assert roles.IMAGES.read("images-c", ["a"]) is None
    assert roles.SCORES.read("scores", []) == ("", "")


def test_stages_that_share_a_budget_know_each_other_those_that_join_later_too(tmp_path: Path) -> None:
    run = Run(tmp_path, ["a"])
    first = run.sharing("llm", run.folder(roles.FILTER))
    run.sharing("images of a", run.folder(roles.IMAGES, "a"))
    second = run.sharing("llm", run.folder(roles.QUESTIONS))
    assert (list(first), list(second)) == ([run.folder(roles.QUESTIONS)], [run.folder(roles.FILTER)])
