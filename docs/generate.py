"""Write the pages of the documentation that come from the code: `python docs/generate.py`, or `make docs`."""

import dataclasses
import inspect
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import typer.main

from culturekit.annotate.scheme import Scheme
from culturekit.audit.all_checks import CODES as AUDIT_CODES
from culturekit.builders.popularity_pageviews import PageviewOptions
from culturekit.builders.popularity_results import ResultOptions
from culturekit.cards.findings import CODES as CARD_CODES
from culturekit.cli.app import app
from culturekit.config.schema import described, schema_of
from culturekit.generation.diffusion import diffusers_options
from culturekit.generation.folder import folder_options
from culturekit.generation.image_options import GoogleImageOptions, OpenAIImageOptions
from culturekit.generation.simulated import simulated_backend
from culturekit.index.models import inception_encoder, open_clip_encoder
from culturekit.index.models.torch_device import TorchOptions
from culturekit.index.models.transformers_encoder import TransformersOptions
from culturekit.index.raters.preference_quality import HpsOptions
from culturekit.index.spread import lpips_measure
from culturekit.llm.clients.client_options import GoogleOptions, LocalOptions, OpenAIOptions, ReplayOptions
from culturekit.llm.outcomes import OUTCOMES
from culturekit.llm.reading.reply_codes import CODES as REPLY_CODES
from culturekit.llm.reading.schema_targets import ABILITIES, BOUNDS, COUNTS, LENGTHS, PATTERN
from culturekit.metrics.catalog import CATALOG
from culturekit.records.schemas import TABLES
from culturekit.records.tables import Column, Table
from culturekit.storage.picture_limits import REASONS

DOCS = Path(__file__).parent
RESULTS = DOCS.parent / "benchmarks/results"
NOTE = "<!-- written by docs/generate.py; change the code, then run `make docs` -->\n"


