"""The pages of a card: what stands where, in words of people and blocks of facts."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import yaml

from culturekit.builders.space.checked import UNCHECKED
from culturekit.core.errors import counted, printable
from culturekit.release.card_facts import MEANINGS, NOTHING, ColumnFacts, Facts, described_files
from culturekit.release.card_hand import MARKER, Change, Fields, Hand

_OBEYED = re.compile(r"([\\`*_{}\[\]()#+\-!|~$=@]|:(?=//)|(?<=www)\.)")
"""What Markdown, or a host's extension of it, would take for more than a character."""

_NOT_CODE = re.compile(r"[`|<>&\\]")

_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LONGEST = 160

BLOCK = re.compile(r"<!-- generated: (?P<name>[a-z-]+) -->\n(?P<text>.*?)\n<!-- end of (?P=name) -->", re.DOTALL)
"""A generated block in a page."""


def _visible(text: str) -> str:
    """Write what is not seen, or would break a line or turn the reading direction, by its code point; cut the rest."""
    shown = printable(text[:_LONGEST])
    return shown if len(text) <= _LONGEST else f"{shown}… ({len(text):,} characters)"


def escaped(text: str) -> str:
    """Write a text so that Markdown and HTML show it as it is."""
    marked = _OBEYED.sub(r"\\\1", _visible(text))
    return "".join(_ENTITIES.get(character, character) for character in marked)


def code(text: str) -> str:
    """Write a hash or a name as code; one that could end the code, or the cell around it, is escaped instead."""
    if not text:
        return ""
    return escaped(text) if _NOT_CODE.search(text) else f"`{_visible(text)}`"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table of cells that are Markdown already."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines) if len(lines) > 2 else "Nothing."


def block(name: str, text: str) -> str:
    """Mark a text as generated."""
    return f"<!-- generated: {name} -->\n{text}\n<!-- end of {name} -->"


_MOST_NOTES = 200


def _glance(facts: Facts) -> str:
    """Sum the tables up."""
    rows = []
    for one in facts.tables:
        distinct = facts.counts[one.name].distinct
        listed = ", ".join(f"{count:,} {escaped(name)}" for name, count in sorted(distinct.items()))
        rows.append((code(one.name), f"{one.rows:,}", str(len(one.files)), listed))
    return table(("Table", "Rows", "Splits", "Distinct values"), rows)


def schema(facts: Facts) -> str:
    """List the columns of each table."""
    parts = []
    for one in facts.tables:
        cells = [(code(c.name), code(c.type), f"{c.nulls:,}", escaped(MEANINGS.get(c.name, ""))) for c in one.columns]
        parts.append(f"**{escaped(one.name)}**\n\n{table(('Column', 'Type', 'Null in rows', 'Meaning'), cells)}")
    return "\n\n".join(parts)


def files(facts: Facts) -> str:
    """List every file of data with its hash."""
    rows = [
        (code(f.path), f"{f.bytes:,}", "" if f.rows is None else f"{f.rows:,}", code(f.sha256))
        for f in described_files(facts.tables, facts.others)
    ]
    return table(("File", "Bytes", "Rows", "SHA-256"), rows)


def _countries(facts: Facts) -> str:
    """Count rows per country, by concept where both are known."""
    parts = []
    for one in facts.tables:
        counts = facts.counts[one.name]
        if not counts.country_concept:
            continue
        concepts = sorted(counts.values["concept"])
        rows = [
            (code(country), *(f"{by_concept.get(c, 0):,}" for c in concepts), f"{sum(by_concept.values()):,}")
            for country, by_concept in counts.country_concept.items()
        ]
        heads = ("Country", *(escaped(concept) for concept in concepts), "All")
        parts.append(f"**{escaped(one.name)}**\n\n{table(heads, rows)}")
    return "\n\n".join(parts) or "No table has both countries and concepts."


def values(facts: Facts) -> str:
    """Count rows by the values of other columns."""
    parts = []
    for one in facts.tables:
        for column, counts in facts.counts[one.name].values.items():
            if counts and column not in {"country", "popularity_source", "stage", "reason"}:
                parts.append(_titled(one.name, column, counts))
    return "\n\n".join(parts) or "Nothing."


def _titled(name: str, column: str, counts: Mapping[str, int]) -> str:
    """Write the counts of one column under its name."""
    rows = [(escaped(value), f"{count:,}") for value, count in counts.items()]
    return f"**{escaped(name)}, by {escaped(column)}**\n\n{table((escaped(column), 'Rows'), rows)}"


