"""Items whose countries are not the one of the row."""

from collections.abc import Iterator, Sequence

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Row, Sheet
from culturekit.audit.statement_cells import items_of
from culturekit.kg.countries import by_qid, countries
from culturekit.kg.statement_flags import COUNTRY_PROPERTIES

__all__ = ["CHECK"]

DISAGREES = Code(
    "qid-country",
    "error",
    "the item's countries (P495, P17 of the row, or of the graph or cultural space) are known, and not the row's",
    "the row is set aside: the item or the country is wrong, and the file does not say which",
)
ELSEWHERE = Code(
    "qid-in-countries",
    "note",
    "one item stands in several countries, and no statement says that it belongs to all",
    "nothing",
)


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold the country of every row against its item's."""
    open_places: dict[str, dict[str, int]] = {}
    for row in sheet.rows:
        country, item = sheet.country(row), sheet.text(row, "id").strip()
        if country is None:
            continue
        own = stated_in(row)
        said = [("the row's P495 and P17", own)] if own else []
        said += [
            (source.name, sorted(source.countries_of_item[item]))
            for source in knowledge.sources
            if source.countries_of_item.get(item)
        ]
        against = [(where, isos) for where, isos in said if country.iso not in isos]
        if against:
            yield disagreement(sheet, row, item, country.name, against)
        elif not said and item.startswith("Q"):
            open_places.setdefault(item, {}).setdefault(country.iso, row.number)
    for item, places in open_places.items():
        if len(places) > 1:
            yield ELSEWHERE.finding(
                f"{item} stands in {', '.join(sorted(places))}",
                row=max(places.values()),
                field=sheet.column("id"),
                value=item,
                suggestion="give --graph or --cspace, which know the item's countries",
            )


def stated_in(row: Row) -> list[str]:
    """List the ISO codes of the countries that a row states in the public layout; unknown ones say nothing."""
    known = by_qid()
    stated = [item for name in COUNTRY_PROPERTIES for item in items_of(str(row.cells.get(name) or ""))]
    return list(dict.fromkeys(known[item].iso for item in stated if item in known))


def disagreement(
    sheet: Sheet, row: Row, item: str, country: str, against: Sequence[tuple[str, Sequence[str]]]
) -> Finding:
    """Say who says otherwise."""
    told = "; ".join(f"{where}: {', '.join(countries()[iso].name for iso in isos)}" for where, isos in against)
    return DISAGREES.finding(
        f"{quoted(item)} stands in {country}; {told}",
        row=row.number,
        field=sheet.column("country"),
        value=item,
        suggestion="look up which of the two is wrong",
        changes=(Change(row.number),),
    )


CHECK = Check(Turn.ROW, (DISAGREES, ELSEWHERE), find)
