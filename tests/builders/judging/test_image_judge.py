"""Questions about images: a row for each answer, images drawn and dropped, candidates chosen."""

import io
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import msgspec
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image as Pictures

from culturekit.builders.asking import wording
from culturekit.builders.judging.image_judge import (
    ImageQuestion,
    JudgeOptions,
    JudgeReads,
    choose,
    image_request,
    judge_own,
    judge_stage,
    load_questions,
)
from culturekit.builders.shown_images import EVERY_IMAGE, ImageSample, drawn, sample_note
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.schemas import DROPS, IMAGES, JUDGMENTS, PROMPTS, QUALITY
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.llm.client import Image, Reply, Request
from tests.builders.put import do, put
from tests.builders.spaces import rows_of
from tests.conftest import HeardProgress

YES_NO = ImageQuestion("inclusion", "region", "Is the country right?", answers=("yes", "no"))
LIKERT = ImageQuestion("alignment", "overall", "How well?", dimension="clothing", answers=("1", "2", "3"))
SHARE = ImageQuestion("exaggeration", "flags", "Which share?", between=(0.0, 1.0))


def png(colour: str = "red", size: tuple[int, int] = (4, 3)) -> bytes:
    out = io.BytesIO()
    Pictures.new("RGB", size, colour).save(out, "PNG")
    return out.getvalue()


