"""Captions expanded from seeds: rounds of questions, each with five earlier captions and for five new ones.

A round asks side by side as many questions as there are samples of five that share no caption, so the first rounds are
small. All of them see the captions of earlier rounds only: what comes does not depend on who answers first.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias

import msgspec
import numpy as np
import polars as pl
from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.asking import Asked, AskPlan, asks, bounded, plan_to_ask, row_id, wording
from culturekit.builders.country_names import folded
from culturekit.core.declared import Given, Seed, Typed
from culturekit.core.errors import UsageError
from culturekit.core.package_data import found_or_shipped
from culturekit.core.registry import spec_state
from culturekit.core.schemas import CAPTION_PROPOSALS, CAPTIONS
from culturekit.core.stage import QUARANTINED, Outcome
from culturekit.core.tables import write_table
from culturekit.core.yaml_source import StrictModel, closest, load_model, not_empty
from culturekit.index.embedding.embedding import encoding_pool, text_encoder_of
from culturekit.index.encoder import ENCODERS, Vectors
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Request
from culturekit.llm.ledger import journal_for, read_spending
from culturekit.llm.models import quoted
from culturekit.llm.untrusted import strip_hidden

# A culture that captions are about: its seed captions and categories of error, from YAML.

FOLDER = "builders/captions/cultures"


class SeedCaption(StrictModel):
    """A caption to begin with, which a person should have checked."""

    caption: Annotated[str, Field(min_length=1, description="What a picture should show, in one sentence.")]
    category: Annotated[str, Field(description="The category of error that it leads to.")]


class CaptionCulture(StrictModel):
    """A culture, what models get wrong about it, and captions that show it."""

    culture: Annotated[str, Field(min_length=1, description="The adjective of the culture, such as Chinese.")]
    language: Annotated[str, Field(pattern="^[a-z]{2,3}$", description="Language of the captions, ISO 639.")] = "en"
    categories: Annotated[
        Mapping[Annotated[str, Field(pattern="^[a-z][a-z-]*$")], Annotated[str, Field(min_length=1)]],
        AfterValidator(not_empty),
        Field(description="Categories of error, each with what it means."),
    ]
    seeds: Annotated[
        tuple[SeedCaption, ...],
        Field(
            min_length=5,
            description="Captions to begin with, five or more. A text alone, as a list in a paper has them, is of the "
            "category in its place, over again where there are fewer.",
        ),
    ]

    @model_validator(mode="before")
    @classmethod
    def with_categories(cls, data: Any) -> Any:  # noqa: ANN401 - what YAML holds
        """Give seeds that are texts alone the categories in order."""
        match data:
            case {"seeds": list(seeds), "categories": dict(categories)} if categories:
                named = list(categories)
                whole = [{"caption": seed, "category": named[number % len(named)]} if isinstance(seed, str) else seed
                         for number, seed in enumerate(seeds)]  # fmt: skip
                return {**data, "seeds": whole}
        return data

    @model_validator(mode="after")
    def belong_together(self) -> "CaptionCulture":
        """Reject seeds that are the same, or of no category."""
        for seed in self.seeds:
            if seed.category not in self.categories:
                raise ValueError(f"{seed.category!r} is no category{closest(seed.category, list(self.categories))}")
        if len({folded(seed.caption) for seed in self.seeds}) < len(self.seeds):
            raise ValueError("two seeds are the same but for case and punctuation")
        return self

    @property
    def slug(self) -> str:
        """How ids of its captions begin."""
        return "-".join(folded(self.culture).split())


def culture_file(name: str) -> Path:
    """Find the file of a culture: one of the user's, or the shipped one of that name."""
    return found_or_shipped(name, FOLDER, "culture")


def load_culture(path: Path) -> CaptionCulture:
    """Read a culture; every mistake is said at once."""
    return load_model(path, CaptionCulture)


# Captions that are kept, and which of them a new one is most like: by its words, then by an encoder.

KEPT, SAME, ALIKE, TOO_MANY = "kept", "same as an earlier caption", "like an earlier caption", "more than were wanted"

TIE = 1e-5  # cosines as near are one, in whatever order numbers were added: the first of such captions is named
DIGITS = 6

Encode: TypeAlias = Callable[[Sequence[str]], Vectors]


class Fate(NamedTuple):
    """What became of a caption; `nearest` is the place of the earlier one that it is most like."""

    outcome: str
    nearest: int | None = None
    similarity: float | None = None


