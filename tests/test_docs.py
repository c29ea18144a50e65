"""Documentation held against the code and the files it speaks of."""

import importlib.util
import re
import shlex
from pathlib import Path
from types import ModuleType

import pytest
from click import UsageError
from click.exceptions import Exit
from pydantic import BaseModel

from culturekit.annotate.scheme import Scheme
from culturekit.config.recipe import Recipe
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import CountryFile
from tests.cli.commands import all_commands

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_docs", ROOT / "docs/generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["commands.md", "metrics.md", "tables.md", "benchmarks.md", "keys.md", "api.md"])
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


def test_the_words_of_the_glossary_are_used() -> None:
    glossary = ROOT / "docs/glossary.md"
    words = re.findall(r"^- \*\*(.+?)\*\*: ", glossary.read_text(encoding="utf-8"), re.MULTILINE)
    pages = [page.read_text(encoding="utf-8").lower() for page in PAGES if page != glossary]
    assert len(words) == len(set(words)) >= 40
    for word in words:
        using = sum(re.search(rf"\b{word.lower()}s?\b", page) is not None for page in pages)
        assert using >= 2, (word, using)


def typed(page: Path) -> list[str]:
    """Give the commands of culturekit that a page tells people to type."""
    blocks = re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line for line in lines if re.match(r"\$ (\.venv/bin/)?culturekit ", line)]


@pytest.mark.parametrize(
    "page", [page for page in PAGES if typed(page)], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_every_command_of_a_page_is_one(page: Path) -> None:
    commands = all_commands()
    for line in typed(page):
        words = shlex.split(line, comments=True)[2:]
        words = words[: words.index(">")] if ">" in words else words
        while words[0].startswith("--"):
            words = words[2:] if words[0] == "--countries-file" else words[1:]
        name = " ".join(words[:3])
        while name and name not in commands:
            name = name.rpartition(" ")[0]
        assert name, line
        try:
            commands[name].make_context(name, words[len(name.split()) :])
        except Exit:
            assert "--help" in words, line
        except UsageError as error:
            raise AssertionError(f"{line}: {error.format_message()}") from error
