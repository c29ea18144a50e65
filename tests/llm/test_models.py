import re
from datetime import date
from pathlib import Path

import pytest

from culturekit.core.errors import UsageError
from culturekit.generation.services.image_client import IMAGE_SERVICES
from culturekit.llm.client import Request
from culturekit.llm.clients.client_options import GoogleOptions, OpenAIOptions
from culturekit.llm.clients.clients import CLIENTS
from culturekit.llm.clients.google_client import settings_of as google_settings
from culturekit.llm.clients.openai_client import settings_of as openai_settings
from culturekit.llm.endpoints import OPENAI
from culturekit.llm.models import Role, habits_of, known_models, model_for, published_models
from culturekit.llm.prices import end_of, price_list, prices_in, shut_among
from culturekit.llm.probing import probe_request
from culturekit.recipes.cultivate.preset import GROUND

ROOT = Path(__file__).parents[2]
NAME = re.compile(
    r"(?<![\w./-])(?:gpt-(?:image-)?\d|gemini-\d|chatgpt-|o[134](?:-mini|-pro)\b|claude-|dall-e-\d|imagen-)[\w.-]*"
)
OFFICIAL = OPENAI.base_url("")
GENERATED = {"commands.md", "specs.md", "keys.md"}
"""Pages made from the code, which is looked at itself."""


def named_in(*paths: Path) -> dict[str, set[str]]:
    found = {path: {name.rstrip(".") for name in NAME.findall(path.read_text(encoding="utf-8"))} for path in paths}
    return {str(path.relative_to(ROOT)): names for path, names in found.items() if names}


def live() -> set[str]:
    return {spec.partition(":")[2].partition("?")[0] for spec in known_models().roles.values()}


def test_no_model_is_named_in_code() -> None:
    assert named_in(*(ROOT / "culturekit").rglob("*.py")) == {}


def test_pages_recipes_and_examples_name_models_that_live() -> None:
    pages = [path for path in (ROOT / "docs").glob("*.md") if path.name not in GENERATED]
    files = [
        path for folder in ("culturekit/recipe_files", "recipes", "examples") for path in (ROOT / folder).rglob("*")
    ]
    texts = [path for path in files if path.suffix in {".yaml", ".md", ".py"}]
    named = named_in(ROOT / "README.md", *pages, *texts)
    assert len(named) > 5, "the pages do name some"
    assert {path: names - live() for path, names in named.items() if names - live()} == {}


@pytest.mark.parametrize("role", sorted(known_models().roles))
def test_what_is_shown_has_a_price_and_lives_for_sixty_days_after_the_list_was_checked(role: Role) -> None:
    provider, _, model = model_for(role).partition("?")[0].partition(":")
    price = {(one.provider, one.model): one for one in prices_in(price_list())}.get((provider, model))
    assert role == "weighing" or price is not None
    assert price is None or end_of(price, date.fromisoformat(known_models().checked)) == "alive"
    client = (IMAGE_SERVICES if role.startswith("image") else CLIENTS).make(model_for(role))
    assert role == "weighing" or getattr(client, "rate", None) is not None


def test_published_models_keep_their_names_and_say_what_replaces_them() -> None:
    assert GROUND["reader"] == "openai:gpt-4o"
    assert GROUND["proposers"] == published_models("cultivate")["proposers"]
    listed = {f"{one.provider}:{one.model}": one for one in prices_in(price_list())}
    for spec in {spec.partition("?")[0] for one in published_models("cultivate").values() for spec in one}:
        end = listed[spec]
        assert f"{end.model} is shut on {end.shuts}: take {end.provider}:{end.instead}" in shut_among("cultivate")
        assert end_of(listed[f"{end.provider}:{end.instead}"], date.fromisoformat(known_models().checked)) == "alive"


@pytest.mark.parametrize(
    "model", ["gemini-3.6-flash", "models/gemini-3.8-flash", "gemini-4-pro", "gemini-flash-latest"]
)
def test_newer_gemini_models_are_sent_no_sampling_of_ours(model: str) -> None:
    assert google_settings(model, GoogleOptions()).generation(0) == {}
    stated = google_settings(model, GoogleOptions(temperature=0.3, top_p=0.9)).generation(0)
    assert stated == {"temperature": 0.3, "topP": 0.9}
    for older in ("gemini-2.5-flash", "gemini-3-flash-preview", "gemini-3.5-flash-lite"):
        assert google_settings(older, GoogleOptions()).generation(0)["temperature"] == 0.0


def test_an_effort_that_a_model_does_not_take_is_refused_with_those_it_takes() -> None:
    for model in ("gpt-5.6-sol", "gpt-6-luna"):
        assert openai_settings(model, OFFICIAL, OpenAIOptions(reasoning_effort="max")).effort == "max"
    assert openai_settings("gpt-5-mini", OFFICIAL, OpenAIOptions(reasoning_effort="minimal")).effort == "minimal"
    with pytest.raises(UsageError, match="none, low, medium, high, xhigh, max, found minimal"):
        openai_settings("gpt-5.6-sol", OFFICIAL, OpenAIOptions(reasoning_effort="minimal"))
    with pytest.raises(UsageError, match="found max"):
        openai_settings("gpt-5.4", OFFICIAL, OpenAIOptions(reasoning_effort="max"))
    own = openai_settings("gpt-5.4", "http://127.0.0.1:8000/v1", OpenAIOptions(reasoning_effort="max"))
    assert own.effort == "max", "a server of one's own knows its words itself"


@pytest.mark.parametrize(
    ("model", "effort", "weighs"),
    [
        ("gpt-4.1-mini", None, True),
        ("ft:gpt-4o-mini:us::1", None, True),
        ("gpt-5-chat-latest", None, True),
        ("gpt-5.4-mini", None, False),
        ("gpt-5.4-mini", "none", True),
        ("gpt-5.6-sol", "none", False),
        ("o3", None, False),
    ],
)
def test_who_gives_probabilities_is_known_before_anything_is_sent(model: str, effort: str | None, weighs: bool) -> None:
    settings = openai_settings(model, OFFICIAL, OpenAIOptions(reasoning_effort=effort))  # type: ignore[arg-type]
    assert settings.weighs is weighs
    if model.startswith("gpt-5.6"):
        unroomed = openai_settings(model, OFFICIAL, OpenAIOptions(thinking_budget=0))
        assert not unroomed.weighs, "no room to think is no promise to list probabilities"


def test_the_first_line_that_fits_counts() -> None:
    assert habits_of("gpt-image-2.6", "openai").quality == "medium"
    assert habits_of("gemini-3.1-flash-image", "google").thinks
    assert not habits_of("gemini-2.5-flash-image", "google").stops_thinking
    assert habits_of("imagen-4.0-generate-001", "google").gone
    assert habits_of("a-model-of-tomorrow", "openai").names == ()
    request: Request = probe_request()
    assert openai_settings("a-model-of-tomorrow", OFFICIAL, OpenAIOptions()).limit(request) == request.max_tokens
