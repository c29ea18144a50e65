"""Documentation held against the code and the files it speaks of."""

import ast
import doctest
import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from click import UsageError
from click.exceptions import Exit
from pydantic import BaseModel

import culturekit.extend as surface
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import CountryFile
from culturekit.people.scheme import Scheme
from culturekit.recipes.cube.keys import Recipe
from tests.cli.test_app import all_commands
from tests.typed_pages import blocks, typed

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
    text = (ROOT / "docs/reference/keys.md").read_text(encoding="utf-8")
    for key in model.model_fields:
        assert f"| `{key}` |" in text, key


def test_the_words_of_the_glossary_are_used() -> None:
    glossary = ROOT / "docs/glossary.md"
    words = re.findall(r"^- \*\*(.+?)\*\*: ", glossary.read_text(encoding="utf-8"), re.MULTILINE)
    pages = [page.read_text(encoding="utf-8").lower() for page in PAGES if page != glossary]
    assert len(words) == len(set(words)) >= 40
    for word in words:
        using = sum(re.search(rf"\b{word.lower()}s?\b", page) is not None for page in pages)
        assert using >= 2, (word, using)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if typed(page)], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_every_command_of_a_page_is_one(page: Path) -> None:
    commands = all_commands()
    for line in typed(page):
        words = line[: line.index(">")] if ">" in line else line
        while words[0].startswith("--"):
            words = words[2:] if words[0] in {"--countries-file", "--plugins"} else words[1:]
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


# What of a command tells that it needs an extra
EXTRAS = {
    "llm": r"(?:openai|google):[a-z]",
    "kg": r"culturekit kg (?:export|import|query|entity)|--source sparql|--draw\b|ntriples|\.zst\b",
    "embed": r"(?:transformers|sentence|clip):[\w/]", "generate": r"diffusers:", "scale": r"dask:",
    "sources": r"wordnet",
}  # fmt: skip


def test_a_page_names_the_extras_that_its_commands_need() -> None:
    lacking = []
    for page in ROOT.glob("docs/*.md"):
        if page in {ROOT / "docs" / name for name in generator().PAGES}:
            continue
        text = page.read_text(encoding="utf-8")
        commands = "\n".join(blocks(text, "console"))
        named = " ".join(re.findall(r"^Extras?: .*|culturekit\[[^\]]*\]", text, re.MULTILINE))
        lacking += [
            (page.name, extra)
            for extra, sign in EXTRAS.items()
            if re.search(sign, commands, re.IGNORECASE) and not re.search(rf"\b{extra}\b", named)
        ]
    assert lacking == []


def test_pages_by_hand_are_short() -> None:
    generated = {ROOT / "docs" / name for name in generator().PAGES}
    words = {page: len(page.read_text(encoding="utf-8").split()) for page in PAGES if page not in generated}
    guides = {page: count for page, count in words.items() if (ROOT / "docs") in page.parents}
    assert {page.name: count for page, count in guides.items() if count > 700} == {}
    assert words[ROOT / "README.md"] <= 600
    assert sum(guides.values()) <= 25_000, "say it once, and shorter; what comes from the code is generated"


def test_benchmarks_are_short_and_show_every_record() -> None:
    assert len((ROOT / "docs/benchmarks.md").read_text(encoding="utf-8").split()) <= 4_000, "the newest figures only"
    layout = (ROOT / "benchmarks/page.md").read_text(encoding="utf-8").splitlines()
    shown = {line.rpartition(" | ")[2] for line in layout if " | " in line and not line.startswith("What | ")}
    assert shown == {path.stem for path in (ROOT / "benchmarks/results").glob("*.json")}


