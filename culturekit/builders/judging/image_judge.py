"""A vision model looks at images: questions with an answer each, or how probable it is that an image shows its prompt.

The latter is VQAScore. There is one row per image and question, whatever came of it.
"""

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import polars as pl
from pydantic import Field

from culturekit.builders.asking import wording
from culturekit.builders.captions.caption_files import USUAL_CAPTION
from culturekit.builders.shown_images import (
    ID_LETTERS,
    AskedImages,
    ImagesToShow,
    Judge,
    PerPrompt,
    Row,
    ShownImages,
    Verdict,
    WhoLooks,
    looks,
    usual_picture,
)
from culturekit.core.atomic import write_atomically
from culturekit.core.declared import Given, Typed, builds
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import CultureKitError, UsageError
from culturekit.core.package_data import shipped, shipped_names
from culturekit.core.pictures.picture_files import NoPicture, read_bytes_inside
from culturekit.core.roles import REAL_IMAGES
from culturekit.core.schemas import IMAGES, JUDGMENTS, PROMPTS, QUALITY
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import prompts_table, read_table, write_drops, write_table
from culturekit.core.yaml_source import StrictModel, load_model, read_yaml
from culturekit.llm.answers import DEFAULTS, LlmOptions
from culturekit.llm.client import Answers, Client, Failure, FreeClient, Image, KeyHolder, Outgoing, Reply, Request
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.image_slots import image_of
from culturekit.llm.models import model_for, quoted
from culturekit.llm.prices import check_alive
from culturekit.llm.probing import SECONDS, probe_request, probe_warning
from culturekit.llm.rows import Answered, TokenListing, WeighedToken
from culturekit.metrics.questions import Share, vqa_score

REPLY_TOKENS = 256
FORMS = "people/schemes"
NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ImageQuestion:
    """One question, put to every image, or to the images of one prompt.

    It allows either some `answers`, or any number `between` two. `task`, `item` and `dimension` are where the judgment
    stands in its table: such as the scheme `alignment`, the criterion `region`, the descriptor dimension `clothing`.
    """

    task: str
    item: str
    question: str
    dimension: str | None = None
    answers: tuple[str, ...] = ()
    between: tuple[float, float] | None = None
    prompt_id: str | None = None
    described: bool = False  # whether what the image was asked for goes with the question


class QuestionFile(StrictModel):
    """A file of questions."""

    questions: tuple[ImageQuestion, ...]


def load_questions(names: Sequence[str]) -> tuple[ImageQuestion, ...]:
    """Read files of questions, or take the scales of a form that people fill in, by its name."""
    forms = shipped_names(FORMS, ".yaml")
    return tuple(
        question
        for name in names
        for question in (form_questions(name) if name in forms else load_model(Path(name), QuestionFile).questions)
    )


def form_questions(scheme: str) -> Iterator[ImageQuestion]:
    """Ask what a form asks people on scales, in its words: each step means the same to both."""
    form: Any = read_yaml(shipped(f"{FORMS}/{scheme}.yaml")).value
    scales = [one for one in form["criteria"] if one["type"] == "scale"]
    if not scales or not set(form.get("shows", ())) <= {"prompt"}:
        raise UsageError(f"a judge of images cannot fill in the form {scheme}", expected="scales about a picture alone")
    for one in scales:
        ends = one.get("ends", ("", ""))
        steps = range(int(one["low"]), int(one["high"]) + 1)
        levels = one.get("levels") or [ends[0], *[""] * (len(steps) - 2), ends[1]]
        steps_named = "; ".join(f"{step} {text}".strip() for step, text in zip(steps, levels, strict=True))
        yield ImageQuestion(scheme, one["name"], f"{one['question']} {steps_named}", answers=tuple(map(str, steps)),
                            described=bool(form.get("shows")))  # fmt: skip