def hops(facts: Facts) -> str:
    """Count rows by their distance from a root class."""
    hops_of = [(one.name, facts.counts[one.name].hops) for one in facts.tables if facts.counts[one.name].hops]
    parts = [_titled(name, "hop", counts) for name, counts in hops_of]
    note = (
        "A hop is one statement between an artifact and the root class that it was reached from. "
        f"Rows without a path, shown as {escaped(NOTHING)}, were proposed by a model and not found by a walk."
    )
    return "\n\n".join([*parts, note]) if parts else "No table has paths."


def _dump(facts: Facts) -> str:
    """Name the dump."""
    rows = [(code(d.name), d.date or "not in its name", code(d.sha256)) for d in facts.dumps]
    return table(("Dump", "Date", "SHA-256"), rows) if rows else "No dump is known: its manifest was not at hand."


def _models(facts: Facts) -> str:
    """Name who judged, and the wording by hash."""
    settings = [(escaped(stage), code(s.name), code(s.value)) for stage, s in facts.settings]
    read = [(escaped(stage), code(s.role), code(s.name), code(s.sha256)) for stage, s in facts.sources]
    return (
        f"{table(('Stage', 'Option', 'Value'), settings)}\n\nFiles that the stages read, wordings among them:\n\n"
        f"{table(('Stage', 'Role', 'File', 'SHA-256'), read)}"
    )


def drops(facts: Facts) -> str:
    """Say what was left out, and why."""
    rows = [(escaped(d.stage), escaped(d.reason), f"{d.count:,}") for d in facts.drops]
    return table(("Stage", "Reason", "Count"), rows)


def review(facts: Facts) -> str:
    """Say whether the release holds what nobody kept, how much of it, and why it waits."""
    silent = ({column.name for column in one.columns} for one in facts.tables if one.name == "cspace")
    if any("verdict" not in names for names in silent):
        return "The release does not record which of its rows wait for a person to look at."
    if not facts.under_review:
        return "Nothing that waits for a person to look at is in the release."
    rows = [(escaped(reason), f"{count:,}") for reason, count in facts.under_review.items()]
    return f"{under_review_sentence(facts)}\n\n{table(('Why they wait', 'Artifacts'), rows)}"


def _checked(facts: Facts) -> str:
    """Say how often rows are wrong, by people who judged a sample."""
    if not facts.checked:
        return UNCHECKED
    rows = [[escaped(cell) for cell in row] for row in facts.checked]
    other = facts.stages[0].notes.get("checked", "")
    return f"{table(('Measure', 'Where', 'Found (95 % interval)', 'Judged'), rows)}\n\n{escaped(other)}".rstrip()


def under_review_sentence(facts: Facts) -> str:
    """Say how many artifacts a release took in although nobody kept them."""
    count = sum(facts.under_review.values())
    artifacts = counted(count, "artifacts that", verb="wait")
    return f"The release holds {artifacts} for a person to look at: its maker chose to include what nobody kept."


def _stages(facts: Facts) -> str:
    """List the stages behind the release, and what could not be found of them."""
    rows = [
        (
            escaped(stage.stage),
            code(stage.key[:16]),
            ", ".join(counted(count, escaped(name)) for name, count in stage.counts.items()),
            ", ".join(
                f"{escaped(name)} {escaped(version)}"
                for name, version in (*stage.code.items(), *stage.packages.items())
            ),
            ", ".join(f"{escaped(name)} {seed}" for name, seed in stage.seeds.items()),
        )
        for stage in facts.stages
    ]
    text = table(("Stage", "Key", "Counts", "Versions", "Seeds"), rows)
    if not facts.not_at_hand:
        return text
    lost = table(("Stage", "Made", "SHA-256"), [(escaped(s), code(n), code(h)) for s, n, h in facts.not_at_hand])
    return f"{text}\n\nNot at hand when the card was built, and known by hash only:\n\n{lost}"


def _notes(facts: Facts) -> str:
    """Say what the stages noted, such as quotas that could not be met; facts.json has all of it."""
    rows = [
        (escaped(stage.stage), escaped(name), escaped(value))
        for stage in facts.stages
        for name, value in list(stage.notes.items())[:_MOST_NOTES]
    ]
    return table(("Stage", "Note", "Value"), rows)


def _popularity(facts: Facts) -> str:
    """Say what popularity means here."""
    rows = [
        (code(one.name), escaped(source), f"{count:,}")
        for one in facts.tables
        for source, count in facts.counts[one.name].values.get("popularity_source", {}).items()
    ]
    if not rows:
        return "No table has a popularity."
    return f"{table(('Table', 'Source', 'Rows'), rows)}\n\n{_RANKS}"


