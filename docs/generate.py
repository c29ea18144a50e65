"""Write the pages of the documentation that come from the code: `python docs/generate.py`, or `make docs`."""

import ast
import importlib
import inspect
import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import typer.main

import culturekit
from culturekit.cli.app import app
from culturekit.config.load import described, schema_of
from culturekit.core.schemas import TABLES
from culturekit.core.table import Column, Table
from culturekit.people.scheme import Scheme, load_scheme, scheme_names
from culturekit.scores.catalog import CATALOG

sys.path.insert(0, str(Path(__file__).parent))
from generated_lists import NOTE, as_text, codes_page, packages_page, specs_page

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks/results"


def commands_page() -> str:
    """Give the help of every command."""
    parts = [
        "# Commands\n",
        NOTE,
        "What `--help` says, command by command. [by-hand.md](../by-hand.md) uses them in turn.\n",
    ]
    for name, command in commands(typer.main.get_command(app), ()):
        context = typer.main.get_command(app).make_context("culturekit", [], resilient_parsing=True)
        context.info_name = f"culturekit {name}"
        context.terminal_width = 100
        parts.append(f"## culturekit {name}\n\n```text\n{command.get_help(context).rstrip()}\n```\n")
    return "\n".join(parts)


def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - Typer's own type
    """Give every command by its full name."""
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from commands(below, (*path, name))
    else:
        yield " ".join(path), command


def metrics_page() -> str:
    """Give the catalogue of metrics."""
    parts = [
        "# Metrics\n",
        NOTE,
        "Also on the command line: `culturekit metrics list`, `culturekit metrics show NAME`.\n",
    ]
    for metric in CATALOG.values():
        better = "" if metric.direction == "neither" else f"; {metric.direction} is better"
        rows = [
            ("formula", metric.formula),
            ("range", f"{metric.low:g} to {metric.high:g}{better}"),
            ("unit", metric.unit),
            ("paper", metric.paper),
            ("inputs", metric.inputs),
            ("pitfalls", metric.pitfalls),
            ("weights' licence", metric.licence or "no weights"),
        ]
        table = "\n".join(f"| {key} | {as_text(value)} |" for key, value in rows)
        parts.append(f"## {metric.name}: {metric.title}\n\n| | |\n|---|---|\n{table}\n")
    return "\n".join(parts)


def tables_page() -> str:
    """Give the columns of every table."""
    parts = ["# Tables\n", NOTE, "A table lies in a Parquet file of its name; rows stand in the order of its key.\n"]
    for name, table in sorted(TABLES.items()):
        head = "| column | type | may be null | always there |\n|---|---|---|---|"
        parts.append(f"## {name}\n\nKey: {', '.join(table.key)}.\n\n{head}")
        parts.append("\n".join(column_rows(table)) + "\n")
    return "\n".join(parts)


def column_rows(table: Table) -> Iterator[str]:
    """Give a row per column."""
    for always, columns in ((True, table.columns), (False, table.optional)):
        for name, column in columns.items():
            yield f"| {name} | {kind(column)} | {'yes' if column.nullable else ''} | {'yes' if always else ''} |"


def kind(column: Column) -> str:
    """Name a column's type."""
    return str(column.dtype).replace("|", "\\|")


def benchmarks_page() -> str:
    """Give the newest figure of each benchmark, what it compares with and its command, a table an area."""
    parts = ["# Benchmarks\n", NOTE, "`benchmarks/results/` holds the whole tables and the machine of each run.\n"]
    head = "| What | Figure | Compared with | Command |\n|---|---|---|---|"
    for line in (RESULTS.parent / "page.md").read_text(encoding="utf-8").splitlines():
        cells = line.split(" | ")
        if line.startswith("What | "):
            parts.append(head)
        elif len(cells) > 1:
            result = json.loads((RESULTS / f"{cells[-1]}.json").read_text(encoding="utf-8"))
            filled = re.sub(r"\[\[(.*?)\]\]", partial(figure, result["table"]), " | ".join(cells[:-1]))
            parts.append(f"| {filled} | `{result['command']}` |")
        else:
            parts.append(line)
    return "\n".join(parts) + "\n\n" + (RESULTS.parent / "not_reached.md").read_text(encoding="utf-8")


