"""Pairs of dialects as a model proposes them, and the filters they go through; each that falls says where and why."""

import gzip
import hashlib
import importlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asked_rows import AskedRows, bounded, row_id, wording
from culturekit.core.digests import digest_file
from culturekit.core.errors import UsageError
from culturekit.core.registry import Entry, Registry, Spec
from culturekit.core.schemas import DIALECT_PAIRS, PROMPTS
from culturekit.core.stage_command import Typed
from culturekit.core.tables import write_table
from culturekit.core.work import Outcome, Work
from culturekit.generation.linguistic_lists import DialectPair, Group, SpecificGroup, article, load_lists, neutral_texts
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request

# Whether phrases are met in a corpus: a file or a folder of any size, read line by line.

SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl", ".gz")
LONGEST_TOKEN = 1 << 14
"""Bytes of a line that are looked at together."""

CORPUS_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def corpus_files(place: Path) -> Iterator[Path]:
    """Go through the files of a corpus, folder by folder in the order of names; there is at least one."""
    found = iter([place]) if place.is_file() else files_below(place)
    first = next(found, None)
    if first is None:
        raise UsageError(
            "there is no corpus", where=str(place), expected=f"a file, or a folder of {', '.join(SUFFIXES)}"
        )
    return chain([first], found)


def files_below(place: Path) -> Iterator[Path]:
    """Go through a folder; what is held is the names of one folder at a time."""
    for folder, inside, names in os.walk(place):
        inside.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(SUFFIXES))


def corpus_digest(place: Path) -> str:
    """Hash the names of a corpus's files and what they hold, one after the other."""
    every = hashlib.sha256()
    for path in corpus_files(place):
        every.update(f"{path.relative_to(place).as_posix()}\0{digest_file(path)}\n".encode())
    return every.hexdigest()


def phrases_met(place: Path, phrases: Collection[str]) -> dict[str, int]:
    """Count how often each phrase stands in a line of a corpus, as whole words, whatever their case."""
    wanted = {words_of(phrase): phrase for phrase in phrases}
    met = dict.fromkeys(phrases, 0)
    lengths = sorted({len(words) for words in wanted})
    for path in corpus_files(place):
        for text, counted in lines_of(path, keep=max(lengths, default=1) - 1):
            words = words_of(text)
            for length in lengths:
                for at in range(max(0, counted - length + 1), len(words) - length + 1):
                    phrase = wanted.get(words[at : at + length])
                    if phrase is not None:
                        met[phrase] += 1
    return met


def words_of(text: str) -> tuple[str, ...]:
    """Give the words of a text in small letters."""
    return tuple(word.replace("’", "'") for word in CORPUS_WORD.findall(text.casefold()))


def lines_of(path: Path, *, keep: int) -> Iterator[tuple[str, int]]:
    """Read a file line by line, a long line in pieces: each begins with some words that the piece before ended with.

    Args:
        path: the file, compressed or not.
        keep: how many words.

    Returns:
        Texts, and how many of their first words stood in the text before.
    """
    held, counted = b"", 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as stream:
            while piece := stream.readline(LONGEST_TOKEN):
                held += piece
                if piece.endswith(b"\n"):
                    yield held.decode("utf-8", "replace"), counted
                    held, counted = b"", 0
                elif len(held) >= LONGEST_TOKEN:
                    cut = held.rfind(b" ") + 1 or len(held)
                    text = held[:cut].decode("utf-8", "replace")
                    yield text, counted
                    last = words_of(text)[-keep:] if keep else ()
                    held, counted = f"{' '.join(last)} ".encode() + held[cut:], len(last)
    except (OSError, EOFError) as error:
        raise UsageError("the corpus cannot be read", where=str(path), found=str(error)) from error
    if held:
        yield held.decode("utf-8", "replace"), counted


# Whether a sentence is grammatical in a dialect: a protocol, rules of our own, and an adapter for Multi-VALUE.

