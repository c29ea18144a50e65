"""The generated blocks of a card: each is a pure function of the facts."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

from culturekit.cards.card_tables import CardTable, described_files
from culturekit.cards.counting import NOTHING
from culturekit.cards.croissant_types import meaning_of
from culturekit.cards.facts import Facts
from culturekit.cards.markdown import code, escaped, table
from culturekit.counting import counted

__all__ = ["BLOCKS", "under_review_sentence"]

MOST_NOTES = 200


def glance(facts: Facts) -> str:
    """Sum the tables up."""
    rows = []
    for one in facts.tables:
        distinct = facts.counts[one.name].distinct
        told = ", ".join(f"{count:,} {escaped(name)}" for name, count in sorted(distinct.items()))
        rows.append((code(one.name), f"{one.rows:,}", str(len(one.files)), told))
    return table(("Table", "Rows", "Splits", "Distinct values"), rows)


def schema(facts: Facts) -> str:
    """List the columns of each table."""
    parts = []
    for one in facts.tables:
        cells = [(code(c.name), code(c.type), f"{c.nulls:,}", escaped(meaning_of(c.name))) for c in one.columns]
        parts.append(f"**{escaped(one.name)}**\n\n{table(('Column', 'Type', 'Null in rows', 'Meaning'), cells)}")
    return "\n\n".join(parts)


def files(facts: Facts) -> str:
    """List every file of data with its hash."""
    rows = [
        (code(f.path), f"{f.bytes:,}", "" if f.rows is None else f"{f.rows:,}", code(f.sha256))
        for f in described_files(facts.tables, facts.others)
    ]
    return table(("File", "Bytes", "Rows", "SHA-256"), rows)


def countries(facts: Facts) -> str:
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
                parts.append(titled(one.name, column, counts))
    return "\n\n".join(parts) or "Nothing."


def titled(name: str, column: str, counts: Mapping[str, int]) -> str:
    """Write the counts of one column under its name."""
    rows = [(escaped(value), f"{count:,}") for value, count in counts.items()]
    return f"**{escaped(name)}, by {escaped(column)}**\n\n{table((escaped(column), 'Rows'), rows)}"


def hops(facts: Facts) -> str:
    """Count rows by their distance from a root class."""
    told = [(one.name, facts.counts[one.name].hops) for one in facts.tables if facts.counts[one.name].hops]
    parts = [titled(name, "hop", counts) for name, counts in told]
    note = (
        "A hop is one statement between an artifact and the root class that it was reached from. "
        f"Rows without a path, shown as {escaped(NOTHING)}, were proposed by a model and not found by a walk."
    )
    return "\n\n".join([*parts, note]) if parts else "No table has paths."


def dump(facts: Facts) -> str:
    """Name the dump."""
    rows = [(code(d.name), d.date or "not in its name", code(d.sha256)) for d in facts.dumps]
    return table(("Dump", "Date", "SHA-256"), rows) if rows else "No dump is known: its manifest was not at hand."


def models(facts: Facts) -> str:
    """Name who judged, and the wording by hash."""
    told = [(escaped(stage), code(s.name), code(s.value)) for stage, s in facts.settings]
    read = [(escaped(stage), code(s.role), code(s.name), code(s.sha256)) for stage, s in facts.sources]
    return (
        f"{table(('Stage', 'Option', 'Value'), told)}\n\nFiles that the stages read, wordings among them:\n\n"
        f"{table(('Stage', 'Role', 'File', 'SHA-256'), read)}"
    )


def drops(facts: Facts) -> str:
    """Say what was left out, and why."""
    rows = [(escaped(d.stage), escaped(d.reason), f"{d.count:,}") for d in facts.drops]
    return table(("Stage", "Reason", "Count"), rows)


def review(facts: Facts) -> str:
    """Say whether the release holds what nobody kept, how much of it, and why it waits."""
    silent = [code(one.name) for one in facts.tables if one.name == "cspace" and "verdict" not in names_of(one)]
    if silent:
        return "The release does not record which of its rows wait for a person to look at."
    if not facts.under_review:
        return "Nothing that waits for a person to look at is in the release."
    rows = [(escaped(reason), f"{count:,}") for reason, count in facts.under_review.items()]
    return f"{under_review_sentence(facts)}\n\n{table(('Why they wait', 'Artifacts'), rows)}"


def under_review_sentence(facts: Facts) -> str:
    """Say how many artifacts a release took in although nobody kept them."""
    count = sum(facts.under_review.values())
    artifacts = counted(count, "artifacts that", verb="wait")
    return f"The release holds {artifacts} for a person to look at: its maker chose to include what nobody kept."


def names_of(one: CardTable) -> set[str]:
    """Name the columns of a table."""
    return {column.name for column in one.columns}


def stages(facts: Facts) -> str:
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


def notes(facts: Facts) -> str:
    """Say what the stages noted, such as quotas that could not be met; facts.json has all of it."""
    rows = [
        (escaped(stage.stage), escaped(name), escaped(value))
        for stage in facts.stages
        for name, value in list(stage.notes.items())[:MOST_NOTES]
    ]
    return table(("Stage", "Note", "Value"), rows)


def popularity(facts: Facts) -> str:
    """Say what popularity means here."""
    rows = [
        (code(one.name), escaped(source), f"{count:,}")
        for one in facts.tables
        for source, count in facts.counts[one.name].values.get("popularity_source", {}).items()
    ]
    if not rows:
        return "No table has a popularity."
    return f"{table(('Table', 'Source', 'Rows'), rows)}\n\n{RANKS}"


RANKS = (
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


def loading(facts: Facts) -> str:
    """Show how the tables are loaded."""
    lines = ["```python", "from datasets import load_dataset", ""]
    lines += [f'load_dataset("PATH-OR-NAME", "{one.name}")' for one in facts.tables if one.rows]
    return "\n".join([*lines, "```"])


BLOCKS: Mapping[str, Callable[[Facts], str]] = MappingProxyType(
    {
        "at-a-glance": glance,
        "loading": loading,
        "countries": countries,
        "values": values,
        "hops": hops,
        "schema": schema,
        "files": files,
        "dump": dump,
        "models": models,
        "drops": drops,
        "review": review,
        "stages": stages,
        "notes": notes,
        "popularity": popularity,
        "agreement": agreement,
    }
)
