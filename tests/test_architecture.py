"""The house rules that a machine can check."""

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import culturekit

PACKAGE = Path(culturekit.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.py"))
HEAVY = {"torch", "faiss", "openai", "google", "pandas", "nltk", "rdflib", "networkx", "diffusers", "transformers"}
# What a bare import or a help text has no need of, although it is always installed
NOT_YET = {"polars", "pydantic", "scipy", "jinja2", "PIL", "yaml"}
LONGEST = 900  # Lines of a module: 200 to 600 read well


@cache
def parsed(path: Path) -> ast.Module:
    """Parse a module, once for all tests of a process."""
    return ast.parse(path.read_text(encoding="utf-8"))


def loaded_by(*arguments: str) -> set[str]:
    """Give the top-level modules that a fresh interpreter has loaded after a statement."""
    told = "import sys, json\nprint(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    script = f"{arguments[0]}\n{told}"
    done = subprocess.run([sys.executable, "-c", script, *arguments[1:]], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_a_bare_import_loads_nothing_heavy() -> None:
    loaded = loaded_by("import culturekit as ck; ck.__version__; dir(ck)")
    assert loaded.isdisjoint(HEAVY | NOT_YET | {"numpy"})


def test_help_loads_nothing_heavy() -> None:
    statement = (
        "import sys\nfrom culturekit.cli import main\nsys.argv = ['culturekit', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )
    assert loaded_by(statement).isdisjoint(HEAVY | NOT_YET)


def test_a_recipe_needs_no_package_of_an_extra() -> None:
    of_extras = HEAVY | {"SPARQLWrapper", "qwikidata", "zstandard", "sentence_transformers", "safetensors", "dask"}
    assert loaded_by("import culturekit.recipes.run_recipe, culturekit.recipes.cube.recipe").isdisjoint(of_extras)


def test_public_names_resolve_and_nothing_else_leaks() -> None:
    assert culturekit.__all__ == sorted(
        culturekit.__all__, key=lambda name: (not name.isupper(), not name[0].isupper(), name)
    )
    for name in culturekit.__all__:
        assert getattr(culturekit, name) is not None
    assert set(dir(culturekit)) == set(culturekit.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = culturekit.nonsense


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_says_what_it_gives(path: Path) -> None:
    assert ast.get_docstring(parsed(path)), "a module opens with one sentence"


def test_a_list_of_public_names_stands_in_packages_only() -> None:
    listing = [path for path in SOURCES if "\n__all__ =" in path.read_text(encoding="utf-8")]
    assert {path.name for path in listing} <= {"__init__.py"}


def test_a_module_is_no_longer_than_one_reads() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES}
    assert [path.name for path, count in lines.items() if count > LONGEST] == []


def test_functions_are_small() -> None:
    long = []
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
                length = node.end_lineno - node.body[0].lineno + 1
                if length > 60:
                    long.append((path.name, node.name, length))
    assert long == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert {path.stem for path in SOURCES}.isdisjoint({"utils", "helpers", "base", "common", "manager", "misc"})


def test_names_say_what_they_hold() -> None:
    """Of functions, parameters and variables; fields keep the names that tables and `--json` have."""
    vague = {"told", "own", "place", "behind", "said", "made", "looking", "handles", "hands"}
    known = {
        ("candidate_review.py", "told"),
        ("prompt_templates.py", "place"),
    }  # an input's role, and a template's slot
    found = set()
    for path in SOURCES:
        nodes = list(ast.walk(parsed(path)))
        fields = {
            id(part) for each in nodes if isinstance(each, ast.ClassDef) for part in map(_field, each.body) if part
        }
        bound = [each.arg for each in nodes if isinstance(each, ast.arg)]
        bound += [each.name for each in nodes if isinstance(each, ast.FunctionDef)]
        bound += [
            each.id
            for each in nodes
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and id(each) not in fields
        ]
        found |= {(path.name, name) for name in vague.intersection(bound)}
    assert found == known


def _field(statement: ast.stmt) -> ast.expr | None:
    return statement.target if isinstance(statement, ast.AnnAssign) else None


def test_modules_do_not_import_each_other_in_circles() -> None:
    """Imports inside functions count too."""
    imports: dict[str, set[str]] = {}
    names = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in SOURCES}
    for path in SOURCES:
        name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        nodes = ast.walk(parsed(path))
        found = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
        imports[name] = {target for target in found if target in names}
    done: set[str] = set()

    def visit(name: str, path: tuple[str, ...]) -> None:
        assert name not in path, " -> ".join([*path[path.index(name) :], name])
        if name not in done:
            for target in sorted(imports[name]):
                visit(target, (*path, name))
            done.add(name)

    for name in sorted(imports):
        visit(name, ())


def test_folders_do_not_import_each_other() -> None:
    """Imports inside functions count too; the package's own folder, which lists public names, does not."""
    places = {".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts): path.parent for path in SOURCES}
    pairs = set()
    for path in SOURCES:
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module:
                found = {node.module, *(f"{node.module}.{each.name}" for each in node.names)} & places.keys()
                pairs |= {(path.parent, places[name]) for name in found}
    both = {one for one, other in pairs if one != other and (other, one) in pairs and PACKAGE not in (one, other)}
    rooms = {folder.relative_to(PACKAGE).parts[0] for folder in both}
    assert rooms <= {"llm"}, sorted(map(str, both))


def test_recipes_do_not_import_each_other() -> None:
    """What two benchmarks share stands in a lower room, or beside their folders."""
    folders = [path.name for path in sorted((PACKAGE / "recipes").iterdir()) if (path / "__init__.py").is_file()]
    assert len(folders) >= 5
    for path in SOURCES:
        inside = path.relative_to(PACKAGE).parts[:2]
        others = [name for name in folders if inside != ("recipes", name)]
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.ImportFrom) and node.module and inside[0] not in {"cli", "__init__.py"}:
                found = [name for name in others if f"{node.module}.".startswith(f"culturekit.recipes.{name}.")]
                assert found == [], (path, found)


def test_only_one_module_writes_parquet() -> None:
    writing = [path.name for path in SOURCES if ".write_parquet(" in path.read_text(encoding="utf-8")]
    assert writing == ["tables.py"]


def test_only_one_module_writes_csv() -> None:
    """Every cell that a spreadsheet would compute goes through its guard."""
    ways = (".write_csv(", ".sink_csv(", ".to_csv(", "csv.writer(", "csv.DictWriter(", "DictWriter(", "savetxt(")
    writing = [path.name for path in SOURCES if any(way in path.read_text(encoding="utf-8") for way in ways)]
    assert writing == ["spreadsheet_cells.py"]


def test_nothing_is_pickled_and_randomness_is_passed_in() -> None:
    for path in SOURCES:
        text = path.read_text(encoding="utf-8")
        assert "import pickle" not in text, path
        assert "np.random.seed" not in text, path
        assert "import random" not in text, path
