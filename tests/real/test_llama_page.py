"""A real llama.cpp server with a real small model: the page about servers of one's own, typed line by line.

While the filter runs it is killed, interrupted, and robbed of its server; the completion is killed too.
"""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from culturekit.llm.ledger import journal_for
from tests.real.things import LLAMA, ROOT, Llama, block, needs, running_llama

LONGEST = 1800.0

pytestmark = needs(LLAMA)


@pytest.fixture
def llama(tmp_path: Path) -> Iterator[Llama]:
    """A server of this test's own, which it kills."""
    with running_llama(tmp_path) as server:
        yield server


class Typist:
    """Types lines of the page in a folder."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        lines = [line.removeprefix("$ ").replace("8080", str(port)) for line in block("console").splitlines()]
        self.lines = [line for line in lines if line.startswith("culturekit ")]
        exports = dict(re.findall(r'^export (\w+)="(.*)"$', "\n".join(lines), flags=re.MULTILINE))
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**os.environ, **exports, "PATH": path, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}

    def line(self, words: str) -> str:
        """Find the one line of a command."""
        (found,) = (line for line in self.lines if line.startswith(f"culturekit {words} "))
        return found

    def begin(self, words: str) -> "subprocess.Popen[str]":
        """Type a line, and do not wait for it; the shell gives way to the command, which then hears the signals."""
        return subprocess.Popen(
            ["bash", "-c", f"exec {self.line(words)}"], cwd=self.folder, env=self.environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def type(self, words: str, *codes: int) -> str:
        """Type a line, and give what it says."""
        process = self.begin(words)
        out, said = process.communicate(timeout=LONGEST)
        assert process.returncode in (codes or (0,)), f"{words}: {process.returncode}\n{said[-2000:]}"
        return out


def replies(out: Path) -> int:
    """Count the replies in the journal of a stage, while it is at work or afterwards."""
    return counted(out, "SELECT count(*) FROM replies WHERE kind = 'reply'")


def counted(out: Path, query: str) -> int:
    journal = journal_for(out)
    if journal is None:
        return 0
    try:
        with closing(sqlite3.connect(f"{journal.as_uri()}?mode=ro", uri=True, timeout=30)) as connection:
            return int(connection.execute(query).fetchone()[0])
    except sqlite3.OperationalError:  # it is being made
        return 0


def until(process: "subprocess.Popen[str]", reached: Callable[[], bool]) -> None:
    """Wait for something while a command is at work."""
    end = time.monotonic() + LONGEST
    while not reached():
        assert process.poll() is None, (process.returncode, process.communicate())
        assert time.monotonic() < end
        time.sleep(0.05)


def more_than(out: Path, count: int) -> Callable[[], bool]:
    return lambda: replies(out) > count


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Wait for a command, and give how it ended and what it said."""
    _, said = process.communicate(timeout=LONGEST)
    return process.returncode, said


def test_the_page_is_typed_through_kills_ctrl_c_and_a_server_that_dies(llama: Llama, tmp_path: Path) -> None:
    typist = Typist(tmp_path, llama.port)
    kept, completion = tmp_path / "kept", tmp_path / "completion"
    (tmp_path / "art.yaml").write_text(block("yaml"), encoding="utf-8")
    typist.type("run cube")
    typist.type("kg extract")

    at_work = typist.begin("cspace filter")
    until(at_work, more_than(kept, 1))
    at_work.kill()
    assert ended(at_work)[0] == -signal.SIGKILL
    bought = replies(kept)

    at_work = typist.begin("cspace filter")
    until(at_work, more_than(kept, bought))
    at_work.send_signal(signal.SIGINT)
    code, said = ended(at_work)
    assert code == 130, said
    assert "goes on from there" in said
    bought = replies(kept)

    at_work = typist.begin("cspace filter")
    until(at_work, more_than(kept, bought))
    llama.kill()
    llama.start()
    code, said = ended(at_work)
    assert code in (0, 1), said
    assert counted(kept, "SELECT count(*) FROM (SELECT 1 FROM replies WHERE kind = 'reply' GROUP BY request "
                         "HAVING count(*) > 1)") == 0  # fmt: skip
    rows = pl.read_parquet(kept / "kept.parquet").height + pl.read_parquet(kept / "drops.parquet").height
    assert rows == pl.read_parquet(tmp_path / "candidates/candidates.parquet").height

    at_work = typist.begin("cspace complete")
    until(at_work, more_than(completion, 0))
    at_work.kill()
    assert ended(at_work)[0] == -signal.SIGKILL
    typist.type("cspace complete", 0, 1)
    (ending,) = pl.read_parquet(completion / "rounds.parquet")["outcome"].unique()
    assert ending in {"ok", "repaired"}, "the reply of a cell was cut off or of no use"

    typist.type("cspace release", 0, 1)
    space = pl.read_parquet(tmp_path / "cspace/cspace.parquet")
    assert set(space["country"]) <= {"JP"}
    assert "asked" in typist.type("llm log")
    assert "0.000000" in typist.type("llm cost")
