"""A hostile text in every place of what a report says of realism and variety."""

from typing import Any

from culturekit.report.realism import (
    Cell,
    RealismColumn,
    RealismTable,
    RealismTables,
    Variety,
    VarietyColumn,
    WithinCountries,
)
from culturekit.report.run_folders import Figure


def hostile_realism(text: str) -> dict[str, Any]:
    """A hostile text in every place of what is said of realism and variety."""
    cell, shaded = Cell(text, text, 3, 1, text), Figure(0.5, None, None, 1, 1)
    column = VarietyColumn(text, text, text, {text: cell}, {text: 1})
    return {
        "realism": RealismTables(
            text,
            text,
            (RealismColumn(text, text, text),),
            (RealismTable(text, 3, 3, ((text, (cell, None)),)),),
            (text,),
            {text: 1},
        ),
        "variety": Variety((text,), (column,), (text,), {text: 1}, (text,)),
        "within": WithinCountries((text,), {text: cell}, {text: 1}, ((text, {text: (cell, shaded)}),), (text,)),
    }  # fmt: skip
