"""A disk that fails at every step of a journal and of stages: nothing hangs, nothing is lost, and it is said why.

`python -m tests.faults.io_faults` lets input and output fail at every step that a run with a journal takes, and at
steps all along the small recipe: a step refused, a write cut short, once or from then on, for want of room or with an
error of the device. Each run that met its fault must end within its time with exit code 3, or well; the runs that
follow, on a disk that works again, must end in the bytes of an undisturbed one. It ends with 0 when all do.
"""

import argparse
import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import cycle
from pathlib import Path

from culturekit.errors import CultureKitError
from culturekit.llm.engine import AskEngine, AskOptions
from culturekit.llm.journal import Journal
from tests.conftest import SMALL
from tests.faults.failing_io import FailingIO, Fault
from tests.faults.kill_and_resume import content, differences
from tests.llm.fake_client import FakeClient, Verdict, questions

ROWS = 60
BUDGET = 1.0
LONGEST = 60.0  # seconds after which a run that asks a few questions hangs; a run of stages may take five times as long
JOURNAL_FAULTS = (
    Fault(0, errno.ENOSPC),
    Fault(0, errno.EIO),
    Fault(0, errno.ENOSPC, lasting=True),
    Fault(0, errno.EIO, "short"),
)
STAGE_FAULTS = (
    Fault(0, errno.ENOSPC, "later"),
    Fault(0, errno.EIO, "later"),
    Fault(0, errno.ENOSPC, lasting=True),
    Fault(0, errno.EIO),
)
NONE = Fault(0)


@dataclass
class Result:
    """What came of it; `codes` counts how runs ended that met their fault."""

    faults: int = 0
    codes: Counter[int] = field(default_factory=Counter)
    hung: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    different: list[str] = field(default_factory=list)

    def take(self, name: str, ended: "Ended") -> None:
        """Count a run that met its fault."""
        self.faults += 1
        self.codes[ended.code] += 1
        if ended.code == HUNG:
            self.hung.append(name)
        elif ended.code not in (0, 3) or "Traceback" in ended.said:
            self.wrong.append(f"{name}: exit code {ended.code}: {ended.said.strip()[-600:]}")


HUNG = -1


@dataclass(frozen=True)
class Ended:
    """How a run ended: its exit code, what it said, and the step at which it met its fault, if it did."""

    code: int
    said: str
    steps: int
    met: str


def ask(folder: Path, *, rows: int) -> None:
    """Ask, some rows in vain, and leave the answers in a file beside the journal."""

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
    """Ask in a process of its own, on a disk that fails."""
    told, tell = os.pipe()
    process = os.fork()
    if process:
        os.close(tell)
        return waited(process, told, LONGEST)
    os.dup2(tell, 2)
    io = FailingIO(folder, fault)
    io.install()
    code, said = 0, ""
    try:
        ask(folder, rows=rows)
    except BaseException as error:
        code = exit_code(error)
        said = f"{type(error).__name__}: {error}"
    met = ": ".join(io.steps[fault.at - 1]) if io.hit else ""
    os.write(2, json.dumps([code, said, len(io.steps), met]).encode())
    os._exit(0)


def exit_code(error: BaseException) -> int:
    """Give the exit code that the command line leaves with."""
    if isinstance(error, CultureKitError):
        return error.exit_code
    return 3 if isinstance(error, OSError) else 70


