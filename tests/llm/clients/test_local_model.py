"""How probable a reply begins with a text, by models of random weights that are made here."""

import importlib.util
import math
from pathlib import Path
from typing import Any

import pytest

from culturekit.builders.judging.image_judge import vqa_request, vqascore
from culturekit.core.digests import digest_bytes
from culturekit.core.schemas import JUDGMENTS
from culturekit.core.tables import read_table
from culturekit.core.work import Work
from culturekit.llm.client import Image
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.local_client import LocalModel, distinct
from tests.builders.judging.test_image_judge import png, table
from tests.builders.judging.test_question_graph import prompts
from tests.builders.put import put
from tests.llm.questions import send
from tests.llm.tiny_vlm import tiny_vlm

HAS_MODELS = all(importlib.util.find_spec(name) for name in ("torch", "transformers"))
needs_models = pytest.mark.skipif(not HAS_MODELS, reason="torch and transformers are not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_vlm(tmp_path_factory.mktemp("models") / "sees", words=("Yes", "No"))


def seen(colour: str = "red") -> Image:
    content = png(colour, (32, 32))
    return Image(content, "image/png", digest_bytes(content), 32, 32)


def test_texts_that_begin_as_another_are_weighed_once() -> None:
    found = distinct({"Yes": (1, 2), "yes": (3,), "Yes!": (1, 2, 4), "YES": (1, 2), "": ()})
    assert found == {"yes": (3,), "YES": (1, 2)}


@needs_models
def test_a_text_is_as_probable_as_all_of_its_tokens(folder: Path) -> None:
    torch: Any = importlib.import_module("torch")
    client = CLIENTS.make(f"local:{folder}")
    request = vqa_request(seen(), "A red square", instructions="Answer.")
    reply = client.read(send(client, request))  # type: ignore[union-attr,arg-type]
    found = dict(reply.tokens)
    assert {"Yes", "No", "yes", " no"} <= set(found)
    model = LocalModel(folder, device="cpu", dtype="auto")
    import msgspec

    from culturekit.llm.client import Client
    from culturekit.llm.clients.local_client import Turn

    assert isinstance(client, Client)
    turn = msgspec.json.decode(client.compose(request).body, type=Turn)
    inputs = model.tokens(turn, request.images)
    whole = model.tokenizer("yes", add_special_tokens=False)["input_ids"]
    assert len(whole) == 3, "this tokenizer writes yes in three tokens, Yes in one"
    ids = torch.cat([inputs["input_ids"], torch.tensor([whole])], dim=1)
    with torch.inference_mode():
        logits = model.model(
            input_ids=ids, attention_mask=torch.ones_like(ids), pixel_values=inputs["pixel_values"]
        ).logits[0]
    shares = torch.log_softmax(logits.double(), dim=-1)
    length = inputs["input_ids"].shape[1]
    by_hand = sum(float(shares[length - 1 + place, token]) for place, token in enumerate(whole))
    assert found["yes"] == pytest.approx(by_hand, abs=1e-4)
    one = model.tokenizer("Yes", add_special_tokens=False)["input_ids"]
    assert found["Yes"] == pytest.approx(float(shares[length - 1, one[0]]), abs=1e-4)
    assert sum(math.exp(value) for value in found.values()) <= 1 + 1e-9


@needs_models
def test_a_local_model_weighs_images_the_same_way_each_time(folder: Path, work: Work, tmp_path: Path) -> None:
    images = table(tmp_path / "images", {"a": png("red", (32, 32)), "b": png("blue", (32, 32)), "c": b"broken"})
    own = prompts(tmp_path / "p", {"p1": "A red square"})
    put(vqascore, work, CLIENTS.make(f"local:{folder}"), images, own)
    first = read_table(work.out / "judgments.parquet", JUDGMENTS)
    assert first["outcome"].to_list() == ["ok", "ok"]
    assert first["value"].is_between(0, 1, closed="none").all()
    assert first["value"].n_unique() == 2, "the pictures differ"
    again = CLIENTS.make(f"local:{folder}")
    request = vqa_request(seen(), "A red square", instructions="Answer.")
    assert send(again, request) == send(CLIENTS.make(f"local:{folder}"), request)  # type: ignore[arg-type]
