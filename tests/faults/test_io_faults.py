"""A disk that fails at every step of a journal and of stages: nothing hangs, nothing is lost, and it is said why.

Input and output fail at steps that a run with a journal takes, and at steps along the small recipe: a step refused, a
write cut short, once or from then on, for want of room or with an error of the device. Each run that met its fault
must end within its time with exit code 3, or well; the runs that follow, on a disk that works again, must end in the
bytes of an undisturbed one.
"""

import errno
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import cycle
from pathlib import Path

import pytest

from culturekit.core.errors import CultureKitError
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from tests.conftest import SMALL
from tests.effort import THOROUGH
from tests.faults.failing_io import FailingIO, Fault
from tests.faults.kill_and_resume import content, differences
from tests.llm.fake_client import FakeClient, Verdict, questions

ROWS = 60
HUNG = -1
BUDGET = 1.0
LONGEST = 60.0  # Seconds after which a run that asks a few questions hangs; a run of stages may take five times as long

JOURNAL_FAULTS = (
    Fault(0, errno.ENOSPC), Fault(0, errno.EIO), Fault(0, errno.ENOSPC, lasting=True), Fault(0, errno.EIO, "short"),
)  # fmt: skip
NONE = Fault(0)


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, what it said, and the step at which it met its fault, if it did."""

    code: int
    said: str
    steps: int
    met: str


@dataclass
class Result:
    """What came of it; `codes` counts how runs ended that met their fault."""

    codes: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def take(self, name: str, ended: Ended) -> None:
        self.codes[ended.code] += 1
        if ended.code not in (0, 3) or "Traceback" in ended.said:
            self.wrong.append(f"{name}: exit code {ended.code}: {ended.said.strip()[-600:]}")


def ask(folder: Path, *, rows: int) -> None:
    def behaviour(identifier: str, _: int) -> bytes:
        text = "prose" if identifier.endswith("3") else json.dumps({"id": identifier, "verdict": "keep"})
        return json.dumps({"text": text, "in": 50, "out": 10, "stop": "end"}).encode()

    with Journal(folder / "journal") as journal:
        engine = AskEngine(FakeClient(behaviour), journal, AskOptions(4, BUDGET, patience=20.0), run="one")
        lines = [
            json.dumps([answered.outcome, isinstance(answered.value, Verdict), answered.detail, answered.raw])
            for answered in engine.ask_all(questions(rows))
        ]
    (folder.parent / f"{folder.name}.answers").write_text("\n".join(lines), encoding="utf-8")


def asked(folder: Path, fault: Fault, *, rows: int = ROWS) -> Ended:
    hear, tell = os.pipe()
    process = os.fork()
    if process:
        os.close(tell)
        return waited(process, hear, LONGEST)
    os.dup2(tell, 2)
    io = FailingIO(folder, fault)
    io.install()
    code, words = 0, ""
    try:
        ask(folder, rows=rows)
    except BaseException as error:
        code = error.exit_code if isinstance(error, CultureKitError) else 3 if isinstance(error, OSError) else 70
        words = f"{type(error).__name__}: {error}"
    met = ": ".join(io.steps[fault.at - 1]) if io.hit else ""
    os.write(2, json.dumps([code, words, len(io.steps), met]).encode())
    os._exit(0)


def waited(process: int, pipe: int, seconds: float) -> Ended:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(process, os.WNOHANG)[0]:
            with os.fdopen(pipe, encoding="utf-8", errors="replace") as heard:
                *noise, last = heard.read().splitlines() or [""]
            try:
                code, data, steps, met = json.loads(last)
            except ValueError:
                return Ended(70, "\n".join([*noise, last]), 0, "?")
            return Ended(code, "\n".join([*noise, data]), steps, met)
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    os.close(pipe)
    return Ended(HUNG, "", 0, "")


def journal_faults(scratch: Path, *, every: int = 1, kinds: Sequence[Fault] = JOURNAL_FAULTS) -> Result:
    """Let each step of a fresh and of a resumed run fail, in each way, and resume."""
    result, calm = Result(), scratch / "calm"
    calm.mkdir()
    asked(calm, NONE)
    for begun in (0, ROWS // 2):
        for number, kind in enumerate(kinds):
            steps, at = 10**9, 1
            while at <= steps:
                steps = one_journal(scratch / f"{begun}-{number}-{at}", replace(kind, at=at), begun, result)
                at += every
    return result


def one_journal(folder: Path, fault: Fault, begun: int, result: Result) -> int:
    """Let one step of a run fail, then let it go on; give how many steps there were."""
    folder.mkdir()
    if begun:
        assert asked(folder, NONE, rows=begun).code == 0
    ended = asked(folder, fault)
    if not ended.met and ended.code != HUNG:
        return ended.steps
    name = f"journal, {'resumed' if begun else 'fresh'}: {fault}: {ended.met}"
    result.take(name, ended)
    again = asked(folder, NONE)
    if again.code:
        result.wrong.append(f"{name}: cannot be resumed: {again.code} {again.said}")
    elif folder.with_name(f"{folder.name}.answers").read_bytes() != (folder.parent / "calm.answers").read_bytes():
        result.wrong.append(f"{name}: other answers")
    return 10**9


def run_stages(recipe: Path, workdir: Path, fault: Fault) -> Ended:
    command = [sys.executable, "-m", "tests.faults.test_io_faults", "--fail", json.dumps(asdict(fault))]
    command += ["run", str(recipe), "--workdir", str(workdir), "--workers", "1"]
    workdir.mkdir(exist_ok=True)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, printed = process.communicate(timeout=5 * LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            return Ended(HUNG, "", 0, "")
    *lines, last = printed.splitlines() or [""]
    steps, met = json.loads(last) if last.startswith("[") else (0, "?")
    return Ended(process.returncode, "\n".join(lines), steps, met)


def fail_and_run(fault: Fault, arguments: Sequence[str]) -> None:
    """Run the command line on a disk that fails, and say last how many steps there were and which was met."""
    from culturekit.cli import main as command

    workdir = Path(arguments[arguments.index("--workdir") + 1])
    io = FailingIO(workdir.absolute(), fault)
    io.install()
    sys.argv = ["culturekit", *arguments]
    try:
        command()
    finally:
        met = ": ".join(io.steps[fault.at - 1]) if io.hit else ""
        sys.stderr.write(f"\n{json.dumps([len(io.steps), met])}\n")


def stage_faults(scratch: Path, *, faults: int, rounds: int, kinds: Sequence[Fault]) -> Result:
    """Run a recipe to its end several times, each time through faults at steps all along it."""
    result, chance, manners = Result(), random.Random(1), cycle(kinds)
    steps = run_stages(SMALL, scratch / "calm", NONE).steps
    expected = content(scratch / "calm")
    for number in range(rounds):
        workdir = scratch / f"round-{number}"
        for _ in range(faults // rounds):
            # Faults of a round lie all along a run: each run begins where the last one stopped
            fault = replace(next(manners), at=1 + int(chance.expovariate(faults // rounds / steps)))
            ended = run_stages(SMALL, workdir, fault)
            if ended.met or ended.code == HUNG:
                result.take(f"stages: {fault}: {ended.met}", ended)
        ended = run_stages(SMALL, workdir, NONE)
        if ended.code:
            result.wrong.append(f"round {number}: cannot be resumed: {ended.code} {ended.said[-600:]}")
        else:
            result.wrong += differences(expected, content(workdir), f"round {number}")
    return result


@pytest.mark.endtoend
@pytest.mark.parametrize("kind", [JOURNAL_FAULTS[1], JOURNAL_FAULTS[2]], ids=["once", "ever after"])
def test_a_disk_that_fails_under_a_journal_ends_the_run_and_costs_no_answer(tmp_path: Path, kind: Fault) -> None:
    result = journal_faults(tmp_path, every=29, kinds=[kind])
    assert result.codes.total() >= 8
    assert result.codes[3] >= result.codes.total() // 2
    assert result.wrong == []


@pytest.mark.slow
def test_a_disk_that_fails_at_every_step_of_a_journal_ends_the_run_and_costs_no_answer(tmp_path: Path) -> None:
    result = journal_faults(tmp_path, every=5 if THOROUGH else 100)
    assert result.codes.total() >= (300 if THOROUGH else 12)
    assert result.wrong == []


@pytest.mark.slow
def test_a_disk_that_fails_along_the_small_recipe_changes_no_byte_of_it(tmp_path: Path) -> None:
    kinds = [Fault(0, errno.ENOSPC), Fault(0, errno.EIO), Fault(0, errno.ENOSPC, lasting=True)]
    result = stage_faults(tmp_path, faults=20 if THOROUGH else 6, rounds=2 if THOROUGH else 1, kinds=kinds)
    assert result.codes.total() >= (15 if THOROUGH else 4)
    assert result.wrong == []


# A disk that fills up, for real: a run in a small tmpfs, in a mount namespace of its own.

FILL = """
run() {{
    {python} -m culturekit run {recipe} --workdir {mount}/run --workers 1 > {out}/$1 2>&1
    echo $? > {out}/$1.code
}}
mount -t tmpfs -o size={size} none {mount}
run first
mount -o remount,size=200m {mount}
run second
"""


def can_mount() -> bool:
    if shutil.which("unshare") is None or os.geteuid() != 0:
        return False
    probe = ["unshare", "--mount", "sh", "-c", "mount -t tmpfs none /mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


SIZES = [f"{size}k" for size in range(500, 3_300, 400 if THOROUGH else 1_400)]


@pytest.mark.endtoend
@pytest.mark.parametrize("size", ["300k", "2m", *(pytest.param(size, marks=pytest.mark.slow) for size in SIZES)])
def test_a_full_disk_is_said_and_the_run_goes_on_when_there_is_room(tmp_path: Path, size: str) -> None:
    if not can_mount():
        pytest.skip("needs the right to mount a tmpfs in a namespace of its own")
    mount, out = tmp_path / "mount", tmp_path / "out"
    mount.mkdir()
    out.mkdir()
    script = FILL.format(size=size, mount=mount, python=sys.executable, recipe=SMALL, out=out)
    subprocess.run(["unshare", "--mount", "sh", "-c", script], check=True, env={**os.environ, "TMPDIR": str(tmp_path)})
    text, codes = (out / "first").read_text("utf-8"), [(out / f"{run}.code").read_text() for run in ("first", "second")]
    assert codes == ["3\n", "0\n"], text + (out / "second").read_text("utf-8")
    assert "No space left on device" in text
    assert "Traceback" not in text


if __name__ == "__main__":
    fail_and_run(Fault(**json.loads(sys.argv[2])), sys.argv[3:])
