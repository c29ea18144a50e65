"""The size of the paper, planned before photographs and weights are there: images, dollars, people, deviations."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from culturekit.config.kinds import recipe_kind
from culturekit.config.load import load_any_recipe
from culturekit.core.errors import ConfigError
from culturekit.recipes.cultivate.preset import GROUND, PUBLISHED
from culturekit.recipes.cultivate.recipe import Cultivate
from culturekit.recipes.planning import plan_recipe

PAPER = Path(__file__).parents[3] / "examples" / "cultivate-paper.yaml"
PAID = {"dall-e-3": "openai:dall-e-3?image_price=0.04", "gpt-image-1": "openai:gpt-image-1",
        "nano-banana": "google:gemini-2.5-flash-image"}  # fmt: skip
PUBLIC = ("sd-3.5", "flux-1", "qwen-image")
SIX = ", ".join([*(f"{{name: {name}, backend: 'diffusers:some/{name}'}}" for name in PUBLIC),
                 *(f"{{name: {name}, backend: '{spec}', images: 1}}" for name, spec in PAID.items())])  # fmt: skip
PAGES = "pages: [{source: wikipedia, country: IR, title: Nowruz, url: 'https://en.wikipedia.org/wiki/N'}]"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pages.yaml").write_text(PAGES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "sk-of-nobody-at-all")
    return tmp_path


def paper(*stated: str) -> Cultivate:
    recipe = load_any_recipe(PAPER, stated).going_on(wanted=True)
    assert isinstance(recipe, Cultivate)
    return recipe


def lines(*stated: str) -> Sequence[str]:
    return list(recipe_kind("cultivate").plan(paper(*stated)))


def test_the_papers_size_is_planned_for_its_six_models(here: Path) -> None:
    """Asked for ten images each, the paid models alone were planned at ten times what the paper paid."""
    steps = {step.name: step for step in plan_recipe(paper(f"models=[{SIX}]"), here / "run")}
    images = {name: step.units for name, step in steps.items() if name.startswith("images-")}
    assert sum(filter(None, images.values())) == 3 * 5_760 + 3 * 576 == 19_008
    dollars = [steps[f"images-{name}"].dollars or 0 for name in PAID]
    assert 60 < sum(dollars) < 80
    assert steps["descriptors"].requests == 576 * 5
    assert steps["real-candidates"].units == 576 * 20
    assert "there is no such folder of images" in steps["real-candidates"].lacks
    assert "references collect" in steps["real-candidates"].lacks
    assert not (here / "run").exists()


def test_the_study_of_the_paper_has_189_forms_and_27_with_photographs(here: Path) -> None:
    people = next(line for line in lines() if line.startswith("People"))
    assert "189 forms about models and 27 about photographs, 3 people each: 648 answers" in people
    assert "108 hours" in people
    assert "$864 at $8" in people
    with pytest.raises(ConfigError, match="people rates what is not there: nobody"):
        paper("people.models=[nobody]")
    with pytest.raises(ConfigError, match="both say how many prompts"):
        paper("people.prompts=5")


def test_what_is_not_as_published_is_listed(here: Path) -> None:
    assert not [line for line in lines() if " is " in line and line.endswith(f"published {PUBLISHED['extractor']}")]
    changed = lines("extractor=openai:gpt-5.4-mini", "ground.at_most=5", "scores={quantile: 0.75}", "images.slots=4")
    said = "\n".join(changed)
    assert f"extractor is openai:gpt-5.4-mini, published {PUBLISHED['extractor']}" in said
    assert "images.slots is 4, published 10" in said
    assert "scores.tau is None, published 0.52" in said
    assert "64 tokens hold" in said
    assert "64 tokens hold" not in "\n".join(lines("extraction.reply_tokens=256"))
    assert "0.25 as in the published code, where the paper says 0.2" in said


def test_whatever_the_authors_named_is_filled_in(here: Path) -> None:
    recipe = paper()
    assert recipe.ground is not None
    assert (recipe.ground.proposers, recipe.extractor) == (GROUND["proposers"], PUBLISHED["extractor"])
    assert (recipe.seed, recipe.images.seeds, recipe.scores.tau) == (42, "counted", 0.52)
    assert "InternVL3-14B" in recipe.extractor
    assert [rater.partition("?")[0] for rater in recipe.raters] == [
        "openai:OpenGVLab/InternVL3-14B", "openai:Qwen/Qwen2.5-VL-7B-Instruct",
    ]  # fmt: skip
