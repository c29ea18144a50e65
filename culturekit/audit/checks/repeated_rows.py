"""Rows that say what another row says: the same prompt, the same artifact, the same name."""

from collections.abc import Callable, Hashable, Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.folding import fold, tidy
from culturekit.audit.identity import item_of, same_artifact
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Row, Sheet

__all__ = ["CHECK"]

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


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Find repeated rows; each row is named once, for the closest likeness."""
    told: set[int] = set()
    if sheet.has("prompt"):
        yield from repeated(sheet, "prompt", prompt_key(sheet), PROMPT, told)
    if sheet.has("name"):
        yield from repeated(sheet, "id", artifact_key(sheet), ARTIFACT, told)
        yield from alike(sheet, "name", name_key(sheet), told)
    else:
        yield from alike(sheet, "prompt", folded_prompt_key(sheet), told)


def prompt_key(sheet: Sheet) -> Callable[[Row], Hashable]:
    """Tell prompts apart by their words, language and negative prompt."""

    def key(row: Row) -> Hashable:
        text = tidy(sheet.text(row, "prompt"))
        return (text, row.cells.get("language"), sheet.text(row, "negative")) if text else None

    return key


def folded_prompt_key(sheet: Sheet) -> Callable[[Row], Hashable]:
    """Tell prompts apart by their folded words."""

    def key(row: Row) -> Hashable:
        text = fold(sheet.text(row, "prompt"))
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
    value = str(row.cells.get(column) or "")
    other = str(before.cells.get(column) or "")
    also = "" if value == other else f" as {quoted(other)}"
    return code.finding(
        f"{quoted(value)} is in row {before.number} already{also}",
        row=row.number,
        field=column,
        value=value,
        suggestion="look whether both are one" if code is SAME_NAME else f"keep row {before.number} only",
        changes=() if code is SAME_NAME else (Change(row.number),),
    )


CHECK = Check(Turn.FILE, (PROMPT, ARTIFACT, FOLDED, SAME_NAME), find)
