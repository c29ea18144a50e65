"""Small files to audit, made by hand."""

import json
from collections.abc import Sequence
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
