"""What stands in id, statement cells, and items whose countries are not the one of the row."""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence

import numpy as np

from culturekit.builders.country_names import folded, without_accents
from culturekit.builders.space.public_cube import slug
from culturekit.core.errors import counted
from culturekit.core.schemas import has_no_item
from culturekit.kg.concepts import COUNTRY_PROPERTIES
from culturekit.kg.countries import by_qid, countries
from culturekit.release.findings import Change, Code, Finding, Knowledge, Turn, check, quoted
from culturekit.release.sheet import (
    EMPTY,
    QID,
    Row,
    Sheet,
    fold,
    item_of,
    items_of,
    parts_of,
    same_artifact,
    tidy,
    written,
)

NO_ITEM = "LLM"

IS_NAME = Code(
    "id-is-name", "error", "`id` holds the artifact's name",
    "the QID that the row has in P361, where columns slipped; else LLM",
)  # fmt: skip
DISPLACED = Code(
    "id-displaced", "error",
    "`id` is blank, and P361 holds a bare QID (lists stand in brackets): columns slipped by one",
    "the QID goes back to `id`; P361 becomes nan, for what stood there is lost",
)  # fmt: skip
ID_MISSING = Code("id-missing", "warning", "`id` is blank", "LLM: no item is known")
ID_UNKNOWN = Code("id-unknown", "error", "`id` is neither a QID nor LLM", "LLM, or what our own tables write for it")
WITHOUT_QID = Code("missing-qid", "note", "the artifact has no QID", "nothing: a QID must be looked up")
SLIPPED = "P361"


