"""Names that a model proposes: which can be used, which two are one, and the id of what no graph knows.

What in a name looks as if it were meant for a model and not for a reader is a hint for people, never a filter. Nothing
is changed by it: a label stays as it is stored, and what is sent is made safe whether it looks suspicious or not. Only
here a text is brought to its compatibility form, so that look-alike letters are read as what they pose as.
"""

import re
import unicodedata
from collections.abc import Container, Sequence
from itertools import count
from typing import Literal, TypeAlias

from culturekit.builders.filtering.name_rules import name_problem
from culturekit.builders.folded_names import folded, without_accents
from culturekit.llm.untrusted.hidden_characters import reveal, without_hidden_characters
from culturekit.llm.untrusted.hidden_markup import MarkupScanner
from culturekit.llm.untrusted.untrusted import LONGEST_TEXT

__all__ = [
    "MOST_CHARACTERS",
    "SLUG",
    "accents_agree",
    "artifact_slug",
    "proposal_problem",
    "stripped_name",
    "suspicious",
]

Suspicion: TypeAlias = Literal[
    "bidi",
    "comment",
    "controls",
    "half-characters",
    "hidden-html",
    "instruction",
    "look-alikes",
    "markup",
    "noncharacters",
    "role-marker",
    "tags",
    "too-long",
    "variation-selectors",
    "zero-width",
]

MOST_READ = 100_000

ROLE_MARKER = re.compile(
    r"<\|[^<>|\n]{1,40}\|>|<\|?(?:im_start|im_end|endoftext|eot_id)\b|\[/?inst\]|<</?sys>>|</?s>|<(?:start|end)_of_turn>"
    r"|</?(?:system|assistant|user|human|think|tool_call|function_calls?)>|\bbegin[_▁]of[_▁]sentence\b"
    r"|(?:^|\n)\s*#{0,4}\s*(?:system|assistant|user|human|developer|instruction|response)\s*:",
    re.IGNORECASE,
)
INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b.{0,40}\b(?:instruction|prompt|rule|previous|above|prior|context)"
    r"|\b(?:you are now|act as|pretend to be|new instructions?|system prompt|jailbreak|developer mode)\b"
    r"|\b(?:answer|reply|respond|output|say|return|print)\b.{0,30}\b(?:keep|remove|yes|json|only|verdict)\b"
    r"|\"?verdict\"?\s*[:=]"
    r"|\b(?:ignor(?:a|e|ez|ier|iere|ieren|are|eer|uj)|oubli(?:e|ez)|olvida|esque[cç]a|vergiss|negeer|dimentica)\b"
    r".{0,40}\b(?:instru\w+|anweisung\w*|consignes?|regeln|regras|reglas|istruzioni|instructies|precedent\w*)"
    r"|игнорируй|забудь .{0,30}инструкци|忽略.{0,12}(?:指令|指示|说明|規則|规则)|(?:指示|命令).{0,6}無視"
    r"|(?:지시|명령).{0,8}무시|تجاهل|अनदेखा|উপেক্ষা|bỏ qua .{0,20}(?:hướng dẫn|chỉ thị)|abaikan .{0,20}instruksi"
    r"|נא להתעלם|התעלם|önceki .{0,12}talimat|نادیده|นโยบาย.{0,8}ละเลย|เพิกเฉย|puuza maagizo",
    re.IGNORECASE,
)


def suspicious(text: str) -> list[Suspicion]:
    """Name what is suspicious about a text, in alphabetical order; an empty list is no proof of innocence."""
    found: set[str] = set(reveal(text[:MOST_READ]))
    if len(text) > LONGEST_TEXT:
        found.add("too-long")
    shown = without_hidden_characters(text[:MOST_READ])
    scanner = MarkupScanner(shown)
    scanner.scan()
    found |= scanner.found
    plain = unicodedata.normalize("NFKC", shown)
    if plain != shown and any(poses(character) for character in set(shown)):
        found.add("look-alikes")
    if ROLE_MARKER.search(plain):
        found.add("role-marker")
    if INSTRUCTION.search(plain):
        found.add("instruction")
    return sorted(found)  # type: ignore[arg-type] # both scanners name kinds of this list


def poses(character: str) -> bool:
    """Tell whether a character reads as a plain Latin letter without being one."""
    read = unicodedata.normalize("NFKC", character)
    return not character.isascii() and read.isascii() and read.isalpha()


MOST_CHARACTERS = 120
MOST_WORDS = 12
"""Longer than any name of an artifact is, and shorter than most sentences."""

SLUG = "LLM:"
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "『": "』", "`": "`"}
NEVER_IN_A_NAME = frozenset("<>{}[]|\\`\n\r\t=;*#@^~_$")
HARMLESS = ("look-alikes",)
"""Wide letters are usual in Japanese names."""

BEGINS_A_FORMULA = ("=", "+", "-", "@")


def stripped_name(said: str) -> str:
    """Give a name in its composed form, without white space around it and without one pair of quotation marks."""
    name = " ".join(unicodedata.normalize("NFC", said).split(" ")).strip()
    if len(name) > 2 and QUOTES.get(name[0]) == name[-1]:
        name = name[1:-1].strip()
    return name


def proposal_problem(name: str, *, languages: Sequence[str]) -> tuple[str, str] | None:
    """Give the reason and the detail why a proposed name cannot be used; None when it can.

    A proposal has nothing but its name, so it is held to more than the label of an item is.
    """
    if len(name) > MOST_CHARACTERS:
        return "malformed name", f"{len(name)} characters"
    if any(character in NEVER_IN_A_NAME for character in name) or name.startswith(BEGINS_A_FORMULA) or "://" in name:
        return "malformed name", "characters that no name has"
    odd = [kind for kind in suspicious(name) if kind not in HARMLESS]
    if odd:
        return "malformed name", f"looks like {', '.join(odd)}"
    if len(name.split()) > MOST_WORDS:
        return "malformed name", f"{len(name.split())} words"
    if not folded(name):
        return "no usable label", ""
    return name_problem(name, languages=languages)


def accents_agree(one: str, other: str) -> bool:
    """Tell whether two folded names may be two spellings of one: word by word equal, or written bare on one side.

    So `pate` may be `pâté`, and `pâte` may not. Marks on letters of other scripts are no accents, and must be equal.
    """
    words, others = one.split(), other.split()
    return len(words) == len(others) and all(map(spelled_alike, words, others))


def spelled_alike(word: str, other: str) -> bool:
    """Tell whether two words are equal, or one is the other without any accent."""
    return word == other or without_accents(word) == other or word == without_accents(other)


def artifact_slug(name: str, *, concept: str, country: str, taken: Container[str]) -> str:
    """Make the id of an artifact that no graph knows: of its folded name, in whatever script that is.

    Another artifact of that name adds its concept, then its country, then a number.
    """
    plain = SLUG + folded(name).replace(" ", "-")
    wished = [plain, f"{plain}-{concept}", f"{plain}-{concept}-{country.casefold()}"]
    free = next((wish for wish in wished if wish not in taken), None)
    if free is not None:
        return free
    return next(f"{wished[-1]}-{number}" for number in count(2) if f"{wished[-1]}-{number}" not in taken)
