"""A stage that pays keeps what it paid for, whatever is asked of it next."""

from pathlib import Path

import pytest

from culturekit.core.run import StageRun, run_stage
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.llm.journal import Entry, Journal, run_tag
from tests.conftest import HeardProgress, HereEngine

KEYS = [bytes([number]) * 32 for number in range(4)]


def stage(wanted: int, *, cut: bool = False) -> Stage:
    """Buy so many replies, unless the journal has them."""

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


def run(what: Stage, out: Path, *, fresh: bool = False, replace: bool = True) -> StageRun:
    return run_stage(what, out, engine=HereEngine(), progress=HeardProgress(), fresh=fresh, replace=replace)


def bought(ended: StageRun) -> object:
    return ended.manifest.notes["bought"]


def test_replies_go_from_run_to_run(tmp_path: Path) -> None:
    first = run(stage(2), tmp_path / "buy")
    assert bought(first) == 2
    assert list(first.manifest.outputs) == ["table"], "the manifest does not know the journal"
    with pytest.raises(KeyboardInterrupt):
        run(stage(4, cut=True), tmp_path / "buy")
    assert run(stage(2), tmp_path / "buy").state == "reused"
    assert bought(run(stage(3), tmp_path / "buy")) == 0
    again = run(stage(4), tmp_path / "buy", fresh=True)
    assert (again.state, bought(again)) == ("built", 0)
    assert [path.name for path in tmp_path.iterdir()] == ["buy"]
