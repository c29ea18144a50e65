"""Names that a model proposes: which can be used, what is known under them, and what each of them means.

What in a name looks as if it were meant for a model and not for a reader is a hint for people, never a filter. Nothing
is changed by it: a label stays as it is stored, and what is sent is made safe whether it looks suspicious or not. Only
here a text is brought to its compatibility form, so that look-alike letters are read as what they pose as.
"""

import re
import unicodedata
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import polars as pl

from culturekit.builders.country_names import folded, loose_key_of, names_among, without_accents
from culturekit.builders.filtering.cspace_filter import MOST_CHARACTERS as MOST_SHOWN
from culturekit.builders.filtering.cspace_filter import name_problem, named
from culturekit.core.schemas import DROPS, OF_A_MODEL
from culturekit.core.tables import TableSlices, read_table
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid
from culturekit.kg.store import GraphTables, qid_of
from culturekit.llm.untrusted import LONGEST_TEXT, MarkupScanner, reveal, without_hidden_characters

Suspicion: TypeAlias = Literal[
    "bidi", "comment", "controls", "half-characters", "hidden-html", "instruction", "look-alikes", "markup",
    "noncharacters", "role-marker", "tags", "too-long", "variation-selectors", "zero-width",
]  # fmt: skip

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
    read = ((character, unicodedata.normalize("NFKC", character)) for character in set(shown))
    if plain != shown and any(not one.isascii() and plainly.isascii() and plainly.isalpha() for one, plainly in read):
        found.add("look-alikes")
    if ROLE_MARKER.search(plain):
        found.add("role-marker")
    if INSTRUCTION.search(plain):
        found.add("instruction")
    return sorted(found)  # type: ignore[arg-type] # both scanners name kinds of this list


MOST_CHARACTERS = 120
MOST_WORDS = 12  # longer than any name of an artifact is, and shorter than most sentences

QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»", "„": "“", "「": "」", "『": "』", "`": "`"}
NEVER_IN_A_NAME = frozenset("<>{}[]|\\`\n\r\t=;*#@^~_$")
HARMLESS = ("look-alikes",)  # wide letters are usual in Japanese names
BEGINS_A_FORMULA = ("=", "+", "-", "@")


def stripped_name(text: str) -> str:
    """Give a name in its composed form, without white space around it and without one pair of quotation marks."""
    name = " ".join(unicodedata.normalize("NFC", text).split(" ")).strip()
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
    return len(words) == len(others) and all(
        word == other or without_accents(word) == other or word == without_accents(other)
        for word, other in zip(words, others, strict=True)
    )


def artifact_slug(name: str, *, concept: str, country: str, taken: Container[str]) -> str:
    """Make the id of an artifact that no graph knows: of its folded name, in whatever script that is.

    Another artifact of that name adds its concept, then its country, then a number.
    """
    plain = OF_A_MODEL + folded(name).replace(" ", "-")
    full = f"{plain}-{concept}-{country.casefold()}"
    wished = chain((plain, f"{plain}-{concept}", full), (f"{full}-{number}" for number in count(2)))
    return next(wish for wish in wished if wish not in taken)


# Names looked up in everything that is known: kept and dropped candidates, and all items of the graph.
#
# No index is made. The tables are read in slices, once a round, for the names of that round; what agrees in letters is
# held, and nothing else.

# Of a concept's candidates, what the filter made of one; or an item of the graph that is none of them.
Standing: TypeAlias = Literal["kept", "dropped", "in the graph"]

LOOKED_AT = ("concept", "qid", "label", "description", "aliases", "title", "country_qids", "p31", "p279", "sitelinks")
NAMES_OF_AN_ITEM = ("number", "label", "title", "aliases")
STATED = ("P31", "P279", "P495", "P17")
ITEMS_AT_ONCE = 262_144


@dataclass(frozen=True, slots=True)
class KnownItem:
    """Something that is known by name; `names` are folded, and `concept` is None for what is no candidate."""

    qid: str
    concept: str | None
    label: str
    description: str | None
    names: frozenset[str]
    country_qids: tuple[str, ...]
    classes: tuple[str, ...]
    standing: Standing
    reason: str = ""


