"""Characters that a reader does not see and a model does: which are taken out, and which joiners are left in.

Two of them carry meaning: ZWNJ and ZWJ decide how Persian, Urdu or Indic words are spelled, and ZWJ ties emoji
together. One stays where it stands alone between two characters of such a script, or between two emoji. Variation
selectors, bidi marks and tags go altogether: what they change is how a text is drawn, not what it says.
"""

import re
from collections.abc import Mapping, Sequence

Ranges = Sequence[tuple[int, int]]

BIDI: Ranges = [(0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)]
ZERO_WIDTH: Ranges = [
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180E, 0x180E),  # Mongolian vowel separator
    (0x200B, 0x200D),
    (0x2060, 0x2065),
    (0x206A, 0x206F),
    (0x3164, 0x3164),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
]
TAGS: Ranges = [(0xE0000, 0xE00FF), (0xE01F0, 0xE0FFF)]
VARIATIONS: Ranges = [(0x180B, 0x180D), (0x180F, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)]
CONTROLS: Ranges = [(0x00, 0x08), (0x0B, 0x0C), (0x0E, 0x1F), (0x7F, 0x9F), (0x2028, 0x2029)]
NONCHARACTERS: Ranges = [
    (0xFDD0, 0xFDEF),
    *((plane * 0x10000 + 0xFFFE, plane * 0x10000 + 0xFFFF) for plane in range(17)),
]

HIDDEN: Mapping[str, Ranges] = {
    "bidi": BIDI,
    "zero-width": ZERO_WIDTH,
    "tags": TAGS,
    "variation-selectors": VARIATIONS,
    "controls": CONTROLS,
    "noncharacters": NONCHARACTERS,
}

JOINED_SCRIPTS: Ranges = [
    (0x0600, 0x08FF),  # Arabic, Syriac, Thaana, N'Ko, Mandaic and their supplements
    (0x0900, 0x0DFF),  # Devanagari to Sinhala
    (0x0F00, 0x109F),  # Tibetan, Myanmar
    (0x1780, 0x18AF),  # Khmer, Mongolian
    (0x1A20, 0x1C4F),  # Tai Tham, Balinese, Sundanese, Batak, Lepcha
    (0xA840, 0xA97F),  # Phags-pa, Saurashtra, Kayah Li, Rejang
    (0xA980, 0xAADF),  # Javanese, Cham, Myanmar and Tai Viet
    (0xFB50, 0xFDCF),  # Arabic presentation forms
    (0xFDF0, 0xFDFF),
    (0xFE70, 0xFEFC),
    (0x10AC0, 0x10AFF),  # Manichaean
    (0x10D00, 0x10D3F),  # Hanifi Rohingya
    (0x10F30, 0x10FDF),  # Sogdian, Old Uyghur, Chorasmian
    (0x11000, 0x11DFF),  # Brahmi and its many children
    (0x1E900, 0x1E95F),  # Adlam
]
EMOJI: Ranges = [(0x2190, 0x2BFF), (0x1F000, 0x1FAFF)]


def charset(*ranges: Ranges) -> str:
    """Write ranges as the inside of a character class."""
    pairs = (pair for each in ranges for pair in each)
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in pairs)


JOINERS = "\u200c\u200d"
TAKEN_OUT = re.compile(f"(?![{JOINERS}])[{charset(BIDI, ZERO_WIDTH, TAGS, VARIATIONS, NONCHARACTERS)}]")
LINE_BREAK = re.compile("\r\n?|[\u0085\u2028\u2029\\x0b\\x0c]")
CONTROL = re.compile(f"[{charset(CONTROLS)}]")
SURROGATE = re.compile("[\ud800-\udfff]")
JOINER = re.compile(
    f"((?<=[{charset(JOINED_SCRIPTS)}])[{JOINERS}](?=[{charset(JOINED_SCRIPTS)}])"
    f"|(?<=[{charset(EMOJI)}])\u200d(?=[{charset(EMOJI)}]))|[{JOINERS}]"
)
JOINER_RUN = re.compile(f"[{JOINERS}]{{2,}}")
PLAIN = re.compile(r"[\n\t\x20-\x7e\xa1-\xac\xae-\u02ff]*")
HAN: Ranges = [(0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFF)]
SELECTOR_ABUSE = (
    f"(?<![{charset(EMOJI)}0-9#*©®‼⁉™ℹ])[\ufe0e\ufe0f]|[\ufe00-\ufe0d]"
    "|(?<![\u1820-\u18aa])[\u180b-\u180d\u180f]"
    f"|(?<![{charset(HAN)}])[\U000e0100-\U000e01ef]"
)
KINDS = {kind: re.compile(f"(?![{JOINERS}])[{charset(ranges)}]") for kind, ranges in HIDDEN.items()}
KINDS["variation-selectors"] = re.compile(SELECTOR_ABUSE)


def without_hidden_characters(text: str) -> str:
    """Take out what is not seen; every kind of line break becomes one kind, half a character the replacement sign."""
    if PLAIN.fullmatch(text):
        return text
    text = CONTROL.sub("", LINE_BREAK.sub("\n", text))
    text = TAKEN_OUT.sub("", SURROGATE.sub("\ufffd", text))
    return JOINER.sub(r"\1", JOINER_RUN.sub("", text))


def reveal(text: str) -> list[str]:
    """Name the kinds of hidden characters in a text; joiners and selectors in their proper place are none."""
    if PLAIN.fullmatch(text):
        return []
    found = {kind for kind, pattern in KINDS.items() if pattern.search(text)}
    if any(match[1] is None for match in JOINER.finditer(TAKEN_OUT.sub("", text))):
        found.add("zero-width")
    if SURROGATE.search(text):
        found.add("half-characters")
    return sorted(found)
