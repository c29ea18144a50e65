"""What the page of every recipe says first, typed: the demo, and the plan of the paper's size."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from culturekit.config.load import find_recipe, load_any_recipe
from tests.command_line import culturekit
from tests.typed_pages import ROOT, typed


@dataclass(frozen=True)
class Page:
    """Stages with the work that the plan counts, what report and demo say, and settings that the plan takes besides."""

    planned: dict[str, str]
    report: str
    said: str = ""
    besides: tuple[str, ...] = ()


# By recipe, whose page begins with these two commands. Inclusion counts four models, of which the study had two.
PAGES = {
    "c3": Page({"captions": "1,977 questions", "images-showy": "500 images"}, "hard about a culture"),
    "cultivate": Page({"images-showy": "1,440 images"}, "social activities"),
    "inclusion": Page(
        {"real": "1,800 images", "images-local": "1,800 images", "plain-images-local": "600 images",
         "triplets": "30,600 triplets", "to-look-at": "11,400 images"},
        "Do objects look as they do in each region",
        "By people who live there, local looks most often as its region does",
    ),
    "linguistic": Page({"images-open": "1,890 images", "images-literal": "1,890 images", "images-narrow": "840 images"},
        "How evenly are skin tones spread?", "By clipscore, literal comes first instead",
        ("--set", "prompts.kinds=[neutral]")),
}  # fmt: skip


# Keys that a page may name, and some that it does
KEYS = {
    "c3": ("captions|judge|objects|encoders|pairs|people|finetune", {"captions.proposer", "judge", "encoders",
        "pairs.images", "people.image_answers", "finetune"}),
    "inclusion": ("places|photographs|extractors|people|published|thresholds", {"places", "photographs.least",
        "extractors", "people.task1_answers", "published"}),
}  # fmt: skip


@pytest.mark.parametrize("name", list(KEYS))
def test_each_key_that_the_page_names_is_one_of_the_recipe(name: str) -> None:
    recipe = load_any_recipe(find_recipe(name)).model_dump()
    firsts, some = KEYS[name]
    named = re.findall(rf"`((?:{firsts})(?:\.\w+)?)[:`]", (ROOT / f"docs/{name}.md").read_text(encoding="utf-8"))
    assert some <= set(named)
    for key in named:
        first, _, second = key.partition(".")
        assert first in recipe
        assert not second or second in recipe[first], key


@pytest.mark.slow
@pytest.mark.parametrize("name", list(PAGES))
def test_the_size_of_the_paper_is_planned_as_the_page_says(tmp_path: Path, name: str) -> None:
    demo, plan, *_ = typed(ROOT / f"docs/{name}.md")
    assert demo == ["demo", name]
    answer = culturekit(*plan, *PAGES[name].besides, cwd=tmp_path, ends=0)
    for stage, work in PAGES[name].planned.items():
        assert re.search(rf"^{stage} +to do +{work}", answer.stdout, re.MULTILINE), (stage, answer.stdout)
    assert list(tmp_path.iterdir()) == [], "nothing is begun"


@pytest.mark.endtoend
@pytest.mark.parametrize("name", list(PAGES))
def test_the_demo_ends_with_its_report(tmp_path: Path, name: str) -> None:
    answer = culturekit(*typed(ROOT / f"docs/{name}.md")[0], cwd=tmp_path, ends=0)
    assert PAGES[name].said in answer.stdout
    report = answer.stdout.splitlines()[-1].removeprefix("report: ")
    assert PAGES[name].report in (tmp_path / report).read_text(encoding="utf-8")
