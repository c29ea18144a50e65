"""What a check is, and what an audit can say: codes, findings with their place, and changes that mend them."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import polars as pl

from culturekit.builders.prompt_templates import templates
from culturekit.builders.space.space_files import read_space
from culturekit.core.choices import TemplateSetName
from culturekit.core.errors import printable
from culturekit.kg.concepts import COUNTRY_PROPERTIES, EDGE_PROPERTIES, Concept, mask_of
from culturekit.kg.countries import Country, by_qid, countries
from culturekit.kg.store import GraphTables
from culturekit.release.sheet import Row, Sheet, fold, item_of, squeeze, tidy

# The shipped templates turned round, and what is wrong with a prompt whose name, country and concept are known.

LONGEST_READ = 2_000  # characters of a text that a frame is held against; a prompt is far shorter

NOUN_AFTER = re.compile(r"\{name\} (\w+)")
SLOT = re.compile(r"\{(name|country|adjective)\}")


@dataclass(frozen=True, slots=True)
class Slots:
    """What a text says where a template leaves a gap."""

    name: str
    country: str


@dataclass(frozen=True, slots=True)
class Frame:
    """A template of one concept, or of one subconcept of it."""

    set_name: TemplateSetName
    key: str
    template: str
    strict: re.Pattern[str]
    loose: re.Pattern[str]

    @property
    def concept(self) -> str:
        """The concept that the template is for."""
        return self.key.partition("/")[0]

    @property
    def noun(self) -> str | None:
        """The noun that the template puts after the name, such as painting."""
        match = NOUN_AFTER.search(self.template)
        return match[1] if match and match[1] not in {"from", "in"} else None

    @property
    def key_words(self) -> set[str]:
        """The words of the subconcept that the template speaks, which tell it from its neighbours."""
        return set(self.key.partition("/")[2].split()) & set(re.findall(r"\w+", SLOT.sub(" ", self.template)))

    def word_for(self, country: Country) -> str:
        """Give the word for a country that the template wants: its adjective or its name."""
        return country.adjective if "{adjective}" in self.template else country.name

    def text(self, name: str, country: Country) -> str:
        """Fill the gaps."""
        return self.template.format(name=name, country=country.name, adjective=country.adjective)

    def read(self, text: str, *, loose: bool = False) -> Slots | None:
        """Read name and place from a text of this template; loosely, a space may lack around the name."""
        if len(text) > LONGEST_READ:
            return None
        match = (self.loose if loose else self.strict).fullmatch(text)
        return None if match is None else Slots(match["name"].strip(), match["country"].strip())


@cache
def frames() -> tuple[Frame, ...]:
    """List all templates that name an artifact, the released ones first."""
    sets = templates().artifact
    return tuple(
        Frame(name, key, template, pattern(template, space=" "), pattern(template, space=r"\s*"))
        for name in sorted(sets, key=lambda name: name != "released")
        for key, template in sets[name].templates.items()
    )


def frames_of(concept: str) -> Iterator[Frame]:
    """List the templates of a concept, the released ones first."""
    return (frame for frame in frames() if frame.concept == concept)


def pattern(template: str, *, space: str) -> re.Pattern[str]:
    """Write a template as a pattern; `space` is what stands beside the name."""
    before, _, after = template.partition("{name}")
    rest = SLOT.sub("\0", after.removeprefix(" "))
    head = re.escape(before.removesuffix(" ")) + (space if before.endswith(" ") else "")
    tail = (space if after.startswith(" ") else "") + re.escape(rest).replace(re.escape("\0"), "(?P<country>.+?)")
    return re.compile(f"{head}(?P<name>.+?){tail}")


SlipKind: TypeAlias = Literal[
    "space-missing",
    "space-in-name",
    "space-extra",
    "noun-in-name",
    "noun-twice",
    "name",
    "place",
    "other-concept",
    "none",
]
LEAST_ALIKE = 0.6  # how alike a text must be to a template's to be taken for a slip of it


@dataclass(frozen=True, slots=True)
class Slip:
    """One way in which a prompt departs: what it says, what the template wants, and the prompt as it should be."""

    kind: SlipKind
    found: str
    wanted: str
    frame: Frame | None
    rebuilt: str | None


def slips_of(text: str, name: str, country: Country, concept: str) -> Iterator[Slip]:
    """Hold a prompt against the templates of its concept; nothing comes where it fits one.

    `name` is the row's as it stands: where it ends in a space that the prompt lacks, the template may have lacked it.
    """
    bare, text_said = tidy(name), tidy(text)
    released = list(frames_of(concept))
    for frame in released:
        if frame.text(bare, country) == text_said:
            yield from fits(frame, text, name, bare)
            return
    for frame in released:
        expected = frame.text(bare, country)
        if squeeze(expected) == squeeze(text_said):
            kind: SlipKind = "space-missing" if len(text_said.split()) < len(expected.split()) else "space-extra"
            yield Slip(kind, *difference(text_said, expected), frame, expected)
            return
        shorter = without_noun(bare, frame)
        if shorter is not None and frame.text(shorter, country) == text_said:
            yield Slip("noun-in-name", bare, shorter, frame, text_said)
            return
    yield from departures(text_said, bare, country, released)


def fits(frame: Frame, text: str, name: str, bare: str) -> Iterator[Slip]:
    """Say what is odd about a prompt that fits: a noun said twice, a space that only the name has."""
    if frame.set_name == "released" and without_noun(bare, frame):
        yield Slip("noun-twice", f"{bare} {frame.noun}", bare, frame, None)
    end = frame.template.partition("{name}")[2]
    if name.endswith(" ") and f"{bare} " in text and f"{bare}  " not in text and end.startswith(" "):
        joined = f"{{name}}{end[1:].split()[0]}"
        yield Slip("space-in-name", joined, f"{{name}} {end[1:].split()[0]}", frame, None)


def without_noun(name: str, frame: Frame) -> str | None:
    """Give a name without the noun that the template adds; None where it does not end in it."""
    noun = frame.noun
    if noun is None or not name.casefold().endswith(f" {noun}"):
        return None
    return name[: -len(noun)].strip() or None


def departures(text: str, name: str, country: Country, released: list[Frame]) -> Iterator[Slip]:
    """Say how a prompt departs that is not merely spaced otherwise."""
    read = [(frame, slots) for frame in released if (slots := frame.read(text))]
    if read:
        frame, slots = max(
            read, key=lambda pair: (pair[1].country == pair[0].word_for(country), fold(pair[1].name) == fold(name))
        )
        wanted = frame.text(name, country)
        if slots.country != frame.word_for(country):
            yield Slip("place", slots.country, frame.word_for(country), frame, wanted)
        if slots.name != name:
            yield Slip("name", slots.name, name, frame, wanted)
        return
    other = next((frame for frame in frames() if frame not in released and frame.read(text)), None)
    nearest = nearest_frame(text, name, country, released)
    rebuilt = None if nearest is None else nearest.text(name, country)
    if other is not None:
        yield Slip("other-concept", other.key, " or ".join(dict.fromkeys(f.key for f in released)), other, rebuilt)
    elif nearest is None or rebuilt is None:
        yield Slip("none", text, "", None, None)
    else:
        found, wanted = difference(text, rebuilt)
        slip = place_among(found, wanted, nearest, country)
        if slip is None:
            yield Slip("none", found, wanted, nearest, rebuilt)
        else:
            yield Slip("place", slip, nearest.word_for(country), nearest, rebuilt)


def nearest_frame(text: str, name: str, country: Country, candidates: Iterable[Frame]) -> Frame | None:
    """Find the template that a text was most likely meant to follow; the only one of a concept is always meant."""
    released = [frame for frame in candidates if frame.set_name == "released"]
    if len(released) == 1:
        return released[0]
    if len(text) > LONGEST_READ:
        return None
    words = bare_words(text)

    def likeness(frame: Frame) -> tuple[bool, float]:
        own_words = frame.key_words & (set(words) - set(bare_words(name)))
        return bool(own_words), SequenceMatcher(None, words, bare_words(frame.text(name, country)), False).ratio()

    rated = [(likeness(frame), -index, frame) for index, frame in enumerate(released)]
    best = max(rated, default=None, key=lambda each: each[:2])
    return best[2] if best is not None and best[0][1] >= LEAST_ALIKE else None


def bare_words(text: str) -> list[str]:
    """List words without marks, in small letters."""
    return fold(text).replace(",", " ").replace(".", " ").split()


def difference(text: str, wanted: str) -> tuple[str, str]:
    """Give the words in which two texts differ."""
    found, expected = text.split(), wanted.split()
    if len(found) > LONGEST_READ:
        return text, wanted
    blocks = SequenceMatcher(None, found, expected, False).get_opcodes()
    changed = [each for each in blocks if each[0] != "equal"]
    return (
        " ".join(word for _, begin, end, _, _ in changed for word in found[begin:end]),
        " ".join(word for _, _, _, begin, end in changed for word in expected[begin:end]),
    )


def place_among(found: str, wanted: str, frame: Frame, country: Country) -> str | None:
    """Give the word for a country that stands where the template wants another one; None where none does."""
    if frame.word_for(country) not in wanted:
        return None
    words = sorted({word for each in countries().values() for word in (each.name, each.adjective)}, key=len)
    padded = f" {' '.join(bare_words(found))} "
    return next((word for word in reversed(words) if f" {fold(word)} " in padded), None)


# What is known besides the file: a cultural space or a graph to hold it against, a tokenizer, vectors.

NUMBERS = 2**32


@dataclass(frozen=True, slots=True)
class Source:
    """What one source says of items and names: the concepts they belong to, and the countries."""

    name: str
    concepts_of_item: Mapping[str, set[str]]
    countries_of_item: Mapping[str, set[str]]
    concepts_of_name: Mapping[str, set[str]]
    name_of_item: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Everything that checks may ask besides the file.

    `count_tokens` is exact where `tokens_are_exact`; `near_artifacts` are pairs whose vectors nearly agree.
    """

    sources: Sequence[Source]
    count_tokens: Callable[[str], int]
    tokens_are_exact: bool
    near_artifacts: Mapping[tuple[str, str], float] = field(default_factory=dict)


