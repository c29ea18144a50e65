"""Rich scenes described by the real clients on loopback: long, cut, fenced and chatty replies cost no image."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from culturekit.core.schemas import DESCRIPTORS, JUDGMENTS, PROMPTS
from culturekit.core.schemas import IMAGES as IMAGE_TABLE
from culturekit.core.tables import read_table
from culturekit.metrics.ahead.matching import DIMENSIONS
from culturekit.recipes.cultivate.cells import described_images, pictured
from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_scene_judge import prompts
from tests.builders.spaces import rows_of
from tests.command_line import culturekit
from tests.llm.server import Answer, Question, Script, running_server

KEYS = {"OPENAI_API_KEY": "sk-of-nobody", "GEMINI_API_KEY": "key-of-nobody"}
IMAGES = 12
PHRASES = [f"thing number {chr(97 + number)}" for number in range(20)]
WHOLE, LONG = ", ".join(PHRASES[:6]), ", ".join(PHRASES)


def rich(question: Question) -> Answer | str | None:
    """Answer in the ways in which vision models answer, each dimension of each image in one of them."""
    data: Any = question.data
    if set(data) != {"id", "dimension"}:
        return None
    way = (int(data["id"], 16) + DIMENSIONS.index(data["dimension"])) % 6
    cut = json.dumps({"descriptors": LONG})[: question.max_tokens * 3]
    replies: list[Answer | str] = [
        json.dumps({"descriptors": WHOLE}),
        json.dumps({"descriptors": LONG}),
        Answer(cut.removesuffix('"}') + " and so", "length"),
        f"```json\n{json.dumps({'descriptors': WHOLE})}\n```",
        f"Certainly! This is what I see.\n{json.dumps({'descriptors': WHOLE})}\nShall I go on?",
        "The picture is of a family that has come together for a meal in the evening of a very long day.",
    ]
    return replies[way]


@pytest.mark.endtoend
@pytest.mark.parametrize("provider", ["openai", "google"])
def test_no_image_is_lost_whatever_the_form_of_a_reply(provider: str, tmp_path: Path) -> None:
    pytest.importorskip(provider if provider == "openai" else "google.genai")
    colours = [f"#{number:02x}{number * 9:02x}40" for number in range(IMAGES)]
    images = table(tmp_path / "images", {f"i{n:02}": png(colour) for n, colour in enumerate(colours)})
    with running_server(Script(ignores_schema=True), model=rich) as server:
        url, model = (server.openai_url, "gpt-1") if provider == "openai" else (server.google_url, "gem-1")
        words = ("--llm", f"{provider}:{model}?base_url={url}&price=0.15/0.60", "--budget", "5", "--reply-tokens", "64")
        done = culturekit(
            "judge", "extract", "--images", str(images), *words, "--out", "extracted", cwd=tmp_path, env=KEYS
        )
    assert done.returncode == 1, done.stderr  # prose waits to be looked at
    found = read_table(tmp_path / "extracted" / "judgments.parquet", JUDGMENTS)
    assert found["image_id"].n_unique() == IMAGES
    prose = found.filter(outcome="invalid").select("image_id", "dimension")
    assert 0 < prose.height < IMAGES * len(DIMENSIONS) / 3
    assert found.filter(found["item"].str.contains(" and so")).is_empty(), "a phrase that was cut is no phrase"
    notes = json.loads((tmp_path / "extracted" / "manifest.json").read_text(encoding="utf-8"))["notes"]
    assert notes["read_in_part"].keys() == {"text-around", "truncated"}
    assert notes["fenced"] > 0
    asked_for = rows_of(DESCRIPTORS, *(
        {"prompt_id": "p1", "dimension": dimension, "token": "thing number a", "style": "neutral",
         "necessity": "optional", "proposers": ["x"]}
        for dimension in DIMENSIONS
    ))  # fmt: skip
    about = pictured(
        read_table(images, IMAGE_TABLE), read_table(prompts(tmp_path), PROMPTS), left_out := Counter[str]()
    )
    described = described_images(about, asked_for, found, has=None, left_out=left_out)
    assert described.images.height == IMAGES
    assert left_out["dimensions of scored images the extractor failed on"] == prose.height
    assert left_out["images the extractor failed on"] == 0