@check(Turn.CELL, IS_NAME, DISPLACED, ID_MISSING, ID_UNKNOWN, WITHOUT_QID)
def identifiers(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at the identifier of every row."""
    look = look_at_public_id if sheet.layout.name == "public" else look_at_our_ids
    for row in sheet.rows:
        yield from look(sheet, row)


def look_at_public_id(sheet: Sheet, row: Row) -> Iterator[Finding]:
    """Look at `id` in the public layout."""
    stated, name = sheet.text(row, "id"), sheet.text(row, "name")
    stripped = stated.strip()
    slipped = row.text(SLIPPED).strip()
    moved = slipped if QID.fullmatch(slipped) else NO_ITEM
    cells: dict[str, str | None] = {"id": moved}
    if QID.fullmatch(slipped) or slipped == NO_ITEM:
        cells[SLIPPED] = "nan"
    if QID.fullmatch(stripped):
        return
    if stripped == NO_ITEM:
        yield WITHOUT_QID.finding(f"{quoted(name)} has no QID", row, "id", stated, suggestion="look it up")
        return
    if stripped and fold(stripped) == fold(name):
        beside = f"; its QID stands in {SLIPPED}: {slipped}" if moved != NO_ITEM else ""
        code, message = IS_NAME, f"{quoted(stated)} is the name, no identifier{beside}"
    elif stripped:
        code, message, cells = ID_UNKNOWN, f"{quoted(stated)} is neither a QID nor LLM", {"id": NO_ITEM}
    elif moved != NO_ITEM:
        code, message = DISPLACED, f"the QID of {quoted(name)} stands in {SLIPPED}: {slipped}"
    else:
        code, message = ID_MISSING, f"{quoted(name)} has a blank id"
    yield code.finding(
        message, row, "id", stated if stripped else slipped or stated, suggestion=f"write {quoted(str(cells['id']))}",
        changes=(Change(row.number, cells),),
    )  # fmt: skip


def look_at_our_ids(sheet: Sheet, row: Row) -> Iterator[Finding]:
    """Look at the identifiers of our own tables."""
    stated, name = sheet.text(row, "id"), sheet.text(row, "name")
    known = QID.fullmatch(stated) or has_no_item(stated)
    if sheet.layout.name == "prompts":
        if stated and not known:
            changes = (Change(row.number, {"artifact_id": None}),)
            yield not_an_id(row, "artifact_id", stated, "leave it empty, or name the artifact", changes)
        return
    qid = row.text("qid")
    wanted = stated if QID.fullmatch(stated) else ""
    if not known or qid != wanted:
        right = stated if QID.fullmatch(stated) else qid if QID.fullmatch(qid) and not known else ""
        cells = {
            "artifact_id": right or (stated if known else f"{NO_ITEM}:{slug(name)}"),
            "qid": right or None,
            "source": "wikidata" if right else "llm",
        }
        yield not_an_id(
            row, "artifact_id", stated if not known else qid, f"write {quoted(str(cells['artifact_id']))}",
            (Change(row.number, cells),),
        )  # fmt: skip
    elif not qid:
        yield WITHOUT_QID.finding(f"{quoted(name)} has no QID", row, "qid", stated, suggestion="look it up")


def not_an_id(row: Row, column: str, stated: str, suggestion: str, changes: tuple[Change, ...]) -> Finding:
    """Say that an identifier is none."""
    message = f"{quoted(stated)} is neither a QID nor LLM: and a slug, or the two identifiers of the row differ"
    return ID_UNKNOWN.finding(message, row, column, stated, suggestion=suggestion, changes=changes)


BROKEN_STATEMENT = Code(
    "broken-statement", "error", "a statement value that is no item, such as {=#1, or a cell that is no list",
    "what is no item is taken out, and the rest written as a list",
)  # fmt: skip
EMPTIES = Code(
    "empty-statements", "warning", "cells say in several ways that nothing is known: nan, empty, a space",
    "nan; [] stays, which says that there is no statement",
)  # fmt: skip
NAMES = {"": "empty", EMPTY: EMPTY}


@check(Turn.CELL, BROKEN_STATEMENT, EMPTIES)
def statements(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at the statement cells of every row, then at how empty ones are written."""
    for column in sheet.layout.statements:
        if column in sheet.columns:
            yield from broken(sheet, column)
            yield from empties(sheet, column)


def broken(sheet: Sheet, column: str) -> Iterator[Finding]:
    """Find what is no item. A bare QID where `id` has none is another slip, and not touched here."""
    for row in sheet.rows:
        cell, identifier = row.text(column), sheet.text(row, "id").strip()
        parts = parts_of(cell)
        slipped = column == SLIPPED and identifier != NO_ITEM and not identifier.startswith("Q")
        if parts is None or (slipped and not cell.strip().startswith("[")):
            continue
        items = items_of(cell)
        odd = [part for part in parts if part not in items]
        bracketed = cell.strip().startswith("[") and cell.strip().endswith("]")
        if odd or not bracketed:
            wanted = written([part for part in parts if part in items]) if items or bracketed else EMPTY
            message = f"{', '.join(map(quoted, odd))} in {column} is no item" if odd else f"{quoted(cell)} is no list"
            value = ", ".join(odd) or cell
            yield BROKEN_STATEMENT.rewrite(message, row, column, value, wanted=wanted)


def empties(sheet: Sheet, column: str) -> Iterator[Finding]:
    """Find several ways to say that nothing is known."""
    empty = [row for row in sheet.rows if parts_of(row.text(column)) is None]
    ways = Counter(row.text(column) for row in empty)
    if len(ways) > 1:
        listed = ", ".join(
            f"{NAMES.get(way, 'blank')} ({counted(count, 'rows')})" for way, count in sorted(ways.items())
        )
        yield EMPTIES.finding(
            f"nothing known is written in {len(ways)} ways: {listed}", None, column,
            ", ".join(NAMES.get(way, "blank") for way in sorted(ways)), suggestion=f"write {EMPTY}",
            changes=tuple(Change(row.number, {column: EMPTY}) for row in empty if row.text(column) != EMPTY),
        )  # fmt: skip


DISAGREES = Code(
    "qid-country", "error",
    "the item's countries (P495, P17 of the row, or of the graph or cultural space) are known, and not the row's",
    "the row is set aside: the item or the country is wrong, and the file does not say which",
)  # fmt: skip
ELSEWHERE = Code(
    "qid-in-countries", "note", "one item stands in several countries, and no statement says that it belongs to all",
    "nothing",
)  # fmt: skip


@check(Turn.ROW, DISAGREES, ELSEWHERE)
def item_countries(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Hold the country of every row against its item's: what it states itself, where that is known, and sources."""
    open_places: dict[str, dict[str, int]] = {}
    known = by_qid()
    for row in sheet.rows:
        country, item = sheet.country(row), sheet.text(row, "id").strip()
        if country is None:
            continue
        named = [known[one] for name in COUNTRY_PROPERTIES for one in items_of(row.text(name)) if one in known]
        sources = [("the row's P495 and P17", list(dict.fromkeys(each.iso for each in named)))] if named else []
        sources += [(source.name, sorted(source.countries_of_item.get(item, ()))) for source in knowledge.sources]
        sources = [(where, isos) for where, isos in sources if isos]
        against = [(where, isos) for where, isos in sources if country.iso not in isos]
        if against:
            listed = "; ".join(
                f"{where}: {', '.join(countries()[iso].name for iso in isos)}" for where, isos in against
            )
            yield DISAGREES.set_aside(
                f"{quoted(item)} stands in {country.name}; {listed}", row, sheet.column("country"), item,
                suggestion="look up which of the two is wrong",
            )  # fmt: skip
        elif not sources and item.startswith("Q"):
            open_places.setdefault(item, {}).setdefault(country.iso, row.number)
    for item, places in open_places.items():
        if len(places) > 1:
            yield ELSEWHERE.finding(
                f"{item} stands in {', '.join(sorted(places))}", max(places.values()), sheet.column("id"), item,
                suggestion="give --graph or --cspace, which know the item's countries",
            )  # fmt: skip


# Rows that say what another row says: the same prompt, artifact or name, or nearly the same.


DROPPED = "rows after the first are set aside"
PROMPT = Code("duplicate-prompt", "error", "a prompt is given more than once", DROPPED)
ARTIFACT = Code("duplicate-artifact", "error", "an artifact stands more than once in a country and concept", DROPPED)
FOLDED = Code(
    "duplicate-folded", "warning",
    "a name, or a prompt, differs from another only in case, width or white space, and no two QIDs tell them apart; "
    "accents count, for they can tell two dishes apart", DROPPED,
)  # fmt: skip
SAME_NAME = Code("same-name", "note", "one name in one country and concept, in small letters, with two QIDs", "nothing")


@check(Turn.FILE, PROMPT, ARTIFACT, FOLDED, SAME_NAME)
def repeated_rows(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Find repeated rows; each row is named once, for the closest likeness."""
    reported: set[int] = set()
    if sheet.has("prompt"):
        yield from repeated(sheet, "prompt", prompt_key(sheet, tidy), PROMPT, reported)
    if sheet.has("name"):
        yield from repeated(sheet, "id", artifact_key(sheet), ARTIFACT, reported)
        yield from alike(sheet, "name", name_key(sheet), reported)
    else:
        yield from alike(sheet, "prompt", prompt_key(sheet, fold), reported)


def prompt_key(sheet: Sheet, form: Callable[[str], str]) -> Callable[[Row], Hashable]:
    """Tell prompts apart by their words in some form, language and negative prompt."""

    def key(row: Row) -> Hashable:
        text = form(sheet.text(row, "prompt"))
        return (text, row.cells.get("language"), sheet.text(row, "negative")) if text else None

    return key


def artifact_key(sheet: Sheet) -> Callable[[Row], Hashable]:
    """Tell artifacts apart by item, country and concept; those without an item go by name."""

    def key(row: Row) -> Hashable:
        item, country = item_of(sheet, row), sheet.country(row)
        identifier = item or (sheet.text(row, "id") if sheet.layout.name == "cspace" else "")
        return (identifier, country.iso, sheet.concept(row)) if identifier and country else None

    return key


def name_key(sheet: Sheet) -> Callable[[Row], Hashable]:
    """Tell names apart within a country and concept."""

    def key(row: Row) -> Hashable:
        name, country = fold(sheet.text(row, "name")), sheet.country(row)
        return (name, country.iso, sheet.concept(row)) if name and country else None

    return key


def repeated(
    sheet: Sheet, part: str, key: Callable[[Row], Hashable], code: Code, reported: set[int]
) -> Iterator[Finding]:
    """Find rows whose key stood before."""
    first: dict[Hashable, Row] = {}
    for row in sheet.rows:
        found = key(row)
        if found is None or row.number in reported:
            continue
        before = first.setdefault(found, row)
        if before is not row:
            reported.add(row.number)
            yield repetition(sheet, part, code, row, before)


def alike(sheet: Sheet, part: str, key: Callable[[Row], Hashable], reported: set[int]) -> Iterator[Finding]:
    """Find rows of one folded name: duplicates, unless two QIDs tell them apart."""
    groups: dict[Hashable, list[Row]] = {}
    for row in sheet.rows:
        found = key(row)
        if found is None or row.number in reported:
            continue
        group = groups.setdefault(found, [])
        if group:
            same = next((before for before in group if same_artifact(sheet, before, row)), None)
            yield repetition(sheet, part, SAME_NAME if same is None else FOLDED, row, same or group[0])
            if same is not None:
                reported.add(row.number)
                continue
        group.append(row)


def repetition(sheet: Sheet, part: str, code: Code, row: Row, before: Row) -> Finding:
    """Say which row stood before."""
    column = sheet.column(part)  # type: ignore[arg-type] # callers name parts
    value, other = row.text(column), before.text(column)
    also = "" if value == other else f" as {quoted(other)}"
    return code.finding(
        f"{quoted(value)} is in row {before.number} already{also}", row, column, value,
        suggestion="look whether both are one" if code is SAME_NAME else f"keep row {before.number} only",
        changes=() if code is SAME_NAME else (Change(row.number),),
    )  # fmt: skip


NEAR_NAME = Code(
    "near-name", "note",
    "two names of a country and concept are equal but for accents and marks, or but for a letter or two", "nothing",
)  # fmt: skip
NEAR_VECTORS = Code(
    "near-vectors", "note", "two artifacts of a country and concept have nearly one vector (needs --index)", "nothing"
)
SHORTEST = 6  # letters that a name must have before one that differs in a letter is worth a look


@check(Turn.FILE, NEAR_NAME, NEAR_VECTORS)
def near_duplicates(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Find pairs; each row is named once, with the first row it is near to."""
    if not sheet.has("name"):
        return
    cells: dict[tuple[str, str], list[Row]] = {}
    for row in sheet.rows:
        country, concept = sheet.country(row), sheet.concept(row)
        if country is not None and concept is not None:
            cells.setdefault((country.iso, concept), []).append(row)
    for rows in cells.values():
        yield from near_names(sheet, rows)
        if knowledge.near_artifacts:
            yield from near_vectors(sheet, rows, knowledge)


def near_names(sheet: Sheet, rows: list[Row]) -> Iterator[Finding]:
    """Find names that share a form with one letter less: they differ in a letter, or in two neighbours."""
    known: dict[str, Row] = {}
    bares = [without_accents(folded(sheet.text(row, "name"))) for row in rows]
    for index in sharing_a_form(bares):
        row, bare = rows[index], bares[index]
        name = sheet.text(row, "name")
        forms = [bare, *shortened(bare)]
        near = next((other for form in forms if (other := known.get(form)) is not None), None)
        if near is not None and fold(sheet.text(near, "name")) != fold(name):
            yield NEAR_NAME.finding(
                f"{quoted(name)} is nearly {quoted(sheet.text(near, 'name'))} of row {near.number}", row,
                sheet.column("name"), name, suggestion="look whether both are one",
            )  # fmt: skip
        for form in forms:
            known.setdefault(form, row)


_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 2**64)


def sharing_a_form(names: Sequence[str]) -> list[int]:
    """Find the names that may share a form with another: itself, or one letter less, by their hashes, in their order.

    A name has the hash of its letters times the powers of an odd number; a letter less moves those after it by one.
    """
    letters = np.frombuffer("".join(names).encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.uint64)
    sizes = np.array([len(name) for name in names], np.int64)
    ends = np.cumsum(sizes)
    owners = np.repeat(np.arange(len(names)), sizes)
    powers = np.cumprod(np.full(int(sizes.max(initial=0)) + 1, _BASE, np.uint64))
    terms = (letters + np.uint64(1)) * powers[np.arange(len(letters)) - (ends - sizes)[owners]]
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(terms, dtype=np.uint64)])
    before = sums[:-1] - sums[ends - sizes][owners]
    after = sums[ends][owners] - sums[1:]
    hashes = np.concatenate([sums[ends] - sums[ends - sizes], before + after * np.uint64(_INVERSE)])
    of_name = np.concatenate([np.arange(len(names)), owners])
    order = np.argsort(hashes)
    hashes, of_name = hashes[order], of_name[order]
    shared = (hashes[1:] == hashes[:-1]) & (of_name[1:] != of_name[:-1])
    return [int(index) for index in np.unique(np.concatenate([of_name[1:][shared], of_name[:-1][shared]]))]


def shortened(name: str) -> list[str]:
    """Give a name with each of its letters left out in turn; a digit tells two names apart and stays."""
    if not SHORTEST <= len(name) <= 100:
        return []
    return [name[:index] + name[index + 1 :] for index in range(len(name)) if not name[index].isdigit()]


def near_vectors(sheet: Sheet, rows: list[Row], knowledge: Knowledge) -> Iterator[Finding]:
    """Find rows whose artifacts have nearly one vector."""
    known = {sheet.text(row, "id").strip(): row for row in rows}
    for (one, other), cosine in sorted(knowledge.near_artifacts.items()):
        if one in known and other in known:
            first, later = sorted((known[one], known[other]), key=lambda row: row.number)
            name = sheet.text(later, "name")
            yield NEAR_VECTORS.finding(
                f"{quoted(name)} looks like {quoted(sheet.text(first, 'name'))} of row {first.number}, cosine "
                f"{cosine:.3f}", later, sheet.column("name"), name, suggestion="look whether both are one",
            )  # fmt: skip
