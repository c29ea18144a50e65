"""The command line as a whole: help, options, completions, failures, progress, keys that nobody repeats."""

import inspect
import io
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import polars as pl
import pytest
import typer
import typer.main
from pydantic import Field
from rich.console import Console
from typer.main import get_command
from typer.testing import CliRunner

from culturekit import cli
from culturekit.cli import app as commands
from culturekit.cli import run_commands
from culturekit.cli.app import StderrLines, app
from culturekit.cli.app import app as culturekit_app
from culturekit.cli.lazy import as_function, described_at
from culturekit.cli.options import complete_metric, complete_recipe, spec_completer
from culturekit.cli.showing import LINE_SECONDS, QUIET_SECONDS, BarProgress, LineProgress, progress_for
from culturekit.core.declared import Typed
from culturekit.core.errors import UsageError
from culturekit.core.stage import hold
from tests.command_line import culturekit
from tests.conftest import SMALL


@cache
def all_commands() -> Mapping[str, Any]:
    """Give every command by its full name, such as `kg ingest`."""
    return dict(walk(typer.main.get_command(app), ()))


def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from walk(below, (*path, name))
    else:
        yield " ".join(path), command


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


RECORD = logging.LogRecord("culturekit", logging.WARNING, "", 0, "%s: server does not answer", ("m",), None)


def test_what_is_logged_is_a_line_that_people_or_machines_read(capsys: pytest.CaptureFixture[str]) -> None:
    StderrLines(as_json=False).emit(RECORD)
    assert capsys.readouterr() == ("", "WARNING: m: server does not answer\n")
    StderrLines(as_json=True).emit(RECORD)
    assert json.loads(capsys.readouterr().err) == {"level": "warning", "said": "m: server does not answer"}


def test_the_set_up_of_logging_leaves_the_form_alone() -> None:
    logger, lines = logging.getLogger(), StderrLines(as_json=False)
    before = logger.handlers[:]
    try:
        logging.basicConfig(handlers=[lines], force=True)
        assert lines.format(RECORD) == RECORD.getMessage()
    finally:
        logger.handlers[:] = before


class PanicException(BaseException):
    """As polars raises it."""


@pytest.mark.parametrize(("raised", "code", "words"), [
    (OSError(28, "No space left on device", "/tmp/x"), 3, "/tmp/x: the system refused: No space left on device"),
    (OSError("without a number"), 3, "OSError: without a number"),
    (TimeoutError("nobody is there"), 3, "TimeoutError: nobody is there"),
    (pl.exceptions.ComputeError("Input/output error (os error 5)"), 3, "Input/output error"),
    (PanicException("No space left on device (os error 28)"), 3, "No space left on device"),
    (PanicException("index out of bounds"), 4, "a Parquet file is damaged"),
    (ValueError("ours"), 70, "a mistake in culturekit"),
])  # fmt: skip
def test_the_outside_is_3_a_file_4_and_we_are_70(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], raised: BaseException, code: int, words: str
) -> None:
    def failing(**_: object) -> None:
        raise raised

    monkeypatch.setattr(commands, "app", failing)
    with pytest.raises(SystemExit) as left:
        cli.main()
    printed = capsys.readouterr().err
    assert left.value.code == code
    assert words in printed
    assert ("Traceback" in printed) == (code == 70)


def test_data_is_utf8_whatever_the_terminal_is() -> None:
    code = (
        "from culturekit.cli import app; app.app = lambda **_: print('Paçoca'); from culturekit.cli import main; main()"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, env={"PYTHONIOENCODING": "ascii"}, check=True
    )
    assert answer.stdout.decode("utf-8") == "Paçoca\n"


def test_several_values_follow_one_set() -> None:
    words = [
        "run", "c3", "--set", "seed=1", "pairs.keep=2", "--out", "here", "d=3", "--set", "models.0.name=x", "a=[1]",
    ]  # fmt: skip
    assert " ".join(cli.spelled_out(words)) == (
        "run c3 --set seed=1 --set pairs.keep=2 --out here d=3 --set models.0.name=x --set a=[1]"
    )
    assert [*cli.spelled_out(["--set"])] == ["--set"]


@dataclass(frozen=True, slots=True)
class Colours:
    names: Annotated[tuple[str, ...], Field(description="Words."), Typed(once=True)] = ("red", "blue")
    share: Annotated[float, Field(gt=0, lt=1, description="A part of one.")] = 0.5
    depth: Annotated[int, Field(ge=1, description="Not asked for.")] = 3


@dataclass(frozen=True, slots=True)
class Wall:
    colours: Annotated[Colours, Typed(only=("names", "share"))]
    height: Annotated[int, Field(description="In bricks.")] = 7
    pattern: Annotated[str | None, Field(description="How bricks lie."), Typed(needs="names=green share")] = None


painted: list[Wall] = []


def paint(wall: Wall) -> None:
    """Paint a wall."""
    painted.append(wall)


def typed(*words: str) -> tuple[int, str]:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(as_function(paint, "")[0])
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


