"""What recipes of every kind are refused for before anything runs, and what is taken beside it."""

from collections.abc import Sequence

import pytest

from culturekit.config.kinds import AnyRecipe
from culturekit.config.load import find_recipe, load_any_recipe
from culturekit.core.errors import UsageError
from tests.conftest import SMALL


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
