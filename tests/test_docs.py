"""Documentation held against the code and the files it speaks of."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import BaseModel

from culturekit.annotate.scheme import Scheme
from culturekit.config.recipe import Recipe
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import CountryFile

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_generated_page_is_what_the_code_says() -> None:
    pages = generator().PAGES
    stale = [name for name in pages if (ROOT / "docs" / name).read_text(encoding="utf-8") != pages[name]()]
    assert stale == [], "regenerate: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target, section in re.findall(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            there = page.parent / target if target else page
            assert there.exists(), target
            assert not section or section in sections(there), (target, section)


def sections(page: Path) -> set[str]:
    """Give the anchors of the headings of a page, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_decisions_are_short_and_say_what_would_change_them() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert len(pages) >= 6
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert len(text.split()) <= 300, page
        for part in ("**Choice.**", "**Why.**", "**Would change our mind.**"):
            assert part in text, (page.name, part)


@pytest.mark.parametrize("model", [Recipe, Concept, CountryFile, Scheme])
def test_every_key_of_a_yaml_file_is_documented(model: type[BaseModel]) -> None:
    text = (ROOT / "docs/keys.md").read_text(encoding="utf-8")
    for key in model.model_fields:
        assert f"| `{key}` |" in text, key
