from collections.abc import Callable
from pathlib import Path

import pytest

from culturekit.core.digests import digest_bytes
from culturekit.generation.runner import derive_seed
from tests.generation.folder.folder_worlds import TEXTS
from tests.generation.services.paid_images import KEY, buy, google, images_of, openai
from tests.llm.server import Fault, Rule, Script, When, running_server
from tests.llm.server.script import Pictures

pytest.importorskip("openai")
pytest.importorskip("google.genai")


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys lie in the environment only."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    monkeypatch.delenv("GOOGLE_API_KEY", raising=False)


SpecOf = Callable[..., str]
SPECS: list[SpecOf] = [openai, google]


OPENAI_ENDS = [
    ("moderation", "filtered", "moderation_blocked"),
    ("content-policy", "filtered", "content_policy_violation"),
    ("content-filter", "filtered", "violence"),
    ("bad-request", "failed", "not valid"),
]
GOOGLE_ENDS = [
    ("prompt-blocked", "filtered", "prompt: SAFETY"),
    ("content-filter", "filtered", "IMAGE_SAFETY"),
    ("prohibited", "filtered", "IMAGE_PROHIBITED_CONTENT"),
    ("recitation", "filtered", "IMAGE_RECITATION"),
    ("refusal", "refused", "can't help"),
    ("bad-request", "failed", "invalid argument"),
]


@pytest.mark.parametrize(
    ("spec", "kind", "status", "reason"),
    [(openai, *case) for case in OPENAI_ENDS] + [(google, *case) for case in GOOGLE_ENDS],
)
def test_what_was_refused_or_filtered_is_a_row(
    spec: SpecOf, kind: str, status: str, reason: str, tmp_path: Path
) -> None:
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
def test_what_may_pass_is_asked_again_with_the_same_seed(spec: SpecOf, kind: str, tmp_path: Path) -> None:
    script = Script(rules=(Rule(Fault(kind), When(attempts=(1, 1), row_matches="Ghana")),))
    with running_server(script) as server:
        buy(spec(server), tmp_path)
    rows = images_of(tmp_path)
    assert set(rows["status"]) == {"ok"}
    assert rows["seed"][3] == derive_seed(3, "p4", 0, 0)


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
