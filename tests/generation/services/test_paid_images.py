import base64
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from culturekit.core.digests import digest_bytes
from culturekit.core.errors import BudgetReached, IntegrityError, UsageError
from culturekit.core.schemas import IMAGES
from culturekit.core.tables import read_table
from culturekit.generation.backend import ImageRequest
from culturekit.generation.picture_store import PictureStore, set_apart
from culturekit.generation.runner import ImagePlan, derive_seed
from culturekit.generation.services import paid_runner
from culturekit.generation.services.google_image_client import shape_of_size
from culturekit.generation.services.image_client import IMAGE_SERVICES, Made, calls_of, question_of
from culturekit.llm import dispatch
from culturekit.llm.answers import LlmOptions
from culturekit.llm.client import Reply
from culturekit.llm.endpoints import Service
from culturekit.llm.journal import key_of
from culturekit.llm.ledger import journals_below, read_ledger
from culturekit.llm.replies import ParseFailure, read_reply
from tests.conftest import HeardProgress
from tests.generation.folder.folder_worlds import TEXTS
from tests.generation.services.paid_images import KEY, buy, google, images_of, openai
from tests.llm.server import Fault, JobPlan, Rule, Script, When, running_server
from tests.llm.server.script import Pictures

pytest.importorskip("openai")

pytest.importorskip("google.genai")


