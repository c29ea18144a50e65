"""A preview in lines, for people: a table per root, what explodes, samples, and the cost."""

from collections.abc import Iterator, Sequence

from culturekit.kg.looking.preview import OUT_OF_SCOPE, Preview, RootPreview
from culturekit.kg.looking.preview_cost import FilterCost

__all__ = ["preview_lines"]

COLUMNS = 10
"""How many countries get a column of their own; the others stand together."""


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
    name = f"{root.qid} ({root.label})" if root.label else root.qid
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
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for row in (header, *rows):
        yield "  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)).rstrip()
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
    return [*sorted(largest[:COLUMNS]), *outside, *(["others"] if len(largest) > COLUMNS else [])]


def cost_line(cost: FilterCost) -> str:
    """Tell the cost; money only where prices were given."""
    tokens = f"{cost.input_tokens:,} tokens in, {cost.output_tokens:,} out"
    price = (
        f"; {cost.price:,.2f} at the prices given" if cost.price is not None else "; no price given, so none is said"
    )
    return f"filtering by a language model: {cost.requests:,} requests, about {tokens}{price} ({cost.basis})"
