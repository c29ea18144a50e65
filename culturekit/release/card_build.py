"""Building a card: data by split, the manifests behind them, the hand-written half, and every page from these."""

import shutil
from pathlib import Path

from culturekit.core.atomic import copy_file, write_atomically
from culturekit.core.digests import digest_file
from culturekit.core.work import Outcome, Work
from culturekit.release.card_facts import (
    FACTS,
    FILES,
    OWN,
    SUMS,
    Facts,
    carry_manifests,
    described_files,
    facts_of,
    plain_files,
    release_files,
    write_splits,
)
from culturekit.release.card_hand import FIELDS_FILE, TEXT_FILE, Hand, empty_fields, read_hand
from culturekit.release.card_pages import PAGES, rendered
from culturekit.release.croissant import CROISSANT, croissant_bytes

HAND = "hand"


def build_card(work: Work, release: Path, hand_folder: Path) -> Outcome:
    """Write the card of a release into an empty folder."""
    hand = read_hand(hand_folder)
    held = release_files(release)
    _clear(work.out)
    work.progress.begin(len(held.tables) + len(held.others), "files")
    for name, parquet in sorted(held.tables.items()):
        write_splits(name, parquet, work.out)
        work.progress.advance(1)
    for relative in held.others:
        _copied(release / relative, work.out / FILES / relative)
        work.progress.advance(1)
    for name in (FIELDS_FILE, TEXT_FILE):
        _copied(hand_folder / name, work.out / HAND / name)
    carry_manifests(release, work.out)
    facts = facts_of(work.out)
    for name, content in generated(hand, facts).items():
        write_atomically(work.out / name, content)
    write_atomically(work.out / SUMS, _sums_of(work.out, facts))
    return outcome(hand, facts, held.left_out)


def _clear(folder: Path) -> None:
    """Begin again where a killed run left something."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _copied(path: Path, to: Path) -> None:
    """Copy a file under a folder that may not be there yet."""
    to.parent.mkdir(parents=True, exist_ok=True)
    copy_file(path, to)


def generated(hand: Hand, facts: Facts) -> dict[str, bytes]:
    """Give every generated file of a card by name."""
    pages = {page: rendered(page, hand, facts).encode("utf-8") for page in PAGES}
    return {**pages, CROISSANT: croissant_bytes(hand, facts), FACTS: facts.encode()}


def _sums_of(folder: Path, facts: Facts) -> bytes:
    """Write the checksums of a folder in the form that `sha256sum --check` reads."""
    known = {file.path: file.sha256 for file in described_files(facts.tables, facts.others)}
    paths = [path for path in plain_files(folder) if path not in OWN]
    lines = [f"{known.get(path) or digest_file(folder / path)}  {path}\n" for path in paths]
    return "".join(lines).encode("utf-8")


def outcome(hand: Hand, facts: Facts, left_out: tuple[str, ...]) -> Outcome:
    """Say what was built, and what still waits for a person."""
    empty = [f"{file}: {name}" for file, name in empty_fields(hand, dump_dated=facts.dump_dated)]
    counts = {table.name: table.rows for table in facts.tables}
    files = sum(1 for _ in described_files(facts.tables, facts.others))
    notes = {"to fill in": empty, "left out": list(left_out)}
    return Outcome({**counts, "files": files}, notes={key: value for key, value in notes.items() if value})
