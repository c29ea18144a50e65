import inspect
import re
import shlex
from collections.abc import Iterator
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


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_has_help_and_an_example_that_parses(name: str) -> None:
    command = COMMANDS[name]
    assert command.help
    assert command.help.strip().endswith(".") or command.help.strip().endswith("?")
    assert (command.epilog or "").startswith(f"Example: culturekit {name}")
    words = shlex.split(command.epilog.removeprefix("Example: "))[1 + len(name.split()) :]
    if ">" in words:
        words = words[: words.index(">")]
    command.make_context(name, list(words), resilient_parsing=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help_and_every_command_speaks_json(name: str) -> None:
    options = {option: parameter for parameter in COMMANDS[name].params for option in parameter.opts}
    assert "--json" in options
    for option, parameter in options.items():
        if option.startswith("-") and option != "--help":
            assert parameter.help and "...." not in parameter.help, option


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_spends_or_plans_money_takes_prices_and_goes_on(name: str) -> None:
    options = {option for parameter in COMMANDS[name].params for option in parameter.opts}
    if "--budget" in options or name in {"run", "plan", "demo", "kg preview"}:
        assert {"--prices", "--go-on"} <= options


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_mentioned_in_the_docs_outside_the_generated_page(name: str) -> None:
    pages = [path for path in DOCS.rglob("*.md") if path.name != "commands.md"]
    pages.append(DOCS.parent / "README.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert f"culturekit {name}" in text


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


@pytest.mark.parametrize("name", COMMANDS)
def test_the_first_sentence_of_a_command_is_short(name: str) -> None:
    first = COMMANDS[name].help.strip().partition("\n")[0]
    assert len(re.split(r"(?<=[.?])\s", first)[0]) <= 60


def test_commands_print_only_in_the_command_line_package() -> None:
    package = Path(inspect.getfile(run_commands)).parents[1]
    printing = [
        path
        for path in package.rglob("*.py")
        if "cli" not in path.relative_to(package).parts
        and re.search(r"(?<![\w.])print\(", path.read_text(encoding="utf-8"))
    ]
    assert printing == []