_RANKS = (
    "Raw sitelink counts favour large languages: an item gains a link with every Wikipedia that has an article, and "
    "most of these are written in a few, mostly European, languages. `popularity` is therefore a rank within country "
    "and concept, in \\(0, 1\\], and two values of different countries or concepts cannot be compared. Numbers of "
    "search results are never part of a release."
)


def agreement(facts: Facts) -> str:
    """Give what is known of how far judges agree."""
    if not facts.agreement:
        return "The release holds no measurement of agreement."
    heads = sorted({key for row in facts.agreement for key in row})
    return table(heads, [[escaped(str(row.get(head, ""))) for head in heads] for row in facts.agreement])


def _loading(facts: Facts) -> str:
    """Show how the tables are loaded."""
    lines = ["```python", "from datasets import load_dataset", ""]
    lines += [f'load_dataset("PATH-OR-NAME", "{one.name}")' for one in facts.tables if one.rows]
    return "\n".join([*lines, "```"])


_BLOCKS: Mapping[str, Callable[[Facts], str]] = MappingProxyType(
    {
        "at-a-glance": _glance, "loading": _loading, "countries": _countries, "values": values, "hops": hops,
        "schema": schema, "files": files, "dump": _dump, "models": _models, "drops": drops, "review": review,
        "checked": _checked, "stages": _stages, "notes": _notes, "popularity": _popularity, "agreement": agreement,
    }
)  # fmt: skip


README, DATASHEET, DATA_CARD = "README.md", "DATASHEET.md", "DATA_CARD.md"

