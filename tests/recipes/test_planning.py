"""What is known before a run: plans, what is missing, what is refused, and what images will cost."""

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from culturekit.config.kinds import AnyRecipe
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.errors import ConfigError, UsageError
from culturekit.core.stage import PlannedStage
from culturekit.generation.runner import ImagePlan
from culturekit.generation.services.paid_runner import plan_images
from culturekit.index.encoder import ENCODERS
from culturekit.llm.answers import LlmOptions
from culturekit.recipes.cube.keys import load_recipe
from culturekit.recipes.planning import plan_lines, plan_recipe, total_of
from tests.conftest import SMALL, recipe_here
from tests.generation.folder.folder_worlds import prompts
from tests.generation.services.paid_images import buy, openai
from tests.llm.server import running_server

MISSING = {
    "judge=openai:gpt-4o-mini": "there is no key",
    "judge=openai:gpt-4o-mini?api_key=${NOBODY_SET_THIS}": "NOBODY_SET_THIS is not set",
    "judge=openai:nobody-knows?base_url=http://127.0.0.1:9/v1": "the price of nobody-knows is not known",
    "tags={judge: 'google:gemini-2.5-flash'}": "there is no key",
    "faithfulness={vqascore: 'openai:mine?base_url=http://127.0.0.1:9/v1'}": "the price of mine is not known",
    "encoder=transformers:/no/such/weights": "there are no weights",
    "quality=clipscore:transformers:./no/such/weights": "there are no weights",
}


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("setting", MISSING)
def test_nothing_is_done_where_a_later_stage_misses_something(setting: str, tmp_path: Path) -> None:
    recipe = load_recipe(SMALL, [setting])
    with pytest.raises(ConfigError, match=MISSING[setting]) as caught:
        recipe_here(recipe, tmp_path / "run")
    assert caught.value.exit_code == 2
    assert not (tmp_path / "run").exists()


def test_all_that_is_missing_is_said_once_with_its_stages(tmp_path: Path) -> None:
    settings = ["judge=openai:gpt-4o-mini", "encoder=transformers:/no/such/weights", "completion={rounds: 1}"]
    with pytest.raises(ConfigError) as caught:
        recipe_here(load_recipe(SMALL, settings), tmp_path)
    assert caught.value.problems[0].where == "filter, completion"
    assert len(caught.value.problems) == 2
    runs = recipe_here(load_recipe(SMALL, settings), tmp_path, until="graph")
    assert [run.name for run in runs] == ["graph"], "a stage that is not run needs nothing"


def test_a_recipe_of_another_kind_leaves_a_run_as_it_is(tmp_path: Path) -> None:
    recipe_here(load_recipe(SMALL), tmp_path, until="graph")
    before = (tmp_path / "recipe.json").read_bytes()
    with pytest.raises(UsageError, match="run of another recipe; expected a recipe `cube`"):
        recipe_here(load_recipe("linguistic"), tmp_path)
    assert (tmp_path / "recipe.json").read_bytes() == before


def test_a_plan_ends_with_the_sum_of_what_is_known() -> None:
    known = PlannedStage("filter", "to do", requests=30, tokens=700, dollars=0.25, seconds=60.0)
    total = total_of([known, known])
    assert (total.state, total.requests, total.tokens, total.dollars) == ("all", 60, 1_400, 0.5)
    unknown = replace(known, requests=None), replace(known, tokens=None), replace(known, dollars=None)
    assert {total_of([known, one]).state for one in unknown} == {"at least"}
    open_yet = PlannedStage("tags-a", "to do", requests=None, tokens=None, dollars=None)
    lines = list(plan_lines([known, open_yet]))
    assert lines[3].split()[:3] == ["total", "at", "least"]
    assert "0.25" in lines[3]
    assert "lacks the dollars of tags-a" in lines[-1]


LISTED = "name,concept,country,continent\ncarillon,instruments,BE,Europe\ncajón,instruments,BR,\n"
OF_A_LIST = {
    "no en template for prompts of the kind cube about instruments; expected `prompts: {en:": [],
    "cspace has artifacts of BE, which no file of countries has: name one with countries_file": ["translations"],
    "a: favour names US, and the space is made of BE, BR": [
        "models=[{name: a, backend: 'simulated?favour=US&favour_strength=.9'}]"
    ],
}


