"""Each way to spoil a sound card is found; some of them `mlcroissant validate` accepts."""

import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from culturekit.release.card_build import check_card
from culturekit.release.card_content import CODES, exit_code

CROISSANT = "croissant.json"


def described(card: Path, change: Callable[[dict[str, Any]], object]) -> None:
    path = card / CROISSANT
    value = orjson.loads(path.read_bytes())
    change(value)
    path.write_bytes(orjson.dumps(value, option=orjson.OPT_INDENT_2))
    sign(card)


def sign(card: Path) -> None:
    """Make the checksums right again, as somebody would who wants to hide what was done."""
    lines = []
    for line in (card / "SHA256SUMS").read_text().splitlines():
        path = card / line[66:]
        lines.append(
            f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {line[66:]}\n" if path.is_file() else f"{line}\n"
        )
    (card / "SHA256SUMS").write_text("".join(lines))


def edited(card: Path, name: str, pattern: str, new: str) -> None:
    path = card / name
    text, count = re.subn(pattern, new, path.read_text(encoding="utf-8"), count=1)
    assert count == 1
    path.write_text(text, encoding="utf-8")
    sign(card)


def shorter_table(card: Path) -> None:
    path = card / "data/cspace/cuisine.parquet"
    pl.read_parquet(path).head(2).write_parquet(path)
    sign(card)


def renamed_column(card: Path) -> None:
    path = card / "data/cspace/cuisine.parquet"
    pl.read_parquet(path).rename({"name": "label"}).write_parquet(path)
    sign(card)


def counts_of_results(card: Path) -> None:
    for name in ("cuisine", "landmarks"):
        path = card / f"data/cspace/{name}.parquet"
        pl.read_parquet(path).with_columns(totalResults=pl.lit(123_000)).write_parquet(path)
    sign(card)


def appended(card: Path, line: str) -> None:
    path = card / "SHA256SUMS"
    path.write_text(path.read_text() + line)


def link_outside(card: Path) -> None:
    outside = card.parent / "outside.parquet"
    path = card / "data/cspace/cuisine.parquet"
    path.rename(outside)
    path.symlink_to(outside)


def folder_link(card: Path) -> None:
    outside = card.parent / "elsewhere"
    (card / "data/cspace").rename(outside)
    (card / "data/cspace").symlink_to(outside, target_is_directory=True)


def flipped_bit(card: Path) -> None:
    path = card / "data/cspace/landmarks.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


def passage(card: Path) -> None:
    path = card / "data/cspace/landmarks.parquet"
    text = (
        "Zuma Rock is a large natural monolith that rises beside the road from Abuja to Kaduna, and travellers who "
        "come from the south see it long before they reach the town at its foot."
    )
    pl.read_parquet(path).with_columns(subconcept=pl.lit(text)).write_parquet(path)
    sign(card)


def column(value: dict[str, Any], name: str) -> Any:
    sets = value["recordSet"]
    assert isinstance(sets, list)
    return next(field for field in sets[0]["field"] if field["name"] == name)


def first_file(value: dict[str, Any]) -> Any:
    files = value["distribution"]
    assert isinstance(files, list)
    return files[0]


Corruption = Callable[[Path], object]

ACCEPTED_BY_OTHERS: dict[str, tuple[Corruption, str]] = {
    "a column that the table lacks": (
        lambda card: described(card, lambda v: column(v, "name")["source"]["extract"].update(column="title")),
        "croissant-column",
    ),
    "a column of another type": (
        lambda card: described(card, lambda v: column(v, "popularity").update(dataType="sc:Integer")),
        "croissant-type",
    ),
    "a wrong hash": (
        lambda card: described(card, lambda v: first_file(v).update(sha256="0" * 64)),
        "hash-differs",
    ),
    "a file that is not there": (lambda card: (card / "data/cspace/cuisine.parquet").unlink(), "file-missing"),
    "a described file that is not there": (
        lambda card: described(card, lambda v: first_file(v).update(contentUrl="data/cspace/more.parquet")),
        "file-missing",
    ),
    "a path upwards": (
        lambda card: described(card, lambda v: first_file(v).update(contentUrl="../cspace/cuisine.parquet")),
        "path-leaves",
    ),
    "a path from the root": (
        lambda card: described(card, lambda v: first_file(v).update(contentUrl="/etc/passwd")),
        "path-leaves",
    ),
    "a pattern upwards": (
        lambda card: described(card, lambda v: v["distribution"][3].update(includes="../*/*.parquet")),
        "path-leaves",
    ),
    "a record set less": (lambda card: described(card, lambda v: v["recordSet"].pop(0)), "croissant-column"),
    "a size": (lambda card: described(card, lambda v: first_file(v).update(contentSize="1 B")), "size-differs"),
    "a licence": (lambda card: described(card, lambda v: v.update(license="MIT")), "croissant-differs"),
}