def figure(table: Sequence[Sequence[str]], reference: re.Match[str]) -> str:
    """Return the cell of a recorded table that `[[term; term :: column]]` names.

    The row is the only one that has each term as a cell; a term with `; ` in it stands alone. The column is the one
    whose head begins as named (`column#2` is the second). `min;` and `max;` give an extreme of all rows that match.
    """
    wanted = reference[1]
    where, _, name = wanted.rpartition(":: ")
    whole = any(where.strip() in row for row in table[1:])
    terms = [where.strip()] if whole else [term for term in where.strip().split("; ") if term]
    extreme = terms.pop(0) if terms and terms[0] in {"min", "max"} else None
    start, _, nth = name.partition("#")
    columns = [at for at, title in enumerate(table[0]) if title.strip() == start] or [
        at for at, title in enumerate(table[0]) if title.startswith(start)
    ]
    column = columns[int(nth or 1) - 1]
    rows = [row[column] for row in table[1:] if set(terms) <= set(row)]
    if extreme is None:
        if len(rows) != 1:
            raise ValueError(f"[[{wanted}]] matches {len(rows)} rows of a record and must match one")
        return rows[0].strip()
    numbers = [found[0] for row in rows if (found := re.match(r"[-+]?[\d.]+", row)) and found[0] != "-"]
    return (min if extreme == "min" else max)(numbers, key=float)


SCHEMAS = {
    "recipe": ("Recipes", schema_of("recipe")),
    "concept": ("Root configs", schema_of("concept")),
    "countries": ("Files of countries", schema_of("countries")),
    "annotation": ("Annotation schemes", described("annotation", Scheme)),
}


def keys_page() -> str:
    """Give the keys of the YAML files that people write."""
    parts = ["# Keys of YAML files\n", NOTE, "`culturekit config schema KIND` prints the same for editors.\n"]
    for kind, (title, schema) in SCHEMAS.items():
        parts.append(f"## {title}\n\n`culturekit config schema {kind}`\n")
        parts.extend(key_tables(schema, schema["definitions"], ""))
    head = "| scheme | question | type | asked after |\n|---|---|---|---|"
    return "\n".join([*parts, f"### Shipped schemes\n\n{head}", *map(scheme_rows, scheme_names())]) + "\n"


def scheme_rows(name: str) -> str:
    """Give the questions of a shipped annotation scheme."""
    rows = []
    for one in load_scheme(name).criteria:
        kind = f"{one.type}: {', '.join(one.fixed_values)}" if one.fixed_values else one.type
        after = "; ".join(f"{key}: {', '.join(values)}" for key, values in one.when.items())
        rows.append(f"| `{name}` | `{one.name}`: {as_text(one.question)} | {as_text(kind)} | {as_text(after)} |")
    return "\n".join(rows)


def key_tables(schema: dict[str, Any], parts: dict[str, Any], above: str) -> Iterator[str]:
    """Give the table of a mapping's keys, then those of the mappings below it."""
    keys = schema["properties"].items()
    rows = [f"| `{key}` | {as_text(what_it_takes(one, parts))} | {default_of(one)} |" for key, one in keys]
    yield "\n".join(["| key | takes | default |", "|---|---|---|", *rows]) + "\n"
    for key, one in keys:
        part = parts.get(part_name(one))
        if part is not None and "properties" in part:
            yield f"### `{above}{key}`\n\n{as_markdown(part.get('description', ''))}\n"
            yield from key_tables(part, parts, f"{above}{key}.")


def part_name(schema: dict[str, Any]) -> str:
    """Name the mapping that a key takes, or a list of which it takes; empty where it takes none."""
    below = [*schema.get("anyOf", ()), *schema.get("allOf", ())]
    below += [value for value in (schema.get("items"),) if isinstance(value, dict)]
    names = [schema["$ref"].rpartition("/")[2]] if "$ref" in schema else map(part_name, below)
    return next(filter(None, names), "")


def what_it_takes(schema: dict[str, Any], parts: dict[str, Any]) -> str:
    """Say what a key takes, and what for; of a mapping, what its own table below begins with."""
    below = parts.get(part_name(schema), {}).get("description", "")
    says = schema.get("description", "") or " ".join(below.partition("\n\n")[0].split())
    return f"{values_of(schema, parts)}. {says}" if says else values_of(schema, parts)


