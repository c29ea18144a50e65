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
from PIL import Image as Pictures

from culturekit.builders.asking import wording
from culturekit.builders.judging.image_judge import (
    ImageQuestion,
    JudgeOptions,
    JudgeReads,
    image_request,
    judge_own,
    judge_stage,
    load_questions,
)
from culturekit.core.digests import digest_bytes
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.schemas import DROPS, IMAGES, JUDGMENTS
from culturekit.core.stage import Outcome, Work
from culturekit.core.tables import read_table, write_table
from culturekit.llm.client import Image, Reply, Request
from tests.builders.put import put
from tests.builders.spaces import rows_of

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


def test_a_question_about_a_prompt_is_put_to_its_images_only(work: Work, tmp_path: Path) -> None:
    own = ImageQuestion("ahead", "kimono", "Is there one?", answers=("yes", "no"), prompt_id="p2")
    path = table(tmp_path / "images", {"a": png()})
    with pytest.raises(NothingScored, match="any image; found 1 image that no question is about"):
        judged(work, path, Scripted(right), own)
    outcome, rows = judged(replace(work, in_run=True), path, Scripted(right), own)
    assert (rows.height, outcome.drops) == (0, {})


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


def test_an_image_that_was_never_made_is_dropped_with_its_status(work: Work, tmp_path: Path) -> None:
    path = table(tmp_path / "images", {"a": None}, status="blocked", reason="a filter")
    outcome, rows = judged(replace(work, in_run=True), path, Scripted(right), YES_NO)
    assert (rows.height, outcome.drops) == (0, {"no picture: blocked": 1})


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
