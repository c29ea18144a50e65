"""Prompts in two dialects: pairs listed, proposed or reviewed, in corpora, grammatical; each that falls says why."""

import gzip
import hashlib
import importlib
import os
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Any, Protocol, TypeAlias

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asking import AskedRows, AskPlan, asking_stage, bounded, plan_to_ask, row_id
from culturekit.builders.prompting.quotas import cell_mistakes, decided_rows, decision_of
from culturekit.builders.simulated.simulated_model import TALK, Manner
from culturekit.core.atomic import write_atomically
from culturekit.core.declared import AskingCommand, Typed
from culturekit.core.digests import InputRecord, digest_bytes, digest_file
from culturekit.core.errors import UsageError
from culturekit.core.package_data import shipped
from culturekit.core.registry import Entry, Registry, Spec
from culturekit.core.schemas import DIALECT_PAIRS, PROMPTS
from culturekit.core.spreadsheet_cells import sheet_bytes
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import write_table
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.models import quoted
from culturekit.people.candidate_review import named_by_content
from culturekit.recipes.linguistic.prompts import (
    UNREVIEWED,
    DialectPair,
    article,
    lists_input,
    load_lists,
    prompt_row,
    shipped_lists,
    slug,
)

# Whether phrases are met in a corpus: a file or a folder of any size, read line by line.

SUFFIXES = (".txt", ".tsv", ".csv", ".jsonl", ".gz")
LONGEST_TOKEN = 1 << 14  # bytes of a line that are looked at together

CORPUS_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")


def corpus_files(location: Path) -> Iterator[Path]:
    """Yield the files of a corpus, folder by folder in the order of names; there is at least one."""
    found = iter([location]) if location.is_file() else _files_below(location)
    first = next(found, None)
    if first is None:
        expected = f"a file, or a folder of {', '.join(SUFFIXES)}"
        raise UsageError("there is no corpus", where=str(location), expected=expected)
    return chain([first], found)


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, inside, names in os.walk(folder):
        inside.sort()
        yield from (Path(parent, name) for name in sorted(names) if name.endswith(SUFFIXES))


def corpus_digest(location: Path) -> str:
    """Hash the names of a corpus's files and what they hold, one after the other."""
    every = hashlib.sha256()
    for path in corpus_files(location):
        every.update(f"{path.relative_to(location).as_posix()}\0{digest_file(path)}\n".encode())
    return every.hexdigest()


def _corpus_record(location: Path, _: Path) -> InputRecord:
    return InputRecord(corpus_digest(location), "a corpus")


def phrases_met(location: Path, phrases: Collection[str]) -> dict[str, int]:
    """Count how often each phrase stands in a line of a corpus, as whole words, whatever their case."""
    wanted = {_words_of(phrase): phrase for phrase in phrases}
    met = dict.fromkeys(phrases, 0)
    lengths = sorted({len(words) for words in wanted})
    for path in corpus_files(location):
        for text, counted in _lines_of(path, keep=max(lengths, default=1) - 1):
            words = _words_of(text)
            for length in lengths:
                for at in range(max(0, counted - length + 1), len(words) - length + 1):
                    phrase = wanted.get(words[at : at + length])
                    if phrase is not None:
                        met[phrase] += 1
    return met


def _words_of(text: str) -> tuple[str, ...]:
    return tuple(word.replace("’", "'") for word in CORPUS_WORD.findall(text.casefold()))


