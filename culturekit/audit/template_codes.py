"""What the check of templates can say."""

from culturekit.audit.findings import Code

__all__ = [
    "CODES",
    "EXTRA_SPACE",
    "MISSING",
    "MISSING_SPACE",
    "NAME_CONCEPT",
    "NAME_DIFFERS",
    "NOUN_IN_NAME",
    "NOUN_TWICE",
    "NO_TEMPLATE",
    "OTHER_CONCEPT",
    "PLACE",
]

REBUILT = "the prompt is rebuilt from the row's own name and country by the released template"

MISSING = Code(
    "prompt-missing",
    "error",
    "the row has no prompt",
    f"{REBUILT}; of art, with its several templates, it is set aside",
)
MISSING_SPACE = Code(
    "space-missing", "error", "a space of the template lacks (matefrom), or stands in the name instead", REBUILT
)
EXTRA_SPACE = Code("space-extra", "warning", "a space cuts a word", REBUILT)
PLACE = Code(
    "prompt-country",
    "error",
    "the prompt says another country, or a wrong word for it (Nigeria clothing)",
    REBUILT,
)
NAME_DIFFERS = Code("prompt-name", "error", "the prompt names something other than the row", REBUILT)
NAME_CONCEPT = Code(
    "prompt-name-concept",
    "error",
    "the prompt names something that belongs to another concept, by this file, a graph or a cultural space",
    REBUILT,
)
OTHER_CONCEPT = Code(
    "template-concept",
    "error",
    "the prompt follows the template of another concept",
    f"{REBUILT}, where the concept has one; else the row is set aside",
)
NO_TEMPLATE = Code(
    "template-none",
    "error",
    "the prompt follows no template, released or of the paper",
    f"{REBUILT} that is nearest; where none is near, the row is set aside",
)
NOUN_IN_NAME = Code(
    "noun-in-name",
    "warning",
    "the name already holds the noun that its template adds (tanjore painting), and the prompt says it once",
    "the name loses the noun: then the template gives the prompt as it stands",
)
NOUN_TWICE = Code(
    "noun-twice",
    "note",
    "the prompt says the template's noun twice, as the released template does with such a name",
    "nothing: it is the released wording",
)
CODES = (
    MISSING,
    MISSING_SPACE,
    EXTRA_SPACE,
    PLACE,
    NAME_DIFFERS,
    NAME_CONCEPT,
    OTHER_CONCEPT,
    NO_TEMPLATE,
    NOUN_IN_NAME,
    NOUN_TWICE,
)