def commands_page() -> str:
    """Give the help of every command."""
    parts = [
        "# Commands\n",
        NOTE,
        "What `--help` says, command by command. [by-hand.md](by-hand.md) uses them in turn.\n",
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


def as_text(value: object) -> str:
    """Write a cell."""
    text = "<br>".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text.replace("|", "\\|").replace("\n", " ")


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
    """Give the last recorded benchmark results."""
    parts = ["# Benchmarks\n", NOTE, "Recorded by `make bench`; each result names its command and its machine.\n"]
    for path in sorted(RESULTS.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        parts.append(f"## {result['title']}\n\n`{result['command']}`, {result['machine']}.\n")
        head, *rows = [f"| {' | '.join(row)} |" for row in result["table"]]
        parts.append("\n".join([head, f"|{'---|' * len(result['table'][0])}", *rows]) + "\n")
    return "\n".join(parts)


def codes_page() -> str:
    """Give every word of a closed list that tables, logs and checks use, with its meaning."""
    card = [(code, found.says, found.fix, "4" if found.damage else "1") for code, found in CARD_CODES.items()]
    lists: dict[str, tuple[tuple[str, ...], list[tuple[str, ...]]]] = {
        "How a question ends": (("outcome", "when"), list(OUTCOMES.items())),
        "Why a reply is no answer": (("code", "what the model is told"), list(REPLY_CODES.items())),
        "What a schema target takes": (TARGET_COLUMNS, list(target_rows())),
        "Why there is no picture": (("reason", "means"), list(REASONS.items())),
        "What an audit finds": (
            ("code", "severity", "means", "what `--fix` does"),
            [(code.name, code.severity, code.says, code.mend) for code in AUDIT_CODES],
        ),
        "What the check of a card finds": (("code", "means", "what to do", "exit code"), card),
    }
    parts = ["# Codes\n", NOTE, "Closed lists, as they stand in tables, logs, messages and `--json`.\n"]
    for title, (columns, rows) in lists.items():
        head = [f"## {title}\n", f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
        cells = [f"| `{name}` | {' | '.join(map(as_text, row))} |" for name, *row in rows]
        parts.append("\n".join([*head, *cells]) + "\n")
    return "\n".join(parts)


TARGET_COLUMNS = (
    "target",
    "`format`",
    "a field with a default",
    "a choice among numbers",
    "a type within itself",
    "`dict[str, ...]`",
    "enforced: lengths of texts",
    "patterns",
    "lengths of lists",
    "bounds of numbers",
    "levels, properties, values",
)


def target_rows() -> Iterator[tuple[str, ...]]:
    """Give what each target of a schema can take."""
    for name, able in ABILITIES.items():
        has = (able.optional, able.whole_choices, able.recursion, able.open_maps)
        enforced = (able.words >= words for words in (LENGTHS, PATTERN, COUNTS))
        bounds = able.words >= BOUNDS
        yield (
            name,
            ", ".join(sorted(able.formats)),
            *("yes" if each else "no" for each in (*has, *enforced)),
            "no" if not bounds else "yes" if able.bounds_on_fractions else "of whole numbers",
            f"{able.depth}, {able.properties:,}, {able.choices:,}",
        )


SPECS: dict[str, type] = {
    "Language models: openai": OpenAIOptions,
    "Language models: google": GoogleOptions,
    "Language models: local": LocalOptions,
    "Language models: replay": ReplayOptions,
    "Images: diffusers": diffusers_options.Options,
    "Images: folder": folder_options.Options,
    "Images: google": GoogleImageOptions,
    "Images: openai": OpenAIImageOptions,
    "Images: simulated": simulated_backend.Options,
    "Popularity: pageviews": PageviewOptions,
    "Popularity: google_cse": ResultOptions,
    "Encoders: transformers": TransformersOptions,
    "Encoders: open_clip": open_clip_encoder.Options,
    "Encoders: inception": inception_encoder.Options,
    "Encoders: sentences": TorchOptions,
    "Quality: hpsv2": HpsOptions,
    "Unlikeness: lpips": lpips_measure.Options,
}


def specs_page() -> str:
    """Give the options of every SPEC."""
    parts = [
        "# Options of SPECs\n",
        NOTE,
        "A SPEC is `name[:target][?key=value&key=value]`, in single quotes on a command line. An option without a\n"
        "default is not sent, or is what the model has by itself.\n",
    ]
    for title, options in SPECS.items():
        rows = "\n".join(f"| `{name}` | {' | '.join(map(as_text, row))} |" for name, *row in option_rows(options))
        parts.append(f"## {title}\n\n| option | takes | default | meaning |\n|---|---|---|---|\n{rows}\n")
    return "\n".join(parts)


def option_rows(options: type[Any]) -> Iterator[tuple[str, str, str, str]]:
    """Give a row per option; each has its meaning under `Attributes:` of its class or of one above."""
    meanings: dict[str, str] = {}
    for above in reversed(options.__mro__[:-1]):
        described = inspect.cleandoc(above.__doc__ or "").partition("Attributes:\n")[2]
        for name, text in re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", described, re.MULTILINE):
            meanings[name] = " ".join(text.split())
    hints = get_type_hints(options, include_extras=True)
    for field in dataclasses.fields(options):
        stated = str(field.default).lower() if isinstance(field.default, bool) else field.default
        default = "" if stated in (None, "", 0) else f"`{stated}`"
        yield field.name, values(hints[field.name]), default, meanings[field.name]


def values(hint: Any) -> str:  # noqa: ANN401 - a type as it is annotated
    """Name what a type takes."""
    if get_origin(hint) is Annotated:
        limits = next(each for each in get_args(hint)[1:] if isinstance(each, msgspec.Meta))
        signs = (("above", limits.gt), ("at least", limits.ge), ("below", limits.lt), ("at most", limits.le))
        bounds = " and ".join(f"{sign} {limit:,}" for sign, limit in signs if limit is not None)
        return f"{values(get_args(hint)[0])} {bounds}".strip()
    if get_origin(hint) is Literal:
        return ", ".join(f"`{each}`" for each in get_args(hint) if each)
    parts = [values(part) for part in get_args(hint) if part is not type(None)]
    return " or ".join(parts) or {bool: "`true`, `false`", int: "whole number", float: "number"}.get(hint, "text")


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
    return "\n".join(parts)


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
    """Write a docstring with its attributes as a list."""
    text, _, attributes = docstring.partition("\nAttributes:\n")
    rows = re.findall(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", attributes, re.MULTILINE)
    listed = [f"- `{name}`: {' '.join(says.split())}" for name, says in rows]
    return "\n".join([text.strip(), *([""] if listed else []), *listed])


PAGES = {
    "specs.md": specs_page,
    "codes.md": codes_page,
    "commands.md": commands_page,
    "metrics.md": metrics_page,
    "tables.md": tables_page,
    "benchmarks.md": benchmarks_page,
    "keys.md": keys_page,
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