def _lines_of(path: Path, *, keep: int) -> Iterator[tuple[str, int]]:
    """Read a file, compressed or not, line by line, and a long line in pieces; say how many words are repeated.

    A piece begins with the `keep` words that the one before ended with.
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
                    last = _words_of(text)[-keep:] if keep else ()
                    held, counted = f"{' '.join(last)} ".encode() + held[cut:], len(last)
    except (OSError, EOFError) as error:
        raise UsageError("the corpus cannot be read", where=str(path), found=str(error)) from error
    if held:
        yield held.decode("utf-8", "replace"), counted


# Whether a sentence is grammatical in a dialect: a protocol, rules of our own, and an adapter for Multi-VALUE.

DETERMINERS = "a an the his her their my your our its this that these those"
SINGLE = frozenset(("a", "an", "this", "that"))
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|\d+")
# What Multi-VALUE calls dialects; others by the names of its classes, or the first word of them: Irish.
OF_DIALECTS = {
    "AAE": "AfricanAmericanVernacular", "AAVE": "AfricanAmericanVernacular", "Singlish": "ColloquialSingaporeDialect",
}  # fmt: skip
# Times that Multi-VALUE is asked at most. Its rules hold by chance, as often as they are attested: version 0.3 leaves
# "a man driving his car" as it is in 14 of 100 draws, and what comes in one of ten is missed once in a thousand.
DRAWS = 64


class GrammarChecker(Protocol):
    """Says what is wrong with a sentence in a dialect; nothing where nothing is."""

    name: str

    def problem(self, sentence: str, counterpart: str, dialect: str) -> str:
        """Look at a sentence, beside its counterpart in the standard dialect."""


class Rules:
    """A few rules that hold in every dialect of English: articles, doubled words, words that are none."""

    name = "rules"

    def __init__(self, _: Spec | None = None) -> None:
        """Take no options."""

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
            plural = len(after) > 3 and after.endswith("s") and not after.endswith(("ss", "us", "is"))
            if low in SINGLE and plural:
                return f"{first!r} before {second!r}, which are many"
        return ""


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
        (old, new), expected = _exchanged(counterpart.split(), sentence.split()), ""
        try:
            for draw in range(DRAWS):
                rules.set_seed(draw)
                expected = rules.transform(counterpart)
                expected = re.sub(rf"\b{re.escape(old)}\b", lambda _: new, expected) if old else expected
                if _plain(expected) == _plain(sentence):
                    return ""
        except (AssertionError, LookupError, ValueError, AttributeError) as error:
            return f"Multi-VALUE cannot read it ({error})"
        return f"its rules make {expected!r} of it"

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
            with _loading():
                self.loaded[dialect] = kind()
        return self.loaded[dialect]


@contextmanager
def _loading() -> Iterator[None]:
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


def _exchanged(standard: list[str], other: list[str]) -> tuple[str, str]:
    """Find what stands in the one sentence in place of what stands in the other: all between their common ends."""
    shared = min(len(standard), len(other))
    begin = next((at for at in range(shared) if standard[at] != other[at]), shared)
    end = next((at for at in range(shared - begin) if standard[-1 - at] != other[-1 - at]), shared - begin)
    return " ".join(standard[begin : len(standard) - end]), " ".join(other[begin : len(other) - end])


def _plain(sentence: str) -> str:
    return " ".join(sentence.casefold().split()).rstrip(".")


def make_multi_value(_: Spec) -> GrammarChecker:
    """Make the adapter, where Multi-VALUE is installed."""
    with _loading():
        return MultiValue(importlib.import_module("multivalue.Dialects"))


GRAMMARS: Registry[GrammarChecker] = Registry(
    "grammar",
    [
        Entry("rules", f"{__name__}:Rules", "articles, doubled words and words that are none, in any dialect"),
        Entry("multi-value", f"{__name__}:make_multi_value", "the rules of Multi-VALUE, where it is installed"),
    ],
    point="grammar",
)

PROPOSE_PAIRS = "dialects.propose"
KEPT, NOT_REVIEWED, REPEATED, MALFORMED = "kept", "unreviewed", "repeated", "malformed"
NOT_MET, UNGRAMMATICAL = "not in the corpus", "not grammatical"
PER_QUESTION, LONGEST, WORDS = 10, 200, 3
REVIEW = "review.csv"
SHEET = ("standard", "other", "frames", "proposer", "outcome", "detail", "source", "decision", "new_name")
BETWEEN = " / "  # the sentences of a pair in a cell of the sheet


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
class DialectOptions:
    """Which dialects, who proposes, and how many."""

    proposer: Annotated[
        str | None, Field(description="Who proposes pairs, as a SPEC. [nobody: those of a list]"), Typed("llm")
    ] = None
    standard: Annotated[str, Field(description="The standard dialect.")] = "SAE"
    other: Annotated[str, Field(description="The other dialect.")] = "AAE"
    count: Annotated[int, Field(ge=1, le=1000, description="Pairs that are asked for.")] = 30
    grammar: Annotated[str, Field(description="Who says what is grammatical: rules or multi-value.")] = "rules"
    unreviewed: Annotated[bool, Field(description="Make prompts of listed pairs that nobody has reviewed, too.")] = (
        False
    )


SAE_AND_AAE = DialectOptions()


INSTRUCTIONS = "recipes/linguistic/dialects_propose.txt"


def pair_requests(options: DialectOptions) -> Iterator[Request]:
    """Ask for pairs, some at a time; what is said twice is dropped afterwards."""
    instructions = shipped(INSTRUCTIONS).read_text(encoding="utf-8")
    for number, start in enumerate(range(0, options.count, PER_QUESTION), start=1):
        asked = row_id(options.standard, options.other, str(number))
        wanted = min(PER_QUESTION, options.count - start)
        data = {"id": asked, "standard": options.standard, "other": options.other, "batch": number, "wanted": wanted}
        yield Request(
            PROPOSE_PAIRS, instructions, data, ProposedPairs, allowed={"id": (asked,)}, max_tokens=2048,
            asks=bounded(ProposedPairs, "pairs", wanted),
        )  # fmt: skip


StandardCorpus: TypeAlias = Annotated[
    Path | None, Field(description="File or folder of texts in the standard dialect; of any size.")
]
OtherCorpus: TypeAlias = Annotated[Path | None, Field(description="The same in the other dialect.")]


def dialects_stage(
    lists: Annotated[
        Path | None, Field(description="YAML with `pairs`. [the shipped lists, unless --llm proposes]")
    ] = None,
    standard_corpus: StandardCorpus = None,
    other_corpus: OtherCorpus = None,
    review: Annotated[
        Path | None, Field(description="The sheet of a draft, filled in: prompts are of the pairs that people accept.")
    ] = None,
    *,
    options: DialectOptions = SAE_AND_AAE,
    llm: LlmOptions = DEFAULTS,
) -> Stage:
    """Build prompts in two dialects.

    Pairs of a list, of a reviewed sheet or of a model, met in corpora, and grammatical.
    """
    if sum(one is not None for one in (options.proposer, lists, review)) > 1:
        raise UsageError("pairs are proposed (--llm), listed (--lists) or reviewed (--review)", expected="one of them")
    if options.proposer is None and review is None:
        known = load_lists(lists)
        if not known.pairs_of(options.other) or (lists is None and options.standard != SAE_AND_AAE.standard):
            dialects = sorted({pair.dialect for pair in known.pairs})
            raise UsageError(
                f"the list has no pairs of {options.standard} and {options.other}", where=str(lists or "as shipped"),
                expected=f"{SAE_AND_AAE.standard} and {' or '.join(dialects)}",
                hint=f"Draft some: prompts dialects draft --dialect {options.other} --llm SPEC; or give --lists.",
            )  # fmt: skip
    return _pairs_stage({"lists": lists, "review": review}, (standard_corpus, other_corpus), options, llm)


def draft_stage(
    standard_corpus: StandardCorpus = None, other_corpus: OtherCorpus = None, *,
    dialect: Annotated[str, Field(description="The dialect, such as Singlish.")],
    proposer: Annotated[str, Field(description="Who proposes pairs, as a SPEC."), Typed("llm")],
    standard: Annotated[str, Field(description="The standard dialect.")] = SAE_AND_AAE.standard,
    count: Annotated[int, Field(ge=1, le=1000, description="Pairs that are asked for.")] = SAE_AND_AAE.count,
    llm: LlmOptions = DEFAULTS,
) -> Stage:  # fmt: skip
    """Draft pairs of a dialect.

    A model proposes, corpora are looked through, and people who speak it decide on a sheet.
    """
    options = DialectOptions(proposer, standard, dialect, count)
    return _pairs_stage({}, (standard_corpus, other_corpus), options, llm, draft=True)


def _pairs_stage(
    given: Mapping[str, Path | None], corpora: tuple[Path | None, Path | None], options: DialectOptions,
    llm: LlmOptions, *, draft: bool = False,
) -> Stage:  # fmt: skip
    client = None if options.proposer is None else CLIENTS.make(options.proposer)
    GRAMMARS.check(options.grammar)
    both = zip(("standard", "other"), corpora, strict=True)
    looked_through = {side: path for side, path in both if path is not None and any(corpus_files(path))}
    texts = {f"{side}-corpus": path for side, path in looked_through.items()}
    review, lists = given.get("review"), given.get("lists")
    listed = {"review": review} if review is not None else lists_input(lists) if client is None else {}

    def written(work: Work, rows: list[dict[str, Any]]) -> tuple[dict[str, int], Counter[str]]:
        sifted = _sifted(rows, looked_through, options)
        fell = Counter(row["outcome"] for row in sifted if row["outcome"] != KEPT)
        return (_write_draft(work, sifted) if draft else _write_pairs(work, sifted, options)), fell

    def run(work: Work) -> Outcome:
        if client is None:
            pairs = load_lists(lists).pairs_of(options.other) if review is None else accepted_pairs(review)
            return Outcome(*written(work, [_pair_row(pair, pair.origin, pair.source) for pair in pairs]))
        asked: AskedRows[Request] = AskedRows(PROPOSE_PAIRS, client, llm, lambda request: str(request.data["id"]))
        rows = []
        for _, value in asked.ask(work, list(pair_requests(options)), lambda request: request, unit="questions"):
            assert isinstance(value, ProposedPairs)
            rows += [_pair_row(pair, client.model) for pair in value.pairs]
        counts, fell = written(work, rows)
        return asked.outcome(work, counts, proposals=dict(sorted(fell.items())))

    decided = {name: value for name, value in asdict(options).items() if name != "proposer"}
    trees = {side: partial(_corpus_record, path) for side, path in texts.items() if path.is_dir()}
    trees |= {} if review is None else {"review": partial(named_by_content, review)}
    folder, kind = ("draft", "draft-dialects") if draft else ("prompts", "build-dialects")
    stage = Stage(folder, kind, 4, run, {**texts, **listed}, decided, packages=("msgspec", "polars"), trees=trees)
    if client is None or options.proposer is None:
        return stage

    def plan(out: Path, _: object) -> AskPlan:
        return plan_to_ask(client, "questions", pair_requests(options), out, llm)

    asking = {"task": PROPOSE_PAIRS, "wording": digest_bytes(shipped(INSTRUCTIONS).read_bytes())}
    stage = replace(stage, options={**decided, **asking})
    return asking_stage(stage, options.proposer, client, unit="questions", plan=plan, ahead=True, llm=llm)


CORPORA = "--standard-corpus tweets/sae --other-corpus tweets/aae"
DIALECTS = AskingCommand(dialects_stage, f"--llm {quoted('text')} {CORPORA} --out prompts")
DRAFT = AskingCommand(draft_stage, f"--dialect Singlish --llm {quoted('text')} --out draft")


def _write_pairs(work: Work, rows: Sequence[dict[str, Any]], options: DialectOptions) -> dict[str, int]:
    """Write all pairs, and prompts of those that are left; count both."""
    table = pl.DataFrame([{**row, "position": n} for n, row in enumerate(rows, 1)], schema=DIALECT_PAIRS.schema)
    write_table(work.out, DIALECT_PAIRS, table)
    left = (KEPT, NOT_REVIEWED) if options.unreviewed else (KEPT,)
    prompts = _dialect_prompts([row for row in rows if row["outcome"] in left], options)
    write_table(work.out, PROMPTS, pl.DataFrame(prompts, schema=PROMPTS.schema).sort(PROMPTS.key))
    return {"pairs": table.height, "kept": table.filter(outcome=KEPT).height, "prompts": len(prompts)}


def _write_draft(work: Work, rows: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Write the sheet on which people decide, those first that nothing speaks against; repeated pairs are not on it."""
    blank = dict.fromkeys(("source", "decision", "new_name"), "")
    shown = sorted((row for row in rows if row["outcome"] != REPEATED), key=lambda row: row["outcome"] != KEPT)
    cells = [{**row, **blank, "frames": BETWEEN.join(row["frames"]), "detail": row["detail"] or "",
              "outcome": row["outcome"].replace(KEPT, NOT_REVIEWED)} for row in shown]  # fmt: skip
    write_atomically(work.out / REVIEW, sheet_bytes(SHEET, cells))
    return {"pairs": len(cells)}


