"""Text from outside goes to a model as data: cleaned of what nobody sees, escaped as JSON, and fenced.

In the JSON, no text holds an angle bracket, a back-tick, a bracket, a brace or a line break as such; all stand as
escapes. The fence is made of angle brackets and the hash of the data, so it cannot stand inside, whatever a text says.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from html import unescape
from json.encoder import encode_basestring
from math import isfinite
from typing import TypeAlias

from culturekit.core.errors import UsageError

_Ranges = Sequence[tuple[int, int]]


def _ranges(text: str) -> _Ranges:
    """Read code points, and ranges of them, in hexadecimal digits."""
    ends = (part.partition("-") for part in text.split())
    return [(int(first, 16), int(last or first, 16)) for first, _, last in ends]


# Of no width are the soft hyphen, the grapheme joiner, Hangul fillers, two Khmer vowels, the Mongolian vowel separator,
# joiners, spaces and marks, and the format controls of shorthand and of music.
HIDDEN: Mapping[str, _Ranges] = {
    "bidi": _ranges("061C 200E-200F 202A-202E 2066-2069"),
    "zero-width": _ranges(
        "00AD 034F 115F-1160 17B4-17B5 180E 200B-200D 2060-2065 206A-206F 3164 FEFF FFA0 FFF0-FFFB "
        "1BCA0-1BCA3 1D173-1D17A"
    ),
    "tags": _ranges("E0000-E00FF E01F0-E0FFF"),
    "variation-selectors": _ranges("180B-180D 180F FE00-FE0F E0100-E01EF"),
    "controls": _ranges("00-08 0B-0C 0E-1F 7F-9F 2028-2029"),
    "noncharacters": _ranges("FDD0-FDEF " + " ".join(f"{plane:X}FFFE-{plane:X}FFFF" for plane in range(17))),
}
# Scripts whose words need joiners: Arabic, Syriac, Thaana, N'Ko, Mandaic, Devanagari to Sinhala, Tibetan, Myanmar,
# Khmer, Mongolian, Tai Tham, Balinese, Sundanese, Batak, Lepcha, Phags-pa, Saurashtra, Kayah Li, Rejang, Javanese,
# Cham, Arabic presentation forms, Manichaean, Rohingya, Sogdian, Old Uyghur, Chorasmian, Brahmi and its many children,
# Adlam.
_JOINED_SCRIPTS = _ranges(
    "0600-08FF 0900-0DFF 0F00-109F 1780-18AF 1A20-1C4F A840-A97F A980-AADF FB50-FDCF FDF0-FDFF FE70-FEFC 10AC0-10AFF "
    "10D00-10D3F 10F30-10FDF 11000-11DFF 1E900-1E95F"
)
_EMOJI = _ranges("2190-2BFF 1F000-1FAFF")


def _charset(*ranges: _Ranges) -> str:
    pairs = (pair for each in ranges for pair in each)
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in pairs)


JOINERS = "\u200c\u200d"
TAKEN_OUT = re.compile(
    f"(?![{JOINERS}])[{_charset(*(ranges for kind, ranges in HIDDEN.items() if kind != 'controls'))}]"
)
_LINE_BREAK = re.compile("\r\n?|[\u0085\u2028\u2029\\x0b\\x0c]")
_CONTROL = re.compile(f"[{_charset(HIDDEN['controls'])}]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_JOINER = re.compile(
    f"((?<=[{_charset(_JOINED_SCRIPTS)}])[{JOINERS}](?=[{_charset(_JOINED_SCRIPTS)}])"
    f"|(?<=[{_charset(_EMOJI)}])\u200d(?=[{_charset(_EMOJI)}]))|[{JOINERS}]"
)
_JOINER_RUN = re.compile(f"[{JOINERS}]{{2,}}")
_NOTHING_HIDDEN = re.compile(r"[\n\t\x20-\x7e\xa1-\xac\xae-\u02ff]*")
_HAN = _ranges("3400-4DBF 4E00-9FFF F900-FAFF 20000-3FFFF")
_SELECTOR_ABUSE = (
    f"(?<![{_charset(_EMOJI)}0-9#*©®‼⁉™ℹ])[\ufe0e\ufe0f]|[\ufe00-\ufe0d]"
    "|(?<![\u1820-\u18aa])[\u180b-\u180d\u180f]"
    f"|(?<![{_charset(_HAN)}])[\U000e0100-\U000e01ef]"
)
KINDS = {kind: re.compile(f"(?![{JOINERS}])[{_charset(ranges)}]") for kind, ranges in HIDDEN.items()}
KINDS["variation-selectors"] = re.compile(_SELECTOR_ABUSE)


def without_hidden_characters(text: str) -> str:
    """Take out what is not seen; every kind of line break becomes one kind, half a character the replacement sign."""
    if _NOTHING_HIDDEN.fullmatch(text):
        return text
    text = _CONTROL.sub("", _LINE_BREAK.sub("\n", text))
    text = TAKEN_OUT.sub("", _SURROGATE.sub("\ufffd", text))
    return _JOINER.sub(r"\1", _JOINER_RUN.sub("", text))


def reveal(text: str) -> list[str]:
    """Name the kinds of hidden characters in a text; joiners and selectors in their proper place are none."""
    if _NOTHING_HIDDEN.fullmatch(text):
        return []
    found = {kind for kind, pattern in KINDS.items() if pattern.search(text)}
    if any(match[1] is None for match in _JOINER.finditer(TAKEN_OUT.sub("", text))):
        found.add("zero-width")
    if _SURROGATE.search(text):
        found.add("half-characters")
    return sorted(found)


_ELEMENT_NAMES = """
a abbr acronym address applet area article aside audio b base basefont bdi bdo big blink blockquote body br button
canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed fieldset
figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins
kbd label legend li link main map mark marquee math menu meta meter nav nobr noembed noframes noscript object ol
optgroup option output p param path picture plaintext pre progress q rb rp rt rtc ruby s samp script search section
select slot small source span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead
time title tr track tt u ul var video wbr xmp
"""
_ELEMENTS = frozenset(_ELEMENT_NAMES.split())
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source"}
)
_NEVER_SHOWN = frozenset(
    {"applet", "audio", "canvas", "datalist", "noembed", "noframes", "noscript", "object", "template", "video"}
)
# Elements whose content is not HTML; none of it is shown as text of the page.
_RAW = frozenset({"script", "style", "iframe", "xmp", "plaintext"})
_HIDING_CLASSES = frozenset({"hidden", "d-none", "sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"})

TAG = re.compile(r"</?([a-zA-Z][^\s/>]*)")
_ATTRIBUTE = re.compile(r"""[\s/]*+(?:(>)|([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?)""")
_STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_STYLE_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})\s?")
_LONGEST_STYLE = 2_000
_HIDING_STYLE = re.compile(
    r"(?<![\w-])(?:display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|color:transparent"
    r"|opacity:(?:0|0?\.0+|0%)(?![\d.])|font(?:-size)?:0(?![\d.])"
    r"|clip-path:inset\((?:50|100)%|clip:rect\((?:0|1px)|transform:scale[xy]?\(0(?![\d.])"
    r"|(?:left|right|top|bottom|text-indent|margin(?:-left|-top)?):-\d{3}"
    r"|(?:max-)?(?:width|height):(?:0|1px)(?![\d.%a-z]))"
)


def _without_hidden_markup(text: str) -> str:
    """Take out comments, tags of HTML, and the content of what is not shown."""
    if "<" not in text or (">" not in text and "<!--" not in text):
        return text
    scanner = MarkupScanner(text)
    scanner.scan()
    if not scanner.found:
        return text
    return re.sub(" {2,}", " ", "".join(scanner.shown)).strip()


class MarkupScanner:
    """Walks over a text once and keeps what is shown."""

    def __init__(self, text: str) -> None:
        """Start at the beginning, inside nothing."""
        self.text = text
        self.shown: list[str] = []
        self.found: set[str] = set()
        self.hidden_in = ""
        self.depth = 0

    def scan(self) -> None:
        """Go from one angle bracket to the next."""
        at = 0
        while True:
            bracket = self.text.find("<", at)
            if bracket < 0:
                return self.show(self.text[at:])
            self.show(self.text[at:bracket])
            after = self.pass_by(bracket)
            if after < 0:
                return self.show(self.text[bracket:])
            if after == bracket:
                self.show("<")
                after += 1
            at = after

    def show(self, text: str) -> None:
        """Keep a piece, unless it stands in something hidden."""
        if not self.hidden_in:
            self.shown.append(text)

    def take_out(self, kind: str) -> None:
        """Leave a space for what is not kept."""
        self.found.add(kind)
        self.show(" ")

    def pass_by(self, at: int) -> int:
        """Return the end of the markup that begins here: `at` if there is none, -1 if the rest is one open tag."""
        text = self.text
        if text.startswith("<!--", at):
            self.take_out("comment")
            return _end_of_comment(text, at + 4)
        tag = TAG.match(text, at)
        if tag is None:
            end = text.find(">", at) if text.startswith(("<!", "<?", "</"), at) else -1
            if end < 0:
                return at
            self.take_out("comment")
            return end + 1
        name = tag[1].lower()
        attributes, end = _read_attributes(text, tag.end())
        if end < 0:
            return -1
        return self.close(name, at, end) if text[at + 1] == "/" else self.open(name, attributes, at, end)

    def open(self, name: str, attributes: Mapping[str, str], at: int, end: int) -> int:
        """Pass a start tag, and all that is not shown after it."""
        hides = name in _NEVER_SHOWN or _is_hidden(name, attributes)
        if name not in _ELEMENTS and not hides and not self.hidden_in:
            return at
        if name in _RAW:
            self.take_out("hidden-html")
            closing = re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE).search(self.text, end)
            return closing.start() if closing else len(self.text)
        if name in _VOID:
            self.take_out("markup")
        elif self.hidden_in:
            self.depth += name == self.hidden_in
        else:
            self.take_out("hidden-html" if hides else "markup")
            if hides:
                self.hidden_in, self.depth = name, 1
        return end

    def close(self, name: str, at: int, end: int) -> int:
        """Pass an end tag; with it, what is hidden may end."""
        if self.hidden_in == name:
            self.depth -= 1
            if self.depth == 0:
                self.hidden_in = ""
        elif name not in _ELEMENTS and not self.hidden_in:
            return at
        self.take_out("markup")
        return end


def _end_of_comment(text: str, at: int) -> int:
    """Find where a comment ends: there are short ones, and those that never do."""
    for short in (">", "->"):
        if text.startswith(short, at):
            return at + len(short)
    ends = [found + len(mark) for mark in ("-->", "--!>") if (found := text.find(mark, at)) >= 0]
    return min(ends, default=len(text))


def _read_attributes(text: str, at: int) -> tuple[Mapping[str, str], int]:
    """Read the attributes of a tag, the first of each name; the end is -1 where the tag has none."""
    attributes: dict[str, str] = {}
    while (match := _ATTRIBUTE.match(text, at)) is not None:
        if match[1]:
            return attributes, match.end()
        attributes.setdefault(match[2].lower(), match[3] or match[4] or match[5] or "")
        at = match.end()
    return attributes, -1


def _is_hidden(name: str, attributes: Mapping[str, str]) -> bool:
    """Check whether a browser would show nothing of an element."""
    if "hidden" in attributes or (name == "dialog" and "open" not in attributes):
        return True
    if not _HIDING_CLASSES.isdisjoint(attributes.get("class", "").lower().split()):
        return True
    style = _STYLE_COMMENT.sub("", unescape(attributes.get("style", "")[:_LONGEST_STYLE]))
    style = _STYLE_ESCAPE.sub(lambda match: chr(min(int(match[1], 16), 0xFFFF)), style)
    return _HIDING_STYLE.search("".join(style.lower().split())) is not None


_Json: TypeAlias = "str | int | float | bool | list[_Json] | dict[str, _Json] | None"

# Characters of one text that are sent; a label or a description is far shorter, a page says so with `LongText`.
LONGEST_TEXT = 8_000
# What opens markup, templates, code and the turns of chat templates, in look-alikes too where a model uses these.
_ESCAPED = re.compile("[<>\\[\\]{}`|#~\\x7f\uff1c\uff1e\uff5c\u2581]")

_LITERALS = {None: "null", True: "true", False: "false"}
_MOST_HIDDEN = 20  # how many times as long a text may be as what is shown of it, before it is cut unread


@dataclass(frozen=True, slots=True)
class LongText:
    """A text that is meant to be long, such as a page; it is cut at a length of its own."""

    text: str
    longest: int


def user_message(data: Mapping[str, object]) -> str:
    """Write data as the message of a user: one line of JSON between two equal fences; same data, same text.

    Raises:
        UsageError: a value is no text, number, boolean, None, list or mapping.
    """
    body = written(cleaned(data))
    fence = f"<untrusted-data-{hashlib.sha256(body.encode()).hexdigest()[:16]}>"
    return f"{fence}\n{body}\n{fence}"


def strip_hidden(text: str) -> str:
    """Take out what a reader would not see: hidden characters, comments, tags, and elements that are not shown."""
    return _without_hidden_markup(without_hidden_characters(text))


def cleaned(data: Mapping[str, object]) -> dict[str, _Json]:
    """Return data as it is sent: each text without what is hidden, and cut with a note where it is too long."""
    return _clean_mapping(data, "data")


def _clean(value: object, path: str) -> _Json:
    match value:
        case str():
            return _clean_text(value, LONGEST_TEXT)
        case LongText():
            return _clean_text(value.text, value.longest)
        case bool() | None:
            return value
        case int():
            return int(value)
        case float() if isfinite(value):
            return float(value)
        case Mapping():
            return _clean_mapping(value, path)
        case Sequence() if not isinstance(value, bytes | bytearray | memoryview):
            return [_clean(item, f"{path}[{number}]") for number, item in enumerate(value)]
    raise UsageError(
        "this cannot be sent as JSON",
        where=path,
        expected="texts, finite numbers, booleans, None, lists and mappings of them",
        found=type(value).__name__,
    )


def _clean_mapping(value: Mapping[str, object], path: str) -> dict[str, _Json]:
    """Clean the keys and values of a mapping; two keys may not look the same."""
    kept = {_clean_key(str(key)): _clean(below, f"{path}.{key}") for key, below in value.items()}
    if len(kept) < len(value):
        raise UsageError("two keys are the same once what is hidden is taken out", where=path)
    return kept


@lru_cache(maxsize=1024)
def _clean_key(key: str) -> str:
    return _clean_text(key, LONGEST_TEXT)


def _clean_text(text: str, longest: int) -> str:
    """Strip a text, and cut it with a note."""
    shown = strip_hidden(text[: longest * _MOST_HIDDEN])
    if len(shown) <= longest and len(text) <= longest * _MOST_HIDDEN:
        return shown
    note = f" [cut: {len(text)} characters are too many]"
    return shown[: max(longest - len(note), 0)].rstrip(JOINERS) + note


def written(value: _Json) -> str:
    """Write a value as JSON, keys sorted; characters that mean something outside JSON are escaped."""
    match value:
        case str():
            return _ESCAPED.sub(lambda sign: f"\\u{ord(sign[0]):04x}", encode_basestring(value))
        case dict():
            return "{" + ",".join(f"{written(key)}:{written(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(written, value)) + "]"
        case None | bool():
            return _LITERALS[value]
    return repr(value)