OTHERS: dict[str, tuple[Corruption, str]] = {
    "a list that is said to be none": (
        lambda card: described(card, lambda v: column(v, "path").update(isArray=False)),
        "croissant-type",
    ),
    "a number in a generated block": (
        lambda card: edited(card, "README.md", r"\| `cspace` \| 4 \|", "| `cspace` | 5 |"),
        "block-edited",
    ),
    "a block taken out": (
        lambda card: edited(card, "DATASHEET.md", r"<!-- generated: drops -->", "<!-- drops -->"),
        "block-edited",
    ),
    "a sentence around the blocks": (
        lambda card: edited(card, "DATA_CARD.md", r"What the tests say about motivation\.", "The best data."),
        "page-edited",
    ),
    "a path in the header": (
        lambda card: edited(card, "README.md", r"path: data/cspace", "path: ../cspace"),
        "path-leaves",
    ),
    "a hand-written field made empty": (
        lambda card: edited(card, "hand/card.yaml", r"tests@example.org", '""'),
        "hand-empty",
    ),
    "a hand-written section marked": (
        lambda card: edited(card, "hand/card.md", r"What the tests say about known biases", "FILL IN"),
        "hand-empty",
    ),
    "a hand-written file that is no YAML": (
        lambda card: edited(card, "hand/card.yaml", r"name: small", "name: [small"),
        "hand-unreadable",
    ),
    "a count in facts.json": (lambda card: edited(card, "facts.json", r'"NG": 2', '"NG": 3'), "count-differs"),
    "a count of the manifest": (
        lambda card: edited(card, "manifest.json", r'"cspace": 4', '"cspace": 5'),
        "count-differs",
    ),
    "rows taken out": (shorter_table, "count-differs"),
    "a column renamed": (renamed_column, "table-unreadable"),
    "a flipped bit": (flipped_bit, "hash-differs"),
    "a file more": (lambda card: (card / "notes.txt").write_text("mine"), "file-extra"),
    "a table more": (
        lambda card: (card / "data/cspace/zz.parquet").write_bytes((card / "data/cspace/cuisine.parquet").read_bytes()),
        "file-extra",
    ),
    "a link to a file outside": (link_outside, "link"),
    "a link to a folder outside": (folder_link, "link"),
    "a checksum of a file above": (
        lambda card: appended(card, f"{'0' * 64}  ../secret\n"),
        "path-leaves",
    ),
    "a line that is no checksum": (
        lambda card: appended(card, "all is well\n"),
        "sums-unreadable",
    ),
    "no checksums": (lambda card: (card / "SHA256SUMS").unlink(), "file-missing"),
    "no page": (lambda card: (card / "DATASHEET.md").unlink(), "file-missing"),
    "no description": (lambda card: (card / CROISSANT).unlink(), "file-missing"),
    "a description that is no JSON": (lambda card: (card / CROISSANT).write_text("{"), "croissant-unreadable"),
    "a description that is a list": (lambda card: (card / CROISSANT).write_text("[]"), "croissant-unreadable"),
    "a broken manifest": (
        lambda card: next((card / "manifests").glob("02-*/manifest.json")).write_text("{"),
        "manifest-unreadable",
    ),
    "counts of search results": (counts_of_results, "raw-count"),
    "a long passage": (passage, "long-prose"),
    "a key": (
        lambda card: edited(card, "hand/card.md", "What the tests say", "sk-proj-abcdEFGH1234ijklMNOP5678 says"),
        "secret",
    ),
}


def test_a_sound_card_has_no_findings(card: Path) -> None:
    assert check_card(card) == ()


@pytest.mark.parametrize("name", [*ACCEPTED_BY_OTHERS, *OTHERS])
def test_a_corruption_is_found(card: Path, name: str) -> None:
    corrupt, code = {**ACCEPTED_BY_OTHERS, **OTHERS}[name]
    corrupt(card)
    findings = check_card(card)
    assert code in {finding.code for finding in findings}, findings
    assert exit_code(findings) == (4 if any(CODES[finding.code].damage for finding in findings) else 1)
    missing = [finding.file for finding in findings if finding.code == "file-missing" and finding.file != CROISSANT]
    assert len(missing) == len(set(missing)), "one thing is told once"
    assert all(finding.fix and finding.expected and finding.found and finding.file for finding in findings)


def test_nothing_is_read_through_a_link(card: Path) -> None:
    (card / "data/cspace/endless.parquet").symlink_to("/dev/zero")
    assert {finding.code for finding in check_card(card)} == {"link"}