def accepted_pairs(sheet: Path) -> list[DialectPair]:
    """Read the pairs that people accept, some with another word."""
    names = ("standard", "other", "frames", "source")
    decided = decided_rows(sheet, (*names[:3], "decision"), lambda row: tuple(row.cells.get(one, "") for one in names),
                           cell_mistakes, decision_of)  # fmt: skip
    accepted = [
        DialectPair(standard=standard, other=decision.name or other, frames=tuple(frames.split(BETWEEN)),
                    origin="reviewed", source=source)
        for (standard, other, frames, source), decision in decided.items()
        if decision is not None and decision.verdict != "reject"
    ]  # fmt: skip
    if not accepted:
        raise UsageError("people accepted no pair", where=str(sheet), expected="accept, or edit with a new name")
    return accepted


def _pair_row(pair: ProposedPair | DialectPair, proposer: str, source: str = "") -> dict[str, Any]:
    return {"standard": pair.standard.strip(), "other": pair.other.strip(),
            "frames": [frame.strip() for frame in pair.frames], "proposer": proposer, "outcome": KEPT,
            "detail": source or None}  # fmt: skip


def _dialect_prompts(pairs: Sequence[dict[str, Any]], options: DialectOptions) -> list[dict[str, Any]]:
    """Write each sentence of each pair in both dialects; a sentence and its counterpart share thing and template."""
    return [
        {**prompt_row(f"dialect-{number:03}-{slug(pair['other'])}-{position}-{slug(dialect)}", frame.format(word),
                      "dialect", group=dialect, thing=f"{pair['other']} ({pair['standard']})",
                      template=f"frame-{position}"),
         "meaning": f"{word}: {article(pair['standard'])}" if word != pair["standard"] else article(word)}
        for number, pair in enumerate(pairs, start=1)
        for position, frame in enumerate(pair["frames"], start=1)
        for dialect, word in ((options.standard, pair["standard"]), (options.other, pair["other"]))
    ]  # fmt: skip


