"""Words of a negative prompt in the prompt itself, and prompts that a text encoder cuts off."""

import re
from collections.abc import Iterator, Set
from functools import cache

from culturekit.builders.prompt_templates import templates
from culturekit.release.findings import Check, Code, Finding, Knowledge, Turn, quoted
from culturekit.release.sheet import Row, Sheet, fold, tidy

LEAK = Code(
    "negative-leak",
    "error",
    "the prompt holds its negative prompt, three terms of one in a row, or a marker such as “negative prompt:”",
    "it is cut off; where nothing is left, the row is set aside",
)
CONTRADICTS = Code(
    "negative-contradicts", "note", "the negative prompt keeps out what the prompt asks for (painting)", "nothing"
)
MARKER = re.compile(r"[\s,;|.]*(?:\bnegative[ _-]?prompt\b|(?<!\S)--no\b|\[neg\])", re.IGNORECASE)
TERMS_IN_A_ROW = 3


def find_negative_prompts(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at every prompt."""
    if not sheet.has("prompt"):
        return
    column = sheet.column("prompt")
    for row in sheet.rows:
        text, negative = sheet.text(row, "prompt"), sheet.text(row, "negative")
        begin = leak(text, fold(negative))
        if begin is not None:
            left, value = text[:begin].rstrip(" ,;|."), text[begin:].strip(" ,;|")
            message = f"the prompt holds a negative prompt: {quoted(value)}"
            yield (
                LEAK.rewrite(message, row=row.number, field=column, value=value, wanted=left)
                if left
                else LEAK.set_aside(message, row=row.number, field=column, value=value)
            )
        elif negative:
            yield from contradiction(sheet, row, text, negative)


def leak(text: str, negative: str) -> int | None:
    """Find where a negative prompt begins in a text."""
    marker = MARKER.search(text)
    begins = [] if marker is None else [marker.start()]
    if negative and len(negative) > 1 and (own := text.casefold().find(negative)) >= 0 and "," in negative:
        begins.append(own)
    run = terms_in_a_row(text, terms() | set(map(tidy, negative.split(","))))
    return min([*begins, *([] if run is None else [run])], default=None)


def terms_in_a_row(text: str, known: Set[str]) -> int | None:
    """Find where as many terms of a negative prompt begin that follow one another between commas."""
    place, run, begin = 0, 0, 0
    for part in text.split(","):
        if fold(part).rstrip(".") in known:
            begin, run = (place if run == 0 else begin), run + 1
            if run == TERMS_IN_A_ROW:
                return max(begin - 1, 0)
        else:
            run = 0
        place += len(part) + 1
    return None


@cache
def terms() -> frozenset[str]:
    """List the terms of the shipped negative prompts."""
    sets = templates().artifact.values()
    return frozenset(fold(term) for each in sets if each.negative for term in each.negative.split(","))


def contradiction(sheet: Sheet, row: Row, text: str, negative: str) -> Iterator[Finding]:
    """Say which terms of the negative prompt the prompt itself asks for."""
    asked = fold(text)
    both = [
        term for part in negative.split(",") if (term := fold(part)) and re.search(rf"\b{re.escape(term)}\b", asked)
    ]
    if both:
        yield CONTRADICTS.finding(
            f"the negative prompt keeps out what the prompt asks for: {', '.join(map(quoted, both))}",
            row=row.number,
            field=sheet.column("negative"),
            value=", ".join(both),
            suggestion="take the term out of the negative prompt",
        )


NEGATIVE_PROMPTS = Check(Turn.CELL, (LEAK, CONTRADICTS), find_negative_prompts)


CLIP_TOKENS = 77
"""What CLIP's text encoder reads, its marks of beginning and end included."""

TOO_LONG = Code(
    "prompt-long",
    "warning",
    f"more than the {CLIP_TOKENS} tokens that CLIP's text encoder reads, the marks of beginning and end included",
    "the row is set aside: its end would not be seen, and nobody but its author can shorten it",
)
SHORT = (CLIP_TOKENS - 2) // 2
"""So few bytes can never be too many tokens: each token is a byte at least; counting is spared for most prompts."""


def find_long_prompts(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
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
                f"{tokens:,} tokens, {how}: the encoder reads {CLIP_TOKENS} of {quoted(text)}",
                row=row.number,
                field=sheet.column("prompt"),
                value=text,
                suggestion=f"shorten it to {CLIP_TOKENS} tokens",
            )


PROMPT_LENGTHS = Check(Turn.FILE, (TOO_LONG,), find_long_prompts)
