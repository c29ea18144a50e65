"""The reasons of a verdict: why an item is an artifact of a concept, or everything that keeps it from being one."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from culturekit.counting import counted
from culturekit.kg.concepts import Concept
from culturekit.kg.graph_tables import GraphTables, Said, titled
from culturekit.kg.looking.explanation import CountrySaid, PathStory, Reason
from culturekit.kg.walk.levels import WalkChoices

__all__ = ["Beyond", "Findings", "reasons_of"]


@dataclass(frozen=True, slots=True)
class Beyond:
    """What lies beyond the limits: smallest hop of an open path and its root, smallest hop of any path.

    `complete` is false where there was too much above the item to look at all of it.
    """

    hop: int | None
    root: int | None
    any_hop: int | None
    complete: bool


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found about an item: `hop` of the nearest root, and where there is none, what lies `beyond`."""

    number: int
    described: bool
    mentioned: bool
    countries: tuple[CountrySaid, ...]
    classes: Sequence[Said]
    hop: int | None
    cut: tuple[PathStory, ...]
    beyond: Beyond | None


def reasons_of(findings: Findings, choices: WalkChoices, concept: Concept, tables: GraphTables) -> tuple[Reason, ...]:
    """Give the one reason for being in, or all reasons for being out."""
    out = [
        *dump_reasons(findings),
        *name_reasons(findings, choices, concept),
        *country_reasons(findings, concept),
        *path_reasons(findings, choices, tables),
    ]
    if out:
        return tuple(out)
    wanted = sorted({c.label or str(c.value) for c in findings.countries if c.counts and c.in_scope})
    reached = counted(findings.hop or 0, "hops")
    return (Reason("artifact", f"it states {' and '.join(wanted)}, and a root reaches it in {reached}"),)


def dump_reasons(findings: Findings) -> Iterator[Reason]:
    """Say whether the dump knows the item."""
    if not findings.mentioned:
        yield Reason("not-in-the-dump", "the dump neither describes nor mentions it")
    elif not findings.described:
        yield Reason("only-mentioned", "the dump only mentions it, so it states neither a class nor a country")


def name_reasons(findings: Findings, choices: WalkChoices, concept: Concept) -> Iterator[Reason]:
    """Say whether the concept names the item."""
    if findings.number in choices.limits:
        yield Reason("is-a-root", f"it is a root of {concept.concept}, and roots are never artifacts themselves")
    if findings.number in choices.excluded_items:
        yield Reason("excluded-item", f"{concept.concept} excludes it by name")
    if findings.number in choices.excluded_classes:
        yield Reason("excluded-class", f"it is an excluded class of {concept.concept}")


def country_reasons(findings: Findings, concept: Concept) -> Iterator[Reason]:
    """Say what is wrong with the countries."""
    stated = findings.countries
    names = " or ".join(concept.country_properties)
    if not findings.described:
        return
    if not stated:
        yield Reason("no-country", f"it has no statement of {names}: it is walked through, like a class")
        return
    valued = [country for country in stated if country.value is not None]
    if not valued:
        snaks = " and ".join(sorted({country.snak for country in stated}))
        yield Reason("country-without-value", f"its statements of {names} are only {snaks}")
    elif not any(country.counts for country in valued):
        kinds = sorted({f"{c.rank}{' and ended' if c.ended else ''}" for c in valued})
        code = "country-deprecated" if all(c.rank == "deprecated" for c in valued) else "country-does-not-count"
        yield Reason(code, f"its statements of {names} with a value do not count: they are {', '.join(kinds)}")
    elif not any(country.counts and country.in_scope for country in valued):
        named = sorted({titled(c.value, c.label) for c in valued if c.counts})
        wanted = "all" if concept.countries == "all" else " ".join(concept.countries)
        yield Reason("country-out-of-scope", f"it states {', '.join(named)}; {concept.concept} wants {wanted}")


def path_reasons(findings: Findings, choices: WalkChoices, tables: GraphTables) -> Iterator[Reason]:
    """Say why no root reaches the item."""
    if findings.hop or findings.beyond is None or findings.number in choices.limits:
        return
    limits = sorted(set(choices.limits.values()))
    within = f"{limits[0]}" if len(limits) == 1 else f"{limits[0]} to {limits[-1]}"
    beyond = findings.beyond
    if findings.cut:
        yield from cut_reasons(findings.cut)
    if beyond.hop is not None and beyond.root is not None:
        name = titled(f"Q{beyond.root}", tables.labels([beyond.root])[beyond.root])
        text = f"no open path within {within} hops; the nearest root, {name}, needs {counted(beyond.hop, 'hops')}"
        yield Reason("beyond-the-limit", text)
    elif beyond.any_hop is not None and not findings.cut:
        text = f"no path within {within} hops; the shortest without a limit has {beyond.any_hop}, and all are cut"
        yield Reason("beyond-the-limit", text)
    elif beyond.any_hop is None:
        where = "at any distance" if beyond.complete else "as far as was looked; above it is too much to look at all"
        yield Reason("no-path", f"no path from any root leads to it, {where}{class_note(findings)}")


def class_note(findings: Findings) -> str:
    """Say when an item has no class with a value at all."""
    if not findings.described:
        return ""
    if not findings.classes:
        return ": it states no class"
    if all(s.value is None for s in findings.classes):
        return f": its classes are only {' and '.join(sorted({s.snak for s in findings.classes}))}"
    return ""


CODES = {"excluded": "cut-by-exclusion", "an": "below-an-artifact", "only": "statement-does-not-count"}
"""By the first word of what cuts a step."""


def cut_reasons(paths: Sequence[PathStory]) -> Iterator[Reason]:
    """Say once for each item what cuts there, with the first path it cuts."""
    told = set()
    for path in paths:
        for step in path.steps:
            if step.cut is not None and (step.qid, step.cut) not in told:
                told.add((step.qid, step.cut))
                way = " > ".join(each.qid for each in path.steps)
                yield Reason(CODES[step.cut.split()[0]], f"{titled(step.qid, step.label)} cuts {way}: {step.cut}")