def known_from_space(path: Path) -> Source:
    """Read what a cultural space says."""
    space, _ = read_space(path)
    concepts, places, named = (defaultdict[str, set[str]](set) for _ in range(3))
    names: dict[str, str] = {}
    for artifact, name, concept, country in space.select("artifact_id", "name", "concept", "country").iter_rows():
        concepts[artifact].add(concept)
        places[artifact].add(country)
        named[fold(name)].add(concept)
        names.setdefault(artifact, name)
    return Source(str(path), concepts, places, named, names)


def known_from_graph(folder: Path, sheet: Sheet, concepts_meant: Sequence[Concept]) -> Source:
    """Look up what a graph says of the items of a file, and of items that are called as its names are.

    Names are also those that only its prompts say; countries that are not known say nothing.
    """
    tables, known = GraphTables(folder), by_qid()
    items = {int(item[1:]) for row in sheet.rows if (item := item_of(sheet, row)) and int(item[1:]) < NUMBERS}
    names = {fold(sheet.text(row, "name")) for row in sheet.rows}
    for text in filter(None, (tidy(sheet.text(row, "prompt")) for row in sheet.rows)):
        names |= {fold(slots.name) for frame in frames() if (slots := frame.read(text))}
    wanted = pl.Series("folded", sorted(names - {""}), dtype=pl.String)
    rows = tables.items.select("number", "label", folded=pl.col("label").str.to_lowercase())
    called = defaultdict[str, set[int]](set)
    for number, label, _ in rows.filter(pl.col("folded").is_in(wanted.implode())).collect(engine="streaming").rows():
        called[fold(label)].add(number)
    numbers = items.union(*called.values())
    most = [concept.hops_of(root) for concept in concepts_meant for root in concept.roots]
    parents = parents_of(tables, numbers, levels=max(most))
    concepts, places = (defaultdict[str, set[str]](set) for _ in range(2))
    for concept in concepts_meant:
        for number in reached(concept, parents) & numbers:
            concepts[f"Q{number}"].add(concept.concept)
    for statement in tables.stated(sorted(items), COUNTRY_PROPERTIES, mask_of(COUNTRY_PROPERTIES, COUNTRY_PROPERTIES)):
        if statement.counts and (country := known.get(f"Q{statement.value}")) is not None:
            places[f"Q{statement.number}"].add(country.iso)
    by_name = {name: {each for number in found for each in concepts.get(f"Q{number}", ())}
               for name, found in called.items()}  # fmt: skip
    labels = {} if sheet.has("name") else tables.labels(items)
    return Source(
        str(folder), concepts, places, {name: found for name, found in by_name.items() if found},
        {f"Q{number}": label for number, label in labels.items() if label},
    )  # fmt: skip