@dataclass(frozen=True, slots=True)
class KnownTables:
    """Tables in which names are looked up; `candidates` and `graph` are optional."""

    kept: TableSlices
    candidates: TableSlices | None = None
    drops: Path | None = None
    graph: Path | None = None

    def find(self, names: Iterable[str]) -> dict[str, list[KnownItem]]:
        """Find what is called as one of these, by the loose key of the name; who is meant is for others to say."""
        wanted = pl.Series("key", sorted({loose_key_of(name) for name in names} - {""}), dtype=pl.String)
        found: dict[str, list[KnownItem]] = {}
        if not wanted.len():
            return found
        for item in self.items(wanted):
            for key in sorted(set(map(loose_key_of, item.names))):
                found.setdefault(key, []).append(item)
        return found

    def items(self, wanted: pl.Series) -> Iterator[KnownItem]:
        """Give what some keys are found in, each (concept, qid) once, what is no candidate last."""
        kept = [item_of(row, "kept") for row in _rows_among(self.kept, wanted)]
        yield from kept
        known = {(item.concept, item.qid) for item in kept}
        rows = [] if self.candidates is None else list(_rows_among(self.candidates, wanted))
        left = [row for row in rows if (row["concept"], row["qid"]) not in known]
        reasons = self.reasons([row["qid"] for row in left])
        for row in left:
            yield item_of(row, "dropped", reasons.get((row["qid"], row["concept"]), ""))
        candidates = {item.qid for item in kept} | {row["qid"] for row in left}
        if self.graph is not None:
            for row in graph_rows(self.graph, wanted):
                if row["qid"] not in candidates:
                    yield item_of(row, "in the graph")

    def reasons(self, qids: Sequence[str]) -> Mapping[tuple[str, str | None], str]:
        """Look up why the filter dropped candidates."""
        if self.drops is None or not qids:
            return {}
        drops = read_table(self.drops, DROPS).filter(pl.col("key").is_in(list(qids)))
        rows = drops.select("key", "concept", "reason", "detail").iter_rows()
        return {(key, concept): f"{reason}: {detail}" if detail else reason for key, concept, reason, detail in rows}


def _rows_among(source: TableSlices, wanted: pl.Series) -> Iterator[Mapping[str, Any]]:
    """Read the candidates that are called so."""
    for frame in source.slices(LOOKED_AT):
        yield from names_among(frame, wanted).iter_rows(named=True)


def graph_rows(graph: Path, wanted: pl.Series) -> Iterator[Mapping[str, Any]]:
    """Read the items of a graph that are called so, with their classes and countries."""
    tables = GraphTables(graph)
    scan = tables.items.select(NAMES_OF_AN_ITEM)
    rows = int(scan.select(pl.len()).collect().item())
    parts = [names_among(scan.slice(start, ITEMS_AT_ONCE).collect(), wanted) for start in range(0, rows, ITEMS_AT_ONCE)]
    numbers = np.sort(np.concatenate([np.zeros(0, np.uint32), *(part["number"].to_numpy() for part in parts)]))
    if not len(numbers):
        return
    found = tables.items_of(numbers).select("qid", "number", "label", "description", "aliases", "title").sort("number")
    stated = tables.statements_of(numbers, STATED, ranks="not-deprecated", ended="keep").drop_nulls("value")
    values: dict[tuple[int, str], list[str]] = {}
    for number, name, value in stated.select("number", "property", qid_of("value")).iter_rows():
        values.setdefault((number, name), []).append(value)
    for row in found.iter_rows(named=True):
        p31, p279, p495, p17 = (values.get((row["number"], name), []) for name in STATED)
        yield {**row, "concept": None, "country_qids": [*p495, *p17], "p31": p31, "p279": p279}