@pytest.mark.parametrize(("words", "wall"), [
    ((), Wall(Colours())), (("--names", "green", "--height", "2"), Wall(Colours(("green",)), 2)),
    (("--names", "green, white", "--share", "0.25"), Wall(Colours(("green", "white"), 0.25))),
    (("--names", ""), Wall(Colours(()))),
    (("--names", "white,green", "--pattern", "across"), Wall(Colours(("white", "green")), pattern="across")),
    (("--share", "0.25", "--pattern", "across"), Wall(Colours(share=0.25), pattern="across")),
])  # fmt: skip
def test_a_command_by_hand_takes_a_dataclass(words: tuple[str, ...], wall: Wall) -> None:
    painted.clear()
    assert typed(*words) == (0, "")
    assert painted == [wall]


def test_a_part_gives_the_options_that_it_names_with_their_ranges() -> None:
    code, shown = typed("--help")
    assert code == 0
    assert "--names" in shown
    assert "default: red,blue" in shown
    assert "0<=x<=1" in shown
    assert "--depth" not in shown
    assert typed("--depth", "4")[0] == 2
    assert typed("--share", "1.5")[0] == 2


IDLE = {
    "score qvs --matches m --prompts p": "--prompts; expected --within country",
    "score realism --real r --fake f --splits 5": "--splits; expected --probs",
    "score questions --images i --quality q --by country --scheme cultivate": "--scheme; expected --by region or",
    "score task1 --task1 t --k 3": "--k; expected --real",
    "index build --cspace c --encoder embedded --prompts p": "--prompts; expected --references",
    "index map --index x --images i --adjust csls --bank b --temperature 1": "--temperature; expected --adjust",
    "cspace complete --kept k --roots cuisine --llm rules --drops d": "--drops; expected --candidates",
    "cspace complete --kept k --roots cuisine --llm rules --beside f": "--beside; expected --budget",
    "select export --selected s --captions c --images i --per-shard 9": "--per-shard; expected --format",
    "annotate export audit --images i --gold-per-sheet 20": "--gold-per-sheet; expected --gold",
    "prompts build neutral --term food.n.02": "--term; expected --wordnet",
}


