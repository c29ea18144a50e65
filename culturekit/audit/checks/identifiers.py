"""What stands in `id`: a QID, or LLM where there is none."""

from collections.abc import Iterator

from culturekit.audit.check import Check, Turn
from culturekit.audit.findings import Change, Code, Finding, quoted
from culturekit.audit.folding import fold
from culturekit.audit.knowledge import Knowledge
from culturekit.audit.sheet import Row, Sheet
from culturekit.audit.statement_cells import QID
from culturekit.builders.space.public_cube import slug

__all__ = ["CHECK"]

NO_ITEM = "LLM"

IS_NAME = Code(
    "id-is-name",
    "error",
    "`id` holds the artifact's name",
    "the QID that the row has in P361, where columns slipped; else LLM",
)
DISPLACED = Code(
    "id-displaced",
    "error",
    "`id` is blank, and P361 holds a bare QID (lists stand in brackets): columns slipped by one",
    "the QID goes back to `id`; P361 becomes nan, for what stood there is lost",
)
MISSING = Code("id-missing", "warning", "`id` is blank", "LLM: no item is known")
UNKNOWN = Code("id-unknown", "error", "`id` is neither a QID nor LLM", "LLM, or what our own tables write for it")
WITHOUT_QID = Code("missing-qid", "note", "the artifact has no QID", "nothing: a QID must be looked up")
SLIPPED = "P361"


def find(sheet: Sheet, knowledge: Knowledge) -> Iterator[Finding]:
    """Look at the identifier of every row."""
    look = look_at_public if sheet.layout.name == "public" else look_at_table
    for row in sheet.rows:
        yield from look(sheet, row)


def look_at_public(sheet: Sheet, row: Row) -> Iterator[Finding]:
    """Look at `id` in the public layout."""
    stated, name = sheet.text(row, "id"), sheet.text(row, "name")
    said = stated.strip()
    slipped = str(row.cells.get(SLIPPED) or "").strip()
    moved = slipped if QID.fullmatch(slipped) else NO_ITEM
    cells: dict[str, str | None] = {"id": moved}
    if QID.fullmatch(slipped) or slipped == NO_ITEM:
        cells[SLIPPED] = "nan"
    if QID.fullmatch(said):
        return
    if said == NO_ITEM:
        yield without_qid(row, name, "id", stated)
        return
    if said and fold(said) == fold(name):
        beside = f"; its QID stands in {SLIPPED}: {slipped}" if moved != NO_ITEM else ""
        code, message = IS_NAME, f"{quoted(stated)} is the name, no identifier{beside}"
    elif said:
        code, message, cells = UNKNOWN, f"{quoted(stated)} is neither a QID nor LLM", {"id": NO_ITEM}
    elif moved != NO_ITEM:
        code, message = DISPLACED, f"the QID of {quoted(name)} stands in {SLIPPED}: {slipped}"
    else:
        code, message = MISSING, f"{quoted(name)} has a blank id"
    yield code.finding(
        message,
        row=row.number,
        field="id",
        value=stated if said else slipped or stated,
        suggestion=f"write {quoted(str(cells['id']))}",
        changes=(Change(row.number, cells),),
    )


def look_at_table(sheet: Sheet, row: Row) -> Iterator[Finding]:
    """Look at the identifiers of our own tables."""
    stated, name = sheet.text(row, "id"), sheet.text(row, "name")
    own = QID.fullmatch(stated) or (stated.startswith(f"{NO_ITEM}:") and len(stated) > len(NO_ITEM) + 1)
    if sheet.layout.name == "prompts":
        if stated and not own:
            changes = (Change(row.number, {"artifact_id": None}),)
            yield unknown(row, "artifact_id", stated, "leave it empty, or name the artifact", changes)
        return
    qid = str(row.cells.get("qid") or "")
    wanted = stated if QID.fullmatch(stated) else ""
    if not own or qid != wanted:
        right = stated if QID.fullmatch(stated) else qid if QID.fullmatch(qid) and not own else ""
        cells = {
            "artifact_id": right or (stated if own else f"{NO_ITEM}:{slug(name)}"),
            "qid": right or None,
            "source": "wikidata" if right else "llm",
        }
        yield unknown(
            row,
            "artifact_id",
            stated if not own else qid,
            f"write {quoted(str(cells['artifact_id']))}",
            (Change(row.number, cells),),
        )
    elif not qid:
        yield without_qid(row, name, "qid", stated)


def without_qid(row: Row, name: str, column: str, stated: str) -> Finding:
    """Say that a QID is missing."""
    message = f"{quoted(name)} has no QID"
    return WITHOUT_QID.finding(message, row=row.number, field=column, value=stated, suggestion="look it up")


def unknown(row: Row, column: str, stated: str, suggestion: str, changes: tuple[Change, ...]) -> Finding:
    """Say that an identifier is none."""
    message = f"{quoted(stated)} is neither a QID nor LLM: and a slug, or the two identifiers of the row differ"
    return UNKNOWN.finding(message, row=row.number, field=column, value=stated, suggestion=suggestion, changes=changes)


CHECK = Check(Turn.CELL, (IS_NAME, DISPLACED, MISSING, UNKNOWN, WITHOUT_QID), find)