def waited(process: int, told: int, seconds: float) -> Ended:
    """Wait for a process for some time, then kill it: it hangs."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.waitpid(process, os.WNOHANG)[0]:
            with os.fdopen(told, encoding="utf-8", errors="replace") as heard:
                *noise, last = heard.read().splitlines() or [""]
            try:
                code, said, steps, met = json.loads(last)
            except ValueError:
                return Ended(70, "\n".join([*noise, last]), 0, "?")
            return Ended(code, "\n".join([*noise, said]), steps, met)
        time.sleep(0.005)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    os.close(told)
    return Ended(HUNG, "", 0, "")


def journal_faults(scratch: Path, *, every: int = 1, kinds: Sequence[Fault] = JOURNAL_FAULTS) -> Result:
    """Let each step of a fresh and of a resumed run fail, in each way, and resume."""
    result = Result()
    calm = scratch / "calm"
    calm.mkdir()
    asked(calm, NONE)
    expected = (scratch / "calm.answers").read_bytes()
    for begun in (0, ROWS // 2):
        for fault in kinds:
            steps, at = 10**9, 1
            while at <= steps:
                folder = scratch / f"{begun}-{fault.error}-{fault.manner}-{fault.lasting}-{at}"
                steps = one_journal(
                    folder, Fault(at, fault.error, fault.manner, fault.lasting), begun, expected, result
                )
                at += every
    return result


def one_journal(folder: Path, fault: Fault, begun: int, expected: bytes, result: Result) -> int:
    """Let one step of a run fail, then let it go on; give how many steps there were."""
    folder.mkdir()
    if begun:
        assert asked(folder, NONE, rows=begun).code == 0
    ended = asked(folder, fault)
    if not ended.met and ended.code != HUNG:
        return ended.steps
    name = f"journal, {'resumed' if begun else 'fresh'}: {describe(fault)}: {ended.met}"
    result.take(name, ended)
    again = asked(folder, NONE)
    if again.code:
        result.different.append(f"{name}: cannot be resumed: {again.code} {again.said}")
    elif (folder.parent / f"{folder.name}.answers").read_bytes() != expected:
        result.different.append(name)
    return 10**9


def describe(fault: Fault) -> str:
    """Name a fault."""
    return f"{errno.errorcode[fault.error]} {fault.manner}{' and ever after' if fault.lasting else ''} at {fault.at}"


def run_stages(recipe: Path, workdir: Path, fault: Fault) -> Ended:
    """Run a recipe on a disk that fails."""
    command = [sys.executable, "-m", "tests.faults.io_faults", "--fail", json.dumps(asdict(fault))]
    command += ["run", str(recipe), "--workdir", str(workdir), "--workers", "1"]
    workdir.mkdir(exist_ok=True)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            _, said = process.communicate(timeout=5 * LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            return Ended(HUNG, "", 0, "")
    *lines, last = said.splitlines() or [""]
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


def stage_faults(
    scratch: Path, *, recipe: Path, faults: int, seed: int, rounds: int, kinds: Sequence[Fault] = STAGE_FAULTS
) -> Result:
    """Run a recipe to its end several times, each time through faults at steps all along it."""
    result, chance, manners = Result(), random.Random(seed), cycle(kinds)
    steps = run_stages(recipe, scratch / "calm", NONE).steps
    expected = content(scratch / "calm")
    for number in range(rounds):
        workdir = scratch / f"round-{number}"
        for at in places(chance, steps, faults // rounds):
            kind = next(manners)
            fault = Fault(at, kind.error, kind.manner, kind.lasting)
            ended = run_stages(recipe, workdir, fault)
            if ended.met or ended.code == HUNG:
                result.take(f"stages: {describe(fault)}: {ended.met}", ended)
        ended = run_stages(recipe, workdir, NONE)
        if ended.code:
            result.different.append(f"round {number}: cannot be resumed: {ended.code} {ended.said[-600:]}")
        else:
            result.different += differences(expected, content(workdir), f"round {number}")
    return result


def places(chance: random.Random, steps: int, count: int) -> Iterator[int]:
    """Draw steps so that the faults of a round lie all along a run: each run begins where the last one stopped."""
    for _ in range(count):
        yield 1 + int(chance.expovariate(count / steps))


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=5, help="let every n-th step of the journal fail")
    parser.add_argument("--stages", type=int, default=120, help="faults along the small recipe")
    parser.add_argument("--rounds", type=int, default=8, help="runs of the recipe that these are spread over")
    parser.add_argument("--recipe", type=Path, default=SMALL)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fail", help=argparse.SUPPRESS)
    arguments, command = parser.parse_known_args()
    if arguments.fail:
        fail_and_run(Fault(**json.loads(arguments.fail)), command)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        results = [journal_faults(made(folder, "journal"), every=arguments.every)]
        if arguments.stages:
            stages = made(folder, "stages")
            some = {"faults": arguments.stages, "seed": arguments.seed, "rounds": arguments.rounds}
            results.append(stage_faults(stages, recipe=arguments.recipe, **some))
    for name, result in zip(("journal", "stages"), results, strict=False):
        sys.stdout.write(report(name, result))
    return int(any(result.hung or result.wrong or result.different for result in results))


def made(folder: str, name: str) -> Path:
    """Make a folder."""
    path = Path(folder).resolve() / name
    path.mkdir()
    return path


def report(name: str, result: Result) -> str:
    """Write what came of it."""
    codes = ", ".join(f"{count} with {code}" for code, count in sorted(result.codes.items()))
    lines = [f"{name}: {result.faults} faults; runs ended: {codes or 'none'}"]
    lines += [f"HUNG {each}" for each in result.hung] + [f"WRONG {each}" for each in result.wrong]
    lines += [f"DIFFERENT {each}" for each in result.different]
    lines.append(f"{len(result.hung)} hung, {len(result.wrong)} wrong, {len(result.different)} different")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