@pytest.mark.parametrize(("reference", "cell"), [
    ("a; 2 :: ms", "5"), ("x; y :: ms", "8"), ("min; a :: ms", "4.5"), ("max :: ms", "8"), ("a; 2 :: ms#2", "60%"),
])  # fmt: skip
def test_a_reference_finds_a_recorded_figure(reference: str, cell: str) -> None:
    table = [["what", "n", "ms", "ms "], ["a", "1", "4.5", "-"], ["a", "2", "5", "60%"], ["x; y", "2", "8", "-"]]
    found = re.search(r"\[\[(.*)\]\]", f"[[{reference}]]")
    assert found is not None
    assert generator().figure(table, found) == cell


@pytest.mark.parametrize("reference", ["a :: ms", "b :: ms"])
def test_a_reference_has_to_match_one_row(reference: str) -> None:
    found = re.search(r"\[\[(.*)\]\]", f"[[{reference}]]")
    with pytest.raises(ValueError, match="must match one"):
        generator().figure([["what", "n", "ms"], ["a", "1", "4"], ["a", "2", "5"]], found)


def test_the_first_screen_of_the_readme_says_the_two_commands() -> None:
    screen = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:24]
    said = [line.split("#")[0].split() for line in screen if line.startswith("$ ")]
    assert said == [["$", "make", "demo"], ["$", "make", "test"]]
    rules = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert all(re.search(rf"^{target}:", rules, re.MULTILINE) for _, _, target in said)


def test_examples_give_what_they_say(small_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/cube").symlink_to(small_run)
    (tmp_path / "recipes").symlink_to(ROOT / "recipes")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8").replace("```python\n", "").replace("```", "")
    example = doctest.DocTestParser().get_doctest(page, {}, "api", "docs/reference/api.md", 0)
    report: list[str] = []
    done = doctest.DocTestRunner().run(example, out=report.append)
    assert done.attempted >= 20
    assert not done.failed, "".join(report)


def test_every_public_name_has_an_example() -> None:
    import culturekit

    page = (ROOT / "docs/reference/api.md").read_text(encoding="utf-8")
    used = [name for name in culturekit.__all__ if f"ck.{name}" in page]
    assert used == culturekit.__all__


ADDING = ("add-a-recipe", "add-a-stage", "add-a-metric", "add-a-plugin")
WORD = re.compile(r"(?<![\w.])ck\.([A-Za-z_]\w*)")


def code() -> Iterator[str]:
    """Give the code that stands outside the package: examples, plugins of the tests, and that of the pages."""
    for path in (*ROOT.glob("examples/**/*.py"), *ROOT.glob("tests/fixtures/plugins/*.py")):
        yield path.read_text(encoding="utf-8")
    for page in ADDING:
        text = (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
        for block in re.findall(r"^```(?:python|diff)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
            yield re.sub(r"^[-+ ]", "", block, flags=re.MULTILINE) if block.startswith("---") else block


def imported(text: str) -> set[str]:
    """Name what a text takes of culturekit, and refuse what it takes from elsewhere than the surface."""
    names = set(re.findall(r"^from culturekit(\S*) import", text, re.M)) - {".extend"}
    assert names <= {""}, names
    found = {
        name
        for block in re.findall(r"from culturekit\.extend import (\([^)]*\)|[^\n]*)", text)
        for name in re.findall(r"[A-Za-z_]\w*", block)
    }
    return found | (set(WORD.findall(text)) if "from culturekit import extend as ck" in text else set())


def test_the_surface_is_what_is_imported_and_no_more() -> None:
    pages = "".join((ROOT / f"docs/{page}.md").read_text(encoding="utf-8") for page in ADDING)
    named = {name for name in re.findall(r"`(\w+)\(", pages) if name in surface.__all__}
    used = named.union(*map(imported, code()))
    assert used == set(surface.__all__)


def test_every_name_is_there_and_no_other() -> None:
    assert all(getattr(surface, name) is not None for name in surface.__all__)
    tree = ast.parse(Path(surface.__file__).read_text(encoding="utf-8"))
    assert {
        each.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.col_offset
        for each in node.names
    } == {*surface.__all__}
    try:
        surface.ImageBackends  # noqa: B018
    except AttributeError as error:
        assert "no name that stays" in str(error)