DETERMINERS = "a an the his her their my your our its this that these those"
SINGLE = frozenset(("a", "an", "this", "that"))
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+")
OF_DIALECTS = {
    "AAE": "AfricanAmericanVernacular", "AAVE": "AfricanAmericanVernacular", "Singlish": "ColloquialSingaporeDialect",
}  # fmt: skip
"""What Multi-VALUE calls dialects; others by the names of its classes, or the first word of them: Irish."""

DRAWS = 64
"""Times that Multi-VALUE is asked at most. Its rules hold by chance, as often as they are attested: version 0.3 leaves
"a man driving his car" as it is in 14 of 100 draws, and what comes in one of ten is missed once in a thousand."""


class GrammarChecker(Protocol):
    """Says what is wrong with a sentence in a dialect; nothing where nothing is."""

    name: str

    def problem(self, sentence: str, counterpart: str, dialect: str) -> str:
        """Look at a sentence, beside its counterpart in the standard dialect."""


class Rules:
    """A few rules that hold in every dialect of English: articles, doubled words, words that are none."""

    name = "rules"

    def problem(self, sentence: str, counterpart: str, dialect: str) -> str:
        """Say which rule a sentence breaks."""
        del counterpart, dialect
        words = WORD.findall(sentence)
        if len(words) < 2 or re.search(r"[{}<>\[\]@#\\]", sentence):
            return "no sentence of words"
        for first, second in pairwise(words):
            low, after = first.casefold(), second.casefold()
            if low == after:
                return f"the word {first!r} stands twice"
            if low in DETERMINERS.split() and after in DETERMINERS.split():
                return f"two words like {first!r} and {second!r} follow each other"
            if low in ("a", "an") and article(after) != f"{low} {after}" and not after.startswith("ho"):
                return f"{first!r} before {second!r}"
            if low in SINGLE and plural(after):
                return f"{first!r} before {second!r}, which are many"
        return ""


def plural(word: str) -> bool:
    """Guess whether a noun stands for several."""
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is"))


class MultiValue:
    """Multi-VALUE: what its rules may make of the standard sentence, with the noun exchanged.

    That they leave a sentence alone says nothing: they change what is Standard American, and are no grammar.
    """

    name = "multi-value"

    def __init__(self, dialects: Any) -> None:  # noqa: ANN401 - the module of Multi-VALUE
        """Take the module with its dialects."""
        self.dialects = dialects
        self.loaded: dict[str, Any] = {}

    def problem(self, sentence: str, counterpart: str, dialect: str) -> str:
        """Say that the rules of the dialect would have it otherwise, however chance falls (they seed Python's)."""
        rules = self.rules_of(dialect)
        (old, new), made = exchanged(counterpart.split(), sentence.split()), ""
        try:
            for draw in range(DRAWS):
                rules.set_seed(draw)
                made = rules.transform(counterpart)
                made = re.sub(rf"\b{re.escape(old)}\b", lambda _: new, made) if old else made
                if plain(made) == plain(sentence):
                    return ""
        except (AssertionError, LookupError, ValueError, AttributeError) as error:
            return f"Multi-VALUE cannot read it ({error})"
        return f"its rules make {made!r} of it"

    def rules_of(self, dialect: str) -> Any:  # noqa: ANN401 - a dialect of Multi-VALUE
        """Load a dialect once: with it come a parser and a finder of names."""
        if dialect not in self.loaded:
            names = (OF_DIALECTS.get(dialect, dialect), f"{dialect}Dialect")
            kind = next((found for name in names if (found := getattr(self.dialects, name, None)) is not None), None)
            if kind is None:
                raise UsageError(
                    "Multi-VALUE knows no such dialect", found=dialect,
                    expected=f"{', '.join(sorted(OF_DIALECTS))}, or one of its classes, such as IrishDialect",
                )  # fmt: skip
            with loading():
                self.loaded[dialect] = kind()
        return self.loaded[dialect]