def middle(image: Image) -> object:
    """Give the colour in the middle of a picture as it is sent."""
    with Pictures.open(io.BytesIO(image.content)) as picture:
        return picture.convert("RGB").getpixel((image.width // 2, image.height // 2))


def claimed(width: int, height: int) -> bytes:
    """A tiny file whose header claims to be huge."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = b""
    for kind, content in ((b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")):
        chunks += struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
    return b"\x89PNG\r\n\x1a\n" + chunks


@dataclass
class Scripted:
    """Answers by what it is asked, and remembers what it saw."""

    replies: Callable[[Request], Mapping[str, object] | Reply]
    seen: list[Request] = field(default_factory=list)
    model: str = "scripted-1"
    caveat: str = ""

    def ask(self, request: Request) -> Reply:
        self.seen.append(request)
        reply = self.replies(request)
        return reply if isinstance(reply, Reply) else Reply(msgspec.json.encode(reply).decode())


def table(folder: Path, contents: Mapping[str, bytes | None], **changes: object) -> Path:
    folder.mkdir(exist_ok=True)
    rows = []
    for image_id, content in contents.items():
        if content is not None:
            (folder / f"{image_id}.png").write_bytes(content)
        row = {"image_id": image_id, "path": f"{image_id}.png", "prompt_id": "p1", "model": "m", "rewriter": "off"}
        numbers = {"width": 4, "height": 3, "provider_params": "{}", "status": "ok"}
        rows.append({**row, **numbers, "sha256": digest_bytes(content or b""), **changes})
    return write_table(folder, IMAGES, rows_of(IMAGES, *rows))


def right(request: Request) -> Mapping[str, object]:
    if request.task == "image.exaggeration":
        return {"id": request.data["id"], "value": 0.25}
    return {"id": request.data["id"], "choice": cast(list[str], request.data["answers"])[1]}


def judged(work: Work, path: Path, client: Scripted, *questions: ImageQuestion) -> tuple[Outcome, pl.DataFrame]:
    outcome = put(judge_own, work, client, path, questions=questions)
    return outcome, read_table(work.out / "judgments.parquet", JUDGMENTS)


def test_every_image_gets_a_row_for_every_question(work: Work, tmp_path: Path) -> None:
    client = Scripted(right)
    path = table(tmp_path / "images", {"b": png("red"), "a": png("blue")})
    outcome, rows = judged(work, path, client, YES_NO, LIKERT, SHARE)
    columns = ("image_id", "prompt_id", "judge", "task", "item", "dimension", "value", "choice", "outcome")
    assert rows.select(columns).rows() == [
        row
        for image in ("a", "b")
        for row in (
            (image, "p1", "scripted-1", "alignment", "overall", "clothing", 2.0, "2", "ok"),
            (image, "p1", "scripted-1", "exaggeration", "flags", None, 0.25, None, "ok"),
            (image, "p1", "scripted-1", "inclusion", "region", None, None, "no", "ok"),
        )
    ]
    assert msgspec.json.decode(rows["raw"][2]) == {"id": "a", "choice": "no"}
    assert (outcome.counts, outcome.drops) == ({"judgments": 6, "images": 2, "drops": 0}, {})
    assert {request.instructions for request in client.seen} == {wording("image_judge")}
    assert [middle(request.images[0]) for request in client.seen] == [(0, 0, 255)] * 3 + [(255, 0, 0)] * 3


@pytest.mark.parametrize(
    ("question", "reply", "outcome"),
    [
        (YES_NO, {"id": "other", "choice": "yes"}, "invalid"), (YES_NO, {"id": "a", "choice": "maybe"}, "invalid"),
        (YES_NO, {"id": "a"}, "invalid"), (YES_NO, {"id": "a", "choice": "yes", "value": 1}, "invalid"),
        (YES_NO, Reply("I would rather not. \ud800", stop="refusal"), "refused"),
        *((SHARE, {"id": "a", "value": value}, "invalid") for value in (-0.1, 1.5, 1e300, "0.5", True, None)),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_a_row_without_one_that_keeps_its_words(
    work: Work, tmp_path: Path, question: ImageQuestion, reply: Mapping[str, object] | Reply, outcome: str
) -> None:
    ended, rows = judged(work, table(tmp_path / "images", {"a": png()}), Scripted(lambda _: reply), question)
    assert rows.select("value", "choice", "outcome").rows() == [(None, None, outcome)]
    assert rows["raw"][0] == "I would rather not. ?" if outcome == "refused" else rows["raw"][0]
    assert ended.counts["quarantined"] == 1


def test_a_question_about_a_prompt_is_put_to_its_images_only_and_to_none_that_was_never_made(
    work: Work, tmp_path: Path
) -> None:
    own = ImageQuestion("ahead", "kimono", "Is there one?", answers=("yes", "no"), prompt_id="p2")
    path = table(tmp_path / "images", {"a": png()})
    with pytest.raises(NothingScored, match="any image; found 1 image that no question is about"):
        judged(work, path, Scripted(right), own)
    never = table(tmp_path / "never", {"a": None}, status="blocked", reason="a filter")
    for images, question, drops in ((path, own, {}), (never, YES_NO, {"no picture: blocked": 1})):
        outcome, rows = judged(replace(work, in_run=True), images, Scripted(right), question)
        assert (rows.height, outcome.drops) == (0, drops)


def test_an_image_that_cannot_be_shown_is_dropped_with_its_reason(work: Work, tmp_path: Path) -> None:
    contents = {
        "cut": png()[:-30], "gone": None, "huge": claimed(60_000, 60_000), "large": claimed(9_000, 9_000),
        "ok": png(), "text": b"not a picture",
    }  # fmt: skip
    client = Scripted(right)
    outcome, rows = judged(work, table(tmp_path / "images", contents), client, YES_NO)
    drops = read_table(work.out / "drops.parquet", DROPS)
    assert rows["image_id"].to_list() == ["ok"]
    assert dict(drops.select("key", "reason").iter_rows()) == {
        "cut": "picture cannot be decoded", "gone": "no picture file", "huge": "picture too large",
        "large": "picture too large", "text": "picture format not read",
    }  # fmt: skip
    assert outcome.drops == {
        "no picture file": 1, "picture cannot be decoded": 1, "picture format not read": 1, "picture too large": 2
    }  # fmt: skip
    assert len(client.seen) == 1


@pytest.mark.parametrize(
    "questions",
    [
        [], [ImageQuestion("t", "i", "?")], [ImageQuestion("t", "i", "?", answers=("a",), between=(0, 1))],
        [ImageQuestion("t", "i", "?", answers=("a", "a"))], [ImageQuestion("t", "i", "?", between=(1, 1))],
        [YES_NO, YES_NO],
    ],
)  # fmt: skip
def test_questions_that_make_no_sense_are_refused_before_anything_is_asked(questions: list[ImageQuestion]) -> None:
    with pytest.raises(UsageError):
        judge_stage(JudgeReads(Path("images.parquet")), JudgeOptions(questions, "rules"))


def test_a_form_of_people_is_asked_of_a_judge_step_by_step() -> None:
    asked = load_questions(["c3_images"])
    assert [(one.task, one.answers, one.described) for one in asked] == [("c3_images", tuple("12345"), True)] * 6
    assert "4 Nearly all stand where they should" in asked[1].question
    shown = Image(png(), "image/png", digest_bytes(png()), 4, 3)
    request = image_request(asked[0], "i0", shown, instructions="", prompt="a garden")
    assert isinstance(request.data, Mapping)
    assert request.data["prompt"] == "a garden"
    with pytest.raises(UsageError, match="cannot fill in the form c3_captions"):
        load_questions(["c3_captions"])


def test_an_image_is_done_when_its_last_answer_is_there(work: Work, tmp_path: Path) -> None:
    heard, done = work.progress, []
    assert isinstance(heard, HeardProgress)

    def answers(request: Request) -> Mapping[str, object]:
        done.append(heard.done)
        return right(request)

    images = table(tmp_path / "images", {"a": png(), "b": b"no picture", "c": png()})
    put(judge_own, work, Scripted(answers), images, questions=[YES_NO, LIKERT])
    assert (done, heard.done) == ([0, 0, 2, 2], 3), "b is done when it cannot be read, which is before c is asked about"


# Images drawn by whole repeats.


def images(models: str = "ab", prompts: int = 3, repeats: int = 10, slots: int = 8) -> pl.DataFrame:
    rows = [
        {
            "image_id": f"{model}-{prompt}-{repeat}-{slot}", "model": model, "prompt_id": f"p{prompt}",
            "concept": "art" if prompt % 2 else "cuisine", "repeat": repeat, "slot": slot,
        }
        for model in models for prompt in range(prompts) for repeat in range(repeats) for slot in range(slots)
    ]  # fmt: skip
    return pl.DataFrame(rows).sort("image_id")


def repeats_of(table: pl.DataFrame, model: str) -> set[tuple[str, int]]:
    return set(table.filter(model=model).select("prompt_id", "repeat").unique().rows())


@given(st.integers(1, 300), st.integers(0, 5))
def test_repeats_are_whole_the_same_for_every_model_and_not_too_many(number: int, seed: int) -> None:
    table = images()
    taken = drawn(table, ImageSample(number, seed))
    assert set(taken.group_by("model", "prompt_id", "repeat").len()["len"]) == {8}
    assert repeats_of(taken, "a") == repeats_of(taken, "b")
    sizes = taken.group_by("model", "concept").len()["len"]
    assert sizes.len() == 4
    assert all(8 <= size <= max(8, number) for size in sizes)
    assert taken["image_id"].is_sorted()


@given(st.integers(1, 200), st.integers(0, 200))
def test_a_larger_sample_holds_the_smaller(number: int, more: int) -> None:
    table = images()
    small, large = (drawn(table, ImageSample(size, 7)) for size in (number, number + more))
    assert set(small["image_id"]) <= set(large["image_id"])


def test_prompts_take_turns_and_without_one_images_are_drawn_one_by_one() -> None:
    taken = drawn(images(), ImageSample(32, 1)).filter(model="a", concept="cuisine")
    assert taken.group_by("prompt_id").len().sort("prompt_id").rows() == [("p0", 16), ("p2", 16)]
    loose = images(models="a", prompts=1).with_columns(prompt_id=pl.lit(None, pl.String))
    assert drawn(loose, ImageSample(11)).height == 11


def test_the_seed_draws_repeats_and_neither_the_order_of_rows_nor_images_that_are_missing() -> None:
    table = images()
    one, other = (drawn(table, ImageSample(40, seed))["image_id"].to_list() for seed in (1, 2))
    assert one != other
    shuffled = drawn(table.sample(fraction=1, shuffle=True, seed=3), ImageSample(40, 1))
    assert sorted(shuffled["image_id"].to_list()) == one
    taken = drawn(table.filter(~((pl.col("model") == "b") & (pl.col("slot") == 3))), ImageSample(40, 2))
    assert repeats_of(taken, "a") <= repeats_of(taken, "b")


def test_all_are_taken_without_a_sample_and_the_note_says_how_many_with_one() -> None:
    table = images()
    assert drawn(table, EVERY_IMAGE).equals(table)
    assert sample_note(table, table, EVERY_IMAGE) == {}
    taken = drawn(table, ImageSample(16, 4))
    note = sample_note(table, taken, ImageSample(16, 4))
    assert note == {"sample": {"images": 16, "seed": 4, "drawn": 64, "of": 480}}
    with pytest.raises(UsageError, match="at least one image"):
        ImageSample(0)


ENGLISH = {"text": "A photo of a dance in Iran.", "benchmark": "cultivate", "kind": "activity", "country": "IR",
           "language": "en", "template_id": "t", "prompt_id": "p", "pair_id": "one"}  # fmt: skip
PROMPT_ROWS = (ENGLISH, {**ENGLISH, "prompt_id": "p-fa", "language": "fa", "text": "..."})


def reads(folder: Path, candidates: dict[str, tuple[str, float | None]]) -> tuple[Path, Path, Path]:
    """Candidates by id: their prompt and their score; without a score they have none."""
    rows, scores = [], []
    (folder / "images").mkdir()
    for number, (image, (prompt, score)) in enumerate(candidates.items()):
        content = png(f"rgb({number}, {number}, 9)")
        (folder / f"images/{image}.png").write_bytes(content)
        rows.append({"image_id": image, "path": f"{image}.png", "prompt_id": prompt, "model": "web", "rewriter": "off",
                     "slot": number, "repeat": 0, "provider_params": "{}", "sha256": digest_bytes(content),
                     "width": 4, "height": 3, "status": "ok"})  # fmt: skip
        if score is not None:
            scores.append({"image_id": image, "scorer": "clipscore", "value": score})
    return (
        write_table(folder / "images", IMAGES, rows_of(IMAGES, *rows)),
        write_table(folder, PROMPTS, rows_of(PROMPTS, *PROMPT_ROWS).with_columns(pair_id=pl.lit("one"))),
        write_table(folder, QUALITY, rows_of(QUALITY, *scores)),
    )


def test_the_best_of_both_languages_are_kept_for_the_english_prompt(work: Work, tmp_path: Path) -> None:
    given = reads(tmp_path, {"a": ("p", 0.3), "b": ("p", 0.9), "c": ("p-fa", 0.8), "d": ("p-fa", 0.1), "e": ("p", 0.95),
                             "f": ("p-fa", None), "g": ("other", 0.9)})  # fmt: skip
    outcome = do(choose, work, *given, per_language=2, at_least=0.2, keep=2)
    kept = read_table(work.out / "images.parquet", IMAGES).sort("slot")
    assert kept.select("image_id", "model", "prompt_id", "slot").rows() == [
        ("b", "real", "p", 0),
        ("c", "real", "p", 1),
    ]
    assert dict(read_table(work.out / "drops.parquet", DROPS).select("key", "reason").iter_rows()) == {
        "a": "not among the best 2", "d": "score below 0.2", "e": "beyond the first 2 of a language", "f": "no score",
        "g": "no known prompt",
    }  # fmt: skip
    assert outcome.drops["no score"] == 1
    for path, sha256 in kept.select("path", "sha256").iter_rows():
        assert digest_bytes((work.out / path).read_bytes()) == sha256


def test_the_same_picture_is_kept_once_and_one_that_was_changed_is_not_copied(work: Work, tmp_path: Path) -> None:
    given = reads(tmp_path, {"a": ("p", 0.3), "b": ("p", 0.9)})
    table = read_table(given[0], IMAGES)
    same = table.with_columns(path=pl.lit("a.png"), sha256=pl.lit(table["sha256"][0]))
    write_table(given[0].parent, IMAGES, same)
    outcome = do(choose, work, *given)
    assert read_table(work.out / "images.parquet", IMAGES)["image_id"].to_list() == ["b"]
    assert outcome.drops == {"the same picture as a better one": 1}
    (given[0].parent / "a.png").write_bytes(png("black", (9, 9)))
    with pytest.raises(UsageError, match="cannot be copied"):
        do(choose, work, *given)


def test_where_nothing_is_good_enough_that_is_said(work: Work, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no candidate is kept.*1 score below 0\.2"):
        do(choose, work, *reads(tmp_path, {"a": ("p", 0.1)}), at_least=0.2)