@dataclass
class Earlier:
    """Keeps so many captions at most, each of which says something new.

    Those whose cosine reaches `similarity` say the same; without an encoder only the same words are found again.
    """

    encode: Encode | None
    similarity: float
    most: int
    places: dict[str, int] = field(default_factory=dict)
    vectors: Vectors | None = None

    def sort_out(self, texts: Sequence[str]) -> list[Fate]:
        """Keep of some texts what is new, in their order, and say what became of each."""
        if not texts:
            return []
        found = self.encode(texts) if self.encode else np.zeros((len(texts), 0), np.float32)
        if self.vectors is None:
            self.vectors = np.zeros((self.most, found.shape[1]), np.float32)
        start, fates = len(self.places), []
        before = found @ self.vectors[:start].T
        for vector, known, text in zip(found, before, texts, strict=True):
            here = self.vectors[start : len(self.places)] @ vector
            fate = self.fate(folded(text), vector, np.concatenate([known, here]))
            if fate.outcome == KEPT:
                self.vectors[len(self.places)] = vector
                self.places[folded(text)] = len(self.places)
            fates.append(fate)
        return fates

    def fate(self, words: str, vector: Vectors, cosines: Vectors) -> Fate:
        """Decide about one caption, by its cosines with all that are kept."""
        if words in self.places:
            return Fate(SAME, self.places[words], 1.0)
        nearest, cosine = None, None
        if vector.size and cosines.size and self.vectors is not None:
            nearest = int(np.flatnonzero(cosines >= cosines.max() - TIE)[0])
            cosine = round(float((vector.astype(np.float64) * self.vectors[nearest]).sum()), DIGITS)
            if cosine >= self.similarity:
                return Fate(ALIKE, nearest, cosine)
        return Fate(TOO_MANY if len(self.places) == self.most else KEPT, nearest, cosine)


EXPAND = "captions.expand"
SAMPLED = 5  # captions that a question shows, and captions that it asks for
IDLE_ROUNDS = 3  # rounds in a row that add nothing before no more are asked
PUBLISHED, PER_ROUND, SIMILARITY = 9_889, 16, 0.9
LEAST_LETTERS, MOST_LETTERS = 8, 400
MOST_READ = 50
REPLY_TOKENS = 1024
LABEL = re.compile(r"^(?:(?:example|caption)\s*\d*\s*[:.)]|\d{1,2}\s*[:.)]|[-*•])\s*", re.IGNORECASE)
TALK = re.compile(
    r"^(?:sure|certainly|of course|okay|here (?:are|is)|as an ai|i (?:am|can|cannot|will)\b)|:$", re.IGNORECASE
)


class ProposedCaption(msgspec.Struct, frozen=True):
    """A caption, and the category of error that it leads to."""

    caption: str
    category: str