def parents_of(tables: GraphTables, numbers: set[int], *, levels: int) -> dict[int, set[int]]:
    """Collect the classes above items, so many levels of them."""
    mask = mask_of(EDGE_PROPERTIES, EDGE_PROPERTIES)
    parents: dict[int, set[int]] = {}
    frontier = set(numbers)
    for _ in range(levels):
        if not frontier:
            break
        parents |= {number: set() for number in frontier}
        for statement in tables.stated(sorted(frontier), EDGE_PROPERTIES, mask):
            if statement.counts and statement.value is not None:
                parents[statement.number].add(statement.value)
        frontier = {parent for number in frontier for parent in parents[number]} - parents.keys()
    return parents


def reached(concept: Concept, parents: Mapping[int, set[int]]) -> set[int]:
    """Walk from the roots of a concept to what lies below them, through no class that it excludes."""
    children: dict[int, set[int]] = {}
    for number, above in parents.items():
        for parent in above:
            children.setdefault(parent, set()).add(number)
    closed = {int(qid[1:]) for qid in concept.exclude.classes}
    found: set[int] = set()
    for root in concept.roots:
        frontier, seen = {int(root.qid[1:])}, {int(root.qid[1:])}
        for _ in range(concept.hops_of(root)):
            frontier = {child for number in frontier for child in children.get(number, ())} - seen - closed
            seen |= frontier
        found |= seen - {int(root.qid[1:])}
    return found - {int(qid[1:]) for qid in concept.exclude.items}


