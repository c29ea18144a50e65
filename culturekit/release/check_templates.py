"""Prompts that no template of their concept gives, and names that are not the row's."""

import re
from collections.abc import Iterator, Set
from functools import cache

from culturekit.builders.prompt_templates import templates
from culturekit.kg.countries import Country
from culturekit.release.findings import (
    Change,
    Code,
    Finding,
    Frame,
    Knowledge,
    Slip,
    Slots,
    Turn,
    check,
    frames,
    frames_of,
    quoted,
    slips_of,
)
from culturekit.release.sheet import Row, Sheet, fold, tidy

REBUILT = "the prompt is rebuilt from the row's own name and country by the released template"

MISSING = Code(
    "prompt-missing", "error", "the row has no prompt",
    f"{REBUILT}; of art, with its several templates, it is set aside",
)  # fmt: skip
MISSING_SPACE = Code(
    "space-missing", "error", "a space of the template lacks (matefrom), or stands in the name instead", REBUILT
)
EXTRA_SPACE = Code("space-extra", "warning", "a space cuts a word", REBUILT)
COUNTRY = Code(
    "prompt-country", "error", "the prompt says another country, or a wrong word for it (Nigeria clothing)", REBUILT
)
NAME_DIFFERS = Code("prompt-name", "error", "the prompt names something other than the row", REBUILT)
NAME_CONCEPT = Code(
    "prompt-name-concept", "error",
    "the prompt names something that belongs to another concept, by this file, a graph or a cultural space", REBUILT,
)  # fmt: skip
OTHER_CONCEPT = Code(
    "template-concept", "error", "the prompt follows the template of another concept",
    f"{REBUILT}, where the concept has one; else the row is set aside",
)  # fmt: skip
NO_TEMPLATE = Code(
    "template-none", "error", "the prompt follows no template, released or of the paper",
    f"{REBUILT} that is nearest; where none is near, the row is set aside",
)  # fmt: skip
NOUN_IN_NAME = Code(
    "noun-in-name", "warning",
    "the name already holds the noun that its template adds (tanjore painting), and the prompt says it once",
    "the name loses the noun: then the template gives the prompt as it stands",
)  # fmt: skip
NOUN_TWICE = Code(
    "noun-twice", "note", "the prompt says the template's noun twice, as the released template does with such a name",
    "nothing: it is the released wording",
)  # fmt: skip
CODES = (
    MISSING, MISSING_SPACE, EXTRA_SPACE, COUNTRY, NAME_DIFFERS, NAME_CONCEPT, OTHER_CONCEPT, NO_TEMPLATE, NOUN_IN_NAME,
    NOUN_TWICE,
)  # fmt: skip


SIMPLE: dict[str, Code] = {
    "space-missing": MISSING_SPACE, "space-in-name": MISSING_SPACE, "space-extra": EXTRA_SPACE,
    "noun-in-name": NOUN_IN_NAME, "noun-twice": NOUN_TWICE, "place": COUNTRY, "other-concept": OTHER_CONCEPT,
    "none": NO_TEMPLATE,
}  # fmt: skip

ROWS_NAMED = 3


