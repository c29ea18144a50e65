"""What is found by looking at a graph, in lines for people: an explanation, the numbers, a preview."""

from collections.abc import Iterator, Sequence
from dataclasses import fields

from culturekit.core.counting import counted
from culturekit.kg.inspection.explain import CountrySaid, Explanation, PathStep, StepSaid
from culturekit.kg.inspection.graph_stats import Extreme, GraphStats, PropertyStats
from culturekit.kg.inspection.preview import OUT_OF_SCOPE, FilterCost, Preview, RootPreview
from culturekit.kg.store import titled

COUNTRY_COLUMNS = 10
"""How many countries get a column of their own; the others stand together."""


def explain_lines(explanation: Explanation) -> Iterator[str]:
    """Tell an explanation: the verdict and its reasons first, then roots, countries and paths."""
    name = titled(explanation.qid, explanation.label)
    yield f"{name} is {'' if explanation.verdict == 'in' else 'not '}an artifact of {explanation.concept}"
    yield from (f"  because {reason.text}" for reason in explanation.reasons)
    if explanation.description:
        yield f"described as  {explanation.description}"
    if explanation.place:
        yield f"in the dump   {explanation.place}"
    for root in explanation.roots:
        yield f"root          {titled(root.qid, root.label)} at hop {root.hop} of {root.limit}"
    for country in explanation.countries:
        yield f"country       {country_text(country)}"
    yield paths_text(explanation)
    for number, path in enumerate(explanation.paths, 1):
        yield f"path {number}: {counted(path.hop, 'hops')}, {'open' if path.open else 'cut'}"
        yield from (f"  {step_text(step)}" for step in path.steps)


def paths_text(explanation: Explanation) -> str:
    """Say how many paths there are, and how many are told."""
    opened = number_text(explanation.open_paths, more=explanation.more_open_paths)
    cut = number_text(explanation.cut_paths, more=explanation.more_cut_paths)
    shown = len(explanation.paths)
    rest = "" if shown == explanation.open_paths + explanation.cut_paths else f", of which {shown} are shown"
    return f"paths         {opened} open and {cut} cut within the limits of their roots{rest}"


def number_text(count: int, *, more: bool) -> str:
    """Write a count that may have been stopped."""
    return f"at least {count:,}" if more else f"{count:,}"


def country_text(country: CountrySaid) -> str:
    """Tell the statement of a country."""
    value = titled(country.value, country.label) if country.value else country.snak
    said = StepSaid(country.property, country.rank, country.qualified, country.ended, country.counts)
    scope = "" if country.in_scope or country.value is None else ", out of scope"
    return f"{value} by {said_text(said)}{scope}"


def step_text(step: PathStep) -> str:
    """Tell a step."""
    said = "; ".join(said_text(statement) for statement in step.said)
    place = f"  [{step.place}]" if step.place else "  [only mentioned in the dump]"
    cut = f"  CUT: {step.cut}" if step.cut else ""
    return f"{titled(step.qid, step.label)}{'  by ' + said if said else ''}{place}{cut}"


def said_text(said: StepSaid) -> str:
    """Tell a statement: property, rank, and what is special about it."""
    marks = [said.rank]
    if said.qualified:
        marks.append("qualified")
    if said.ended:
        marks.append("ended")
    if not said.counts:
        marks.append("does not count")
    return f"{said.property} ({', '.join(marks)})"


def stats_lines(stats: GraphStats) -> Iterator[str]:
    """Tell the numbers."""
    yield f"{stats.items:,} items, {stats.statements:,} statements, {stats.nodes:,} nodes, {stats.edges:,} edges"
    yield f"{stats.dangling_targets:,} targets of statements that the dump does not describe"
    names = [field.name for field in fields(PropertyStats)]
    rows = [[str(getattr(each, name)) for name in names] for each in stats.properties]
    yield from aligned([name.replace("_", " ") for name in names], rows)
    for language in stats.languages:
        yield f"label in {language.language or 'none'}: {language.items:,} items ({language.share:.1%})"
    yield f"labels that fall back to mul: {stats.mul_share:.1%}"
    yield f"most children: {extremes_text(stats.most_children)}"
    yield f"most parents: {extremes_text(stats.most_parents)}"
    cycles = stats.cycles
    yield (
        f"cycles by P279: {cycles.classes:,} classes in {cycles.components:,} components, "
        f"and {cycles.self_loops:,} classes below themselves"
    )
    for cycle in cycles.largest:
        shown = ", ".join(titled(qid, label) for qid, label in cycle.members)
        rest = f" and {cycle.classes - len(cycle.members):,} more" if cycle.classes > len(cycle.members) else ""
        yield f"  {cycle.classes} classes: {shown}{rest}"


