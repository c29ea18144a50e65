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


@pytest.mark.parametrize("name", ["commands.md", "metrics.md", "tables.md", "benchmarks.md", "keys.md"])
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    page = generator().PAGES[name]()
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == page, "regenerate: make docs"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_decisions_are_short_and_say_what_would_change_them() -> None:
    pages = sorted((ROOT / "docs/decisions").glob("*.md"))
    assert len(pages) >= 6
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 60, page
        for part in ("**Choice.**", "**Why.**", "**Would change our mind.**"):
            assert part in text, (page.name, part)


@pytest.mark.parametrize("model", [Recipe, Concept, CountryFile, Scheme])
def test_every_key_of_a_yaml_file_is_documented(model: type[BaseModel]) -> None:
    text = (ROOT / "docs/keys.md").read_text(encoding="utf-8")
    for key in model.model_fields:
        assert f"| `{key}` |" in text, key


def test_the_packages_of_the_contract_are_those_of_the_architecture_page() -> None:
    contract = (ROOT / "pyproject.toml").read_text(encoding="utf-8").partition("layers = [")[2].partition("]")[0]
    names = set(re.findall(r"[a-z_]+", re.sub(r"\([a-z]+\)", "", contract)))
    text = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    for name in names - {"version"}:
        assert f"| `{name}` |" in text, name