@check(Turn.ROW, *CODES)
def template_slips(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold every prompt against the templates; rows whose country or concept is not known say so elsewhere."""
    if not sheet.has("prompt"):
        return
    known = concepts_of_name(sheet, knowledge)
    if not sheet.has("name"):
        for row in sheet.rows:
            yield from look_at_prompt(sheet, row, knowledge)
        return
    slips: list[tuple[Row, Slip]] = []
    for row in sheet.rows:
        country, concept, name = sheet.country(row), sheet.concept(row), sheet.text(row, "name")
        if country is not None and concept is not None and name.strip():
            slips += [(row, slip) for slip in slips_of(sheet.text(row, "prompt"), name, country, concept)]
    spaceless = {slip.frame for _, slip in slips if slip.kind == "space-missing"}
    for row, slip in slips:
        if slip.kind != "space-in-name" or slip.frame in spaceless:
            yield look(sheet, row, slip, known)


def look(sheet: Sheet, row: Row, slip: Slip, known: dict[str, dict[str, str]]) -> Finding:
    """Say what is wrong with a prompt; of a name that is not the row's, what that is where it is known."""
    concept, name, text = str(sheet.concept(row)), sheet.text(row, "name"), sheet.text(row, "prompt")
    if not text.strip():
        return finding_for(MISSING, f"{quoted(name)} has no prompt", sheet, row, slip)
    if slip.kind != "name":
        return finding_for(SIMPLE[slip.kind], message_of(slip, text), sheet, row, slip)
    code, message = NAME_DIFFERS, f"the prompt names {quoted(slip.found)}, the row {quoted(slip.wanted)}"
    concepts = known.get(fold(slip.found), {})
    if concepts and concept not in concepts:
        elsewhere = " and ".join(f"{other} ({where})" for other, where in sorted(concepts.items()))
        code, message = NAME_CONCEPT, f"{message}; {quoted(slip.found)} is {elsewhere}, not {concept}"
    return finding_for(code, message, sheet, row, slip)


MESSAGES = {
    "space-missing": "a space lacks in {found}: the {key} template has {wanted}",
    "space-in-name": "the {key} template was written {found} here, as in other rows: the name brings the space",
    "space-extra": "a space too many in {found}: the {key} template has {wanted}",
    "noun-in-name": "{found} already holds the noun that the {key} template adds",
    "noun-twice": "{found} says a noun twice: the name holds what the {key} template adds",
    "place": "the {key} template wants {wanted}, the prompt says {found}",
    "other-concept": "{text} follows the template of {slip.found}; the row's concept has {slip.wanted}",
    "none": "{text} follows no template: {found} for {wanted}",
}


def message_of(slip: Slip, text: str) -> str:
    """Say what a slip is."""
    if slip.kind == "none" and slip.frame is None:
        return f"{quoted(text)} follows no template, and none is near"
    key = "" if slip.frame is None else slip.frame.key
    return MESSAGES[slip.kind].format(
        key=key, slip=slip, text=quoted(text), found=quoted(slip.found), wanted=quoted(slip.wanted)
    )


def finding_for(code: Code, message: str, sheet: Sheet, row: Row, slip: Slip) -> Finding:
    """Make the finding: what can be rebuilt is rebuilt, and what cannot is set aside."""
    name, prompt = sheet.column("name"), sheet.column("prompt")
    changes: tuple[Change, ...] = (Change(row.number),)
    suggestion, field = "write the prompt by hand, or leave the row out", prompt
    if slip.kind in {"noun-twice", "space-in-name"}:
        changes, field = (), field if slip.kind == "noun-twice" else name
        suggestion = "leave the released wording, or rename" if slip.kind == "noun-twice" else "strip the name"
    elif slip.kind == "noun-in-name":
        changes, field = (Change(row.number, {name: slip.wanted}),), name
        suggestion = f"name it {quoted(slip.wanted)}, and the template gives this prompt"
    elif slip.rebuilt is not None:
        changes, suggestion = (Change(row.number, {prompt: slip.rebuilt}),), f"write {quoted(slip.rebuilt)}"
    value = slip.found or sheet.text(row, "prompt")
    return code.finding(message, row, field, value, suggestion=suggestion, changes=changes)


def concepts_of_name(sheet: Sheet, knowledge: Knowledge) -> dict[str, dict[str, str]]:
    """Map folded names to the concepts they are known under, each with the place that says so."""
    rows: dict[str, dict[str, list[int]]] = {}
    for row in sheet.rows:
        concept = sheet.concept(row)
        if concept is not None and (name := fold(sheet.text(row, "name"))):
            rows.setdefault(name, {}).setdefault(concept, []).append(row.number)
    known = {
        name: {concept: f"row {', '.join(map(str, numbers[:ROWS_NAMED]))}" for concept, numbers in numbered.items()}
        for name, numbered in rows.items()
    }
    for source in knowledge.sources:
        for name, concepts in source.concepts_of_name.items():
            for concept in concepts:
                known.setdefault(name, {}).setdefault(concept, source.name)
    return known


def look_at_prompt(sheet: Sheet, row: Row, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold a prompt that names an artifact, in English, against the templates of its concept."""
    country, concept, text = sheet.country(row), sheet.concept(row), sheet.text(row, "prompt")
    if not text.strip():
        yield MISSING.set_aside("there is no text", row, "text", text)
        return
    if country is None or concept is None or row.cells.get("kind") != "cube" or row.cells.get("language", "en") != "en":
        return
    released = list(frames_of(concept))
    if not released:
        return
    artifact = sheet.text(row, "id")
    name = next((known for each in knowledge.sources if (known := each.name_of_item.get(artifact)) is not None), None)
    if name is not None:
        yield from against_name(sheet, row, name, country, concept)
        return
    read = [(frame, slots) for frame in released if (slots := frame.read(tidy(text)))]
    if any(slots.country == frame.word_for(country) for frame, slots in read):
        return
    yield alone(sheet, row, country, released, read)


def against_name(sheet: Sheet, row: Row, name: str, country: Country, concept: str) -> Iterator[Finding]:
    """Hold a prompt against the name of its artifact."""
    codes = {"space-missing": MISSING_SPACE, "place": COUNTRY, "name": NAME_DIFFERS, "other-concept": OTHER_CONCEPT}
    for slip in slips_of(sheet.text(row, "prompt"), name, country, concept):
        if slip.kind in {"noun-twice", "noun-in-name"}:
            continue
        message = f"the artifact is {quoted(name)}: {quoted(slip.found)} for {quoted(slip.wanted)}"
        changes = (Change(row.number, None if slip.rebuilt is None else {"text": slip.rebuilt}),)
        yield codes.get(slip.kind, NO_TEMPLATE).finding(message, row, "text", slip.found, changes=changes)


def alone(sheet: Sheet, row: Row, country: Country, released: list[Frame], read: list[tuple[Frame, Slots]]) -> Finding:
    """Say what is wrong with a prompt that fits no template of its concept with the word for its country."""
    text = tidy(sheet.text(row, "prompt"))
    loose = [(frame, slots) for frame in released if (slots := frame.read(text, loose=True))]
    for frame, slots in loose:
        if slots.country == frame.word_for(country):
            message, wanted = f"a space lacks in {quoted(text)}", frame.text(slots.name, country)
            return MISSING_SPACE.rewrite(message, row, "text", text, wanted=wanted)
    for frame, slots in read:
        message = (
            f"the {frame.key} template wants {quoted(frame.word_for(country))}, the prompt says {quoted(slots.country)}"
        )
        wanted = frame.text(slots.name, country)
        return COUNTRY.rewrite(message, row, "text", slots.country, wanted=wanted)
    other = next((frame for frame in frames() if frame.read(text)), None)
    if other is not None:
        message = f"{quoted(text)} follows the template of {other.key}"
        return OTHER_CONCEPT.set_aside(message, row, "text", text)
    return NO_TEMPLATE.set_aside(f"{quoted(text)} follows no template", row, "text", text)


# Words of a negative prompt in the prompt itself, and prompts that a text encoder cuts off.


LEAK = Code(
    "negative-leak", "error",
    "the prompt holds its negative prompt, three terms of one in a row, or a marker such as “negative prompt:”",
    "it is cut off; where nothing is left, the row is set aside",
)  # fmt: skip
CONTRADICTS = Code(
    "negative-contradicts", "note", "the negative prompt keeps out what the prompt asks for (painting)", "nothing"
)
MARKER = re.compile(r"[\s,;|.]*(?:\bnegative[ _-]?prompt\b|(?<!\S)--no\b|\[neg\])", re.IGNORECASE)
TERMS_IN_A_ROW = 3


@check(Turn.CELL, LEAK, CONTRADICTS)
def negative_prompts(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at every prompt: what it holds of its negative prompt, or asks for although that keeps it out."""
    for row in sheet.rows if sheet.has("prompt") else ():
        column, text, negative = sheet.column("prompt"), sheet.text(row, "prompt"), sheet.text(row, "negative")
        begin, asked = leak(text, fold(negative)), fold(text)
        if begin is not None:
            left, value = text[:begin].rstrip(" ,;|."), text[begin:].strip(" ,;|")
            message = f"the prompt holds a negative prompt: {quoted(value)}"
            if left:
                yield LEAK.rewrite(message, row, column, value, wanted=left)
            else:
                yield LEAK.set_aside(message, row, column, value)
            continue
        terms_of = filter(None, map(fold, negative.split(",")))
        if both := [term for term in terms_of if re.search(rf"\b{re.escape(term)}\b", asked)]:
            yield CONTRADICTS.finding(
                f"the negative prompt keeps out what the prompt asks for: {', '.join(map(quoted, both))}", row,
                sheet.column("negative"), ", ".join(both), suggestion="take the term out of the negative prompt",
            )  # fmt: skip


def leak(text: str, negative: str) -> int | None:
    """Find where a negative prompt begins in a text."""
    marker = MARKER.search(text)
    begins = [] if marker is None else [marker.start()]
    if negative and len(negative) > 1 and (start := text.casefold().find(negative)) >= 0 and "," in negative:
        begins.append(start)
    run = terms_in_a_row(text, terms() | set(map(tidy, negative.split(","))))
    return min([*begins, *([] if run is None else [run])], default=None)


def terms_in_a_row(text: str, known: Set[str]) -> int | None:
    """Find where as many terms of a negative prompt begin that follow one another between commas."""
    index, run, begin = 0, 0, 0
    for part in text.split(","):
        if fold(part).rstrip(".") in known:
            begin, run = (index if run == 0 else begin), run + 1
            if run == TERMS_IN_A_ROW:
                return max(begin - 1, 0)
        else:
            run = 0
        index += len(part) + 1
    return None


@cache
def terms() -> frozenset[str]:
    """List the terms of the shipped negative prompts."""
    sets = templates().artifact.values()
    return frozenset(fold(term) for each in sets if each.negative for term in each.negative.split(","))


CLIP_TOKENS = 77  # what CLIP's text encoder reads, its marks of beginning and end included

TOO_LONG = Code(
    "prompt-long", "warning",
    f"more than the {CLIP_TOKENS} tokens that CLIP's text encoder reads, the marks of beginning and end included",
    "the row is set aside: its end would not be seen, and nobody but its author can shorten it",
)  # fmt: skip
SHORT = (CLIP_TOKENS - 2) // 2
"""So few bytes can never be too many tokens: each token is a byte at least; counting is spared for most prompts."""


@check(Turn.FILE, TOO_LONG)
def long_prompts(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Count the tokens of every prompt that could be too long."""
    if not sheet.has("prompt"):
        return
    how = "exactly" if knowledge.tokens_are_exact else "by estimate (exact where open_clip is installed)"
    for row in sheet.rows:
        text = sheet.text(row, "prompt")
        if len(text) <= SHORT:
            continue
        tokens = knowledge.count_tokens(text) + 2
        if tokens > CLIP_TOKENS:
            yield TOO_LONG.set_aside(
                f"{tokens:,} tokens, {how}: the encoder reads {CLIP_TOKENS} of {quoted(text)}", row,
                sheet.column("prompt"), text, suggestion=f"shorten it to {CLIP_TOKENS} tokens",
            )  # fmt: skip
