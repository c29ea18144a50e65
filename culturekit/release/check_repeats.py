"""Rows that say what another row says: the same prompt, artifact or name, or nearly the same."""

from collections.abc import Callable, Hashable, Iterator

from culturekit.builders.country_names import folded, without_accents
from culturekit.release.findings import Change, Check, Code, Finding, Knowledge, Turn, quoted
from culturekit.release.sheet import Row, Sheet, fold, item_of, same_artifact, tidy

DROPPED = "rows after the first are set aside"
PROMPT = Code("duplicate-prompt", "error", "a prompt is given more than once", DROPPED)
ARTIFACT = Code("duplicate-artifact", "error", "an artifact stands more than once in a country and concept", DROPPED)
FOLDED = Code(
    "duplicate-folded",
    "warning",
    "a name, or a prompt, differs from another only in case, width or white space, and no two QIDs tell them apart; "
    "accents count, for they can tell two dishes apart",
    DROPPED,
)
SAME_NAME = Code("same-name", "note", "one name in one country and concept, in small letters, with two QIDs", "nothing")


def find_repeated_rows(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Find repeated rows; each row is named once, for the closest likeness."""
    told: set[int] = set()
    if sheet.has("prompt"):
        yield from repeated(sheet, "prompt", prompt_key(sheet, tidy), PROMPT, told)
    if sheet.has("name"):
        yield from repeated(sheet, "id", artifact_key(sheet), ARTIFACT, told)
        yield from alike(sheet, "name", name_key(sheet), told)
    else:
        yield from alike(sheet, "prompt", prompt_key(sheet, fold), told)


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


def repeated(sheet: Sheet, part: str, key: Callable[[Row], Hashable], code: Code, told: set[int]) -> Iterator[Finding]:
    """Find rows whose key stood before."""
    first: dict[Hashable, Row] = {}
    for row in sheet.rows:
        own = key(row)
        if own is None or row.number in told:
            continue
        before = first.setdefault(own, row)
        if before is not row:
            told.add(row.number)
            yield repetition(sheet, part, code, row, before)


def alike(sheet: Sheet, part: str, key: Callable[[Row], Hashable], told: set[int]) -> Iterator[Finding]:
    """Find rows of one folded name: duplicates, unless two QIDs tell them apart."""
    groups: dict[Hashable, list[Row]] = {}
    for row in sheet.rows:
        own = key(row)
        if own is None or row.number in told:
            continue
        group = groups.setdefault(own, [])
        if group:
            same = next((before for before in group if same_artifact(sheet, before, row)), None)
            yield repetition(sheet, part, SAME_NAME if same is None else FOLDED, row, same or group[0])
            if same is not None:
                told.add(row.number)
                continue
        group.append(row)


def repetition(sheet: Sheet, part: str, code: Code, row: Row, before: Row) -> Finding:
    """Say which row stood before."""
    column = sheet.column(part)  # type: ignore[arg-type] # callers name parts
    value, other = row.text(column), before.text(column)
    also = "" if value == other else f" as {quoted(other)}"
    return code.finding(
        f"{quoted(value)} is in row {before.number} already{also}",
        row=row.number,
        field=column,
        value=value,
        suggestion="look whether both are one" if code is SAME_NAME else f"keep row {before.number} only",
        changes=() if code is SAME_NAME else (Change(row.number),),
    )


REPEATED_ROWS = Check(Turn.FILE, (PROMPT, ARTIFACT, FOLDED, SAME_NAME), find_repeated_rows)


NEAR_NAME = Code(
    "near-name",
    "note",
    "two names of a country and concept are equal but for accents and marks, or but for a letter or two",
    "nothing",
)
NEAR_VECTORS = Code(
    "near-vectors", "note", "two artifacts of a country and concept have nearly one vector (needs --index)", "nothing"
)
SHORTEST = 6
"""Letters that a name must have before one that differs in a letter is worth a look."""


def find_near_duplicates(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
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
    for row in rows:
        name = sheet.text(row, "name")
        bare = without_accents(folded(name))
        forms = [bare, *shortened(bare)]
        near = next((other for form in forms if (other := known.get(form)) is not None), None)
        if near is not None and fold(sheet.text(near, "name")) != fold(name):
            yield NEAR_NAME.finding(
                f"{quoted(name)} is nearly {quoted(sheet.text(near, 'name'))} of row {near.number}",
                row=row.number,
                field=sheet.column("name"),
                value=name,
                suggestion="look whether both are one",
            )
        for form in forms:
            known.setdefault(form, row)


def shortened(name: str) -> list[str]:
    """Give a name with each of its letters left out in turn; a digit tells two names apart and stays."""
    if not SHORTEST <= len(name) <= 100:
        return []
    return [name[:place] + name[place + 1 :] for place in range(len(name)) if not name[place].isdigit()]


def near_vectors(sheet: Sheet, rows: list[Row], knowledge: Knowledge) -> Iterator[Finding]:
    """Find rows whose artifacts have nearly one vector."""
    known = {sheet.text(row, "id").strip(): row for row in rows}
    for (one, other), cosine in sorted(knowledge.near_artifacts.items()):
        if one in known and other in known:
            first, later = sorted((known[one], known[other]), key=lambda row: row.number)
            name = sheet.text(later, "name")
            yield NEAR_VECTORS.finding(
                f"{quoted(name)} looks like {quoted(sheet.text(first, 'name'))} of row {first.number}, cosine "
                f"{cosine:.3f}",
                row=later.number,
                field=sheet.column("name"),
                value=name,
                suggestion="look whether both are one",
            )


NEAR_DUPLICATES = Check(Turn.FILE, (NEAR_NAME, NEAR_VECTORS), find_near_duplicates)