def check_questions(questions: Sequence[ImageQuestion]) -> None:
    """Make sure that each question can be answered, and that no two would stand in the same place."""
    if not questions:
        raise UsageError("no question is asked", expected="at least one question about the images")
    seen = set()
    for question in questions:
        where = f"question {question.task}/{question.item}/{question.dimension or '-'}"
        if bool(question.answers) == (question.between is not None):
            raise UsageError("a question allows either some answers or a range of numbers", where=where)
        if len(set(question.answers)) != len(question.answers):
            raise UsageError("an answer is allowed twice", where=where)
        if question.between is not None and not question.between[0] < question.between[1]:
            raise UsageError("a range goes from the smaller to the larger number", where=where)
        key = (question.prompt_id, question.task, question.item, question.dimension)
        if key in seen or ((None, *key[1:]) in seen):
            raise UsageError("this question is asked twice of the same images", where=where)
        seen.add(key)


def image_request(
    question: ImageQuestion, image_id: str, image: Image, *, instructions: str, prompt: str = ""
) -> Request:
    """Put a question about an image; the image goes with it."""
    data: Mapping[str, object] = {
        "id": image_id, "item": question.item, "dimension": question.dimension, "question": question.question,
        "answers": list(question.answers or question.between or ()),
        **({"prompt": prompt} if question.described else {}),
    }  # fmt: skip
    return Request(
        f"image.{question.task}", instructions, data, _reply_to(question.answers, question.between),
        allowed={"id": (image_id,)}, images=(image,), max_tokens=REPLY_TOKENS,
    )  # fmt: skip


@cache
def _reply_to(answers: tuple[str, ...], between: tuple[float, float] | None) -> Answers:
    """Describe a reply that is one of some answers, or a number between two."""
    value = Literal[answers] if between is None else Annotated[float, msgspec.Meta(ge=between[0], le=between[1])]
    fields: list[tuple[str, Any]] = [("id", str), ("choice" if between is None else "value", value)]
    name = "ChoiceReply" if between is None else "NumberReply"
    return msgspec.defstruct(name, fields, frozen=True, forbid_unknown_fields=True)


def number_and_choice(answer: msgspec.Struct | None) -> tuple[float | None, str | None]:
    """Read number and choice from an answer; neither where there is none.

    A choice that is a number, such as a step of a Likert scale, is given as both.
    """
    if answer is None:
        return None, None
    choice: str | None = getattr(answer, "choice", None)
    if choice is None:
        return float(answer.value), None  # type: ignore[attr-defined]
    return (float(choice) if NUMBER.fullmatch(choice) else None), choice


TASK = "vqascore"  # under which probabilities stand among judgments
REQUEST = "image.vqascore"
QUESTION = 'Does this figure show "{text}"? Please answer yes or no.'
YES, NO = "yes", "no"
TEXTS = tuple(f"{space}{word}" for word in ("Yes", "yes", "YES", "No", "no", "NO") for space in ("", " "))
AROUND = " \t\r\n\u2581\u0120\u010a.,!\"'*"  # around the word in a token: white space, as tokenizers write it too


def vqa_digest() -> str:
    """Hash all that is said besides the text: instructions and question."""
    return digest_bytes(f"{wording('vqascore')}\n{QUESTION}".encode())


def vqa_request(picture: Image, text: str, *, instructions: str) -> Request:
    """Ask whether an image shows a text, for the probability of yes; nothing else about the image is given away."""
    data = {"id": picture.sha256[:ID_LETTERS], "question": QUESTION.format(text=text)}
    return Request(REQUEST, instructions, data, TokenListing, images=(picture,), max_tokens=1, weighed=TEXTS)


def probability_of_yes(tokens: Sequence[WeighedToken], *, of: Share) -> float | None:
    """Give P("Yes") from listed tokens; None where neither yes nor no is listed, or the listing is none.

    Tokens that say yes add up, whatever their case; of the whole vocabulary a word that is not listed has no share.
    """
    words = [token.token.strip(AROUND).casefold() for token in tokens]
    yes = [index for index, word in enumerate(words) if word == YES]
    no = [index for index, word in enumerate(words) if word == NO]
    if not yes and not no:
        return None
    row = [min(token.logprob, 0.0) for token in tokens] + [-float("inf")] * 2
    unlisted_yes, unlisted_no = len(words), len(words) + 1
    try:
        return float(vqa_score([row], yes=yes or [unlisted_yes], no=no or [unlisted_no], of=of)[0])
    except UsageError:  # probabilities that add up to more than 1, or are all 0
        return None