def item_of(row: Mapping[str, Any], standing: Standing, reason: str = "") -> KnownItem:
    """Read a row; its names are folded once."""
    called = (row["label"], row["title"], *row["aliases"])
    return KnownItem(
        row["qid"], row["concept"], row["label"] or row["qid"], row["description"],
        frozenset(filter(None, (folded(name) for name in called if name))), tuple(dict.fromkeys(row["country_qids"])),
        tuple(dict.fromkeys([*row["p31"], *row["p279"]])), standing, reason,
    )  # fmt: skip


# What a verifier is shown of an item: its names, and those of its classes and countries.

LONGEST_CLASS = 100  # characters of the name of a class or a country that are shown


def described(
    items: Sequence[KnownItem | None], concepts: Iterable[Concept], graph: Path | None
) -> list[dict[str, object] | None]:
    """Describe items as a verifier is shown them, classes as root configs and the graph call them; None stays None."""
    classes = {root.qid: root.label for concept in concepts for root in concept.roots}
    if graph is not None:
        qids = {qid for item in items if item is not None for qid in item.classes}
        classes = GraphTables(graph).names(qids) | classes
    countries = {qid: country.name for qid, country in by_qid().items()}
    return [None if item is None else _description_of(item, classes, countries) for item in items]


def _description_of(item: KnownItem, classes: Mapping[str, str], countries: Mapping[str, str]) -> dict[str, object]:
    """Describe one item."""
    description = item.description
    return {
        "label": item.label[:MOST_SHOWN],
        "description": None if description is None else description[:MOST_SHOWN],
        "classes": [name[:LONGEST_CLASS] for name in named(item.classes, classes)],
        "countries": [name[:LONGEST_CLASS] for name in named(item.country_qids, countries)],
        "dropped": item.reason[:MOST_SHOWN] or None,
    }


@dataclass(frozen=True, slots=True)
class Found:
    """What a name was found to mean.

    The artifact is `there`, in the collection for the country; an item is likely meant that is `elsewhere`; `several`
    are called so, and neither concept nor country decides; or `nothing` is called so that could be meant.
    """

    how: Literal["there", "elsewhere", "several", "nothing"]
    item: KnownItem | None = None
    detail: str = ""


def reconcile(
    name: str, called: Sequence[KnownItem], *, concept: str, classes: Collection[str], countries: Collection[str]
) -> Found:
    """Choose among the items whose names share the letters of a name.

    An equal name goes before one whose accents merely agree, so two items that only accents tell apart stay two. What
    has to do with the concept, as those of its `classes` do, goes before what is only called the same; the country
    decides last.
    """
    key = folded(name)
    # each item once: as a candidate of the concept where it is one
    by_qid = {item.qid: item for item in sorted(called, key=lambda item: (item.concept == concept, item.concept or ""))}
    once = [by_qid[qid] for qid in sorted(by_qid)]
    near = [item for item in once if item.concept == concept or any(one in classes for one in item.classes)]
    for among, of_concept in ((near, True), ([item for item in once if item not in near], False)):
        equal = [item for item in among if key in item.names]
        fitting = equal or [item for item in among if any(accents_agree(key, name) for name in item.names)]
        if fitting:
            return _chosen(fitting, concept=concept, countries=countries, of_concept=of_concept)
    return Found("nothing")


def _chosen(fitting: Sequence[KnownItem], *, concept: str, countries: Collection[str], of_concept: bool) -> Found:
    """Let the country decide among items of one name, then what the filter kept."""
    here = [item for item in fitting if any(qid in countries for qid in item.country_qids)]
    there = [item for item in here if item.concept == concept and item.standing == "kept"]
    if there:
        return Found("there", there[0])
    for among in (here, fitting):
        kept = [item for item in among if item.concept == concept and item.standing == "kept"]
        candidates = [item for item in among if item.concept == concept]
        one = next((few[0] for few in (kept, candidates, list(among)) if len(few) == 1), None)
        if one is not None:
            return Found("elsewhere", one)
        if among:
            break
    if not of_concept:
        return Found("nothing", detail=f"{len(fitting)} items of other kinds are called so")
    return Found("several", detail=" ".join(item.qid for item in fitting))