@pytest.mark.parametrize("words", IDLE)
def test_an_option_that_has_no_effect_is_refused(words: str) -> None:
    refused = CliRunner().invoke(culturekit_app, [*words.split(), "--out", "nowhere"])
    assert isinstance(refused.exception, UsageError), refused.output
    assert IDLE[words].replace(";", " has no effect alone;") in str(refused.exception)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with recipes in it, and in a folder of it."""
    for name in ("evaluation.yaml", "cuisine.yml", "notes.txt", "deeper/other.yaml", ".hidden.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_recipes_are_offered_by_name_and_by_path(here: Path) -> None:
    assert complete_recipe("cu") == ["cube", "cube-release", "cultivate", "cuisine.yml"]
    assert complete_recipe("") == [
        "c3", "cube", "cube-release", "cultivate", "inclusion", "linguistic", "cuisine.yml", "deeper/",
        "evaluation.yaml",
    ]  # fmt: skip
    assert complete_recipe("deeper/") == ["deeper/other.yaml"]
    assert complete_recipe(f"{here}/ev") == [f"{here}/evaluation.yaml"]
    assert complete_recipe("nowhere/") == []


def test_specs_and_metrics_are_offered() -> None:
    assert complete_metric("frech") == ["frechet_distance"]
    assert spec_completer("culturekit.index.encoder:ENCODERS")("e") == ["embedded"]
    assert "simulated" in spec_completer("culturekit.generation.backend:BACKENDS")("")
    assert spec_completer("culturekit.index.raters.quality:SCORERS")("hps") == ["hpsv2"]


TYPED = "culturekit run ev"
WORDS = {
    "bash": {"COMP_WORDS": TYPED, "COMP_CWORD": "2"}, "zsh": {"_TYPER_COMPLETE_ARGS": TYPED},
    "fish": {"_TYPER_COMPLETE_ARGS": TYPED, "_TYPER_COMPLETE_FISH_ACTION": "get-args"},
}  # fmt: skip


@pytest.mark.endtoend
@pytest.mark.parametrize("shell", WORDS)
def test_each_shell_is_answered(shell: str, here: Path) -> None:
    environment = {**os.environ, "_CULTUREKIT_COMPLETE": f"complete_{shell}", **WORDS[shell]}
    command = [sys.executable, "-m", "culturekit"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=here, env=environment, timeout=600)
    assert "evaluation.yaml" in done.stdout, done.stderr
    assert "notes.txt" not in done.stdout


def test_a_recipe_that_is_not_there_is_answered_with_the_nearest(here: Path) -> None:
    done = culturekit("run", "evalution.yaml", cwd=here, ends=2)
    assert (
        "there is no such recipe; expected a YAML file, or one of: c3, cube, cube-release, cultivate, inclusion, "
        "linguistic. "
        "Did you mean 'evaluation.yaml'?" in done.stderr
    )
    assert "Did you mean 'cube'?" in culturekit("plan", "cub", cwd=here).stderr
    assert "Did you mean frechet_distance" in culturekit("metrics", "show", "frechet").stderr


CANARY = "c4n4ry7f3a9d21b"


@pytest.mark.parametrize("spec", [
    f"openai:m?api_key={CANARY}", f"openai:m?api_key=sk-{CANARY}{CANARY}",
    f"openai:m?base_url=http://jane:{CANARY}@127.0.0.1:1/v1", f"openai:sk-{CANARY}{CANARY}", f"rules?password={CANARY}",
    f"?api_key={CANARY}", f"openai:m?api_key:{CANARY}=",
])  # fmt: skip
def test_a_spec_with_a_key_ends_with_2_and_without_an_echo(spec: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(SMALL.read_text(encoding="utf-8"), encoding="utf-8")
    words = ("-v", "run", recipe, "--set", f"judge={spec}", "--workdir", out)
    done = culturekit(*words, env={"OPENAI_API_KEY": CANARY}, ends=2)
    assert "a key is written out here" in done.stderr
    assert CANARY not in done.stdout + done.stderr
    written = [path for path in tmp_path.rglob("*") if path.is_file() and CANARY in path.read_text(errors="replace")]
    assert written == []


def test_the_command_of_a_lock_shows_no_key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "argv", ["/bin/culturekit", "run", "--llm", f"openai:m?api_key={CANARY}"])
    with hold(tmp_path / "lock"):
        assert '"culturekit run --llm openai:m?api_key=[key]"' in (tmp_path / "lock").read_text()


SPENT = "$0.0386, 1,234 tokens/s, 16 at once, held for 12 s"


@dataclass
class Clock:
    now: float = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("width", range(60, 201, 7))
@pytest.mark.parametrize("name", ["filter", "vqascore-a-model-with-a-long-name-of-its-own-that-goes-on-and-on"])
def test_count_money_and_time_stay_on_a_line_of_any_width(width: int, name: str) -> None:
    clock = Clock()
    progress = BarProgress(Console(file=io.StringIO(), width=width), clock=clock)
    progress.stage(name)
    progress.begin(300_184, "candidates to be asked about")
    progress.tell(SPENT)
    progress.advance(120_012)
    clock.now += 3600.0
    line = progress.line(width)
    assert len(line) <= width
    for part in ("120,012/300,184", "$0.0386", "90 min left"):
        assert part in line
    wide = progress.line(200)
    assert all(part in wide for part in ("candidates", "33/s", "1,234 tokens/s", "16 at once"))


def test_a_terminal_shows_one_line_that_it_can_hold() -> None:
    held = io.StringIO()
    with BarProgress(Console(file=held, width=80, force_terminal=True)) as progress:
        progress.stage("filter")
        progress.begin(184, "candidates")
        progress.tell(SPENT)
        progress.advance(12)
    shown = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in held.getvalue().splitlines()]
    assert any("12/184" in line and "$0.0386" in line for line in shown)
    assert max(map(len, "\n".join(shown).replace("\r", "\n").splitlines())) <= 80


def test_a_log_hears_of_a_stage_that_counts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = LineProgress(as_json=False, clock=clock)
    progress.stage("complete")
    clock.now += QUIET_SECONDS - 1
    progress.speak_after(QUIET_SECONDS)
    assert capsys.readouterr().err == ""
    clock.now += 1
    progress.speak_after(QUIET_SECONDS)
    assert capsys.readouterr().err == "complete: at work for 30 s\n"
    progress.begin(8, "questions of round 1")
    clock.now += LINE_SECONDS
    progress.tell("$0.0100, 5 tokens/s")
    assert capsys.readouterr().err == "complete: 0 of 8 questions of round 1, after 5 s; $0.0100, 5 tokens/s\n"
    progress.advance(1)
    clock.now += 55
    progress.speak_after(QUIET_SECONDS)
    printed = capsys.readouterr().err
    assert printed == "complete: 1 of 8 questions of round 1, 1/min, 7 min left; $0.0100, 5 tokens/s\n"


def test_nothing_is_foretold_from_the_first_of_many_units() -> None:
    """A site of 4,112 thumbnails said that 2.2 hours were left while its processes began; it took 47 seconds."""
    progress = LineProgress(as_json=False, clock=Clock())
    progress.begin(4112, "thumbnails")
    progress.done = 1
    assert progress.line(2.0) == ": 1 of 4,112 thumbnails"
    assert progress.line(7.0) == ": 1 of 4,112 thumbnails, after 7 s"
    progress.done = 10
    assert progress.line(2.0).endswith("left")


def test_lines_for_machines_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    progress = LineProgress(as_json=True, clock=clock)
    progress.stage("filter")
    progress.begin(184, "candidates")
    clock.now += LINE_SECONDS
    progress.tell(SPENT)
    state = json.loads(capsys.readouterr().err)
    assert (state["done"], state["total"], state["found"], state["seconds_left"]) == (0, 184, SPENT, None)


def test_outside_a_terminal_something_looks_after_the_silence() -> None:
    with progress_for(as_json=False) as progress:
        assert isinstance(progress, LineProgress)
        assert progress.beating.is_alive()
    assert not progress.beating.is_alive()
