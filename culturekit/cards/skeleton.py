"""An empty hand-written half: every field and section, marked, with what belongs there."""

from pathlib import Path

import yaml

from culturekit.cards.hand import FIELDS_FILE, TEXT_FILE, Fields
from culturekit.cards.hand_sections import MARKER, SECTIONS
from culturekit.errors import UsageError
from culturekit.storage.atomic import write_atomically

__all__ = ["write_skeleton"]

ASKED = {
    "title": "what people call the release",
    "version": "such as 1.0.0",
    "published": "the day, as YYYY-MM-DD",
    "summary": "two sentences: what it is, and how many of what",
}


def write_skeleton(folder: Path, name: str) -> list[Path]:
    """Write both files into a new folder."""
    if folder.exists():
        raise UsageError("there is something already", where=str(folder), expected="the name of a new folder")
    Fields(name=name)
    folder.mkdir(parents=True)
    fields = {
        "name": name,
        **{field: f"{MARKER}: {what}" for field, what in ASKED.items()},
        "licence": {"id": f"{MARKER}: as on spdx.org", "url": f"{MARKER}: its address"},
        "languages": [f"{MARKER}: such as en"],
        "tags": [f"{MARKER}: words to find it by"],
        "creators": [f"{MARKER}: who made it"],
        "contact": f"{MARKER}: where questions are answered",
        "homepage": None,
        "citation": None,
        "dump_date": None,
        "annotators": {"who": f"{MARKER}: who judged by hand, if anyone", "pay": f"{MARKER}: what they were paid"},
        "changelog": [{"version": f"{MARKER}", "date": f"{MARKER}", "changes": [f"{MARKER}: what changed"]}],
    }
    sections = "\n".join(f"## {heading}\n\n{MARKER}: {what}\n" for heading, what in SECTIONS.items())
    write_atomically(folder / FIELDS_FILE, yaml.safe_dump(fields, sort_keys=False, allow_unicode=True).encode())
    write_atomically(folder / TEXT_FILE, sections.encode())
    return [folder / FIELDS_FILE, folder / TEXT_FILE]
