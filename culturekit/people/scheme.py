"""What annotators are asked, as data: a form whose parts fit together.

In a scheme, `pictures` names the pictures of an item, `drawn` those of them whose places on the screen are drawn.
`fields` are texts of an item, with the heading each is shown under; `shows` lists those that stand above all questions.
`region` names the field that makes an annotator at home in an item. What a scheme leaves open for the regions of a
study, options (`options_from: regions`) and questions (`each_region`), an export fills in: `of_regions`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped, shipped_names
from culturekit.core.yaml_source import StrictModel, load_model, not_empty
from culturekit.metrics.inclusion.region_rates import region_code

# A number from low to high; one or several of some options, or of the pictures shown; free text.
QuestionType: TypeAlias = Literal["scale", "choice", "choices", "picture", "pictures", "text"]
FIELD_MARK = re.compile(r"\$\w")

# Names that every task uses for itself.
RESERVED = frozenset({"task", "project", "note", "subject", *(f"picture_{number}" for number in range(1, 7))})
WIDEST_SCALE = 100

FOLDER = "people/schemes"

# The list of options that is the regions of a study, and what stands for each in a question.
REGIONS, REGION_MARK = "regions", "{region}"
# Keys that came later: a scheme without them keeps the name of its project, and so the answers that it has.
LATER = ("levels", "open", "each_region", "colour")


def plain_text(text: str) -> str:
    """Accept text that Label Studio takes as text: `$word` would be a field of the task."""
    if FIELD_MARK.search(text):
        raise ValueError("may not hold $ before a letter: Label Studio would put a field of the task there")
    return text


Name: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=60)]
Text: TypeAlias = Annotated[str, Field(min_length=1, max_length=4000), AfterValidator(plain_text)]
Value: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _.+-]*$", max_length=80)]


class Option(StrictModel):
    """One answer that can be chosen.

    `label` is what people read, the value where there is none; `number` is what it counts as, where it counts; the form
    shows a `colour`.
    """

    value: Value
    label: Text | None = None
    number: float | None = None
    colour: Annotated[str, Field(pattern="^#[0-9a-f]{6}$")] | None = None


class Comment(StrictModel):
    """Free text asked for after some answers, beside the answer it belongs to."""

    question: Text
    when: Annotated[tuple[Value, ...], AfterValidator(not_empty)]
    required: bool = False


class Criterion(StrictModel):
    """One question.

    Options stand here, or in each item (`options_from` names the field); those of a choice of pictures stand after the
    pictures. `when` names earlier questions and the answers to them after which this one is asked; all of them must
    hold; an `open` one is shown at once, and answering it answers these. `shows` names fields of the item that are
    shown with the question, and not before it is asked. `alone` are options of several that exclude all others.
    `levels` say what each step of a scale means, from the lowest; `ends` those of its first and last. With
    `each_region` the question is asked once for each region of the study.
    """

    name: Name
    question: Text
    type: QuestionType
    low: int | None = None
    high: int | None = None
    ends: tuple[Text, Text] | None = None
    levels: tuple[Text, ...] = ()
    options: tuple[Option, ...] = ()
    options_from: Name | None = None
    alone: tuple[Value, ...] = ()
    when: Mapping[Name, Annotated[tuple[Value, ...], AfterValidator(not_empty)]] = {}
    required: bool = True
    open: bool = False
    each_region: bool = False
    shows: tuple[Name, ...] = ()
    comment: Comment | None = None

    @property
    def fixed_values(self) -> tuple[str, ...]:
        """List the answers that are the same for every item."""
        if self.type == "scale" and self.low is not None and self.high is not None:
            return tuple(str(number) for number in range(self.low, self.high + 1))
        return tuple(option.value for option in self.options)

    @property
    def several(self) -> bool:
        """Tell whether more than one answer may be chosen."""
        return self.type in {"choices", "pictures"}

    @property
    def comment_name(self) -> str:
        """Name the field of a form that holds the comment."""
        return f"{self.name}_comment"


class AttentionCheck(StrictModel):
    """An item whose right answers are told to whoever reads along."""

    say: Text
    answers: Annotated[Mapping[Name, Value], AfterValidator(not_empty)]


class Filters(StrictModel):
    """When answers are flagged.

    Attributes:
        attention_failures: how many attention checks an annotator may fail.
        fewest_seconds: an item answered faster is flagged.
        repeat_distance: how far two answers of one annotator to the same question on a scale may lie apart.
        inconsistent_share: of the answers to repeated questions, how many may lie further apart.
        pass_mark: the share of a trial that must be right before answers count.
    """

    attention_failures: Annotated[int, Field(ge=0)] = 0
    fewest_seconds: Annotated[float, Field(ge=0)] = 3.0
    repeat_distance: Annotated[int, Field(ge=0)] = 1
    inconsistent_share: Annotated[float, Field(ge=0, le=1)] = 0.34
    pass_mark: Annotated[float, Field(ge=0, le=1)] = 0.75


class Scheme(StrictModel):
    """A form as a whole."""

    name: Name
    title: Text
    guidelines: Annotated[tuple[Text, ...], AfterValidator(not_empty)]
    pictures: Annotated[tuple[Name, ...], Field(max_length=6)] = ("image",)
    drawn: tuple[Name, ...] = ()
    fields: Mapping[Name, Text] = {}
    shows: tuple[Name, ...] = ()
    region: Name | None = None
    criteria: Annotated[tuple[Criterion, ...], AfterValidator(not_empty)]
    checks: tuple[AttentionCheck, ...] = ()
    filters: Filters = Filters()

    @model_validator(mode="after")
    def fits_together(self) -> "Scheme":
        """Refuse a scheme whose parts contradict each other, with all the reasons."""
        mistakes = scheme_mistakes(self)
        if mistakes:
            raise ValueError("; ".join(mistakes))
        return self

    def criterion(self, name: str) -> Criterion:
        """Find a question by name."""
        return next(criterion for criterion in self.criteria if criterion.name == name)

    def as_asked(self) -> dict[str, Any]:
        """Give what decides the tasks, as data."""
        data = self.model_dump(mode="json")
        del data["filters"]["pass_mark"]
        for part in (one for criterion in data["criteria"] for one in (criterion, *criterion["options"])):
            for name in (name for name in LATER if name in part and not part[name]):
                del part[name]
        return data

    def of_regions(self, regions: Sequence[str]) -> "Scheme":
        """Fill in the regions of a study, under codes that answers have for them.

        Raises:
            UsageError: no region is known, or two have one code.
        """
        if not any(criterion.each_region or criterion.options_from == REGIONS for criterion in self.criteria):
            return self
        codes = {region_code(name): name for name in regions}
        if None in codes or len(codes) < max(1, len(regions)):
            raise UsageError(f"the scheme {self.name} asks about each region", found=", ".join(regions) or "none",
                             expected="names that differ in letters: --region, or a column region")  # fmt: skip
        offered = tuple(Option(value=str(code), label=name) for code, name in codes.items())
        asked: list[Criterion] = []
        for one in self.criteria:
            if one.each_region:
                asked += [
                    one.model_copy(update={"name": f"{one.name}_{code}", "each_region": False,
                                           "question": one.question.replace(REGION_MARK, name)})
                    for code, name in codes.items()
                ]  # fmt: skip
            elif one.options_from == REGIONS:
                asked.append(one.model_copy(update={"options": (*offered, *one.options), "options_from": None}))
            else:
                asked.append(one)
        return Scheme.model_validate({**self.model_dump(), "criteria": [one.model_dump() for one in asked]})


def scheme_mistakes(scheme: Scheme) -> list[str]:
    """List everything in a scheme that contradicts something else in it."""
    names = [criterion.name for criterion in scheme.criteria]
    taken = [*names, *(c.comment_name for c in scheme.criteria if c.comment), *scheme.fields]
    found = [f"{name} is used twice" for name in sorted({name for name in taken if taken.count(name) > 1})]
    found += [f"{name} is a name that forms use themselves" for name in taken if name in RESERVED]
    found += [f"drawn: {name} is not among the pictures" for name in scheme.drawn if name not in scheme.pictures]
    if len(set(scheme.pictures)) < len(scheme.pictures):
        found.append("pictures: each stands once")
    if len(scheme.drawn) == 1:
        found.append("drawn: one picture has no place to be drawn; name two or more, or none")
    found += [f"shows: {name} is not among the fields" for name in scheme.shows if name not in scheme.fields]
    for number, criterion in enumerate(scheme.criteria):
        found += (f"{criterion.name}: {what}" for what in criterion_mistakes(scheme, criterion, number))
    for check in scheme.checks:
        found += (f"checks: {what}" for what in check_mistakes(scheme, check))
    return found


def criterion_mistakes(scheme: Scheme, criterion: Criterion, number: int) -> Iterator[str]:
    """Find what is wrong with one question, given those before it."""
    yield from answer_mistakes(scheme, criterion)
    earlier = {before.name: before for before in scheme.criteria[:number]}
    for name, values in criterion.when.items():
        if name not in earlier:
            yield f"when: {name} is not an earlier question"
        elif unknown := [value for value in values if value not in earlier[name].fixed_values]:
            yield f"when: {name} has no answer {', '.join(unknown)}"
    for name in criterion.shows:
        if name not in scheme.fields:
            yield f"shows: {name} is not among the fields"
    if criterion.comment is not None:
        for value in criterion.comment.when:
            if value not in criterion.fixed_values:
                yield f"comment: {value} is not among the answers"


def answer_mistakes(scheme: Scheme, criterion: Criterion) -> Iterator[str]:
    """Find what is wrong with the answers that a question allows."""
    low, high = criterion.low, criterion.high
    if criterion.type == "scale":
        if low is None or high is None or not low < high or high - low >= WIDEST_SCALE:
            yield f"a scale has low below high, at most {WIDEST_SCALE} steps"
        elif criterion.levels and len(criterion.levels) != high - low + 1:
            yield "levels: one for each step of the scale"
    elif (low, high, criterion.ends, criterion.levels) != (None, None, None, ()):
        yield "low, high, ends and levels belong to a scale"
    values = [option.value for option in criterion.options]
    if criterion.type in {"choice", "choices"}:
        if not criterion.options and criterion.options_from is None:
            yield "give options or options_from"
        elif criterion.options and criterion.options_from not in {None, REGIONS}:
            yield "give options or options_from, not both"
    elif criterion.options_from or (criterion.options and not of_pictures(criterion)):
        yield "options belong to choice and choices"
    elif any(value.isdigit() for value in values):
        yield "an option beside pictures is no number"
    if len(set(values)) < len(values):
        yield "an option is given twice"
    if of_pictures(criterion) and len(scheme.pictures) < 2:
        yield "to choose a picture there must be two or more"
    if criterion.open and (criterion.options_from is None or any(len(one) > 1 for one in criterion.when.values())):
        yield "open: only a list that one answer to each earlier question asks for"
    for value in criterion.alone:
        if not criterion.several or value not in values:
            yield f"alone: {value} is not one of several options"


def check_mistakes(scheme: Scheme, check: AttentionCheck) -> Iterator[str]:
    """Find why nobody could answer an attention check as it asks."""
    known = {criterion.name: criterion for criterion in scheme.criteria}
    for name, value in check.answers.items():
        if name not in known:
            yield f"{name} is not a question"
        elif value not in dict(fixed_options(known[name], scheme)):
            yield f"{name} has no answer {value}"
    for criterion in scheme.criteria:
        asked = all(check.answers.get(name) in values for name, values in criterion.when.items())
        if criterion.name in check.answers and not asked:
            yield f"{criterion.name} would not be asked after these answers"


def of_pictures(criterion: Criterion) -> bool:
    """Tell whether pictures are chosen."""
    return criterion.type in {"picture", "pictures"}


def fixed_options(criterion: Criterion, scheme: Scheme) -> list[tuple[str, str]]:
    """List the answers that are the same for all items, with what people read."""
    if criterion.type == "scale":
        steps = criterion.fixed_values
        texts = dict(zip((steps[0], steps[-1]), criterion.ends or (), strict=False))
        texts |= dict(zip(steps, criterion.levels, strict=False))
        return [(step, f"{step} ({texts[step]})" if step in texts else step) for step in steps]
    options = [(option.value, option.label or option.value) for option in criterion.options]
    if not of_pictures(criterion):
        return options
    # to choose one picture is to choose among those whose places are drawn
    every = criterion.type == "pictures" or not scheme.drawn
    places = [index for index, name in enumerate(scheme.pictures, start=1) if every or name in scheme.drawn]
    return [*((str(index), f"Picture {index}") for index in places), *options]


def scheme_names() -> list[str]:
    """List the shipped schemes."""
    return shipped_names(FOLDER, ".yaml")


def scheme_file(name: str) -> Path:
    """Find the file of a scheme: a shipped name, or a path that ends in .yaml or .yml."""
    if name.endswith((".yaml", ".yml")):
        return Path(name)
    if name not in scheme_names():
        raise UsageError(
            "there is no such scheme", found=repr(name), expected=f"{', '.join(scheme_names())}, or the path of a .yaml"
        )
    return shipped(f"{FOLDER}/{name}.yaml")


def load_scheme(name: str) -> Scheme:
    """Load a scheme; a ConfigError names every mistake in it."""
    return load_model(scheme_file(name), Scheme)
