"""Small files to audit, made by hand."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from culturekit.release.audit_file import Audit, audit_file

DISHES = (
    ("feijoada", "Brazil", "Q1"), ("moqueca", "Brazil", "Q2"), ("ramen", "Japan", "Q3"), ("okonomiyaki", "Japan", "Q4"),
)  # fmt: skip
ADJECTIVES = {"Brazil": "Brazilian", "Japan": "Japanese", "India": "Indian", "Nigeria": "Nigerian"}


def dish(name: str = "feijoada", country: str = "Brazil", qid: str = "Q1", **cells: Any) -> dict[str, Any]:
    """A row of cuisine in the public layout; cells replace what it says."""
    prompt = f"A high resolution image of {name.strip()} from {ADJECTIVES.get(country, country)} cuisine, realistic"
    statements = {"P31": "['Q746549']", "P279": "[]", "P495": "[]", "P17": "[]", "P2012": "[]", "P361": "[]"}
    row = {**statements, "id": qid, "name": name, "country": country, "domain": "cuisine", "prompt": prompt}
    return {**row, **cells}


def sight(name: str, country: str, qid: str, **cells: Any) -> dict[str, Any]:
    prompt = f"A panoramic view of {name.strip()} in {country}, realistic"
    return {**dish(name, country, qid), "domain": "landmarks", "prompt": prompt, **cells}


def art(name: str, country: str, qid: str, prompt: str, **cells: Any) -> dict[str, Any]:
    """A row of art, with the prompt that it has."""
    return {**dish(name, country, qid), "domain": "art", "prompt": prompt, **cells}


def clean_rows() -> list[dict[str, Any]]:
    return [dish(*each) for each in DISHES]


def write(folder: Path, rows: Sequence[Any], name: str = "cube.json") -> Path:
    path = folder / name
    path.write_text(json.dumps(rows, ensure_ascii=False), encoding="utf-8")
    return path


def audited(folder: Path, rows: Sequence[Any], **options: Any) -> Audit:
    return audit_file(write(folder, rows), **options)


def codes(audit: Audit) -> set[str]:
    return {finding.code for finding in audit.findings}


LONG = "会席料理" * 25
NEGATIVE = "multiple items, blurry, cartoon, watermark"


@dataclass(frozen=True)
class Case:
    """Rows with a slip, what the finding quotes, and the same rows as they should be."""

    code: str
    rows: list[dict[str, Any]]
    quotes: str
    twin: list[dict[str, Any]]


PAINTING = "An image of tanjore painting from India, realistic"
CASES = [
    Case("white-space", [dish("pavê ", "Brazil", "Q9")], "pavê ", [dish("pavê", "Brazil", "Q9")]),
    Case("white-space", [dish("pavê\u00a0doce", "Brazil", "Q9")], "U+00A0", [dish("pavê doce", "Brazil", "Q9")]),
    Case("hidden-character", [dish("pa\u200bvê", "Brazil", "Q9")], "zero-width", [dish("pavê", "Brazil", "Q9")]),
    Case("hidden-character", [dish("pa\u202evê", "Brazil", "Q9")], "bidi", [dish("pavê", "Brazil", "Q9")]),
    Case("hidden-character", [dish("pa\x07vê", "Brazil", "Q9")], "controls", [dish("pavê", "Brazil", "Q9")]),
    Case("not-nfc", [dish("pave\u0302", "Brazil", "Q9")], "apart", [dish("pav\u00ea", "Brazil", "Q9")]),
    Case("look-alike", [dish("р\u0430vê", "Brazil", "Q9")], "cyrillic", [dish("pavê", "Brazil", "Q9")]),
    Case("mixed-script", [dish("pжvê", "Brazil", "Q9")], "pжvê", [dish("жук", "Brazil", "Q9")]),
    Case("country-unknown", [dish("fondue", "Atlantis", "Q9")], "Atlantis", [dish("fondue", "Brazil", "Q9")]),
    Case("country-ambiguous", [dish("kimchi", "Korea", "Q9")], "Korea", [dish("kimchi", "Japan", "Q9")]),
    Case("country-spelling", [dish("pavê", "brazil", "Q9")], "brazil", [dish("pavê", "Brazil", "Q9")]),
    Case("concept-unknown", [dish("pavê", domain="music")], "music", [dish("pavê", qid="Q9")]),
    Case("concept-spelling", [dish("pavê", qid="Q9", domain="Cuisine")], "Cuisine", [dish("pavê", qid="Q9")]),
    Case("concept-mixed", [sight("Ise", "Japan", "Q8", domain="landscapes"), sight("Itá", "Brazil", "Q9")],
        "landscapes (1 row)", [sight("Ise", "Japan", "Q8"), sight("Itá", "Brazil", "Q9")]),
    Case("id-is-name", [dish("pavê", qid="pavê")], "pavê", [dish("pavê", qid="Q9")]),
    Case("id-displaced", [dish("pavê", qid=" ", P361="Q9")], "Q9", [dish("pavê", qid="Q9", P361="['Q9']")]),
    Case("id-missing", [dish("pavê", qid="")], "pavê", [dish("pavê", qid="Q9")]),
    Case("id-unknown", [dish("pavê", qid="Q9x")], "Q9x", [dish("pavê", qid="Q9")]),
    Case("id-unknown", [dish("pavê", qid=f"Q{'9' * 5000}")], "5,001 characters", [dish("pavê", qid="Q9")]),
    Case("missing-qid", [dish("pavê", qid="LLM")], "pavê", [dish("pavê", qid="Q9")]),
    Case("broken-statement", [dish("pavê", qid="Q9", P31="['{=#1', 'Q5']")], "{=#1", [dish("pavê", qid="Q9")]),
    Case("broken-statement", [dish("pavê", qid="Q9", P361="Q7")], "Q7", [dish("pavê", qid="Q9", P361="['Q7']")]),
    Case("empty-statements", [dish("pavê", qid="Q9", P31=" "), dish("bobó", qid="Q8", P31="nan")], "nan (1 row)",
        [dish("pavê", qid="Q9", P31="nan"), dish("bobó", qid="Q8", P31="nan")]),
    Case("negative-leak", [dish("pavê", qid="Q9", prompt=f"{dish('pavê')['prompt']}, {NEGATIVE}")],
        "multiple items, blurry", [dish("pavê", qid="Q9")]),
    Case("negative-leak", [dish("pavê", qid="Q9", prompt=f"{dish('pavê')['prompt']} Negative prompt: ugly")],
        "Negative prompt: ugly", [dish("pavê", qid="Q9")]),
    Case("name-unusable", [dish("Q123", qid="Q9")], "Q123", [dish("pavê", qid="Q9")]),
    Case("name-unusable", [dish("", qid="Q9")], "no usable label", [dish("pavê", qid="Q9")]),
    Case("qid-country", [dish("pavê", qid="Q9", P495="['Q17']")], "Japan", [dish("pavê", qid="Q9", P495="['Q155']")]),
    Case("qid-in-countries", [dish("pavê", qid="Q9"), dish("pavê", "Japan", "Q9")], "Q9 stands in BR, JP",
        [dish("pavê", qid="Q9", P17="['Q155', 'Q17']"), dish("pavê", "Japan", "Q9", P17="['Q155', 'Q17']")]),
    Case("prompt-missing", [dish("pavê", qid="Q9", prompt=" ")], "pavê", [dish("pavê", qid="Q9")]),
    Case("space-missing",
        [dish("mate", qid="Q9", prompt="A high resolution image of matefrom Brazilian cuisine, realistic")],
        "“matefrom”", [dish("mate", qid="Q9")]),
    Case(
        "space-missing",
        [
            sight("Ise ", "Japan", "Q9"),
            sight("Uji", "Japan", "Q8", prompt="A panoramic view of Ujiin Japan, realistic"),
        ],
        "“{name}in”",
        [sight("Ise", "Japan", "Q9"), sight("Uji", "Japan", "Q8")],
    ),
    Case("space-extra",
        [dish("mate", qid="Q9", prompt="A high resolution image of mate from Brazil ian cuisine, realistic")],
        "“Brazil ian”", [dish("mate", qid="Q9")]),
    Case("prompt-country", [art("gele", "Nigeria", "Q9", "Image of gele from Nigeria clothing, realistic")],
        "wants “Nigerian”, the prompt says “Nigeria”",
        [art("gele", "Nigeria", "Q9", "An image of gele from Nigerian clothing, realistic")]),
    Case("prompt-country",
        [dish("pavê", qid="Q9", prompt="A high resolution image of pavê from Japanese cuisine, realistic")],
        "wants “Brazilian”, the prompt says “Japanese”", [dish("pavê", qid="Q9")]),
    Case("prompt-name", [dish("pavê", qid="Q9", prompt=dish("bobó")["prompt"])], "“bobó”", [dish("pavê", qid="Q9")]),
    Case("prompt-name-concept",
        [sight("Itá", "Brazil", "Q9", prompt="A panoramic view of Feijoada in Brazil, realistic")],
        "“Feijoada” is cuisine (row 0), not landmarks", [sight("Itá", "Brazil", "Q9")]),
    Case("template-concept", [dish("pavê", qid="Q9", prompt="A panoramic view of pavê in Brazil, realistic")],
        "template of landmarks", [dish("pavê", qid="Q9")]),
    Case("template-none", [dish("pavê", qid="Q9", prompt="pavê!")], "pavê!", [dish("pavê", qid="Q9")]),
    Case("noun-in-name", [art("tanjore painting", "India", "Q9", PAINTING)], "tanjore painting",
        [art("tanjore", "India", "Q9", PAINTING)]),
    Case("noun-twice",
        [art("tanjore painting", "India", "Q9", "An image of tanjore painting painting from India, realistic")],
        "tanjore painting painting", [art("tanjore", "India", "Q9", PAINTING)]),
    Case("duplicate-prompt", [dish()], "row 0", [dish("pavê", qid="Q9")]),
    Case("duplicate-prompt", [dish(qid="Q9")], "row 0", [dish("pavê", qid="Q9")]),
    Case("duplicate-artifact", [dish("completa", qid="Q1")], "Q1", [dish("completa", qid="Q9")]),
    Case("duplicate-folded", [dish("FEIJOADA", qid="LLM")], "as “feijoada”", [dish("pavê", qid="Q9")]),
    Case("same-name", [dish("Feijoada", qid="Q9")], "as “feijoada”", [dish("pavê", qid="Q9")]),
    Case("near-name", [dish("feijoáda", qid="Q9")], "nearly “feijoada”", [dish("pavê", qid="Q9")]),
    Case("near-name", [dish("feijoad", qid="Q9")], "nearly “feijoada”", [dish("pavê", qid="Q9")]),
    Case("two-concepts", [sight("Feijoada", "Brazil", "LLM")], "cuisine (row 0) and landmarks (row 4)",
        [sight("Feijoada", "Brazil", "Q9")]),
    Case("prompt-long", [dish(LONG, qid="Q9")], "tokens", [dish("kaiseki", qid="Q9")]),
    Case("imbalance", [sight("Ise", "Japan", "Q9")], "Brazil × landmarks", [dish("x y", "Japan", "Q9")]),
]  # fmt: skip
# Codes that a file in the public layout alone cannot have; they have tests of their own
NEEDS_MORE = {"name-concept", "near-vectors", "negative-contradicts"}