def _sifted(rows: list[dict[str, Any]], corpora: Mapping[str, Path], options: DialectOptions) -> list[dict[str, Any]]:
    """Decide what becomes of each pair: malformed or repeated, corpus by corpus, sentence by sentence, unreviewed."""

    def drop(row: dict[str, Any], outcome: str, why: str) -> None:
        if why and row["outcome"] == KEPT:
            row.update(outcome=outcome, detail=why)

    taken: set[tuple[str, str]] = set()
    for row in rows:
        key = (row["standard"].casefold(), row["other"].casefold())
        drop(row, MALFORMED, _malformed(row))
        drop(row, REPEATED, "an earlier pair" if key in taken else "")
        taken |= {key} if row["outcome"] == KEPT else set()
    for side, corpus in corpora.items():
        met = phrases_met(corpus, {row[side] for row in rows if row["outcome"] == KEPT})
        for row in rows:
            drop(row, NOT_MET, "" if met.get(row[side]) else f"{row[side]!r} in that of {getattr(options, side)}")
    checker = GRAMMARS.make(options.grammar)
    for row in rows:
        for frame in row["frames"] if row["outcome"] == KEPT else ():
            standard, other = frame.format(row["standard"]), frame.format(row["other"])
            problem = checker.problem(other, standard, options.other)
            drop(row, UNGRAMMATICAL, f"{problem}: {other!r} in {options.other}" if problem else "")
        drop(row, NOT_REVIEWED, row["detail"] or "no source is given" if row["proposer"] == UNREVIEWED else "")
    return rows


def _malformed(row: dict[str, Any]) -> str:
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


def propose_pairs(data: Mapping[str, Any], manner: Manner) -> dict[str, object]:
    """Propose pairs of dialects: those that the world knows, some turned round, some with talk for a sentence."""
    pairs = []
    for pair in shipped_lists().pairs_of(data["other"]) or shipped_lists().pairs:
        standard, other, frames = pair.standard, pair.other, list(pair.frames)
        if manner.yields(manner.omits, None, "omits", data["batch"], other):
            continue
        if manner.yields(manner.invents, None, "invents", data["batch"], other):
            standard, other = other, standard
        if manner.yields(manner.prose, None, "prose", data["batch"], other):
            frames = [TALK]
        pairs.append({"standard": standard, "other": other, "frames": frames})
    start = (data["batch"] - 1) * data["wanted"] % max(1, len(pairs))
    return {"id": data["id"], "pairs": [*pairs[start:], *pairs[:start]][: data["wanted"]]}
