"""HTML in a text that was not meant to hold any: what a browser would not show is taken out, tags and comments too.

A tag that is no element of HTML, such as `<T>` in the name of a thing, is text and stays. What is taken out leaves a
space, so that nothing new is put together. One pass over the text, however it is broken.
"""

import re
from collections.abc import Mapping
from html import unescape

ELEMENT_NAMES = """
a abbr acronym address applet area article aside audio b base basefont bdi bdo big blink blockquote body br button
canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir div dl dt em embed fieldset
figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html i iframe img input ins
kbd label legend li link main map mark marquee math menu meta meter nav nobr noembed noframes noscript object ol
optgroup option output p param path picture plaintext pre progress q rb rp rt rtc ruby s samp script search section
select slot small source span strike strong style sub summary sup svg table tbody td template textarea tfoot th thead
time title tr track tt u ul var video wbr xmp
"""
ELEMENTS = frozenset(ELEMENT_NAMES.split())
VOID = frozenset(
    {"area", "base", "br", "col", "embed", "frame", "hr", "img", "input", "link", "meta", "param", "source"}
)
NEVER_SHOWN = frozenset(
    {"applet", "audio", "canvas", "datalist", "noembed", "noframes", "noscript", "object", "template", "video"}
)
# Elements whose content is not HTML; none of it is shown as text of the page.
RAW = frozenset({"script", "style", "iframe", "xmp", "plaintext"})
HIDING_CLASSES = frozenset({"hidden", "d-none", "sr-only", "visually-hidden", "visuallyhidden", "screen-reader-text"})

TAG = re.compile(r"</?([a-zA-Z][^\s/>]*)")
ATTRIBUTE = re.compile(r"""[\s/]*+(?:(>)|([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?)""")
STYLE_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
STYLE_ESCAPE = re.compile(r"\\([0-9a-fA-F]{1,6})\s?")
LONGEST_STYLE = 2_000
HIDING_STYLE = re.compile(
    r"(?<![\w-])(?:display:none|visibility:(?:hidden|collapse)|content-visibility:hidden|color:transparent"
    r"|opacity:(?:0|0?\.0+|0%)(?![\d.])|font(?:-size)?:0(?![\d.])"
    r"|clip-path:inset\((?:50|100)%|clip:rect\((?:0|1px)|transform:scale[xy]?\(0(?![\d.])"
    r"|(?:left|right|top|bottom|text-indent|margin(?:-left|-top)?):-\d{3}"
    r"|(?:max-)?(?:width|height):(?:0|1px)(?![\d.%a-z]))"
)


def without_hidden_markup(text: str) -> str:
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
        """Give the end of the markup that begins here: `at` where there is none, -1 where the rest is one open tag."""
        text = self.text
        if text.startswith("<!--", at):
            self.take_out("comment")
            return end_of_comment(text, at + 4)
        tag = TAG.match(text, at)
        if tag is None:
            end = text.find(">", at) if text.startswith(("<!", "<?", "</"), at) else -1
            if end < 0:
                return at
            self.take_out("comment")
            return end + 1
        name = tag[1].lower()
        attributes, end = read_attributes(text, tag.end())
        if end < 0:
            return -1
        return self.close(name, at, end) if text[at + 1] == "/" else self.open(name, attributes, at, end)

    def open(self, name: str, attributes: Mapping[str, str], at: int, end: int) -> int:
        """Pass a start tag, and all that is not shown after it."""
        hides = name in NEVER_SHOWN or is_hidden(name, attributes)
        if name not in ELEMENTS and not hides and not self.hidden_in:
            return at
        if name in RAW:
            self.take_out("hidden-html")
            closing = re.compile(f"</{name}(?=[\\s/>])", re.IGNORECASE).search(self.text, end)
            return closing.start() if closing else len(self.text)
        if name in VOID:
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
        elif name not in ELEMENTS and not self.hidden_in:
            return at
        self.take_out("markup")
        return end


def end_of_comment(text: str, at: int) -> int:
    """Find where a comment ends: there are short ones, and those that never do."""
    for short in (">", "->"):
        if text.startswith(short, at):
            return at + len(short)
    ends = [found + len(mark) for mark in ("-->", "--!>") if (found := text.find(mark, at)) >= 0]
    return min(ends, default=len(text))


def read_attributes(text: str, at: int) -> tuple[Mapping[str, str], int]:
    """Read the attributes of a tag, the first of each name; the end is -1 where the tag has none."""
    attributes: dict[str, str] = {}
    while (match := ATTRIBUTE.match(text, at)) is not None:
        if match[1]:
            return attributes, match.end()
        attributes.setdefault(match[2].lower(), match[3] or match[4] or match[5] or "")
        at = match.end()
    return attributes, -1


def is_hidden(name: str, attributes: Mapping[str, str]) -> bool:
    """Tell whether a browser would show nothing of an element."""
    if "hidden" in attributes or (name == "dialog" and "open" not in attributes):
        return True
    if not HIDING_CLASSES.isdisjoint(attributes.get("class", "").lower().split()):
        return True
    style = STYLE_COMMENT.sub("", unescape(attributes.get("style", "")[:LONGEST_STYLE]))
    style = STYLE_ESCAPE.sub(lambda match: chr(min(int(match[1], 16), 0xFFFF)), style)
    return HIDING_STYLE.search("".join(style.lower().split())) is not None