def extremes_text(extremes: Sequence[Extreme]) -> str:
    """Tell the items of the highest degree."""
    return "; ".join(f"{titled(each.qid, each.label)} {each.degree:,}" for each in extremes)


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Write a table, each column as wide as its widest cell."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True))


def preview_lines(preview: Preview) -> Iterator[str]:
    """Tell a preview."""
    yield f"{preview.concept}: {preview.candidates:,} candidates, {preview.out_of_scope:,} more out of scope"
    for root in preview.roots:
        yield from root_lines(root)
    for root in preview.roots:
        for hop in root.hops:
            for cell in hop.cells:
                if cell.sample:
                    names = "; ".join(f"{label or '(no label)'} {qid}" for qid, label in cell.sample)
                    place = f"{root.qid} hop {hop.hop} {cell.country}"
                    yield f"sample of {place}, {len(cell.sample)} of {cell.count:,}, seed {preview.seed}: {names}"
    yield ""
    yield cost_line(preview.cost)


def root_lines(root: RootPreview) -> Iterator[str]:
    """Tell a root: a row per hop, a column per country, and its explosions."""
    name = titled(root.qid, root.label)
    yield ""
    if not root.found:
        yield f"{name}: the graph never mentions it"
        return
    yield f"{name}, {root.limit} hops"
    columns = columns_of(root)
    header = ["hop", "walked", "artifacts", "in scope", *columns]
    rows = [[str(hop.hop), f"{hop.walked:,}", f"{hop.artifacts:,}", f"{hop.in_scope:,}"] for hop in root.hops]
    for row, hop in zip(rows, root.hops, strict=True):
        counts = {cell.country: cell.count for cell in hop.cells}
        own = [counts.pop(column, 0) for column in columns if column != "others"]
        row += [f"{count:,}" for count in own]
        if "others" in columns:
            row.append(f"{sum(counts.values()):,}")
    yield from map(str.rstrip, aligned(header, rows))
    for explosion in root.explosions:
        total = explosion.before + explosion.artifacts
        way = " > ".join(
            f"{s.qid} ({s.label or 'no label'}) {s.artifacts / explosion.artifacts:.0%}" for s in explosion.by
        )
        through = f", through {way}" if way else ", through no class in particular"
        yield f"EXPLODES at hop {explosion.hop}: from {explosion.before:,} to {total:,} artifacts{through}"


def columns_of(root: RootPreview) -> Sequence[str]:
    """Choose the countries with columns: the largest, in alphabetical order; then out of scope, then others."""
    totals: dict[str, int] = {}
    for hop in root.hops:
        for cell in hop.cells:
            totals[cell.country] = totals.get(cell.country, 0) + cell.count
    outside = [OUT_OF_SCOPE] if totals.pop(OUT_OF_SCOPE, 0) else []
    largest = sorted(totals, key=lambda country: (-totals[country], country))
    return [*sorted(largest[:COUNTRY_COLUMNS]), *outside, *(["others"] if len(largest) > COUNTRY_COLUMNS else [])]


def cost_line(cost: FilterCost) -> str:
    """Tell the cost; money only where prices were given."""
    tokens = f"{cost.input_tokens:,} tokens in, {cost.output_tokens:,} out"
    price = (
        f"; {cost.price:,.2f} at the prices given" if cost.price is not None else "; no price given, so none is said"
    )
    return f"filtering by a language model: {cost.requests:,} requests, about {tokens}{price} ({cost.basis})"