Severity: TypeAlias = Literal["error", "warning", "note"]
"""An error makes a row wrong, a warning makes it untidy; a note is for a person to judge, and no finding by itself."""

LONGEST_QUOTE = 120


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a mend: new cells of a row; without any, the row is set aside."""

    row: int
    cells: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found; `row` counts from 0 and is None where the whole file is meant."""

    code: str
    severity: Severity
    row: int | None
    field: str
    value: str
    message: str
    suggestion: str
    changes: tuple[Change, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Give the finding for machines; what a mend would change is in the change log."""
        data = asdict(self)
        data["fixable"] = bool(data.pop("changes"))
        data["value"] = shortened(self.value)
        return data


@dataclass(frozen=True, slots=True)
class Code:
    """A kind of finding: its name, how grave it is, what it means, and what `--fix` does about it."""

    name: str
    severity: Severity
    says: str
    mend: str

    def finding(
        self, message: str, row: Row | int | None, field: str, value: str, *, suggestion: str = "",
        changes: tuple[Change, ...] = (),
    ) -> Finding:  # fmt: skip
        """Make a finding of this kind, about a row, by itself or its number, or about the whole file."""
        number = row.number if isinstance(row, Row) else row
        return Finding(self.name, self.severity, number, field, value, message, suggestion or self.mend, changes)

    def rewrite(self, message: str, row: Row | int, field: str, value: str, *, wanted: str) -> Finding:
        """Make a finding whose mend writes into the cell what is wanted there."""
        changes = (Change(row.number if isinstance(row, Row) else row, {field: wanted}),)
        return self.finding(message, row, field, value, suggestion=f"write {quoted(wanted)}", changes=changes)

    def set_aside(self, message: str, row: Row, field: str, value: str, *, suggestion: str = "") -> Finding:
        """Make a finding whose mend sets its row aside."""
        return self.finding(message, row, field, value, suggestion=suggestion, changes=(Change(row.number),))


def shortened(text: str) -> str:
    """Cut what is too long to show."""
    return text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}… ({len(text):,} characters)"


def quoted(text: str) -> str:
    """Quote a value so that white space, and what a terminal would obey, can be seen."""
    return f"“{printable(shortened(text))}”"


Find: TypeAlias = Callable[[Sheet, Knowledge], Iterator[Finding]]


class Turn(IntEnum):
    """When a mend has its turn: cells first, then rows as a whole, and repeated rows when all else is mended."""

    CELL = 0
    ROW = 1
    FILE = 2


@dataclass(frozen=True, slots=True)
class Check:
    """A check of a file."""

    turn: Turn
    codes: tuple[Code, ...]
    find: Find


def check(turn: Turn, *codes: Code) -> Callable[[Find], Check]:
    """Declare a check of a file: when its mends have their turn, and what it can find."""
    return lambda find: Check(turn, codes, find)