_SIZES = (
    (1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"),
    (10_000_000, "1M<n<10M"), (100_000_000, "10M<n<100M"), (1_000_000_000, "100M<n<1B"),
)  # fmt: skip

_TYPES = {
    "String": "string", "Boolean": "bool", "Float32": "float32", "Float64": "float64", "Date": "date32",
    "UInt8": "uint8", "UInt16": "uint16", "UInt32": "uint32", "UInt64": "uint64",
    "Int8": "int8", "Int16": "int16", "Int32": "int32", "Int64": "int64",
}  # fmt: skip
"""Types of columns by their name in polars, as the host writes them."""


_PUBLISHER = "creators contact homepage version published licence citation"
_DUMP = ("= dump", "- dump_date")
_SOCIAL = ("Sensitive content", "Social impact")

# What stands on each page, in order: `## ` a heading of the second level, `= ` generated blocks, `- ` a list of fields
# of `card.yaml`, and else a section of `card.md`. The README is that of a dataset host; a datasheet and a data card
# have the orders of their genres.
PAGES: Mapping[str, Sequence[str]] = MappingProxyType(
    {
        README: (
            "= at-a-glance loading", "## Motivation", "Motivation", "## Intended uses", "Intended uses",
            "## Unsuitable uses", "Unsuitable uses", "## What it holds", "= countries values hops schema",
            "## How it was made", *_DUMP, "= models drops review stages notes", "## How often it is wrong", "= checked",
            "## Popularity", "= popularity", "## Annotators and agreement", "Annotators and pay", "- annotators",
            "= agreement", "## Biases and limits", "Known biases", "Limitations", *_SOCIAL,
            "## Licence decisions", "Licence decisions", "## Maintenance", "Maintenance", f"- {_PUBLISHER}",
            "- changelog", "## Files", "= files",
        ),
        DATASHEET: (
            "## Motivation", "Motivation", f"- {_PUBLISHER}", "## Composition", "= at-a-glance countries values schema",
            "Limitations", "Sensitive content", "## Collection", *_DUMP, "= stages notes hops", "Annotators and pay",
            "- annotators", "## Cleaning and labelling", "= models drops review popularity checked agreement",
            "## Uses", "Intended uses", "Unsuitable uses", "Known biases", "Social impact", "## Distribution",
            "Licence decisions", "= files", "## Maintenance", "Maintenance", "- changelog",
        ),
        DATA_CARD: (
            "## Summary", "= at-a-glance", f"- {_PUBLISHER}", "## Motivation", "Motivation", "## Intended uses",
            "Intended uses", "## Unsuitable uses", "Unsuitable uses", "## Provenance", *_DUMP, "= stages notes",
            "## Transformations", "= models drops review", "## People and labels", "Annotators and pay", "- annotators",
            "= agreement", "## Distribution of rows", "= countries hops popularity", "## Risks", "= checked",
            "Known biases", *_SOCIAL, "Limitations", "## Access and upkeep", "Licence decisions", "Maintenance",
            "- changelog",
        ),
    }
)  # fmt: skip

_TITLES = {README: "", DATASHEET: "Datasheet: ", DATA_CARD: "Data card: "}
_INTRODUCTIONS = {
    README: "",
    DATASHEET: "Questions that a reader of data asks, answered in the order of datasheets for datasets.",
    DATA_CARD: "The same release in the order of a data card: who, what for, from where, with which risks.",
}


def rendered(page: str, hand: Hand, facts: Facts) -> str:
    """Write a page; the same hand-written card and facts give the same bytes."""
    fields = hand.fields
    parts = [_hub_header(fields, facts)] if page == README else []
    parts += [
        f"# {_TITLES[page]}{_in_one_line(fields.title or fields.name)}",
        _INTRODUCTIONS[page],
        _in_one_line(fields.summary),
    ]
    for before, part in zip(("", *PAGES[page]), PAGES[page], strict=False):
        mark, _, names = part.partition(" ")
        if mark == "##":
            parts.append(part)
        elif mark == "=":
            parts += [block(name, _BLOCKS[name](facts)) for name in names.split()]
        elif mark == "-":
            parts.append("\n".join(line for name in names.split() for line in _LINES[name](fields)))
        else:
            heading = [] if before == f"## {part}" else [f"### {part}"]
            parts += [*heading, hand.sections.get(part) or f"{MARKER}: {part}"]
    return "\n\n".join(part for part in parts if part) + "\n"


def _in_one_line(text: str | None) -> str:
    """Write words of people, who may use Markdown, without line breaks and markup of HTML."""
    return " ".join((text or MARKER).split()).replace("<", "&lt;")


def line(label: str, text: str | None) -> list[str]:
    """Write one field as an item of a list."""
    return [f"- {label}: {_in_one_line(text)}"]


def _change_line(change: Change) -> str:
    """Write what changed in one version."""
    changes = " ".join(map(_in_one_line, change.changes))
    return f"- {_in_one_line(change.version)} ({_in_one_line(change.date)}): {changes}"


_LINES: Mapping[str, Callable[[Fields], list[str]]] = {
    "creators": lambda f: line("Made by", ", ".join(f.creators)),
    "contact": lambda f: line("Contact", f.contact),
    "homepage": lambda f: line("Home", f.homepage) if f.homepage else [],
    "version": lambda f: line("Version", f.version),
    "published": lambda f: line("Published", f.published),
    "licence": lambda f: line("Licence", " ".join(filter(None, (f.licence.id, f.licence.url)))),
    "citation": lambda f: line("Cite as", f.citation) if f.citation else [],
    "dump_date": lambda f: line("Date of the dump", f.dump_date) if f.dump_date else [],
    "annotators": lambda f: [*line("Annotators", f.annotators.who), *line("Pay", f.annotators.pay)],
    "changelog": lambda f: [_change_line(change) for change in f.changelog] or [f"- Changes: {MARKER}"],
}
"""How each field is written."""


def _hub_header(fields: Fields, facts: Facts) -> str:
    """Write the header: where the splits of each table lie, and its columns.

    The safe dumper quotes whatever YAML would take for something else.
    """
    licence = (fields.licence.id or "unknown").lower()
    header: dict[str, Any] = {"pretty_name": fields.title or fields.name, "license": licence}
    header |= {"language": list(fields.languages)} if fields.languages else {}
    header |= {"tags": list(fields.tags)} if fields.tags else {}
    rows = facts.main.rows
    largest = "n>1T" if rows >= 10**12 else "1B<n<10B"
    header["size_categories"] = [next((name for limit, name in _SIZES if rows < limit), largest)]
    shown = [table for table in facts.tables if table.columns and table.rows]
    header["configs"] = [
        {"config_name": table.name, **({"default": True} if table is facts.main else {}),
         "data_files": [{"split": file.split, "path": file.path} for file in table.files]}
        for table in shown
    ]  # fmt: skip
    header["dataset_info"] = [
        {
            "config_name": table.name,
            "features": [_feature_of(column) for column in table.columns],
            "splits": [{"name": f.split, "num_bytes": f.bytes, "num_examples": f.rows} for f in table.files],
            **dict.fromkeys(("download_size", "dataset_size"), sum(file.bytes for file in table.files)),
        }
        for table in shown
    ]
    text = yaml.safe_dump(header, sort_keys=False, allow_unicode=False, width=1_000)
    return f"---\n{text}---"


def _feature_of(column: ColumnFacts) -> dict[str, Any]:
    """Name a column and its type."""
    inner = column.type.removeprefix("List(").removesuffix(")")
    if column.type.startswith("List("):
        return {"name": column.name, "list": _TYPES.get(inner, "string")}
    if column.type.startswith("Datetime"):
        return {"name": column.name, "dtype": "timestamp[us, tz=UTC]" if "UTC" in column.type else "timestamp[us]"}
    return {"name": column.name, "dtype": _TYPES.get(column.type, "string")}