@contextmanager
def loading() -> Iterator[None]:
    """Say what Multi-VALUE lacks: as it is imported and as a dialect is made it downloads what it reads with."""
    try:
        yield
    except (ImportError, OSError, LookupError, SystemExit) as error:
        absent = isinstance(error, ModuleNotFoundError) and (error.name or "").partition(".")[0] == "multivalue"
        raise UsageError(
            "Multi-VALUE is not installed" if absent else "Multi-VALUE cannot be loaded", found=str(error),
            hint="Install it (pip install value-nlp), or take --grammar rules." if absent else
            "It downloads models of spaCy and Stanza and data of NLTK; take --grammar rules where it cannot.",
        ) from error  # fmt: skip


def exchanged(standard: list[str], other: list[str]) -> tuple[str, str]:
    """Find what stands in the one sentence in place of what stands in the other: all between their common ends."""
    shared = min(len(standard), len(other))
    begin = next((at for at in range(shared) if standard[at] != other[at]), shared)
    end = next((at for at in range(shared - begin) if standard[-1 - at] != other[-1 - at]), shared - begin)
    return " ".join(standard[begin : len(standard) - end]), " ".join(other[begin : len(other) - end])


def plain(sentence: str) -> str:
    """Give a sentence in small letters, with one space between words."""
    return " ".join(sentence.casefold().split()).rstrip(".")


def make_rules(spec: Spec) -> GrammarChecker:
    """Make our own rules."""
    del spec
    return Rules()


def make_multi_value(spec: Spec) -> GrammarChecker:
    """Make the adapter, where Multi-VALUE is installed."""
    del spec
    with loading():
        return MultiValue(importlib.import_module("multivalue.Dialects"))


GRAMMARS: Registry[GrammarChecker] = Registry(
    "grammar",
    [
        Entry("rules", f"{__name__}:make_rules", "articles, doubled words and words that are none, in any dialect"),
        Entry("multi-value", f"{__name__}:make_multi_value", "the rules of Multi-VALUE, where it is installed"),
    ],
    point="grammar",
)
"""The checkers that culturekit knows by name."""


# Prompts of the recipe `linguistic`: two dialects of one sentence, nouns of no group and of each, places of groups.

BENCHMARK = "linguistic"
PRINTED, WRITTEN = "printed in the paper", "not printed"
"""Where a prompt about a group is from: its template."""


def slug(text: str) -> str:
    """Write a text as a part of an id."""
    return re.sub(r"[^a-z0-9]+", "-", text.casefold()).strip("-") or "x"


def prompt(prompt_id: str, text: str, kind: str, group: str | None, thing: str | None, template: str) -> dict[str, Any]:
    """Write one prompt."""
    return {
        "prompt_id": prompt_id, "text": text, "benchmark": BENCHMARK, "kind": kind, "group": group,
        "artifact_id": thing, "language": "en", "template_id": template,
    }  # fmt: skip


def dialect_prompts(pairs: Sequence[DialectPair], *, standard: str, other: str) -> list[dict[str, Any]]:
    """Write each sentence of each pair in both dialects; a sentence and its counterpart share thing and template."""
    found = []
    for number, pair in enumerate(pairs, start=1):
        thing = f"{pair.other} ({pair.standard})"
        for place, frame in enumerate(pair.frames, start=1):
            for dialect, word in ((standard, pair.standard), (other, pair.other)):
                key = f"dialect-{number:03}-{slug(pair.other)}-{place}-{slug(dialect)}"
                found.append(prompt(key, frame.format(word), "dialect", dialect, thing, f"frame-{place}"))
    return found


def neutral_prompts(nouns: Sequence[str], groups: Sequence[Group] = ()) -> list[dict[str, Any]]:
    """Write each noun with `typical`, and with the adjective of each group."""
    found = []
    for each in neutral_texts(nouns, groups):
        code, name, template = ("typical", None, "typical")
        if each.group is not None:
            code, name, template = each.group.code.lower(), each.group.name, "specified"
        found.append(prompt(f"neutral-{slug(each.noun)}-{code}", each.text, "neutral", name, each.noun, template))
    return found


