"""A copy of the tree in which one mutant at a time stands, and the tests that are run there."""

import math
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import numpy as np
import polars as pl
import pydantic
import pytest
import scipy.stats
from mutants import Mutant

__all__ = ["KILLED", "OTHER", "SURVIVED", "TREE", "Copy"]

READY = (np, pl, pydantic, scipy.stats)
"""Imported once for all runs of tests, which are forked from here; culturekit is imported in each."""

TREE = Path(__file__).resolve().parent.parent
ALL = "not external and not gpu and not real and not labelstudio"
"""Marks of the tests that survivors meet: every one that needs nothing beyond this machine."""

LEAST_SECONDS = 30
"""Added to the limit of tests, which is otherwise three times what they take without a mutant."""

MEMORY = 12 * 2**30
"""Bytes of address space that tests of a mutant may take."""

KILLED, OTHER, SURVIVED = "killed", "killed by other tests", "survived"


@dataclass(slots=True)
class Copy:
    """A copy of the tree in which one file at a time is wrong."""

    folder: Path
    seconds: dict[tuple[str, ...], float] = field(default_factory=dict)
    """How long tests take without a mutant."""

    def __post_init__(self) -> None:
        """Copy what git would; bytecode is compared with its source, since a mutant may be as long and as young."""
        listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        for name in subprocess.run(listed, cwd=TREE, capture_output=True, check=True).stdout.decode().split("\0"):
            if name and (TREE / name).is_file():
                (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(TREE / name, self.folder / name)
        compiled = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "culturekit"]
        subprocess.run([sys.executable, *compiled], cwd=self.folder, check=True)

    def passes(self, tests: Sequence[str], limit: float = math.inf) -> bool:
        """Run tests; False where one fails, or the limit comes first."""
        kept = tempfile.mkdtemp(dir=self.folder.parent)
        ends, child = time.monotonic() + limit, os.fork()
        if child == 0:
            self.run_tests([*tests, "-x", "-q", "-p", "no:cacheprovider", "--basetemp", kept])
        while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < ends:
            time.sleep(0.05)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)
        if ended == (0, 0):
            os.waitpid(child, 0)
        shutil.rmtree(kept, ignore_errors=True)
        return ended[0] != 0 and os.waitstatus_to_exitcode(ended[1]) == 0

    def namesakes(self, mutant: Mutant, tests: Sequence[str]) -> list[str]:
        """Give the files among tests that are named for the module of a mutant, to be run before others."""
        found = [path for name in tests for path in (self.folder / name).rglob(f"test_{Path(mutant.path).stem}.py")]
        return [path.relative_to(self.folder).as_posix() for path in found]

    def run_tests(self, arguments: list[str]) -> NoReturn:
        """Be the process that runs tests in the copy, and end."""
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        os.chdir(self.folder)
        sys.path[0] = str(self.folder)
        os.environ |= {"PYTHONPATH": str(self.folder), "OMP_NUM_THREADS": "1"}
        silent = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silent, stream)
        try:
            os._exit(pytest.main(arguments))
        finally:
            os._exit(1)

    def prepare(self, tests: Sequence[str]) -> None:
        """Make sure that tests pass without a mutant, and learn how long they take."""
        if tuple(tests) not in self.seconds:
            began = time.monotonic()
            if not self.passes(tests):
                raise SystemExit(f"fails without any mutant: {' '.join(tests)}")
            self.seconds[tuple(tests)] = time.monotonic() - began

    def outcome(self, mutant: Mutant, near: Sequence[str], tests: Sequence[str]) -> str:
        """Say what notices a mutant: the nearest tests, else all of its area, where there are any."""
        self.prepare(near)
        if self.with_mutant(mutant, near, first=self.namesakes(mutant, near)):
            return KILLED
        if not tests:
            return SURVIVED
        whole = (*dict.fromkeys((*near, *tests)), "-m", ALL)
        self.prepare(whole)
        return OTHER if self.with_mutant(mutant, whole) else SURVIVED

    def with_mutant(self, mutant: Mutant, tests: Sequence[str], *, first: Sequence[str] = ()) -> bool:
        """Say whether tests notice a mutant; afterwards its file is right again."""
        path = self.folder / mutant.path
        right = path.read_bytes()
        path.write_text(mutant.text, encoding="utf-8")
        try:
            return not self.passes((*first, *tests), LEAST_SECONDS + 3 * self.seconds[tuple(tests)])
        finally:
            path.write_bytes(right)