class ProposedCaptions(msgspec.Struct, frozen=True):
    """What a model answers."""

    id: str
    captions: Annotated[list[ProposedCaption], msgspec.Meta(max_length=MOST_READ)]


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a round, with the earlier captions that it shows."""

    round: int
    number: int
    examples: tuple[dict[str, Any], ...]

    @property
    def key(self) -> str:
        """The round and the place in it."""
        return f"{self.round}/{self.number}"

    def request(self, culture: CaptionCulture, instructions: str, seed: int) -> Request:
        """Ask for new captions."""
        asked = row_id(culture.culture, str(seed), self.key)
        examples = [{"caption": one["text"], "category": one["category"]} for one in self.examples]
        data = {
            "id": asked, "culture": culture.culture, "language": culture.language,
            "categories": dict(culture.categories), "examples": examples, "wanted": SAMPLED,
        }  # fmt: skip
        return Request(
            EXPAND, instructions, data, ProposedCaptions, allowed={"id": (asked,)}, max_tokens=REPLY_TOKENS,
            asks=bounded(ProposedCaptions, "captions", SAMPLED),
        )  # fmt: skip


@dataclass
class Growth:
    """Captions that grow, round by round, and everything that was proposed."""

    culture: CaptionCulture
    earlier: Earlier
    per_round: int
    seed: int
    captions: list[dict[str, Any]] = field(default_factory=list)
    proposals: list[dict[str, Any]] = field(default_factory=list)
    round: int = 0
    idle: int = 0
    asked: int = 0

    def __post_init__(self) -> None:
        """Begin with the seeds."""
        for seed in self.culture.seeds:
            (fate,) = self.earlier.sort_out([seed.caption])
            if fate.outcome != KEPT:
                other = "" if fate.nearest is None else self.captions[fate.nearest]["text"]
                raise UsageError(f"a seed is {fate.outcome}", where=other, found=seed.caption)
            self.keep(seed.caption, seed.category, proposer=None)

    @property
    def ended(self) -> str:
        """Explain why no more are asked for; empty where more are."""
        spent = f"{self.asked:,} questions in {self.round:,} rounds"
        if len(self.captions) == self.earlier.most:
            return f"{len(self.captions):,} captions after {spent}"
        if self.idle == IDLE_ROUNDS:
            wanted = f"{len(self.captions):,} of {self.earlier.most:,} captions"
            return f"{IDLE_ROUNDS} rounds in a row added nothing: {wanted} after {spent}"
        return ""

    def questions(self) -> list[Question]:
        """Give the questions of the next round: no caption is an example of two of them."""
        self.round += 1
        missing = self.earlier.most - len(self.captions)
        count = min(self.per_round, len(self.captions) // SAMPLED, -(-missing // SAMPLED))
        drawn = np.random.default_rng([self.seed, self.round]).permutation(len(self.captions))
        self.asked += count
        samples = drawn[: count * SAMPLED].reshape(count, SAMPLED).tolist()
        return [
            Question(self.round, number, tuple(self.captions[nth] for nth in sample))
            for number, sample in enumerate(samples, start=1)
        ]

    def take(self, answered: Sequence[tuple[Question, ProposedCaptions]], proposer: str) -> None:
        """Keep what is new among the answers of a round, and write what became of the rest."""
        rows = [row for question, value in answered for row in self.read(question, value)]
        open_rows = [row for row in rows if not row["outcome"]]
        before = len(self.captions)
        for row, fate in zip(open_rows, self.earlier.sort_out([row["text"] for row in open_rows]), strict=True):
            nearest = None if fate.nearest is None else self.captions[fate.nearest]["id"]
            row |= {"outcome": fate.outcome, "nearest": nearest, "similarity": fate.similarity}
            if fate.outcome == KEPT:
                row["caption_id"] = self.keep(row["text"], row["category"], proposer=proposer)
        self.proposals += rows
        self.idle = self.idle + 1 if len(self.captions) == before else 0

    def read(self, question: Question, value: ProposedCaptions) -> Iterator[dict[str, Any]]:
        """Read an answer: what is no caption says why, and what may be one is still open."""
        for position, each in enumerate(value.captions, start=1):
            text = LABEL.sub("", " ".join(strip_hidden(each.caption).split())).strip('"“”')
            wrong = {
                "talk about captions": TALK.search(text),
                "too short": sum(map(str.isalnum, text)) < LEAST_LETTERS,
                "too long": len(text) > MOST_LETTERS,
                "not a category that was asked for": each.category not in self.culture.categories,
                f"more than the {SAMPLED} asked for": position > SAMPLED,
            }
            outcome = next((problem for problem, there in wrong.items() if there), "")
            yield {
                "round": question.round, "request": question.number, "position": position, "text": text,
                "category": each.category, "examples": [one["id"] for one in question.examples], "outcome": outcome,
                "caption_id": None, "nearest": None, "similarity": None,
            }  # fmt: skip

    def keep(self, text: str, category: str, *, proposer: str | None) -> str:
        """Add a caption; give its id."""
        known = {"text": text, "category": category, "culture": self.culture.culture, "language": self.culture.language}
        caption_id = f"{self.culture.slug}-{len(self.captions) + 1:05d}"
        self.captions.append({"id": caption_id, **known, "round": self.round, "proposer": proposer})
        return caption_id

    def drops(self) -> Iterator[dict[str, Any]]:
        """Give the reason of each proposal that is not kept, with the earlier caption that it is most like."""
        texts = {one["id"]: one["text"] for one in self.captions}
        for row in self.proposals:
            if row["outcome"] != KEPT:
                near = row["nearest"]
                detail = f"{row['text']} | {near} ({row['similarity']:.3f}): {texts[near]}" if near else row["text"]
                where = {"key": f"{row['round']}/{row['request']}/{row['position']}", "concept": row["category"]}
                yield where | {"stage": EXPAND, "reason": row["outcome"], "detail": detail}


def _plan(client: Any, given: Given, out: Path, _: object) -> AskPlan:  # noqa: ANN401 - whoever is asked
    """Plan as many questions as are left if no caption is dropped; which captions they will show nobody knows yet."""
    culture, instructions = load_culture(given["culture"]), wording("captions_expand")
    shown = tuple({"text": seed.caption, "category": seed.category} for seed in culture.seeds[:SAMPLED])
    answered = sum(one.answered for one in read_spending(journal_for(out)))
    missing = given["captions"] - len(culture.seeds) - SAMPLED * answered
    left = range(-(-max(0, missing) // SAMPLED))
    requests = (Question(0, number, shown).request(culture, instructions, given["seed"]) for number in left)
    return plan_to_ask(client, "questions, if no caption is dropped", requests, out, given["llm"])


def _decides(given: Given) -> dict[str, object]:
    settled_by = {name: given[name] for name in ("captions", "per_round", "encoder", "similarity")}
    return settled_by | ({} if given["encoder"] is None else spec_state(ENCODERS, given["encoder"]))


@asks(
    "expand-captions", "captions", EXPAND, words="captions_expand", unit="questions", version=2,
    key=lambda question: question.key, reads=lambda _: {}, decides=_decides, seeds={"seed": "seed"},
    packages=("msgspec", "numpy", "polars"), ahead=lambda _: True, plan=_plan,
    example=f"--culture chinese --llm {quoted('text')} --encoder sentence:LaBSE --out captions --budget 20",
)  # fmt: skip
def expand(
    asked: Asked,
    culture: Annotated[
        Path,
        Field(description="YAML file with culture, language, categories and seeds; or a shipped one: chinese."),
        Typed(read=culture_file),
    ],
    *,
    proposer: Annotated[
        str,
        Field(description="Who proposes, as a SPEC: openai:MODEL, google:MODEL, local:FOLDER or another."),
        Typed("llm"),
    ],
    captions: Annotated[int, Field(ge=SAMPLED, description="Captions in all, the seeds among them.")] = PUBLISHED,
    per_round: Annotated[
        int, Field(ge=1, le=1024, description="Questions of a round at most, all asked side by side; 1 as published.")
    ] = PER_ROUND,
    encoder: Annotated[
        str | None,
        Field(description="Encoder of texts that tells near-duplicates, as a SPEC. [the same words only]"),
        Typed(offers="culturekit.index.encoder:ENCODERS"),
    ] = None,
    similarity: Annotated[
        float,
        Field(ge=-1, le=1, description="Cosine from which two captions say the same; it belongs to the encoder."),
        Typed(needs="encoder"),
    ] = SIMILARITY,
    seed: Seed = 0,
    llm: LlmOptions = DEFAULTS,
) -> Outcome:
    """Have a model write captions like those there are.

    In rounds, until there are enough or it says nothing new.
    """
    known, work = load_culture(culture), asked.work
    texts = None if encoder is None else text_encoder_of(encoder)
    with encoding_pool(1) as (pool, _):

        def encode(these: Sequence[str]) -> Vectors:
            assert texts is not None
            return pool.submit(texts.encode_texts, these).result()

        growth = Growth(known, Earlier(encode if texts else None, similarity, captions), per_round, seed)
        work.progress.begin(captions, "captions")
        work.progress.advance(len(growth.captions))
        while not growth.ended:
            before = len(growth.captions)
            came = asked.put(growth.questions(), lambda each: each.request(known, asked.instructions, seed), unit="")
            growth.take(list(came), asked.client.model)
            work.progress.advance(len(growth.captions) - before)
    write_table(work.out, CAPTIONS, pl.DataFrame(growth.captions, schema=CAPTIONS.schema))
    write_table(work.out, CAPTION_PROPOSALS, pl.DataFrame(growth.proposals, schema=CAPTION_PROPOSALS.schema))
    asked.drops += growth.drops()
    counts = {"captions": len(growth.captions), "questions": growth.asked, "rounds": growth.round}
    categories = dict(sorted(Counter(one["category"] for one in growth.captions).items()))
    findings = {"findings": [growth.ended]} if growth.idle else {}
    caveat = " ".join(filter(None, (asked.client.caveat, texts.caveat if texts else "")))
    outcome = asked.outcome(work, counts, ended=growth.ended, categories=categories, caveat=caveat, **findings)
    # What one question did not bring others did: nobody has to look at it, and asking again would change all rounds.
    return replace(outcome, counts={name: count for name, count in outcome.counts.items() if name != QUARANTINED})
