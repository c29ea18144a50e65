"""What in a text looks as if it were meant for a model and not for a reader; a hint for people, never a filter.

Nothing is changed by it: a label stays as it is stored, and what is sent is made safe whether it looks suspicious or
not. Only here a text is brought to its compatibility form, so that look-alike letters are read as what they pose as.
"""

import re
import unicodedata
from typing import Literal, TypeAlias

from culturekit.llm.untrusted.hidden_characters import reveal, without_hidden_characters
from culturekit.llm.untrusted.hidden_markup import MarkupScanner
from culturekit.llm.untrusted.untrusted import LONGEST_TEXT

__all__ = ["Suspicion", "suspicious"]

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
