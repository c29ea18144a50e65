"""A stage with a command of its own, and how the fields that it takes are typed as options of that command."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import Field

from culturekit.core.choices import SEED
from culturekit.core.stage import Stage

Seed: TypeAlias = Annotated[int, Field(ge=0, description=SEED)]


@dataclass(frozen=True, slots=True)
class StageCommand:
    """A stage, as the command line finds it: the command is made of what the function of the stage takes.

    Attributes:
        stage: takes what is read, and options where there are some, all dataclasses, and gives the stage.
        example: what follows the command in an example that works.
        workers: whether its work is divided among processes.
        engine: whether these may be those of a cluster.
        also: whether its tables may be written in other forms too.
    """

    stage: Callable[..., Stage]
    example: str
    workers: bool = False
    engine: bool = False
    also: bool = True


@dataclass(frozen=True, slots=True)
class AskingCommand(StageCommand):
    """A stage that asks a model; its function takes how answers are bought last.

    Attributes:
        plan: what help says of planning it.
        pilot: what help says of trying it; empty where it cannot be tried.
        again: what it does once more with `--fresh`.
    """

    plan: str = "Say what it would ask and cost; nothing is sent."
    pilot: str = ""
    again: str = "Ask"


@dataclass(frozen=True, slots=True)
class Typed:
    """How a field is typed as an option, where that is not how it is written in Python or in a recipe.

    Attributes:
        name: of the option.
        read: reads one value of it from a text.
        gather: makes one value of all that a repeatable option is given.
        help: of the option, where it is typed otherwise than a recipe writes it.
        once: whether an option that is several files in a recipe is typed once; several words have commas between.
        others: a field that takes the second and all further values of an option that is repeatable.
        after: the option that it stands after in the help, where that is not the order of the fields.
        only: the fields of a dataclass within another that are options there, where not all are.
        offers: `module:NAME` of the registry whose names the shell offers.
        needs: options, with spaces between, of which one has to be typed, such as `gold` or `within=country`: nothing
            looks at this one without.
    """

    name: str = ""
    read: Callable[[str], Any] | None = None
    gather: Callable[[Sequence[str]], Any] | None = None
    help: str = ""
    once: bool = False
    others: str = ""
    after: str = ""
    only: tuple[str, ...] = ()
    offers: str = ""
    needs: str = ""


PLAIN = Typed()