@pytest.mark.parametrize("said", OF_A_LIST)
def test_a_list_that_no_prompts_can_be_made_of_is_refused_with_the_recipe(
    said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.csv").write_text(LISTED, encoding="utf-8")
    words = "language: en\nverified: {by: Ada, on: 2026-11-22}\n"
    words += "artifact: {instruments: 'A photo of {name}'}\nunderspecified: {instruments: [An instrument]}\n"
    (tmp_path / "words.yaml").write_text(words, encoding="utf-8")
    (tmp_path / "recipe.yaml").write_text(
        "recipe: cube\ncspace: list.csv\nprompts: {kinds: [cube, underspecified]}\nimages: {slots: 8}\n"
        "references: {backend: simulated, per_artifact: 1}\nmodels: [{name: a, backend: simulated}]\n",
        encoding="utf-8",
    )
    given = OF_A_LIST[said]
    if "translations" in given:
        given = [f"prompts={{kinds: [cube, underspecified], translations: [{tmp_path / 'words.yaml'}]}}"]
    with pytest.raises(ConfigError) as caught:
        load_recipe(tmp_path / "recipe.yaml", given)
    assert said in str(caught.value)


def test_a_plan_tells_what_only_this_machine_lacks(tmp_path: Path) -> None:
    steps = plan_recipe(load_recipe(SMALL, ["judge=openai:gpt-4o-mini"]), tmp_path)
    assert {step.name for step in steps if "there is no key" in step.lacks} == {"filter"}
    assert any(line.startswith("A run would be refused: filter: there is no key") for line in plan_lines(steps))
    assert total_of(steps).seconds == pytest.approx(sum(step.seconds or 0 for step in steps))
    setting = "judge=openai:nobody-knows?base_url=http://127.0.0.1:9/v1"
    with pytest.raises(ConfigError, match=MISSING[setting]):
        plan_recipe(load_recipe(SMALL, [setting]), tmp_path)
    setting = "encoder=transformers:/no/such/weights"
    steps = plan_recipe(load_recipe(SMALL, [setting]), tmp_path)
    lacking = {step.name: step.lacks for step in steps if step.lacks}
    assert set(lacking) == {"index"}
    assert re.search(MISSING[setting], lacking["index"])


def test_packages_are_looked_for_before_the_first_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = replace(ENCODERS.entries["embedded"], packages=("no_such_package",), extra="embed")
    monkeypatch.setitem(ENCODERS.entries, "embedded", entry)
    with pytest.raises(ConfigError, match=r"encoder embedded needs the package no_such_package.*culturekit\[embed\]"):
        recipe_here(load_recipe(SMALL), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def load(kind: str, settings: Sequence[str]) -> AnyRecipe:
    """Load the shipped recipe of a kind, of `cube` the small one, with other settings."""
    return load_any_recipe(SMALL if kind == "cube" else find_recipe(kind), settings)


TRAINED = (
    "people=null", "models=[{name: plain, backend: 'diffusers:nowhere'}]", "pairs.keep=8", "finetune.model=plain",
)  # fmt: skip
README = "README.md"
# Of each kind by what is said, as a pattern
REFUSED: dict[str, dict[str, Sequence[str]]] = {
    "c3": {
        "there is no such culture": ["culture=martian"],
        "expanded .captions.proposer. or given": ["captions.proposer=null"],
        "no model can be called pairs": ["models=[{name: pairs, backend: simulated-scenes}]"],
        "simulated people know only what simulated-scenes drew": ["models=[{name: m, backend: simulated}]"],
        "objects.labels lists; give both or neither": ["objects={lister: simulated:lister, detector: 'owl:FOLDER'}"],
        "pairs.images with pairs.captions": ["pairs.simulated=null"],
        "pairs.strategies.*random": ["pairs.strategies=[best]"],
        "both simulated people and files": [f"people.image_answers=[{README}]"],
        "captions.sample asks for 2,000 of 1,000 captions": ["captions.sample=2000"],
        "people.prompts asks for 121 of 120 captions in the sample": ["people.prompts=121"],
        "pairs.keep asks for 433 of 432 pairs": ["pairs.keep=433"],
        "pairs.images: README.md: not a readable Parquet file; expected the table images": [
            "people=null", "pairs.simulated=null", f"pairs.images={README}", f"pairs.captions={README}"
        ],
        "captions.file: .*expected the table captions": ["captions.proposer=null", f"captions.file={README}"],
        "unknown country 'China'": ["pairs.simulated.country=China"],
        "people.pairs asks for 433 of 432 pairs": ["people.pairs=433"],
        "finetune.model is to be one of the models": [*TRAINED[:-1], "finetune.model=other"],
        "chosen by c3: see pairs": [*TRAINED, "pairs.strategies=[random]"],
        "as an imagefolder": [*TRAINED, "pairs.forms=[webdataset]"],
        "see pairs$": [*TRAINED[:2], "finetune.model=plain", "pairs=null"],
        "is a model already": [*TRAINED, "finetune.name=plain"],
        "finetune.steps": [*TRAINED, "finetune.steps=0"],
        "chosen by random, clip: see pairs": [
            *TRAINED, "finetune.strategies=[random,clip]", "pairs.strategies=[c3,clip]"
        ],
    },
    "cultivate": {
        "named twice: US": ["ground.countries=[US,US]"],
        "named twice: simulated:a": ["raters=[simulated:a, simulated:a]"],
        "no model can be called all": ["models=[{name: all, backend: simulated-scenes}]"],
        "no model can be called real": ["models=[{name: real, backend: simulated-scenes}]"],
        "less than or equal to 0.9999": ["scores.confidence=95"],
        "there is no scheme 'nope' of country groups": ["scheme=nope"],
        "keep: no more than per_prompt, which is 4; found 9": ["real.keep=9"],
    },
    "inclusion": {
        "texts: 'nobody' is no extractor; expected one of texture, content, captioner": ["texts=nobody"],
        "thresholds names 'rogh', which is no model": ["thresholds.rogh=0.2"],
        "thresholds.local: input should be less than or equal to 1, found '21'": ["thresholds.local=21"],
        "simulated people know only what simulated-objects drew": ["photographs.backend=simulated-scenes?knows=1"],
        "least: no more than each, the 24 photographs": ["photographs.least=180"],
        "triplets take at least 49 images of each prompt; images.slots is 12": ["people.scaled=false"],
        "photographs.each is 24": ["people.near=20", "people.far=10", "images.slots=30"],
    },
    "linguistic": {
        "simulated people know only what simulated-portraits drew": ["models=[{name: m, backend: simulated-scenes}]"],
        "both simulated people and files": [f"people.person_answers=[{README}]"],
        "prompts.kinds": ["prompts.kinds=[]"],
        "detectors": ["detectors=[other]"],
        "scorer": ["scorer=nobody"],
        "nowhere.parquet": ["prompts.dialects=nowhere.parquet"],
        "prompts.neutral: .*expected the table prompts": [f"prompts.neutral={README}"],
        "nouns: 30 are listed; found 500": ["prompts.nouns=500"],
        "two dialects; found AAE twice": ["prompts.pairs.standard=AAE"],
    },
    "cube": {
        "sees no image": ["tags.judge=rules"],
        "less than one repeat of 8 images": ["tags.judge=openai:seer-1", "tags.images=4"],
        "tags.images": ["tags.judge=openai:seer-1", "tags.images=none"],
        "tags.judge": ["tags.images=40"],
        "expected the name of one of the instruments, or tags": ["audit.second=two"],
        "audit.second is tags, and no vision model looks at all images": ["audit.second=tags"],
        "with images: all": ["audit.second=tags", "tags.judge=openai:seer-1", "tags.images=40"],
        "openai": ["tags.judge=opnai:seer-1"],
        "nothing is scored within countries": ["gaps.scheme=cultivate"],
        "countries: give at least one": ["countries=[]"],
        "countries: 'NO' stands twice": ["countries=[NO,NO]"],
        "each once; found cube, cube": ["images.kinds=[cube,cube]"],
        "kernels must be triples of weights, each given once": ["scores.kernels=[]"],
        "two root configs are of the concept 'art'": ["concepts=[art,art]"],
        "a: favour names US, and the space": [
            "countries=[BR, FR]", "models=[{name: a, backend: 'simulated?favour=US&favour_strength=.5'}]"
        ],
        "a: drift_to names JP, and the space": [
            "countries=[BR, FR]", "models=[{name: a, backend: 'simulated?drift=.5&drift_to=JP,BR'}]"
        ],
        r"know only what simulated models drew, not gpt: give audit\.file": [
            "audit={}", 'models=[{name: gpt, backend: "openai:gpt-image-1"}]'
        ],
        "leave give=unit out": ["realism.encoder=inception:x.safetensors?give=unit"],
        "class probabilities come from inception:FILE": ["realism.classes=embedded"],
        "neither a folder nor a table": ["realism.real=nowhere"],
        "no file of weights": ["realism.lpips=nowhere.safetensors"],
        "kinds of prompts that name a country": ["within.kinds=[underspecified]"],
        "no batch would be complete": ["within.slots=4"],
        "prompts.kinds does not build: within-country": ["within.repeats=1", "prompts.kinds=[cube, underspecified]"],
        "scores.size: input should be greater than or equal to 2": ["realism.k=5", "scores.size=1"],
        "belong together": ["faithfulness={questions: 'openai:a'}"],
        "at least one": ["faithfulness={per_prompt: 3}"],
        "no rules for writing": ["faithfulness={questions: rules, answers: 'openai:a'}"],
        "answers: .*sees no image": ["faithfulness={questions: 'openai:a', answers: rules}"],
        "vqascore: .*sees no image": ["faithfulness={vqascore: rules}"],
        "scores as quality already": ["faithfulness={scorers: [embedded]}"],
        "scorers.*nobody": ["faithfulness={scorers: [nobody]}"],
        r"annotations\.judged puts judges right, and there are none": [
            "annotations={judged: {criterion: realism, lowest: 1, highest: 5}}"
        ],
    },
}  # fmt: skip


@pytest.mark.parametrize(("kind", "pattern"), [(kind, one) for kind in REFUSED for one in REFUSED[kind]])
def test_what_cannot_be_is_refused_with_the_recipe(kind: str, pattern: str) -> None:
    with pytest.raises(UsageError, match=pattern):
        load(kind, REFUSED[kind][pattern])


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("cube", ["images.kinds=[]"]),
        ("inclusion", ["places=geode"]),
        ("inclusion", ["thresholds.real=0.2"]),
        ("inclusion", ["photographs.least=180", "photographs.each=200"]),
        ("inclusion", ["people.scaled=false", "images.slots=49"]),
    ],
)
def test_what_can_be_is_taken(kind: str, settings: Sequence[str]) -> None:
    assert load(kind, settings).recipe == kind


