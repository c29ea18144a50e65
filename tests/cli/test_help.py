import inspect
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from culturekit.cli import run_commands
from culturekit.cli.app import app
from tests.cli.commands import all_commands
from tests.command_line import culturekit

COMMANDS = all_commands()
DOCS = Path(__file__).parents[2] / "docs"

# What this release promises; the other commands of the design are not registered before they work
CONTRACT = {
    "card init", "card build", "card check", "annotate aggregate", "annotate coded", "annotate coding-sheet",
    "annotate export", "annotate import", "annotate serve", "annotate status", "audit", "run", "plan", "demo", "trace",
    "report", "site", "publish", "generate", "kg ingest", "kg extract", "kg explain", "kg preview", "kg diff",
    "kg stats", "kg export", "kg import", "kg query", "kg entity", "roots validate", "roots init", "cspace filter",
    "cspace complete", "cspace release", "cspace review export", "cspace review import", "cspace settle",
    "cspace check sample", "cspace check score", "prompts build", "prompts build geographic", "triplets",
    "prompts build dialects", "prompts build neutral", "prompts dialects draft", "prompts build specific",
    "prompts wordnet", "index build", "index embed", "index map", "index diagnose", "cspace diff", "cspace import",
    "index shuffle", "score agreement", "score compare", "index append", "index remove", "index compact", "score gaps",
    "score meta", "score ahead", "score c3", "score qvs", "score distribution", "score audit-sample", "score audited",
    "score judged", "audit plan", "score ranks", "judge extract", "judge likert", "judge stereotypes",
    "references choose", "metrics list", "metrics show", "config recipe", "config schema", "score task1", "score task2",
    "score survey", "score tones", "score dialects", "score neutral", "score question-pairs", "score ratings",
    "score pairs", "score spread", "score within", "score realism", "score stability", "score clip", "score questions",
    "llm log", "llm cost", "llm prices", "llm prices update", "score routes", "judge", "tag", "questions build",
    "questions ask", "vqascore", "weights convert", "quality", "verify", "doctor", "plugins", "init", "finetune",
    "select", "select export", "references collect", "activities read", "activities extract", "activities merge",
    "activities prompts", "descriptors propose", "descriptors refine", "descriptors stereotypes", "descriptors import",
    "descriptors export", "captions expand", "captions sample", "captions stats", "captions translate",
    "captions objects",
}  # fmt: skip


def test_the_commands_are_the_promised_ones() -> None:
    assert set(COMMANDS) == CONTRACT


@cache
def pages() -> str:
    """All pages by hand, and what is generated but the list of commands."""
    found = [path for path in DOCS.rglob("*.md") if path.name != "commands.md"]
    return "\n".join(path.read_text(encoding="utf-8") for path in [*found, DOCS.parent / "README.md"])


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_explains_itself_speaks_json_and_is_in_the_docs(name: str) -> None:
    command = COMMANDS[name]
    text = command.help.strip()
    assert text.endswith((".", "?"))
    assert len(re.split(r"(?<=[.?])\s", text.partition("\n")[0])[0]) <= 60, "the first sentence is short"
    assert (command.epilog or "").startswith(f"Example: culturekit {name}")
    words = shlex.split(command.epilog.removeprefix("Example: "))[1 + len(name.split()) :]
    command.make_context(name, words[: words.index(">")] if ">" in words else words, resilient_parsing=False)
    options = {option: parameter for parameter in command.params for option in parameter.opts}
    for option, parameter in options.items():
        if option.startswith("-") and option != "--help":
            assert parameter.help and "...." not in parameter.help, option
    assert "--json" in options
    if "--budget" in options or name in {"run", "plan", "demo", "kg preview"}:
        assert {"--prices", "--go-on"} <= options.keys(), "what spends or plans money"
    assert f"culturekit {name}" in pages()


def groups(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Give what is typed before `--help` for each list of commands."""
    yield path
    for name, below in group.commands.items():
        if hasattr(below, "commands"):
            yield from groups(below, (*path, name))


@pytest.mark.parametrize("path", list(groups(typer.main.get_command(app))), ids=" ".join)
def test_a_list_says_each_command_in_full_on_100_columns(path: tuple[str, ...]) -> None:
    shown = culturekit(*path, "--help", env={"COLUMNS": "100"}, ends=0)
    listed = shown.stdout.partition("Commands:")[2].strip().splitlines()
    assert listed
    assert [line for line in listed if not line.endswith((".", "?")) or line.endswith("...")] == []


def test_commands_print_only_in_the_command_line_package() -> None:
    package = Path(inspect.getfile(run_commands)).parents[1]
    printing = [
        path
        for path in package.rglob("*.py")
        if "cli" not in path.relative_to(package).parts
        and re.search(r"(?<![\w.])print\(", path.read_text(encoding="utf-8"))
    ]
    assert printing == []
