import base64
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from culturekit.core.digests import digest_bytes
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.generation.backend import ImageRequest
from culturekit.generation.picture_store import PictureStore, set_apart
from culturekit.generation.services.google_image_client import shape_of_size
from culturekit.generation.services.image_client import IMAGE_SERVICES, Made, calls_of, question_of
from culturekit.llm.client import Reply
from culturekit.llm.journal import key_of
from culturekit.llm.replies import ParseFailure, read_reply

PICTURE = base64.b64encode(b"a picture").decode()
NAME = "sha256:" + digest_bytes(b"a picture")


def request(prompt: str = "p", repeat: int = 0, slot: int = 0, text: str = "bread") -> ImageRequest:
    return ImageRequest(prompt, text, None, hash((prompt, repeat, slot)) % 2**32, repeat, slot, None, None, None)


def reply_to(spec: str, reply: object, folder: Path) -> Reply:
    client = IMAGE_SERVICES.make(spec)
    return client.read(set_apart(json.dumps(reply).encode(), client.keep_in(folder)))


def made_of(reply: Reply) -> Made:
    value = read_reply(question_of((request(),)), reply.text)
    assert isinstance(value, Made)
    return value


def test_the_image_tool_of_the_responses_api(tmp_path: Path) -> None:
    client = IMAGE_SERVICES.make("openai:gpt-5?api=responses&image_price=0.05&quality=low")
    body = json.loads(client.compose(question_of((request(),))).body)
    assert body["tools"] == [{"type": "image_generation", "size": "1024x1024", "quality": "low"}]
    assert (body["input"], body["store"], body["tool_choice"]) == ("bread", False, {"type": "image_generation"})
    call = {"type": "image_generation_call", "status": "completed", "result": PICTURE, "revised_prompt": "fresh bread"}
    reply = reply_to("openai:gpt-5?api=responses&image_price=0.05", {"model": "gpt-5-1", "output": [call]}, tmp_path)
    candidate = made_of(reply).candidates[0]
    assert (candidate.picture, candidate.revised, made_of(reply).version) == (NAME, "fresh bread", "gpt-5-1")
    assert (reply.usage.output_tokens, client.rewriter) == (1, "on")


@pytest.mark.parametrize(("output", "stop"), [
    ([{"type": "message", "content": [{"type": "refusal", "refusal": "I will not"}]}], "refusal"),
    ([{"type": "message", "content": [{"type": "output_text", "text": "Which bread?"}]}], "refusal"),
    ([{"type": "image_generation_call", "status": "failed", "result": None}], "blocked"),
    ([], "unreadable"),
])  # fmt: skip
def test_a_response_without_a_picture(output: list[object], stop: str, tmp_path: Path) -> None:
    assert reply_to("openai:gpt-5?api=responses&image_price=0", {"output": output}, tmp_path).stop == stop