@pytest.fixture(autouse=True, scope="module")
def key() -> Iterator[None]:
    """Keys lie in the environment only."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("OPENAI_API_KEY", KEY)
        patched.setenv("GEMINI_API_KEY", KEY)
        patched.delenv("GOOGLE_API_KEY", raising=False)
        yield


SpecOf = Callable[..., str]

SPECS: list[SpecOf] = [openai, google]


@pytest.mark.parametrize("spec", SPECS)
def test_every_image_is_a_row_with_what_was_sent_and_what_came(spec: SpecOf, tmp_path: Path) -> None:
    with running_server() as server:
        run = buy(spec(server), tmp_path, plan=ImagePlan(2, 3))
        sold = server.stats()
    rows = read_table(tmp_path / "out/images.parquet", IMAGES)
    assert rows.height == 4 * 2 * 3 == sold["online"]["replies"]
    assert set(rows["status"]) == {"ok"}
    assert set(rows["seed_honoured"]) == {False}
    assert set(rows["rewriter"]) == {"unknown"}
    assert rows["requested_at"].null_count() == 0
    assert rows["prompt_revised"].null_count() == rows.height
    assert set(rows["safety"]) == {None if spec is openai else "HATE_SPEECH=NEGLIGIBLE"}
    assert not any("candidates" in json.loads(text) for text in rows["provider_params"])
    for row in rows.iter_rows(named=True):
        content = (tmp_path / "out" / row["path"]).read_bytes()
        assert digest_bytes(content) == row["sha256"]
        assert Image.open(io.BytesIO(content)).size == (row["width"], row["height"])
        assert row["prompt_sent"] == TEXTS[row["prompt_id"]]
        assert row["seed"] == derive_seed(3, row["prompt_id"], row["repeat"], row["slot"])
    assert run.manifest.notes["traits"]["seed_honoured"] == {"no": rows.height}


@pytest.mark.parametrize("spec", SPECS)
def test_a_finished_slot_is_never_bought_again(spec: SpecOf, tmp_path: Path) -> None:
    with running_server() as server:
        backend = spec(server)
        buy(backend, tmp_path)
        first = images_of(tmp_path)
        again = buy(backend, tmp_path, fresh=True)
        more = buy(backend, tmp_path, plan=ImagePlan(slots=2))
        assert server.stats()["online"]["replies"] == 8
    assert again.state == "built"
    assert more.manifest.counts == {"images": 8, "ok": 8}
    both = images_of(tmp_path)
    assert both.filter(both["slot"] == 0)["sha256"].to_list() == first["sha256"].to_list()


def test_the_ledger_says_what_the_service_bills_or_counts_images_with_a_stated_price(tmp_path: Path) -> None:
    with running_server() as server:
        buy(openai(server), tmp_path)
        sold = server.stats()["delivered"]
        buy(openai(server, model="my-model", image_price=0.04), tmp_path / "stated")
    total = read_ledger(journals_below([tmp_path / "stated/out"])).total
    assert (total.input_tokens, total.output_tokens, total.usd) == (0, 4, 0.16)
    total = read_ledger(journals_below([tmp_path / "out"])).total
    assert (total.input_tokens, total.output_tokens) == (sold["input_tokens"], sold["output_tokens"])
    assert total.output_tokens == 4 * 272
    assert total.usd == pytest.approx((sold["input_tokens"] * 5 + sold["output_tokens"] * 40) / 1e6)


@pytest.mark.parametrize("spec", SPECS)
def test_a_budget_ends_the_run_and_a_larger_one_goes_on(spec: SpecOf, tmp_path: Path) -> None:
    with running_server() as server:
        backend = spec(server)
        texts = {f"p{number:02d}": f"a dish number {number}" for number in range(20)}
        with pytest.raises(BudgetReached) as caught:
            buy(backend, tmp_path, llm=LlmOptions(budget=0.1), texts=texts)
        before = server.stats()
        assert caught.value.exit_code == 5
        assert 0 < before["online"]["replies"] < 20
        buy(backend, tmp_path, llm=LlmOptions(budget=5.0), texts=texts)
        after = server.stats()
    assert after["online"]["replies"] == 20
    assert after["bought_twice"] == 0
    assert images_of(tmp_path).height == 20


def test_progress_counts_images_bought_now_and_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paid_runner, "CALLS_PER_PART", 6)
    texts = {f"p{number:02d}": f"a dish number {number}" for number in range(20)}
    heard = [HeardProgress(), HeardProgress()]
    with running_server() as server:
        with pytest.raises(BudgetReached):
            buy(openai(server), tmp_path, llm=LlmOptions(budget=0.15), texts=texts, progress=heard[0])
        buy(openai(server), tmp_path, llm=LlmOptions(budget=5.0), texts=texts, progress=heard[1])
        assert server.stats()["online"]["replies"] == 20
    assert 6 < heard[0].done < heard[0].total == 20
    assert heard[1].done == heard[1].total == 20


def test_one_call_asks_for_several_images_and_what_is_left_out_or_too_much_is_said(tmp_path: Path) -> None:
    with running_server() as server:
        buy(openai(server, n=4), tmp_path / "some", plan=ImagePlan(slots=6))
        assert server.stats()["operations"]["images"] == 4 * 2
        rows = images_of(tmp_path / "some")
        assert rows.height == rows["sha256"].n_unique() == 24
        assert {json.loads(text)["n"] for text in rows["provider_params"]} == {4, 2}
        server.follow(Script(pictures=Pictures(more=-1)))
        buy(openai(server, n=3), tmp_path / "less", plan=ImagePlan(slots=3))
        rows = images_of(tmp_path / "less")
        assert rows["status"].to_list() == ["ok", "ok", "filtered"] * 4
        assert "2 images in place of those asked for" in rows["reason"][2]
        server.follow(Script(pictures=Pictures(more=1)))
        for spec in SPECS:
            buy(spec(server), tmp_path / spec.__name__)
            rows = images_of(tmp_path / spec.__name__)
            assert [json.loads(text)["candidates"] for text in rows["provider_params"]] == [2] * 4


def test_a_revised_prompt_tells_a_rewriter_and_what_a_service_that_filters_lets_through_has_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Service, "owns", lambda *_: True)
    with running_server(Script(pictures=Pictures(revised=True))) as server:
        run = buy(openai(server), tmp_path)
    rows = images_of(tmp_path)
    assert set(rows["safety"]) == {"passed"}
    assert set(rows["rewriter"]) == {"on"}
    assert rows["prompt_revised"][0] == f"A photo of {TEXTS['p1']}"
    assert run.manifest.notes["traits"]["rewriter"] == {"on": 4}


@pytest.mark.parametrize(("form", "suffix"), [("png", ".png"), ("jpeg", ".jpg"), ("webp", ".webp")])
def test_a_picture_that_needs_no_change_stays_as_it_came(form: str, suffix: str, tmp_path: Path) -> None:
    with running_server(Script(pictures=Pictures(form=form))) as server:  # type: ignore[arg-type]
        buy(openai(server), tmp_path)
    rows = images_of(tmp_path)
    assert rows["sha256"].to_list() == rows["source_sha256"].to_list()
    assert all(path.endswith(suffix) for path in rows["path"])


@pytest.mark.parametrize("spec", SPECS)
def test_a_batch_costs_half_and_is_bought_once(spec: SpecOf, tmp_path: Path) -> None:
    script = Script(job=JobPlan(shuffled=True), rules=(Rule(Fault("content-filter"), When(row_matches="Ghana")),))
    with running_server(script) as server:
        buy(spec(server), tmp_path, llm=LlmOptions(batch=True))
        buy(spec(server), tmp_path, llm=LlmOptions(batch=True), fresh=True)
        stats = server.stats()
    rows = images_of(tmp_path)
    assert rows["status"].to_list() == ["ok", "ok", "ok", "filtered"]
    assert stats["online"]["replies"] == 0
    assert stats["bought_twice"] == 0
    assert stats["batch"]["replies"] == 5
    assert rows["requested_at"].null_count() == 0


def test_no_key_stands_in_anything_that_is_written(tmp_path: Path) -> None:
    with running_server(Script(rules=(Rule(Fault("bad-request", text=f"your key {KEY}"), times=1),))) as server:
        buy(openai(server), tmp_path)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 8
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


UNKNOWN = "costs .* is not known.*image_price="


@pytest.mark.parametrize(("backend", "words"), [
    ("openai:gpt-image-9", UNKNOWN), ("openai:gpt-image-1", UNKNOWN), ("openai:gpt-5?api=responses", UNKNOWN),
    ("google:gemini-9-image", UNKNOWN), ("google:imagen-4.0-generate-001", "shut"),
    ("google:gemini-2.5-flash-image?aspect_ratio=wide", "wrong"), ("openai:gpt-image-1?n=11", "wrong"),
    ("openai:gpt-image-1?api=responses&n=2", "wrong"), ("openai", "name of a model"),
])  # fmt: skip
def test_a_spec_that_cannot_work_and_an_unknown_price_are_refused(backend: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        buy(backend, tmp_path, plan=ImagePlan(size="512x512"))


def test_the_size_in_the_table_is_that_of_the_picture_and_not_of_the_request(tmp_path: Path) -> None:
    with running_server() as server:
        buy(google(server, model="gemini-3.1-flash-image", image_price=0.1), tmp_path, plan=ImagePlan(size="848x1264"))
    rows = images_of(tmp_path)
    assert rows.height
    for row in rows.iter_rows(named=True):
        assert json.loads(row["provider_params"])["aspectRatio"] == "2:3"
        with Image.open(tmp_path / "out" / row["path"]) as picture:
            assert (row["width"], row["height"]) == picture.size == (16, 16)


def test_the_same_replies_give_the_same_bytes(tmp_path: Path) -> None:
    plan = ImagePlan(slots=3)
    with running_server(Script(latency=0.01, jitter=0.02)) as server:
        one = buy(openai(server), tmp_path / "one", plan=plan, llm=LlmOptions(concurrency=1))
        other = buy(openai(server), tmp_path / "other", plan=plan, llm=LlmOptions(concurrency=64))
        again = buy(openai(server), tmp_path / "one", plan=plan, fresh=True)
    assert again.manifest.sha256 == one.manifest.sha256
    when = "requested_at"
    assert images_of(tmp_path / "one").drop(when).equals(images_of(tmp_path / "other").drop(when))
    assert one.manifest.outputs["files"] == other.manifest.outputs["files"]


@pytest.mark.parametrize(("mode", "shown"), [("RGBA", 255), ("L", 0)])
def test_other_colours_are_written_anew(mode: str, shown: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def clear(*_: object) -> bytes:
        buffer = io.BytesIO()
        Image.new(mode, (4, 4)).save(buffer, "PNG")
        return buffer.getvalue()

    monkeypatch.setattr("tests.llm.server.openai_protocol.picture_bytes", clear)
    with running_server() as server:
        buy(openai(server, background="transparent"), tmp_path)
    row = images_of(tmp_path).row(0, named=True)
    assert row["status"] == "ok"
    assert row["sha256"] != row["source_sha256"]
    written = Image.open(tmp_path / "out" / row["path"])
    assert (written.mode, np.asarray(written).min()) == ("RGB", shown)


def test_pictures_at_addresses_are_fetched_once_and_one_that_is_gone_is_tried_again_for_nothing(tmp_path: Path) -> None:
    with running_server() as server:
        address = f"{server.url}/pictures/{{digest}}/{{place}}?secret"
        server.follow(Script(pictures=Pictures(address=address, revised=True, status=404)))
        backend = openai(server, model="dall-e-3", quality="standard", response_format="url", image_price=0.04)
        buy(backend, tmp_path)
        gone = images_of(tmp_path)
        server.follow(Script(pictures=Pictures(address=address, revised=True)))
        buy(backend, tmp_path, fresh=True)
        first = images_of(tmp_path)
        server.follow(Script(pictures=Pictures(address=address, status=410)))
        buy(backend, tmp_path, fresh=True)
        assert server.stats()["online"]["replies"] == 4
    assert set(gone["status"]) == {"failed"}
    assert all("status 404" in reason and "secret" not in reason for reason in gone["reason"])
    assert set(first["status"]) == {"ok"}
    assert images_of(tmp_path).equals(first)


def test_a_server_that_takes_seeds_is_told_them(tmp_path: Path) -> None:
    with running_server() as server:
        buy(google(server, send_seed="true"), tmp_path)
    rows = images_of(tmp_path)
    assert rows["seed_honoured"].null_count() == 4


OPENAI_ENDS = [
    ("moderation", "filtered", "moderation_blocked"), ("content-policy", "filtered", "content_policy_violation"),
    ("content-filter", "filtered", "violence"), ("bad-request", "failed", "not valid"),
]  # fmt: skip

GOOGLE_ENDS = [
    ("prompt-blocked", "filtered", "prompt: SAFETY"), ("content-filter", "filtered", "IMAGE_SAFETY"),
    ("prohibited", "filtered", "IMAGE_PROHIBITED_CONTENT"), ("recitation", "filtered", "IMAGE_RECITATION"),
    ("refusal", "refused", "can't help"), ("bad-request", "failed", "invalid argument"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "kind", "status", "reason"),
    [(openai, *case) for case in OPENAI_ENDS] + [(google, *case) for case in GOOGLE_ENDS],
)
def test_refused_or_filtered_images_are_rows(spec: SpecOf, kind: str, status: str, reason: str, tmp_path: Path) -> None:
    script = Script(rules=(Rule(Fault(kind), When(row_matches="Ghana")),))
    with running_server(script) as server:
        run = buy(spec(server), tmp_path)
        asked = server.stats()["requests"]
        buy(spec(server), tmp_path)
        assert server.stats()["requests"] == asked
    row = images_of(tmp_path).row(3, named=True)
    assert (row["status"], row["path"], row["prompt_id"]) == (status, "", "p4")
    assert reason in row["reason"]
    assert row["prompt_sent"] == TEXTS["p4"]
    assert (row["safety"] is not None) == (status == "filtered")
    assert run.manifest.drops == {status: 1}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(
    "kind", ["server-error", "unavailable", "broken-json", "empty-body", "drop-inside", "error-in-200", "no-candidates"]
)
def test_what_may_pass_is_asked_again_with_the_same_seed(
    spec: SpecOf, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "retry_wait", lambda *given, **named: 0.0)
    script = Script(rules=(Rule(Fault(kind), When(attempts=(1, 1), row_matches="Ghana")),))
    with running_server(script) as server:
        buy(spec(server), tmp_path)
    rows = images_of(tmp_path)
    assert set(rows["status"]) == {"ok"}
    assert rows["seed"][3] == derive_seed(3, "p4", 0, 0)


@pytest.mark.parametrize("spec", SPECS)
def test_only_passing_failures_are_bought_again(spec: SpecOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "retry_wait", lambda *given, **named: 0.0)
    with running_server(Script(rules=(Rule(Fault("server-error"), When(row_matches="Ghana")),))) as server:
        buy(spec(server), tmp_path)
        assert images_of(tmp_path)["status"].to_list() == ["ok", "ok", "ok", "failed"]
        server.follow(Script())
        before = server.stats()["requests"]
        assert buy(spec(server), tmp_path).state == "resumed"
        assert server.stats()["requests"] == before + 1
        assert set(images_of(tmp_path)["status"]) == {"ok"}
        assert buy(spec(server), tmp_path).state == "reused"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spec", "hint"), [(openai, "retry-after-ms"), (openai, "retry-after"), (google, "retry-info")]
)
def test_hints_are_waited_for(spec: SpecOf, hint: str, tmp_path: Path) -> None:
    busy = Fault("busy", hint=hint, wait=0.6)  # type: ignore[arg-type]
    with running_server(Script(rules=(Rule(busy, When(attempts=(1, 1)), times=2),))) as server:
        buy(spec(server), tmp_path)
        stats = server.stats()
    assert stats["early"] == 0
    assert stats["statuses"]["429"] == 2
    assert set(images_of(tmp_path)["status"]) == {"ok"}


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(("form", "reason"), [("bomb", "too large"), ("cut", "cannot be decoded"), ("page", "format")])
def test_a_hostile_picture_is_a_row_and_is_kept(spec: SpecOf, form: str, reason: str, tmp_path: Path) -> None:
    with running_server(Script(pictures=Pictures(form=form))) as server:  # type: ignore[arg-type]
        buy(spec(server), tmp_path)
        assert server.stats()["online"]["replies"] == 4
    rows = images_of(tmp_path)
    assert set(rows["status"]) == {"failed"}
    assert all(reason in text for text in rows["reason"])
    for sha256 in rows["source_sha256"]:
        assert digest_bytes((tmp_path / "out/journal/pictures" / sha256[:2] / sha256).read_bytes()) == sha256


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


WIRES = ("openai:gpt-image-1", "openai:gpt-5?api=responses&image_price=0", "google:gemini-2.5-flash-image")

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


@given(st.sampled_from(WIRES), JSON)
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