def specific_prompts(groups: Iterable[SpecificGroup]) -> list[dict[str, Any]]:
    """Write the prompts about groups; their template says whether the paper prints them."""
    return [
        prompt(
            f"specific-{slug(each.group)}-{place:02}",
            text,
            "specific",
            each.group,
            None,
            PRINTED if text in each.printed else WRITTEN,
        )
        for each in groups
        for place, text in enumerate(each.prompts, start=1)
    ]


def prompt_table(rows: Sequence[dict[str, Any]]) -> pl.DataFrame:
    """Put prompts together, in the order of their ids."""
    return pl.DataFrame(rows, schema=PROMPTS.schema).sort(PROMPTS.key)


PROPOSE_PAIRS = "dialects.propose"
KEPT, REPEATED, MALFORMED = "kept", "repeated", "malformed"
NOT_MET, UNGRAMMATICAL = "not in the corpus", "not grammatical"
PER_QUESTION, LONGEST, WORDS = 10, 200, 3
LISTED = "listed"


class ProposedPair(msgspec.Struct, frozen=True):
    """A pair as it may come: what is none costs itself, and not the whole reply."""

    standard: str
    other: str
    frames: list[str]


class ProposedPairs(msgspec.Struct, frozen=True):
    """The reply that is read."""

    id: str
    pairs: Annotated[list[ProposedPair], msgspec.Meta(max_length=200)]


@dataclass(frozen=True, slots=True)
class DialectReads:
    """Where pairs come from where no model proposes them, and the corpora that they are to be met in."""

    lists: Annotated[
        Path | None, Field(description="YAML with `pairs`. [the shipped lists, unless --llm proposes]")
    ] = None
    standard_corpus: Annotated[
        Path | None, Field(description="File or folder of texts in the standard dialect; of any size.")
    ] = None
    other_corpus: Annotated[Path | None, Field(description="The same in the other dialect.")] = None


@dataclass(frozen=True, slots=True)
class DialectOptions:
    """Which dialects, who proposes, and how many."""

    proposer: Annotated[
        str | None, Field(description="Who proposes pairs, as a SPEC. [nobody: those of a list]"), Typed("llm")
    ] = None
    standard: Annotated[str, Field(description="The standard dialect.")] = "SAE"
    other: Annotated[str, Field(description="The other dialect.")] = "AAE"
    count: Annotated[int, Field(ge=1, le=1000, description="Pairs that are asked for.")] = 30
    grammar: Annotated[str, Field(description="Who says what is grammatical: rules or multi-value.")] = "rules"


def pair_requests(options: DialectOptions) -> Iterator[Request]:
    """Ask for pairs, some at a time; what is said twice is dropped afterwards."""
    instructions = wording("dialects_propose")
    for number, start in enumerate(range(0, options.count, PER_QUESTION), start=1):
        asked = row_id(options.standard, options.other, str(number))
        wanted = min(PER_QUESTION, options.count - start)
        data = {"id": asked, "standard": options.standard, "other": options.other, "batch": number, "wanted": wanted}
        yield Request(
            PROPOSE_PAIRS, instructions, data, ProposedPairs, allowed={"id": (asked,)}, max_tokens=2048,
            asks=bounded(ProposedPairs, "pairs", wanted),
        )  # fmt: skip