def values_of(schema: dict[str, Any], parts: dict[str, Any]) -> str:
    """Say which values a key takes."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "mapping" if "properties" in parts[name] else values_of(parts[name], parts)
    if choices := schema.get("enum", [schema["const"]] if "const" in schema else []):
        return ", ".join(f"`{choice}`" for choice in choices)
    if below := [*schema.get("anyOf", ()), *schema.get("allOf", ())]:
        return " or ".join(values_of(one, parts) for one in below if one.get("type") != "null")
    if schema.get("type") == "array":
        items = schema.get("items", {})
        return f"list: {values_of(items, parts)}" if isinstance(items, dict) else f"list of {len(items)}"
    return f"{schema.get('type', 'value')}{bounds_of(schema)}"


def bounds_of(schema: dict[str, Any]) -> str:
    """Write the bounds of a number."""
    words = {"minimum": "from", "exclusiveMinimum": "above", "maximum": "to", "exclusiveMaximum": "below"}
    return "".join(f" {word} {schema[bound]:,}" for bound, word in words.items() if bound in schema)


def default_of(schema: dict[str, Any]) -> str:
    """Write a default; a mapping has those of its keys, and null stands for a key left out."""
    value = schema.get("default")
    return "" if value is None or isinstance(value, dict) else f"`{json.dumps(value, ensure_ascii=False)}`"


def as_markdown(docstring: str) -> str:
    """Write a docstring: its arguments as a list, its example as a block."""
    text, *sections = re.split(r"^(Args|Attributes|Returns|Raises|Example):\n", docstring, flags=re.MULTILINE)
    parts = [text.strip()]
    for title, body in zip(sections[::2], sections[1::2], strict=True):
        if title == "Example":
            parts.append(f"```python\n{inspect.cleandoc(body)}\n```")
        elif title == "Returns":
            parts.append(f"Returns: {' '.join(body.split())}")
        else:
            rows = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", body, re.MULTILINE)
            word = "raises " if title == "Raises" else ""
            parts.append("\n".join(f"- {word}`{name}`: {' '.join(says.split())}" for name, says in rows))
    return "\n\n".join(parts)


TASKS = {
    "Score labels": ("vendi", "qvs", "vendi_batches", "vendi_corrected", "interval"),
    "Score vectors": ("prdc", "frechet_distance", "kernel_distance", "searcher"),
    "Run": ("load_recipe", "LocalEngine", "run_recipe", "run_stage", "Run", "Stage"),
    "Look": ("read_table", "TABLES", "compare_runs", "plot", "find_score", "walk_back"),
    "Errors and version": ("CultureKitError", "__version__"),
}
CONSTANTS = {"TABLES": ("culturekit.core.schemas", "TABLES"), "__version__": ("culturekit.version", "VERSION")}


def api_page() -> str:
    """Give the names of the library, by task, from their docstrings."""
    left = set(culturekit.__all__) - {name for names in TASKS.values() for name in names}
    parts = ["# Python API\n", NOTE, "What the command line can do, these can do. Examples are run by the tests.\n"]
    parts.append("```python\n>>> from pathlib import Path\n>>> import culturekit as ck\n```\n")
    for task, names in {**TASKS, "More": sorted(left)}.items():
        parts.extend([f"## {task}\n"] if names else [])
        parts.extend(f"### {signature_of(name)}\n\n{as_markdown(docstring_of(name))}\n" for name in names)
    parts.append("Metrics of arrays and labels, one by one: `culturekit.metrics`.\n")
    return "\n".join(parts)


def signature_of(name: str) -> str:
    """Write how a name is called, without types."""
    value = getattr(culturekit, name)
    if not callable(value):
        return f"`ck.{name}`"
    plain = (bool, int, float, str, tuple, type(None))
    parameters = [
        one.replace(
            annotation=one.empty,
            default=one.default if one.default is one.empty or isinstance(one.default, plain) else Shown("..."),
        )
        for one in inspect.signature(value).parameters.values()
    ]
    return f"`ck.{name}{inspect.Signature(parameters)}`"


class Shown(str):
    """A default that is shown as it stands."""

    __repr__ = str.__str__


def docstring_of(name: str) -> str:
    """Give a docstring; of a constant, the text below it."""
    if name not in CONSTANTS:
        return inspect.getdoc(getattr(culturekit, name)) or ""
    module, constant = CONSTANTS[name]
    lines = iter(ast.parse(inspect.getsource(importlib.import_module(module))).body)
    next(line for line in lines if ast.unparse(line).partition("=")[0].partition(":")[0].strip() == constant)
    return str(ast.literal_eval(next(lines).value))  # type: ignore[attr-defined]


PAGES = {
    "benchmarks.md": benchmarks_page,
    "reference/api.md": api_page,
    "reference/commands.md": commands_page,
    "reference/metrics.md": metrics_page,
    "reference/tables.md": tables_page,
    "reference/keys.md": keys_page,
    "reference/specs.md": specs_page,
    "reference/codes.md": codes_page,
    "reference/packages.md": packages_page,
}


def main() -> int:
    """Write all pages; with --check write nothing and fail when one is out of date."""
    stale = []
    for name, page in PAGES.items():
        path = DOCS / name
        if not path.exists() or path.read_text(encoding="utf-8") != page():
            stale.append(name)
            if "--check" not in sys.argv:
                path.write_text(page(), encoding="utf-8")
    sys.stdout.write("".join(f"{name} {'is out of date' if '--check' in sys.argv else 'written'}\n" for name in stale))
    return 1 if stale and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
