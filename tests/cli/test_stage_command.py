"""What a dataclass declares, as it is typed: fields of a part of it, words with commas, ranges, and by hand."""

from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from pydantic import Field
from typer.testing import CliRunner

from culturekit.cli.lazy import as_function
from culturekit.stages.stage_command import Typed


@dataclass(frozen=True, slots=True)
class Colours:
    names: Annotated[tuple[str, ...], Field(description="Words."), Typed(once=True)] = ("red", "blue")
    share: Annotated[float, Field(gt=0, lt=1, description="A part of one.")] = 0.5
    depth: Annotated[int, Field(ge=1, description="Not asked for.")] = 3


@dataclass(frozen=True, slots=True)
class Wall:
    colours: Annotated[Colours, Typed(only=("names", "share"))]
    height: Annotated[int, Field(description="In bricks.")] = 7


painted: list[Wall] = []


def paint(wall: Wall) -> None:
    """Paint a wall."""
    painted.append(wall)


def typed(*words: str) -> tuple[int, str]:
    app = typer.Typer(rich_markup_mode=None)
    app.command()(as_function(paint, "")[0])
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


@pytest.mark.parametrize(
    ("words", "wall"),
    [
        ((), Wall(Colours())),
        (("--names", "green", "--height", "2"), Wall(Colours(("green",)), 2)),
        (("--names", "green, white", "--share", "0.25"), Wall(Colours(("green", "white"), 0.25))),
        (("--names", ""), Wall(Colours(()))),
    ],
)
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
