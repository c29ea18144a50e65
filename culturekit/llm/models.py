"""The models that culturekit knows by name, and how each is asked: data that stands in `models.yaml`."""

from collections.abc import Mapping
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from culturekit.core.package_data import shipped
from culturekit.core.yaml_source import StrictModel, load_model

Role: TypeAlias = Literal["text", "text-small", "text-google", "vision", "weighing", "image-openai", "image-google"]
_Provider: TypeAlias = Literal["openai", "google"]


def _calendar_day(text: str) -> str:
    try:
        date.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no day; expected YYYY-MM-DD") from None
    return text


Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$"), AfterValidator(_calendar_day)]


class Habits(StrictModel):
    """How the models that one line names are asked; `models.yaml` says what each word means."""

    names: tuple[str, ...] = ()
    thinks: bool = False
    stops_thinking: bool = False
    samples: bool = False
    efforts: tuple[str, ...] = ()
    weighs_unthinking: bool = False
    quality: str | None = None
    rewriter: Literal["on", "off", "unknown"] = "unknown"
    gone: bool = False


class Pictures(StrictModel):
    """What OpenAI bills for a picture as input, by model: a whole and each tile, or a factor on its patches."""

    usual: str
    tiles: Mapping[str, tuple[int, int]]
    patches: Mapping[str, float]


class Models(StrictModel):
    """The file as a whole."""

    checked: Day
    sources: tuple[str, ...]
    roles: Mapping[Role, str]
    published: Mapping[str, Mapping[str, tuple[str, ...]]]
    habits: Mapping[_Provider, tuple[Habits, ...]]
    pictures: Pictures


@cache
def known_models() -> Models:
    """Read the file."""
    return load_model(shipped("llm/models.yaml"), Models)


def model_for(role: Role) -> str:
    """Return the SPEC of a model that lives, for a role."""
    return known_models().roles[role]


def quoted(role: Role) -> str:
    """Write the SPEC of a role for a shell."""
    return f"'{model_for(role)}'"


def habits_of(model: str, provider: _Provider) -> Habits:
    """Find how a model is asked, by the beginning of its name; a fine-tuned one is asked as what it was made from."""
    name = model.removeprefix("models/").removeprefix("ft:")
    lines = known_models().habits[provider]
    return next((line for line in lines if any(fnmatchcase(name, f"{one}*") for one in line.names)), Habits())


def published_models(paper: str) -> Mapping[str, tuple[str, ...]]:
    """Return the SPECs that a paper published, by what each was asked for."""
    return known_models().published[paper]
