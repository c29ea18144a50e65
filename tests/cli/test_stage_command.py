"""What a dataclass declares, as it is typed: fields of a part of it, words with commas, ranges, and by hand."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from culturekit.cli.app import app as culturekit_app
from culturekit.cli.lazy import as_function
from culturekit.core.declared import Typed
from culturekit.core.errors import UsageError


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


@pytest.mark.parametrize("words", [("--names", "white,green"), ("--share", "0.25")])
def test_an_option_is_looked_at_beside_one_that_it_needs(words: tuple[str, ...]) -> None:
    painted.clear()
    assert typed(*words, "--pattern", "across") == (0, "")
    assert painted[0].pattern == "across"


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
