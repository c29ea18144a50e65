"""A family that a recipe names: its options are checked, and what it reads is found by the names of its fields."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, replace
from pathlib import Path
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError, create_model

from culturekit.core.declared import Declared, declared, inputs_of, is_group, options_among, settings_of
from culturekit.core.errors import UsageError
from culturekit.core.inputs import Files
from culturekit.core.stage import Stage
from culturekit.scores.family import Family, Scores
from culturekit.scores.listing import family_named

# The fields that a family in a recipe can read: tables of all models, the prompts, the values behind the scores.
# Judgments are those of `tags` and `faithfulness`.
TABLES_OF_A_RUN = ("images", "judgments", "matches", "prompts", "quality", "values")


def check_named(name: str, stated: Mapping[str, Any]) -> None:
    """Make sure that a recipe can name a family, with these options."""
    family = family_named(name)
    reads = [each for each in inputs_of(family.stage) if each.help]
    lacking = [each.name for each in reads if each.default is MISSING and each.name not in TABLES_OF_A_RUN]
    if not family.metrics or lacking or not any(each.name in TABLES_OF_A_RUN for each in reads):
        raise UsageError(
            f"{name} cannot be scored in a recipe", found=f"it reads {', '.join(each.name for each in reads)}",
            expected=f"a metric that reads {' or '.join(TABLES_OF_A_RUN)}",
            hint=f"Run it by itself: culturekit score {name}",
        )  # fmt: skip
    options = options_of(family, stated)
    try:
        inputs = as_inputs(
            family.stage, read_from(name, reads, {key: {"model": Path("model")} for key in TABLES_OF_A_RUN})
        )
        if isinstance(family, Scores):  # its function is not called, only what refuses inputs that say nothing together
            family.stage(**inputs, **options)
    except UsageError as error:
        raise UsageError(
            f"{name} cannot be scored in a recipe: {error}", hint=f"Run it by itself: culturekit score {name}"
        ) from error


def options_of(family: Family, stated: Mapping[str, Any]) -> dict[str, Any]:
    """Make the options of a family of what a recipe states."""
    known = sorted(each.name for each in options_among(settings_of(family.stage)))
    strange = sorted(set(stated) - set(known))
    if strange:
        raise UsageError(
            "there is no such option", found=", ".join(strange), expected=" or ".join(dict.fromkeys(known)) or "none"
        )
    try:
        return settings_made(family.stage, stated)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
        raise UsageError("an option is wrong", found=problems) from error


def settings_made(stage: Callable[..., Any], stated: Mapping[str, Any]) -> dict[str, Any]:
    """Make what a stage takes besides its inputs of what is stated."""
    settings = settings_of(stage)
    groups = {each.name: options_made(each.kind, stated, each.default) for each in settings if is_group(each)}
    names = [each.name for each in settings if each.help and each.name in stated and each.name not in groups]
    hints = get_type_hints(stage, include_extras=True)
    kinds: dict[str, Any] = {name: (hints[name], ...) for name in names}
    validated = create_model(stage.__name__, __config__={"arbitrary_types_allowed": True}, **kinds)(
        **{name: stated[name] for name in names}
    )
    return {**{name: getattr(validated, name) for name in names}, **groups}


def options_made(cls: Any, stated: Mapping[str, Any], default: Any = MISSING) -> Any:  # noqa: ANN401 - any dataclass
    """Make a dataclass of what is stated, its groups too; a group keeps what its default says of the rest."""
    given = {each.name: stated[each.name] for each in declared(cls) if each.help and each.name in stated}
    groups = {each.name: options_made(each.kind, stated, each.default) for each in declared(cls) if is_group(each)}
    options = TypeAdapter(cls).validate_python({**given, **groups})
    return (
        options
        if default is MISSING
        else replace(default, **{name: getattr(options, name) for name in given}, **groups)
    )


def as_inputs(stage: Callable[..., Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Give inputs as a stage takes them: each by its name, or in the dataclass that is the first thing it takes."""
    first = next(declared(stage))
    return {first.name: first.kind(**inputs)} if is_group(first) else dict(inputs)


def bound_stage(name: str, stated: Mapping[str, Any], tables: Mapping[str, Mapping[str, Path]], *, seed: int) -> Stage:
    """Make the stage of a family in a run.

    Options are as the recipe has them; a seed that it does not state is that of the recipe.
    """
    stage = family_named(name).stage
    seeded = any(each.name == "seed" for each in options_among(settings_of(stage)))
    options = options_of(family_named(name), {**({"seed": seed} if seeded else {}), **stated})
    lacking = [each.name for each in inputs_of(stage) if each.default is MISSING and not tables.get(each.name)]
    if lacking:
        raise UsageError(
            f"metrics.{name} reads what this recipe does not ask for", found=" and ".join(lacking),
            hint="Judgments come of `tags`, or of `faithfulness` with answers or vqascore.",
        )  # fmt: skip
    return stage(**as_inputs(stage, read_from(name, inputs_of(stage), tables)), **options)


def read_from(name: str, reads: Iterable[Declared], tables: Mapping[str, Mapping[str, Path]]) -> dict[str, object]:
    """Give what a family reads of a run, by the names of its inputs."""
    return {each.name: value_of(name, each, tables[each.name]) for each in reads if tables.get(each.name)}


def value_of(name: str, each: Declared, files: Mapping[str, Path]) -> object:
    """Give files as a field takes them: as a handle of several, or one path."""
    if isinstance(each.kind, type) and issubclass(each.kind, Files):
        return each.kind(files)
    if each.kind is Path and len(files) == 1:
        return next(iter(files.values()))
    raise UsageError(
        f"{name} reads one table as {each.name}", expected="one model", found=f"{len(files)}: {', '.join(files)}",
        hint=f"Run it model by model: culturekit score {name}",
    )  # fmt: skip
