import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from culturekit.cli.app import app
from culturekit.cli.lazy import described_at
from tests.command_line import culturekit

TWICE = {
    "a command": (("score", "audit-sample", "--matches", "a", "--out", "b", "--out", "c"), "--out"),
    "a command of a family": (("score", "spread", "--size", "4", "--size", "8"), "--size"),
    "a command of a group": (("prompts", "build", "cube", "--out", "a", "--cspace", "b", "--out", "c"), "--out"),
    "a short name and the long one": (("score", "audit-sample", "--n", "20", "--n=30"), "--n"),
    "an option before the command": (("--countries-file", "a", "--countries-file", "b", "doctor"), "--countries-file"),
    "an added option's neighbour": (("score", "qvs", "--replace", "--size", "4", "--size", "8"), "--size"),
}


@pytest.mark.parametrize("where", TWICE)
def test_an_option_of_one_value_that_stands_twice_is_refused(where: str) -> None:
    words, option = TWICE[where]
    done = culturekit(*words, ends=2)
    assert f"error: {option} is given 2 times, and only the last would count; expected it once" in done.stderr


def test_what_may_be_repeated_and_flags_are_taken(tmp_path: Path) -> None:
    done = culturekit(
        "score", "qvs", "--json", "--json", "--q", "1", "--q", "2", "--matches", tmp_path / "none", "--out", tmp_path
    )
    assert "given 2 times" not in done.stderr
    assert done.returncode == 2


def test_a_value_of_a_recipe_that_is_set_twice_is_refused() -> None:
    done = culturekit("plan", "cube", "--set", "seed=1", "--set", "scores.size=4", "--set", "seed=2", ends=2)
    assert "--set seed: set 2 times, and only the last would count" in done.stderr


def test_a_list_says_of_a_command_what_the_command_says_imported() -> None:
    groups: list[Any] = [get_command(app)]
    seen = 0
    while groups:
        commands = groups.pop().commands
        groups += [command for command in commands.values() if hasattr(command, "commands")]
        for name, found in getattr(commands, "table", {}).items():
            assert described_at(found.target) == commands[name].help, name
            seen += 1
    assert seen > 40


def test_a_list_of_scores_imports_no_table() -> None:
    script = "import sys; from culturekit.cli import main; sys.argv[1:] = ['score', '--help']; main()"
    script = f"import atexit, sys; atexit.register(lambda: print('polars' in sys.modules)); {script}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "spread" in done.stdout
    assert done.stdout.endswith("False\n")
