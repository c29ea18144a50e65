"""`culturekit.extend` has what the examples and the pages for those who add something import, and nothing else."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import culturekit.extend as surface

ROOT = Path(__file__).parents[1]
PAGES = ("add-a-recipe", "add-a-stage", "add-a-metric", "add-a-plugin")
WORD = re.compile(r"(?<![\w.])ck\.([A-Za-z_]\w*)")


def code() -> Iterator[str]:
    """Give the code that stands outside the package: examples, plugins of the tests, and that of the pages."""
    for path in (*ROOT.glob("examples/**/*.py"), *ROOT.glob("tests/fixtures/plugins/*.py")):
        yield path.read_text(encoding="utf-8")
    for page in PAGES:
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
    pages = "".join((ROOT / f"docs/{page}.md").read_text(encoding="utf-8") for page in PAGES)
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
