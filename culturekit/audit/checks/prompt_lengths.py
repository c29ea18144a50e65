"""Prompts that a text encoder cuts off."""

from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Sheet

__all__ = ["CHECK", "CLIP_TOKENS"]

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


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
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
            yield TOO_LONG.finding(
                f"{tokens:,} tokens, {how}: the encoder reads {CLIP_TOKENS} of {quoted(text)}",
                row=row.number,
                field=sheet.column("prompt"),
                value=text,
                suggestion=f"shorten it to {CLIP_TOKENS} tokens",
                changes=(Change(row.number),),
            )


CHECK = Check(Turn.FILE, (TOO_LONG,), find)