ITEM = "prompt"
NO_TEXT, NEITHER = "the text of its prompt is not known", "neither yes nor no"
CAVEAT = 'P("Yes") is a model\'s confidence, not the share of people who would say yes.'


def _asked_of_judge(given: Given) -> dict[str, object]:
    check_questions(given["questions"])
    asked = [asdict(question) for question in given["questions"]]
    questions = [{name: part for name, part in one.items() if name != "described" or part} for one in asked]
    return {"questions": questions}


@looks(
    "judge", "judgments", words="image_judge", version=2, decides=_asked_of_judge,
    example=f"--images images/images.parquet --questions questions.yaml --llm {quoted('vision')} --out judged "
    "--budget 20",
)  # fmt: skip
def judge_own(
    by: Judge,
    images: ImagesToShow,
    *,
    questions: Annotated[
        Sequence[ImageQuestion],
        Field(
            description="YAML file, `questions:`, each with task, item, question, and answers: [...] or between: "
            "[LOW, HIGH]; dimension and prompt_id where wanted. Or a form: `c3_images`. Repeatable."
        ),
        Typed(gather=load_questions),
    ],
    judge: WhoLooks,
    llm: LlmOptions = DEFAULTS,
) -> AskedImages[ImageQuestion]:
    """Ask a vision model questions of your own about each image.

    `score agreement` holds its answers against people.
    """
    words = wording("image_judge")
    of_prompt: dict[str | None, list[ImageQuestion]] = {None: []}
    for question in questions:
        of_prompt.setdefault(question.prompt_id, []).append(question)

    def asked(row: Row) -> Sequence[ImageQuestion]:
        return [*of_prompt[None], *([] if row["prompt_id"] is None else of_prompt.get(row["prompt_id"], []))]

    def request(picture: Image, row: Row, question: ImageQuestion) -> Request:
        prompt = row["prompt_sent"] or ""
        return image_request(question, row["image_id"], picture, instructions=words, prompt=prompt)

    def verdicts(_: Row, question: ImageQuestion, answered: Answered) -> Sequence[Verdict]:
        return [Verdict(question.task, question.item, question.dimension, *number_and_choice(answered.value))]

    return AskedImages(ShownImages(images.parent, "judge"), by.model, asked, request, verdicts)


@dataclass(frozen=True, slots=True)
class JudgeReads:
    """Images to be judged."""

    images: Path


@dataclass(frozen=True, slots=True)
class JudgeOptions:
    """What is asked about images, and who answers."""

    questions: Sequence[ImageQuestion]
    judge: str


def judge_stage(given: JudgeReads, options: JudgeOptions, llm: LlmOptions = DEFAULTS) -> Stage:
    """Ask a vision model questions of your own about each image: what recipes of others take."""
    return judge_own.stage(given.images, questions=options.questions, judge=options.judge, llm=llm)


def judge_name(model: str, of: Share) -> str:
    """Name who says it, with what decides what is said: the question's wording, and what yes is a share of."""
    return f"vqascore:{model}?of={of}&wording={vqa_digest()[:8]}"