needs_openai = pytest.mark.skipif(find_spec("openai") is None, reason="needs openai")


@needs_openai
def test_a_plan_needs_no_key_and_sends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    plan = plan_images(
        prompts(tmp_path), ImagePlan(2, 3), backend="openai:gpt-image-1?quality=high&n=3", seed=0, out=tmp_path / "out"
    )
    assert (plan.images, plan.calls, plan.bought) == (24, 8, 0)
    assert plan.each == pytest.approx(0.1664)
    assert 24 * 0.1664 < plan.usd < 24 * 0.1664 + 0.01 < plan.most < plan.usd + 0.05
    assert "24 images by gpt-image-1: 8 calls" in next(plan.lines())


@needs_openai
def test_what_the_journal_has_costs_nothing_and_the_plan_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    with running_server() as server:
        backend, slots = openai(server), ImagePlan(slots=2)
        table, out = prompts(tmp_path / "prompts"), tmp_path / "out"
        before = plan_images(table, slots, backend=backend, seed=3, out=out)
        buy(backend, tmp_path, plan=ImagePlan(), llm=LlmOptions(budget=before.most))
        half = plan_images(table, slots, backend=backend, seed=3, out=out)
        assert (half.bought, half.calls) == (4, 8)
        assert half.usd == pytest.approx(before.usd / 2, rel=0.05)
        buy(backend, tmp_path, plan=slots, llm=LlmOptions(budget=before.most))
        sold = server.stats()["online"]
    usd = (sold["input_tokens"] * 5 + sold["output_tokens"] * 40) / 1e6
    assert usd == pytest.approx(before.usd, rel=0.05)
    assert usd < before.most
    assert plan_images(table, slots, backend=backend, seed=3, out=out, batch=True).usd == 0
