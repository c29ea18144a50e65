"""Prompts of our own table, whose names stand only in the text, or in the cultural space they were made from."""

from collections.abc import Iterator
from dataclasses import replace

from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.folding import tidy
from culturekit.audit.frames import Frame, Slots, frames, frames_of
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.prompt_slips import slips_of
from culturekit.audit.sheet import Row, Sheet
from culturekit.audit.template_codes import (
    MISSING,
    MISSING_SPACE,
    NAME_DIFFERS,
    NO_TEMPLATE,
    OTHER_CONCEPT,
    PLACE,
)
from culturekit.kg.countries import Country

__all__ = ["look_at_prompt"]


def look_at_prompt(sheet: Sheet, row: Row, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold a prompt that names an artifact, in English, against the templates of its concept."""
    country, concept, text = sheet.country(row), sheet.concept(row), sheet.text(row, "prompt")
    if not text.strip():
        yield aside(sheet, row, MISSING.finding("there is no text", row=row.number, field="text", value=text))
        return
    if country is None or concept is None or row.cells.get("kind") != "cube" or row.cells.get("language", "en") != "en":
        return
    own = list(frames_of(concept))
    if not own:
        return
    name = name_known(sheet.text(row, "id"), knowledge)
    if name is not None:
        yield from against_name(sheet, row, name, country, concept)
        return
    read = [(frame, slots) for frame in own if (slots := frame.read(tidy(text)))]
    if any(slots.place == frame.place(country) for frame, slots in read):
        return
    yield alone(sheet, row, country, own, read)


def name_known(artifact: str, knowledge: Knowledge) -> str | None:
    """Find the name of an artifact where a cultural space or a graph is at hand."""
    return next(
        (source.name_of_item[artifact] for source in knowledge.sources if artifact in source.name_of_item), None
    )


def against_name(sheet: Sheet, row: Row, name: str, country: Country, concept: str) -> Iterator[Finding]:
    """Hold a prompt against the name of its artifact."""
    codes = {"space-missing": MISSING_SPACE, "place": PLACE, "name": NAME_DIFFERS, "other-concept": OTHER_CONCEPT}
    for slip in slips_of(sheet.text(row, "prompt"), name, country, concept):
        if slip.kind in {"noun-twice", "noun-in-name"}:
            continue
        message = f"the artifact is {quoted(name)}: {quoted(slip.said)} for {quoted(slip.wanted)}"
        changes = (Change(row.number, None if slip.rebuilt is None else {"text": slip.rebuilt}),)
        yield codes.get(slip.kind, NO_TEMPLATE).finding(
            message, row=row.number, field="text", value=slip.said, changes=changes
        )


def alone(sheet: Sheet, row: Row, country: Country, own: list[Frame], read: list[tuple[Frame, Slots]]) -> Finding:
    """Say what is wrong with a prompt that fits no template of its concept with the word for its country."""
    text = tidy(sheet.text(row, "prompt"))
    loose = [(frame, slots) for frame in own if (slots := frame.read(text, loose=True))]
    for frame, slots in loose:
        if slots.place == frame.place(country):
            return rebuilt(
                row, MISSING_SPACE, f"a space lacks in {quoted(text)}", text, frame.text(slots.name, country)
            )
    for frame, slots in read:
        message = (
            f"the {frame.key} template wants {quoted(frame.place(country))}, the prompt says {quoted(slots.place)}"
        )
        return rebuilt(row, PLACE, message, slots.place, frame.text(slots.name, country))
    other = next((frame for frame in frames() if frame.read(text)), None)
    if other is not None:
        message = f"{quoted(text)} follows the template of {other.key}"
        return aside(sheet, row, OTHER_CONCEPT.finding(message, row=row.number, field="text", value=text))
    message = f"{quoted(text)} follows no template"
    return aside(sheet, row, NO_TEMPLATE.finding(message, row=row.number, field="text", value=text))


def rebuilt(row: Row, code: Code, message: str, value: str, wanted: str) -> Finding:
    """Make a finding whose prompt can be rebuilt."""
    return code.finding(
        message,
        row=row.number,
        field="text",
        value=value,
        suggestion=f"write {quoted(wanted)}",
        changes=(Change(row.number, {"text": wanted}),),
    )


def aside(sheet: Sheet, row: Row, finding: Finding) -> Finding:
    """Let the mend of a finding be to set its row aside."""
    return replace(finding, changes=(Change(row.number),))