@looks(
    "vqascore", "vqascore", words="vqascore", task=REQUEST, packages=("msgspec", "numpy", "pillow", "polars"),
    decides=lambda given: {"wording": vqa_digest(), "of": given["of"]},
    usual=lambda _: [vqa_request(usual_picture(), USUAL_CAPTION, instructions=wording("vqascore"))],
    example=f"--images images/images.parquet --prompts prompts/prompts.parquet --llm {quoted('weighing')} --out "
    "vqascore --budget 20",
)  # fmt: skip
def vqascore(
    by: Judge,
    images: ImagesToShow,
    prompts: Annotated[
        Path | None, Field(description="Prompts the images were asked for by. [what the images table says was sent]")
    ] = None,
    *,
    judge: Annotated[
        str,
        Field(
            description="Who looks, as a SPEC that lists probabilities of tokens: a server of one's own, such as vLLM, "
            "as openai:MODEL with a base_url; local:FOLDER; or replay:FILE. `doctor --judge SPEC` asks a server."
        ),
        Typed("llm"),
    ],
    of: Annotated[
        Literal["yes-no", "vocabulary"],
        Field(description="What P(Yes) is a share of: yes and no alone, or the whole vocabulary."),
    ] = "yes-no",
    per_prompt: PerPrompt = None,
    llm: LlmOptions = DEFAULTS,
) -> AskedImages[str]:
    """Ask of each image whether it shows its prompt (VQAScore).

    The score is the probability of yes.
    """
    table = pl.DataFrame() if prompts is None else read_table(prompts_table(prompts, by.scratch), PROMPTS)
    texts = {} if prompts is None else dict(table.select("prompt_id", "text").iter_rows())
    words = wording("vqascore")

    def asked(row: Row) -> Sequence[str]:
        text = row["prompt_sent"] if prompts is None else texts.get(row["prompt_id"])
        return (text,) if text and text.strip() else ()

    return AskedImages(
        ShownImages(images.parent, "vqascore"), judge_name(by.model, of), asked,
        lambda picture, _, text: vqa_request(picture, text, instructions=words),
        lambda _, __, answered: [weighed(TASK, ITEM, answered, of=of)], lambda _: NO_TEXT, CAVEAT,
    )  # fmt: skip


def weighed(task: str, item: str, answered: Answered, *, of: Share) -> Verdict:
    """Read the probability of yes; a listing without yes and no is no answer."""
    if not isinstance(answered.value, TokenListing):
        return Verdict(task, item)
    yes = probability_of_yes(answered.value.tokens, of=of)
    if yes is None:
        return Verdict(task, item, choice=NEITHER, outcome="invalid")
    return Verdict(task, item, value=yes)


# Real images of activities: of the candidates of each prompt those that show it best, and why the others went.

NAME_LETTERS = 16  # of a picture's hash, by which its file is named
SUFFIX = r"(\.[^./]*)$"
NO_PROMPT, NO_SCORE, TWICE = "no known prompt", "no score", "the same picture as a better one"


@builds(
    "choose-references", "real",
    example="--images candidates/images.parquet --prompts prompts/prompts.parquet --scores quality/quality.parquet "
    "--out real",
)  # fmt: skip
def choose(
    work: Work,
    images: Annotated[Path, Field(description="Images table of candidates; its pictures lie beside it.")],
    prompts: Annotated[
        Path,
        Field(description="Prompts of the candidates; a translation is a row with the pair_id of the English one."),
    ],
    scores: Annotated[
        Path, Field(description="How well each shows its prompt: what `quality` (clipscore) or `vqascore` wrote.")
    ],
    *,
    per_language: Annotated[
        int, Field(ge=1, description="Candidates of a prompt that count, in each language it was asked in.")
    ] = 10,
    at_least: Annotated[float, Field(description="Score that an image must reach.")] = 0.0,
    keep: Annotated[int, Field(ge=1, description="Images of each prompt that are kept: the best.")] = 5,
) -> Outcome:
    """Keep the real images that show each prompt best.

    The others are listed with the reason.
    """
    table = read_table(images, IMAGES)
    placed = table.join(languages(read_table(prompts, PROMPTS)), on="prompt_id", how="left")
    with_scores = placed.join(scores_of(scores), on="image_id", how="left")
    judged = ranked(with_scores, per_language=per_language, at_least=at_least, keep=keep)
    kept, gone = judged.filter(pl.col("gone").is_null()), judged.filter(pl.col("gone").is_not_null())
    dropped = gone.select(
        key="image_id", concept=pl.lit(None, pl.String), stage=pl.lit("choose"), reason="gone",
        detail=pl.col("score").round(4).cast(pl.String),
    )  # fmt: skip
    reasons = write_drops(work.out, dropped)
    if kept.is_empty():
        raise UsageError(
            "no candidate is kept", where=str(images), expected="images that reach at_least",
            found=", ".join(f"{count} {why}" for why, count in reasons.items()) or "no candidates",
        )  # fmt: skip
    for path, sha256 in kept.select("path", "sha256").iter_rows():
        copied(images.parent, path, sha256, work.out)
    name = pl.concat_str(pl.lit("files/"), pl.col("sha256").str.head(NAME_LETTERS), pl.col("path").str.extract(SUFFIX))
    chosen = kept.with_columns(
        model=pl.lit(REAL_IMAGES), prompt_id="about", path=name, repeat=pl.lit(0, pl.UInt16),
        slot=(pl.col("place") - 1).cast(pl.UInt8),
    )  # fmt: skip
    write_table(work.out, IMAGES, chosen.select(table.columns))
    without = placed.drop_nulls("about")["about"].n_unique() - kept["about"].n_unique()
    counts = {"images": kept.height, "prompts": kept["about"].n_unique(), "drops": gone.height}
    return Outcome(counts, reasons, {"prompts_without_images": without} if without else {})


