"""Candidates to artifacts: rules first, then a judge with two questions; every drop has a reason."""

import heapq
import re
import unicodedata
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, Any

import msgspec
import polars as pl
from pydantic import Field

from culturekit.builders.asking import Asked, AskPlan, asks, scratch, wording
from culturekit.core.choices import ANSWERED, VerdictWord
from culturekit.core.declared import Given, Typed
from culturekit.core.errors import UnusableReplies, counted
from culturekit.core.schemas import CANDIDATES, DROPS, KEPT, REMOVED, VERDICTS
from culturekit.core.stage import QUARANTINED, Outcome
from culturekit.core.tables import ROWS_PER_SLICE, TableSlices, slices_of, write_drops, write_frames, write_table
from culturekit.kg.concepts import Concept, Roots
from culturekit.kg.countries import by_qid, countries
from culturekit.kg.store import GraphTables
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Client, FreeClient, Request
from culturekit.llm.cost_plan import amount, cost, expected_tokens, plan_requests
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.models import quoted
from culturekit.llm.rows import Answered, RepliesSeen

BEST_FIRST: tuple[VerdictWord, ...] = ("keep", "review", "remove")

WAITING, REFUSED = "waiting_qids", "refused_qids"
BESIDE: tuple[tuple[str, VerdictWord], ...] = ((WAITING, "review"), (REFUSED, "remove"))


def country_key(qid: str) -> str:
    """Name the country of an item by its code; an item that no file of countries knows stands for itself."""
    known = by_qid().get(qid)
    return qid if known is None else known.iso


def country_name(key: str) -> str:
    """Say what a country is called."""
    return countries()[key].name if key in countries() else key


def code_of(text: str) -> str:
    """Read a country from its name, its code or its item."""
    named = {known.name.casefold(): iso for iso, known in countries().items()}
    return named.get(text.casefold(), country_key(text))


def words_of(row: Mapping[str, Any]) -> dict[str, VerdictWord]:
    """Read the verdict on each country of a row, in the order in which the row states them."""
    words: dict[str, VerdictWord] = {country_key(qid): row["verdict"] for qid in row["country_qids"]}
    for name, word in BESIDE:
        for qid in row.get(name) or ():
            words.setdefault(country_key(qid), word)
    return words


def stated_qids(row: Mapping[str, Any]) -> list[str]:
    """List the items of all countries of a row, whatever was said of them."""
    return [*row["country_qids"], *(row.get(WAITING) or ()), *(row.get(REFUSED) or ())]


def country_rows(rows: pl.DataFrame, *more: str) -> pl.DataFrame:
    """Give a row for each candidate and country with a verdict: concept, qid, country by code, verdict, and `more`."""
    codes = {qid: known.iso for qid, known in by_qid().items()}
    columns = (("country_qids", pl.col("verdict")), *((name, pl.lit(word)) for name, word in BESIDE))
    parts = [
        rows.select("concept", "qid", *more, verdict=word, country=name).explode("country")
        for name, word in columns
        if name in rows.columns
    ]
    placed = pl.concat(parts).drop_nulls("country").with_columns(pl.col("country").replace(codes))
    return placed.unique(["concept", "qid", "country"], keep="first", maintain_order=True)


def parted(
    stated: Sequence[str], words: Mapping[str, VerdictWord]
) -> tuple[VerdictWord, list[str], list[str], list[str]]:
    """Give the verdict of a row, and its items of countries by column; what was not asked about is left out."""
    given = set(words.values())
    verdict = next(word for word in BEST_FIRST if word in given)
    found: dict[VerdictWord, list[str]] = {word: [] for word in BEST_FIRST}
    for qid in dict.fromkeys(stated):
        if (key := country_key(qid)) in words:
            found[words[key]].append(qid)
    kept = found.pop(verdict)
    return verdict, kept, found.get("review", []) if verdict == "keep" else [], found.get("remove", [])


# Reasons, visible in a name alone, why a candidate cannot be an artifact.

MAX_NAME = 200
UNREADABLE = {"Cc", "Co", "Cn", "Cs"}  # unicode categories of characters that no name has; none of them is printable