SPECS = ("openai:gpt-image-1", "openai:gpt-5?api=responses&image_price=0", "google:gemini-2.5-flash-image")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8) | st.sampled_from([PICTURE, NAME, "url:x"]),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["data", "b64_json", "url", "result", "output", "type", "candidates", "content", "parts", "inlineData",
             "finishReason", "promptFeedback", "blockReason", "usage", "usageMetadata", "error", "revised_prompt"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip


@given(st.sampled_from(SPECS), JSON)
def test_no_reply_breaks_the_reading_or_asks_for_a_repair(spec: str, reply: object) -> None:
    client = IMAGE_SERVICES.make(spec)
    read = client.read(json.dumps(reply).encode())
    if read.stop == "end":
        assert not isinstance(read_reply(question_of((request(),)), read.text), ParseFailure)


@given(JSON)
def test_pictures_are_set_apart_and_nothing_else_is(tmp_path_factory: pytest.TempPathFactory, reply: object) -> None:
    store = PictureStore(tmp_path_factory.mktemp("store"))
    apart = set_apart(json.dumps(reply).encode(), store)
    again = set_apart(apart, PictureStore(store.folder))
    assert isinstance(msgspec.json.decode(apart), type(reply))
    assert PICTURE not in [value for key, value in pairs(msgspec.json.decode(apart)) if key in {"b64_json", "result"}]
    assert NAME not in [value for key, value in pairs(msgspec.json.decode(again)) if key in {"b64_json", "result"}]


def pairs(value: object) -> list[tuple[str, object]]:
    if isinstance(value, list):
        return [pair for item in value for pair in pairs(item)]
    if isinstance(value, dict):
        return [*value.items(), *(pair for item in value.values() for pair in pairs(item))]
    return []


def test_a_name_from_outside_is_taken_for_no_picture_and_a_picture_in_a_data_url_is_kept(tmp_path: Path) -> None:
    reply = reply_to("openai:gpt-image-1", {"data": [{"b64_json": NAME}]}, tmp_path)
    assert reply.stop == "blocked"
    reply = reply_to("openai:gpt-image-1", {"data": [{"url": f"data:image/png;base64,{PICTURE}"}]}, tmp_path)
    assert made_of(reply).candidates[0].picture == NAME


def test_kept_bytes_that_changed_are_an_integrity_error(tmp_path: Path) -> None:
    store = PictureStore(tmp_path)
    sha256 = store.put(b"a picture")
    assert store.get(sha256) == b"a picture"
    store.path(sha256).write_bytes(b"another")
    with pytest.raises(IntegrityError, match="paid for"):
        store.get(sha256)


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 5)), unique=True).map(sorted),
    st.integers(1, 4),
)
def test_calls_hold_every_image_once_and_mix_nothing(slots: list[tuple[str, int, int]], per_call: int) -> None:
    requests = [request(*slot) for slot in slots]
    calls = list(calls_of(requests, per_call))
    assert [each for call in calls for each in call] == requests
    assert all(len({(each.prompt_id, each.repeat) for each in call}) == 1 for call in calls)
    assert all(len(call) <= per_call for call in calls)


def test_slots_with_the_same_words_are_different_questions() -> None:
    client = IMAGE_SERVICES.make("openai:gpt-image-1")
    keys = [key_of(client.identity, client.compose(question_of((request("p", 0, slot),)))) for slot in (0, 1, 0)]
    assert keys[0] == keys[2] != keys[1]


@pytest.mark.parametrize(("size", "words"), [
    ("848x1264", ("2:3", "1K")), ("896x1200", ("3:4", "1K")), ("768x1376", ("9:16", "1K")), ("512x512", ("1:1", "512")),
    ("512x2048", ("1:4", "1K")), ("3072x384", ("8:1", "1K")), ("1696x2528", ("2:3", "2K")), ("864x1184", ("3:4", "1K")),
    ("1344x768", ("16:9", "1K")), ("2048x2048", ("1:1", "2K")),
])  # fmt: skip
def test_the_pixels_of_every_generation_are_said_in_googles_words(size: str, words: tuple[str, str]) -> None:
    assert shape_of_size(size) == words


@pytest.mark.parametrize(("spec", "size", "shape", "words"), [
    ("gemini-3.1-flash-image?aspect_ratio=1:8&image_size=1K&image_price=0.1", {}, "1:8", "1K"),
    ("gemini-3-pro-image-preview", {"size": "2688x1536"}, "16:9", "2K"),
])  # fmt: skip
def test_shape_and_size_of_spec_or_pixels_are_sent(spec: str, size: dict[str, str], shape: str, words: str) -> None:
    body = json.loads(IMAGE_SERVICES.make(f"google:{spec}", **size).compose(question_of((request(),))).body)
    sent = {"responseModalities": ["IMAGE"], "imageConfig": {"aspectRatio": shape, "imageSize": words}}
    assert body["generationConfig"] == sent
    with pytest.raises(UsageError, match="does not draw"):
        shape_of_size("500x500")