def languages(prompts: pl.DataFrame) -> pl.DataFrame:
    """Say of each prompt which English one it asks for, and in which language."""
    if "pair_id" not in prompts.columns:
        return prompts.select("prompt_id", "language", about="prompt_id")
    english = prompts.filter(language="en").select("pair_id", about="prompt_id").drop_nulls()
    paired = prompts.join(english.unique("pair_id"), on="pair_id", how="left")
    return paired.select("prompt_id", "language", about=pl.coalesce("about", "prompt_id"))


def scores_of(path: Path) -> pl.DataFrame:
    """Read one score an image: of a scorer of pictures and texts, or of a model's probability of yes."""
    columns = pl.read_parquet_schema(path)
    if "scorer" in columns:
        found = read_table(path, QUALITY).select("image_id", "value", by="scorer")
    else:
        found = read_table(path, JUDGMENTS).filter(task=TASK).select("image_id", "value", by="judge")
    if found["by"].n_unique() != 1:
        raise UsageError("candidates are compared by one score", where=str(path), expected="one scorer",
                         found=", ".join(found["by"].unique().sort()) or "none")  # fmt: skip
    return found.select("image_id", score="value")


def ranked(placed: pl.DataFrame, *, per_language: int, at_least: float, keep: int) -> pl.DataFrame:
    """Add `gone`, why a candidate is not kept, and its `place` among those of its prompt."""
    gone = pl.col("gone")
    unscored = (
        pl.when(pl.col("status") != "ok").then(pl.concat_str(pl.lit("no picture: "), "status"))
        .when(pl.col("about").is_null()).then(pl.lit(NO_PROMPT))
        .when(pl.col("score").is_null()).then(pl.lit(NO_SCORE))
    )  # fmt: skip
    late = pl.int_range(pl.len()).over("about", "language") >= per_language
    low = pl.when(pl.col("score") < at_least).then(pl.lit(f"score below {at_least:g}"))
    table = placed.with_columns(gone=unscored).sort("prompt_id", "repeat", "slot", "image_id", nulls_last=True)
    beyond_first = pl.when(late).then(pl.lit(f"beyond the first {per_language} of a language"))
    table = table.with_columns(gone=pl.coalesce(gone, beyond_first, low))
    table = table.sort("about", "score", "image_id", descending=[False, True, False], nulls_last=True)
    again = gone.is_null() & (pl.int_range(pl.len()).over("gone", "about", "sha256") > 0)
    table = table.with_columns(gone=pl.when(again).then(pl.lit(TWICE)).otherwise(gone))
    table = table.with_columns(place=gone.is_null().cast(pl.Int64).cum_sum().over("about"))
    beyond = pl.when(gone.is_null() & (pl.col("place") > keep)).then(pl.lit(f"not among the best {keep}"))
    return table.with_columns(gone=beyond.otherwise(gone))