def build_dialects(
    work: Work, given: DialectReads, options: DialectOptions, client: Client | FreeClient | None,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:  # fmt: skip
    """Propose pairs or read them, filter them twice, and write prompts of those that are left."""
    rows: list[dict[str, Any]] = []
    asked: AskedRows[Request] | None = None
    if client is None:
        rows = [row_of(pair.standard, pair.other, pair.frames, LISTED) for pair in load_lists(given.lists).pairs]
    else:
        asked = AskedRows(PROPOSE_PAIRS, client, llm, lambda request: str(request.data["id"]))
        for _, value in asked.ask(work, list(pair_requests(options)), lambda request: request, unit="questions"):
            assert isinstance(value, ProposedPairs)
            rows += [row_of(each.standard, each.other, each.frames, client.model) for each in value.pairs]
    sift(rows, given, options)
    table = pl.DataFrame([{**row, "position": n} for n, row in enumerate(rows, 1)], schema=DIALECT_PAIRS.schema)
    write_table(work.out, DIALECT_PAIRS, table)
    kept = [DialectPair(standard=row["standard"], other=row["other"], frames=tuple(row["frames"]))
            for row in table.filter(outcome=KEPT).iter_rows(named=True)]  # fmt: skip
    prompts = dialect_prompts(kept, standard=options.standard, other=options.other)
    write_table(work.out, PROMPTS, prompt_table(prompts))
    fell = Counter(row["outcome"] for row in rows if row["outcome"] != KEPT)
    counts = {"pairs": table.height, "kept": len(kept), "prompts": len(prompts)}
    if asked is None:
        return Outcome(counts, fell)
    return asked.outcome(work, counts, proposals=dict(sorted(fell.items())))


def row_of(standard: str, other: str, frames: Any, proposer: str) -> dict[str, Any]:  # noqa: ANN401 - a list of texts
    """Write a proposal."""
    return {"standard": standard.strip(), "other": other.strip(), "frames": [each.strip() for each in frames],
            "proposer": proposer, "outcome": KEPT, "detail": None}  # fmt: skip


def sift(rows: list[dict[str, Any]], given: DialectReads, options: DialectOptions) -> None:
    """Say what becomes of each: malformed or repeated, then corpus by corpus, then sentence by sentence."""
    taken: set[tuple[str, str]] = set()
    for row in rows:
        key = (row["standard"].casefold(), row["other"].casefold())
        drop(row, MALFORMED, malformed(row))
        drop(row, REPEATED, "an earlier pair" if key in taken else "")
        taken |= {key} if row["outcome"] == KEPT else set()
    for side, corpus, dialect in (("standard", given.standard_corpus, options.standard),
                                  ("other", given.other_corpus, options.other)):  # fmt: skip
        if corpus is not None:
            met = phrases_met(corpus, {row[side] for row in rows if row["outcome"] == KEPT})
            for row in rows:
                drop(row, NOT_MET, "" if met.get(row[side]) else f"{row[side]!r} in that of {dialect}")
    checker = GRAMMARS.make(options.grammar)
    for row in rows:
        for frame in row["frames"] if row["outcome"] == KEPT else ():
            standard, other = frame.format(row["standard"]), frame.format(row["other"])
            drop(row, UNGRAMMATICAL, told(checker.problem(other, standard, options.other), other, options.other))


def drop(row: dict[str, Any], outcome: str, why: str) -> None:
    """Let a pair fall that has not fallen yet."""
    if why and row["outcome"] == KEPT:
        row.update(outcome=outcome, detail=why)


def told(problem: str, sentence: str, dialect: str) -> str:
    """Say of which sentence, and in which dialect, a problem is."""
    return f"{problem}: {sentence!r} in {dialect}" if problem else ""


def malformed(row: dict[str, Any]) -> str:
    """Say why a proposal is no pair."""
    for side in ("standard", "other"):
        text = row[side]
        if not text or len(text.split()) > WORDS or not all(one.isalpha() or one in " '-’" for one in text):
            return f"{side} is no noun of one to {WORDS} words"
    if row["standard"].casefold() == row["other"].casefold():
        return "both are the same word"
    if not row["frames"] or any(
        frame.count("{}") != 1 or frame.count("{") != 1 or frame.count("}") != 1 or len(frame) > LONGEST
        or not frame.isprintable() for frame in row["frames"]
    ):  # fmt: skip
        return "a sentence without one place {} for the noun"
    return ""