BARE_QID = re.compile(r"^Q[0-9]+$")
NOT_AN_ITEM = re.compile(r"^(list of|lists of|category:|template:|wikipedia:|portal:|module:)", re.IGNORECASE)
DISAMBIGUATION = re.compile(r"\bdisambiguation\b", re.IGNORECASE)
LATIN_LANGUAGES = frozenset(
    "af de en es fi fil fr ha id ig it nl no pl pt ro sv sw tr vi xh yo zu".split()  # noqa: SIM905 - one line to read
)
"""Languages, of those culturekit knows words of, that are written in Latin letters."""


def name_problem(name: str | None, *, languages: Sequence[str]) -> tuple[str, str] | None:
    """Give the reason and the detail why a name is unusable; None when it will do."""
    if name is None or not name.strip():
        return "no usable label", ""
    if BARE_QID.match(name.strip()):
        return "label is only a QID", name
    if len(name) > MAX_NAME:
        return "malformed name", f"{len(name)} characters"
    if not name.isprintable() and any(unicodedata.category(character) in UNREADABLE for character in name):
        return "malformed name", "control or unassigned characters"
    if not any(map(str.isalpha, name)):
        return "malformed name", "no letters"
    if NOT_AN_ITEM.match(name) or DISAMBIGUATION.search(name):
        return "list, category, template or disambiguation", name
    if name.isascii():
        return None
    letters = [character for character in name if character.isalpha()]
    only_latin = all(language.split("-")[0] in LATIN_LANGUAGES for language in languages)
    if only_latin and not any("LATIN" in unicodedata.name(letter, "") for letter in letters):
        return "name in a script of none of the languages", name
    return None


# The verdicts of candidates: by rules, by what the judge is asked about the rest, and all in their order.