def copied(root: Path, path: str, sha256: str, out: Path) -> None:
    """Copy a picture, if it is the one that the table lists."""
    content = read_bytes_inside(root, path)
    if isinstance(content, NoPicture) or digest_bytes(content) != sha256:
        why = content.reason if isinstance(content, NoPicture) else "another picture than when it was listed"
        raise UsageError(
            "a candidate cannot be copied", where=str(root / path), found=why, expected=f"SHA-256 {sha256}"
        )
    target = out / "files" / f"{sha256[:NAME_LETTERS]}{Path(path).suffix}"
    target.parent.mkdir(exist_ok=True)
    write_atomically(target, content)


# Whether a server of one's own can weigh yes against no: one small picture and one small question tell.

SHOWS = "a red square"
UNLISTED = (
    "VQAScore needs a server that lists `top_logprobs`: vLLM does, for a model that does not think first, such as "
)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was asked of a judge: `broken` is what VQAScore cannot do without, `absent` what it can."""

    name: str
    level: Literal["ok", "absent", "broken"]
    found: str
    hint: str = ""


def probe_judge(spec: str) -> list[Finding]:
    """Ask a judge whether it lists probabilities of tokens, and whether it holds replies to a schema.

    Raises:
        UsageError: the SPEC names nothing that is asked over a network, or cannot be read.
    """
    client = CLIENTS.make(spec)
    if isinstance(client, FreeClient):
        raise UsageError(
            "this judge is no server that could be probed",
            where="--judge",
            expected=f"openai:MODEL with a base_url, such as {model_for('weighing')}",
            found=spec,
            hint="A model of local:FOLDER gives exact probabilities and needs no probe.",
        )
    check_alive(client.identity, go_on=True)
    return asyncio.run(_all_findings(client))


async def _all_findings(client: Client) -> list[Finding]:
    """Ask both questions; a server that does not answer the first is not asked the second."""
    picture = image_of(np.full((64, 64, 3), (255, 0, 0), np.uint8))
    try:
        weighing = client.compose(vqa_request(picture, SHOWS, instructions=wording("vqascore")))
        if isinstance(client, KeyHolder):
            client.ready()
        listed = await _reply(client, weighing)
        held = await _reply(client, client.compose(probe_request()))
    except Failure as failure:
        hint = f"Is the server running at {client.identity.base_url}, and does it serve the model {client.model}?"
        return [Finding(client.model, "broken", f"no reply: {failure.detail or failure.kind}", hint)]
    except CultureKitError as error:
        return [
            Finding(client.model, "broken", error.problem, f"take {error.expected}" if error.expected else error.hint)
        ]
    finally:
        await client.close()
    # VQAScore needs no schema; every other task does.
    warning = probe_warning(client, held)
    schema = Finding("schema", "absent" if warning else "ok", warning or "replies are held to it")
    return [*_of_listing(listed), schema]


async def _reply(client: Client, outgoing: Outgoing) -> Reply:
    """Ask once."""
    try:
        async with asyncio.timeout(SECONDS):
            return client.read(await client.send(outgoing))
    except TimeoutError:
        raise Failure("timeout", f"nothing came in {SECONDS:g} s") from None


def _of_listing(reply: Reply) -> Iterator[Finding]:
    """Say what its listing of the first token is worth."""
    name, other = "token probabilities", UNLISTED + model_for("weighing")
    if not reply.tokens:
        yield Finding(name, "broken", "none are listed", other)
        return
    yes = probability_of_yes([WeighedToken(*one) for one in reply.tokens], of="yes-no")
    first = ", ".join(repr(token) for token, _ in reply.tokens[:3])
    if yes is None:
        yield Finding(name, "broken", f"listed, without yes or no: {first}", other)
    else:
        yield Finding(name, "ok", f"listed; P(Yes) that {SHOWS} shows {SHOWS} is {yes:.2f}")
