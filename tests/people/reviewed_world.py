"""Real candidates, many times over, of which it is known what belongs: how often a judge errs is dialled."""

import json
import re
from collections.abc import Callable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.core.schemas import CANDIDATES
from culturekit.core.tables import read_table, write_table
from culturekit.kg.countries import by_qid, countries
from tests.chromium import Tab

UNDECIDED, REMOVED = 0.1, 0.3
WRONG = {"keep": 0.06, "remove": 0.1}
WHY = {"keep": "known there", "remove": "a brand", "review": "too little is said of it"}
SHOWN = re.compile(r"^(.* \d+) \((.*?)\)(?::|$)")


def lot(*about: object) -> float:
    """Draw a number below one, always the same for the same thing."""
    return int.from_bytes(blake2b(repr(about).encode(), digest_size=6).digest(), "big") / 2**48


def verdict_on(name: str, country: str) -> str:
    drawn = lot("verdict", name, country)
    return "review" if drawn < UNDECIDED else "remove" if drawn < UNDECIDED + REMOVED else "keep"


def belongs(name: str, country: str, kind: str) -> bool:
    """Say the truth; of what the judge leaves open, nearly all or nearly nothing of a class belongs."""
    verdict, drawn = verdict_on(name, country), lot("truth", name, country)
    if verdict == "review":
        return (drawn < 0.03) != (lot("class", kind) < 0.5)
    return (drawn < WRONG[verdict]) != (verdict == "keep")


def answer(question: Any) -> str | None:
    """Judge as dialled; the probe of a server is left to it."""
    if "country" not in question.data:
        return None
    name, country = question.data["label"], question.data["country"]
    verdict = verdict_on(name, country)
    sure = 55 if verdict == "review" else 60 + int(40 * lot("sure", name, country))
    return json.dumps({"why": WHY[verdict], "verdict": verdict, "confidence": sure})


def replicated(candidates: Path, size: int, folder: Path) -> Path:
    """Write a table of real candidates so many times over, with names and items of their own."""
    rows = read_table(candidates, CANDIDATES)
    copies = pl.DataFrame({"copy": range(-(-size // rows.height))}, schema={"copy": pl.Int64})
    table = copies.join(rows, how="cross").head(size).with_row_index("number")
    table = table.with_columns(
        qid=pl.format("Q{}", pl.lit(900_000_000) + pl.col("number")),
        label=pl.format("{} {}", pl.coalesce("label", pl.lit("thing")), "number"),
    )
    return write_table(folder, CANDIDATES, table.select(rows.columns).sort(CANDIDATES.key))


def truth_of(candidates: Path) -> pl.DataFrame:
    """Say of every candidate and country whether it belongs: name, concept, qid, country by code and in words."""
    rows = read_table(candidates, CANDIDATES)
    kind = pl.coalesce(pl.concat_list("p31", "p279").list.first(), pl.lit("–"))
    table = rows.select("concept", "qid", "label", kind=kind, country="country_qids").explode("country")
    codes = {qid: known.iso for qid, known in by_qid().items()}
    table = table.with_columns(pl.col("country").replace(codes)).unique(maintain_order=True)
    named = pl.Series([countries()[iso].name if iso in countries() else iso for iso in table["country"]])
    columns = zip(table["label"], named, table["kind"], strict=True)
    return table.with_columns(place=named, truth=pl.Series([float(belongs(*each)) for each in columns]))


def decision_on(shown: str, truth: Mapping[tuple[str, str], float]) -> str:
    """Decide about a group by those of it that are shown, as a person does who knows them."""
    seen = [truth[found[1], found[2]] for line in shown.splitlines() if (found := SHOWN.match(line))]
    share = sum(seen) / len(seen)
    return "accept" if share >= 0.8 else "reject" if share <= 0.2 else "open"


def decide_in_browser(page: Tab, address: str, name: str, decide: Callable[[str], str], *, most: int) -> int:
    """Open the address, say who one is, and answer so many pages, sheet after sheet; give how many there were."""
    page.go(address)
    page.run(f"document.getElementById('annotator').value = {name!r}")
    page.run("document.querySelector('#begin button').click()")
    page.until("document.getElementById('start').hidden")
    field = "[...document.querySelectorAll('#questions .shown')].find((one) => one.textContent.startsWith('Some of'))"
    for number in range(most):
        if page.run("!document.getElementById('end').hidden"):
            page.run("document.getElementById('more').click()")
            page.until("!document.getElementById('work').hidden || document.getElementById('more').hidden")
            if page.run("document.getElementById('more').hidden"):
                return number
        word = decide(page.run(f"{field}.lastChild.textContent"))
        before = page.run("document.getElementById('heading').textContent")
        page.run(f"document.querySelector('#questions input[value=\"{word}\"]').click()")
        page.run("document.getElementById('next').click()")
        page.until(
            f"document.getElementById('heading').textContent !== {before!r} || !document.getElementById('end').hidden"
            " || document.getElementById('problem').textContent"
        )
    return most