class FilterReply(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the judge answers about one candidate and country; an id is not asked for, and must be right."""

    verdict: VerdictWord
    id: str | None = None
    why: str | None = None
    confidence: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None


class _BareVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a judge is asked for where reasons cost too much."""

    verdict: VerdictWord


class _GivenVerdict(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a judge is asked for."""

    why: Annotated[str, msgspec.Meta(max_length=120)]
    verdict: VerdictWord
    confidence: Annotated[int, msgspec.Meta(ge=50, le=100)]


def rule_problem(row: Mapping[str, Any], concept: Concept | None) -> tuple[str, str] | None:
    """Give the reason and the detail why a candidate needs no judge; None leaves it to the judge."""
    if concept is None:
        return "concept not in the root configs given", row["concept"]
    problem = name_problem(row["label"], languages=concept.languages)
    if problem is None and not concept.codes_of(row["country_qids"]):
        return "country out of scope", ""
    return problem


TASK, WORDING = "cspace.filter", "cspace_filter"
COLUMNS = ("concept", "qid", "label", "description", "country_qids", "roots", "p31", "p279")
"""What of a candidate the rules and the judge look at."""

MOST_LISTED = 20
MOST_CHARACTERS = 600  # no honest description comes near; a dishonest one costs no more than this

REPLY_TOKENS = 256
MOST_WHY = 200


@dataclass(frozen=True, slots=True)
class FilterQuestions:
    """What all questions share: the instructions, the names of classes by QID, and those of countries by code."""

    instructions: str
    classes: Mapping[str, str]
    countries: Mapping[str, str]
    reasons: bool = True

    def about(self, row: Mapping[str, Any], concept: Concept) -> Iterator[Request]:
        """Write the questions about one candidate, one for each country in scope."""
        return (self.about_country(row, concept, iso) for iso in concept.codes_of(row["country_qids"]))

    def about_country(self, row: Mapping[str, Any], concept: Concept, iso: str) -> Request:
        """Write the question about a candidate and a country."""
        description = row["description"]
        data = {
            "id": row["qid"],
            "label": row["label"],
            "description": None if description is None else description[:MOST_CHARACTERS],
            "concept": row["concept"],
            **({"definition": concept.description} if concept.description else {}),
            "roots": named(row["roots"], self.classes),
            "classes": named([*row["p31"], *row["p279"]], self.classes),
            "country": self.countries[iso],
        }
        allowed = {"id": (str(row["qid"]),)}
        asks = _GivenVerdict if self.reasons else _BareVerdict
        return Request(TASK, self.instructions, data, FilterReply, allowed=allowed, max_tokens=REPLY_TOKENS, asks=asks)


def questions_about(concepts: Sequence[Concept], labels: Mapping[str, str], *, reasons: bool = True) -> FilterQuestions:
    """Prepare the questions; `labels` names classes, those of the roots apart, which their configs name."""
    roots = {root.qid: root.label for concept in concepts for root in concept.roots}
    names = {iso: country.name for iso, country in countries().items()}
    return FilterQuestions(wording(WORDING), {**labels, **roots}, names, reasons)


def named(qids: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """Name items, each once; one without a name is known by its QID."""
    return list(dict.fromkeys(names.get(qid, qid) for qid in qids[:MOST_LISTED]))


def candidate_rows(source: TableSlices) -> Iterator[Mapping[str, Any]]:
    """Read what rules and judge look at, row by row."""
    for frame in source.slices(COLUMNS):
        yield from frame.iter_rows(named=True)


ANSWERS = pl.Schema({"index": pl.UInt32(), "country": pl.String(), "verdict": pl.String(), "outcome": pl.String(),
                  "confidence": pl.Float64(), "why": pl.String()})  # fmt: skip
SET_ASIDE = ~pl.col("outcome").is_in(ANSWERED)  # no answer came, so that a person has to look


class CandidateVerdicts:
    """Rules decide while requests are drawn from it; answers are put in their places as they come, in that order."""

    def __init__(self, concepts: Sequence[Concept], questions: FilterQuestions, *, model: str) -> None:
        """Start with no candidate."""
        self.concepts = {concept.concept: concept for concept in concepts}
        self.questions = questions
        self.model = model
        self.ruled: list[tuple[str, str] | None] = []
        self.open: deque[tuple[int, str]] = deque()
        self.rows: list[tuple[object, ...]] = []
        self.frames = [pl.DataFrame(schema=ANSWERS)]

    def requests(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Request]:
        """Give the questions about each candidate that the rules leave open."""
        for index, row in enumerate(rows):
            concept = self.concepts.get(row["concept"])
            self.ruled.append(rule_problem(row, concept))
            if self.ruled[index] is None and concept is not None:
                self.open.extend((index, iso) for iso in concept.codes_of(row["country_qids"]))
                yield from self.questions.about(row, concept)

    def countries_open(self, row: Mapping[str, Any]) -> Sequence[str]:
        """List the countries that the judge is asked about; none where a rule decides."""
        concept = self.concepts.get(row["concept"])
        return () if concept is None or rule_problem(row, concept) else concept.codes_of(row["country_qids"])

    def settle(self, answered: Answered) -> None:
        """Take the answer to the first question that is still open; where none came, people look at the candidate."""
        reply = answered.value if isinstance(answered.value, FilterReply) else FilterReply("review")
        sure = None if reply.confidence is None else reply.confidence / 100
        why = (reply.why or "")[:MOST_WHY] or None
        self.rows.append((*self.open.popleft(), reply.verdict, answered.outcome, sure, why))
        if len(self.rows) == ROWS_PER_SLICE:
            self.pack()

    def pack(self) -> None:
        """Hold what was said in columns, which take less than rows."""
        self.frames.append(pl.DataFrame(self.rows, schema=ANSWERS, orient="row"))
        self.rows.clear()

    @property
    def answers(self) -> pl.DataFrame:
        """What the judge said of each candidate, by its number, and country."""
        self.pack()
        self.frames = [pl.concat(self.frames)]
        return self.frames[0]

    @property
    def settled(self) -> pl.DataFrame:
        """The verdicts on the candidates that the judge was asked about; one that no answer came for is named."""
        best = pl.col("verdict").replace_strict({word: rank for rank, word in enumerate(BEST_FIRST)})
        failed = pl.col("outcome").filter(SET_ASIDE)
        verdict = pl.col("verdict").sort_by(best).first()
        found = self.answers.group_by("index", maintain_order=True).agg(
            verdict, failed=failed.first(), outcome=pl.coalesce(failed.first(), pl.col("outcome").first())
        )
        plain, waits = pl.lit(f"judge {self.model}"), pl.format("judge {}: {}", pl.lit(self.model), "failed")
        return found.with_columns(
            reason=pl.when(verdict="review").then(pl.coalesce(waits, plain)).otherwise(plain)
        ).drop("failed")

    def judged(self, source: TableSlices) -> Iterator[pl.DataFrame]:
        """Give the candidates with verdict, reason, detail, and the countries kept, waiting and refused of each."""
        words, settled, start = self.answers.select("index", "country", word="verdict"), self.settled.drop("outcome"), 0
        codes = {qid: known.iso for qid, known in by_qid().items()}
        for frame in source.slices():
            ruled = self.ruled[start : start + frame.height]
            index = pl.int_range(start, start + frame.height, dtype=pl.UInt32)
            rules = [pl.Series("rule", [one and one[0] for one in ruled], dtype=pl.String),
                     pl.Series("detail", [(one and one[1]) or None for one in ruled], dtype=pl.String)]  # fmt: skip
            rows = frame.with_columns(*rules, index=index).join(settled, on="index", how="left", maintain_order="left")
            stated = rows.select("index", best="verdict", qid="country_qids").explode("qid").drop_nulls()
            stated = stated.unique(maintain_order=True).with_columns(country=pl.col("qid").replace(codes))
            qid, word, best = pl.col("qid"), pl.col("word"), pl.col("best")
            asked = stated.join(words, on=["index", "country"], maintain_order="left").group_by("index").agg(
                of=qid.filter(word == best),
                waits=qid.filter((word == "review") & (best == "keep")),
                refused=qid.filter((word == "remove") & (best != "remove")),
            )  # fmt: skip
            rows = rows.join(asked, on="index", how="left", maintain_order="left")
            nothing = pl.lit([], pl.List(pl.String))
            yield rows.with_columns(
                pl.coalesce("verdict", pl.lit("remove")),
                pl.coalesce("of", "country_qids").alias("country_qids"),
                pl.coalesce("waits", nothing).alias(WAITING),
                pl.coalesce("refused", nothing).alias(REFUSED),
                reason=pl.coalesce("rule", "reason"),
            )
            start += frame.height

    def table(self, source: TableSlices) -> pl.DataFrame:
        """Give what the judge said of each candidate and country."""
        keys = pl.concat(list(source.slices(("concept", "qid")))).with_row_index("index")
        # Whether a reply had to be repaired depends on how it came, and no table may.
        outcome = pl.when(SET_ASIDE).then("outcome").otherwise(pl.lit(ANSWERED[0]))
        rows = self.answers.with_columns(outcome=outcome).join(keys, on="index")
        return rows.select(list(VERDICTS.schema)).sort(VERDICTS.key)

    def outcomes(self) -> dict[str, int]:
        """Count how asking ended."""
        return dict(sorted(Counter(self.settled["outcome"]).items()))


# A pilot: a few candidates to ask about first, drawn by hash and spread over the concepts.


def draw_pilot(rows: Iterable[Mapping[str, Any]], size: int) -> frozenset[tuple[str, str]]:
    """Draw candidates, as (concept, qid): the same ones each time, whatever order the rows come in.

    Each concept gives as many as its share of all candidates, and at least one where there is room.
    """
    lots: dict[str, list[tuple[bytes, str]]] = {}
    for row in rows:
        lot = blake2b(f"{row['concept']} {row['qid']}".encode(), digest_size=8).digest()
        lots.setdefault(row["concept"], []).append((lot, row["qid"]))
    wanted = shares({concept: len(several) for concept, several in lots.items()}, size)
    return frozenset(
        (concept, qid) for concept, several in lots.items() for _, qid in heapq.nsmallest(wanted[concept], several)
    )


def shares(counts: Mapping[str, int], size: int) -> dict[str, int]:
    """Share out places by largest remainder, one to each first, none with more than it can fill."""
    names: Sequence[str] = sorted(counts)
    total = sum(counts.values())
    if total <= size:
        return dict(counts)
    given = {name: int(position < size) for position, name in enumerate(names)}
    exact = {name: size * counts[name] / total for name in names}
    while sum(given.values()) < size:
        open_names = [name for name in names if given[name] < counts[name]]
        given[max(open_names, key=lambda name: exact[name] - given[name])] += 1
    return given


SAMPLED = 20  # verdicts of a pilot that are shown with what they are about

NO_DROPS = pl.DataFrame(schema=DROPS.schema)


@dataclass(frozen=True, slots=True)
class PilotOutcome:
    """How many questions a pilot asked, how they ended, and what came: all verdicts, and some by name."""

    asked: int
    outcomes: Mapping[str, int]
    verdicts: Mapping[str, int]
    samples: Sequence[tuple[str, str, str]]
    replies: RepliesSeen

    @property
    def to_mend(self) -> str:
        """Why a person has to look at the replies first."""
        return self.replies.to_mend

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        return asdict(self)

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        ended, verdicts = (
            ", ".join(f"{count:,} {name}" for name, count in counts.items())
            for counts in (self.outcomes, self.verdicts)
        )
        yield f"pilot: asked {counted(self.asked, 'questions')} ({ended}); their answers are kept for the run"
        yield f"  verdicts: {verdicts or 'none'}"
        yield from self.replies.lines()
        for verdict, label, concept in self.samples:
            yield f"    {verdict:<9} {label[:60]!r} ({concept})"


def write_judged(
    folder: Path, source: TableSlices, verdicts: CandidateVerdicts
) -> tuple[dict[str, int], dict[str, int]]:
    """Part the candidates by verdict, each table in the order of its key; count rows, and drops by reason."""
    counts = {"kept": 0, "review": 0, "waiting countries": 0, "refused countries": 0}
    dropped: list[pl.DataFrame] = []
    beside = {name: KEPT.optional[name] for name in (WAITING, REFUSED)}
    table = replace(KEPT, optional={**source.table.optional, **beside})
    removed = pl.col("verdict") == "remove"

    def kept() -> Iterator[pl.DataFrame]:
        for frame in verdicts.judged(source):
            dropped.append(as_drops(frame.filter(removed)))
            stays = frame.filter(~removed).select(*table.columns, *table.optional)
            counts["kept"] += stays.height
            counts["review"] += stays.filter(pl.col("verdict") == "review").height
            for name, column in (("waiting countries", WAITING), ("refused countries", REFUSED)):
                counts[name] += int(stays[column].list.len().sum())
            yield stays

    def refused() -> Iterator[pl.DataFrame]:
        asked = pl.col("reason").str.starts_with("judge ")
        return (
            frame.filter(removed & asked).select(*table.columns, *table.optional) for frame in verdicts.judged(source)
        )

    write_frames(folder, table, kept(), rows_per_group=ROWS_PER_SLICE)
    write_frames(folder, replace(table, name=REMOVED.name), refused(), rows_per_group=ROWS_PER_SLICE)
    drops = pl.concat([NO_DROPS, *dropped])
    found = {name: count for name, count in counts.items() if count or name in {"kept", "review"}}
    return {**found, "drops": drops.height}, write_drops(folder, drops)


def as_drops(removed: pl.DataFrame, stage: str = "filter") -> pl.DataFrame:
    """Write removed candidates as drops."""
    rows = removed.select("concept", "reason", "detail", key="qid", stage=pl.lit(stage))
    return rows.select(list(DROPS.columns))


# What filtering candidates would take: how many the rules decide, what is left to the judge, and its price.


@dataclass(frozen=True)
class FilterPlan(AskPlan):
    """What asking takes, and how much of it reasons are."""

    reasons_usd: float | None = None

    def as_data(self) -> dict[str, object]:
        """Give it as data."""
        data = asdict(self)
        return {"candidates": data.pop("units"), "dropped_by_rules": data.pop("left_out"), **data}

    def lines(self) -> Iterator[str]:
        """Say it in words."""
        yield from AskPlan.lines(self)
        if self.reasons_usd:
            yield f"reasons and confidence are about {amount(self.reasons_usd)} USD of it; --no-reasons leaves them out"


def judged_concepts(concepts: Sequence[Concept]) -> Mapping[str, object]:
    """Give what rules and judge read of root configs: languages, countries, and what the roots are called.

    A manifest that named the whole configs would have the stage made again for a key that it never reads.
    """
    return {
        "concepts": {
            concept.concept: {
                **concept.model_dump(mode="json", include={"concept", "countries", "languages"}),
                **({"description": concept.description} if concept.description else {}),
                "roots": [{"qid": root.qid, "label": root.label} for root in concept.roots],
            }
            for concept in concepts
        }
    }


def _opened(client: Client | FreeClient, given: Given, folder: Path) -> tuple[TableSlices, CandidateVerdicts]:
    """Open the candidates, and prepare what is asked about them."""
    source = slices_of(given["candidates"], CANDIDATES, scratch=folder)
    graph, frames = given["graph"], source.slices(("p31", "p279"))
    labels = {} if graph is None else GraphTables(graph).class_names(frames)
    questions = questions_about(given["roots"], labels, reasons=given["reasons"])
    return source, CandidateVerdicts(given["roots"], questions, model=client.model)


def _plan(client: Client | FreeClient, given: Given, out: Path, _: object) -> FilterPlan:
    """Plan, offline."""
    with scratch() as folder:
        source, verdicts = _opened(client, given, folder)
        requests, spent = verdicts.requests(candidate_rows(source)), read_spending(journal_for(out))
        plan = plan_requests(client, requests, spent=spent, batch=given["llm"].batch)
    left_out = sum(problem is not None for problem in verdicts.ruled)
    if isinstance(client, FreeClient):
        return FilterPlan(client.model, "candidates", source.rows, left_out, plan.requests, None)
    more = (plan.requests - plan.bought) * (expected_tokens(_GivenVerdict) - expected_tokens(_BareVerdict))
    usd = cost(client.rate, 0, more, plan.mode) if given["reasons"] else None
    return FilterPlan(client.model, "candidates", source.rows, left_out, plan.requests, plan, usd)


def _pilot(asked: Asked, given: Given, size: int) -> PilotOutcome:
    """Ask about a few candidates, spread over the concepts."""
    source, verdicts = _opened(asked.client, given, asked.work.scratch)
    drawn = draw_pilot((row for row in candidate_rows(source) if verdicts.countries_open(row)), size)
    rows = [row for row in candidate_rows(source) if (row["concept"], row["qid"]) in drawn]
    stopped = ""
    try:
        _ask(asked, verdicts, lambda: rows, "questions of a pilot")
    except UnusableReplies as error:
        stopped = str(error)
    usable = verdicts.settled.filter(~SET_ASIDE).select("verdict", "index").rows()
    judged = [(verdict, rows[index]) for verdict, index in usable]
    return PilotOutcome(
        asked.watch.rows,
        verdicts.outcomes(),
        dict(sorted(Counter(verdict for verdict, _ in judged).items())),
        [(verdict, row["label"], row["concept"]) for verdict, row in judged[:SAMPLED]],
        asked.watch.seen(stopped=stopped),
    )


def _ask(asked: Asked, verdicts: CandidateVerdicts, rows: Callable[[], Iterable[Mapping[str, Any]]], unit: str) -> None:
    """Ask about the candidates that the rules leave open."""
    asked.work.progress.begin(sum(len(verdicts.countries_open(row)) for row in rows()), unit)
    for answer in asked.answered(asked.work, verdicts.requests(rows())):
        verdicts.settle(answer)


@asks(
    "filter", "filter", TASK, words=WORDING, unit="candidates", version=5, key=str, plan=_plan, pilot=_pilot,
    decides=lambda given: {**judged_concepts(given["roots"]), **({} if given["reasons"] else {"reasons": False})},
    example=f"--candidates candidates/candidates.parquet --roots cuisine --llm {quoted('text-small')} --out kept "
    "--budget 20",
    help={"pilot": "Ask about so many candidates only, then say what the rest would cost.", "again": "Judge"},
)  # fmt: skip
def filter_candidates(
    asked: Asked,
    candidates: Annotated[Path, Field(description="Table that `kg extract` wrote.")],
    graph: Annotated[
        Path | None, Field(description="Graph of the candidates: it tells the judge what their classes are called.")
    ] = None,
    *,
    roots: Roots,
    judge: Annotated[
        str, Field(description="Who judges, as a SPEC: rules, openai:MODEL, google:MODEL, replay:FOLDER."), Typed("llm")
    ],
    reasons: Annotated[
        bool, Field(description="The judge says why, in a few words, and how surely; `--plan` says what that costs.")
    ] = True,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Judge candidates, and keep the reason of each drop."""
    given = {"candidates": candidates, "graph": graph, "roots": roots, "reasons": reasons}
    source, verdicts = _opened(asked.client, given, asked.work.scratch)
    _ask(asked, verdicts, partial(candidate_rows, source), "questions")
    counts, dropped = write_judged(asked.work.out, source, verdicts)
    write_table(asked.work.out, VERDICTS, verdicts.table(source))
    set_aside = verdicts.settled.filter(SET_ASIDE).height
    return Outcome(
        counts | ({QUARANTINED: set_aside} if set_aside else {}),
        dropped,
        {
            "judge": asked.client.model,
            "caveat": asked.client.caveat,
            "outcomes": verdicts.outcomes(),
            **asked.watch.notes(),
            "wording": {f"{WORDING}.txt": asked.instructions},
        },
    )
