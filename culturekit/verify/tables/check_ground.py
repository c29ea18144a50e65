"""Activities against the pages that they are from, prompts against activities, descriptors against proposals."""

import unicodedata
from collections import defaultdict
from typing import Any

import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree

__all__ = ["check_activities", "check_activity_prompts", "check_descriptors"]

CELL = ("prompt_id", "dimension")


def said(text: str) -> str:
    """Leave out what a reader does not see, and bring the rest to one form."""
    seen = "".join(letter for letter in text if unicodedata.category(letter) != "Cf")
    return " ".join(unicodedata.normalize("NFC", seen).split())


def check_activities(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Find each activity among the mentions, and its quote on its page."""
    where = f"{stage.name}/activities.parquet"
    sources = tree.source(stage, "pages"), tree.source(stage, "mentions")
    if None in sources:
        ledger.note("activities", stage.name, "its pages or mentions are not here")
        return
    pages, mentions = (pl.read_parquet(str(path)) for path in sources)
    texts = {page: said(" ".join(rows["text"])) for (page,), rows in pages.group_by("page_id", maintain_order=True)}
    about = {row["page_id"]: row for row in pages.iter_rows(named=True)}
    found = mentions.filter(outcome="ok").select("country", "category", "name")
    known = set(found.rows())
    for row in pl.read_parquet(stage.folder / "activities.parquet").iter_rows(named=True):
        if row["form"] != "multi-variant":
            continue
        page, name = about.get(row["page_id"]), repr(row["activity"])
        names = [(row["country"], row["category"], each) for each in (row["activity"], *row["also"])]
        if not set(names) <= known:
            ledger.broken("activities", where, f"no page names {name}, or a name it is said to have")
        if page is None or any(page[key] != row[key] for key in ("country", "url", "title", "revision")):
            ledger.broken("activities", where, f"the page of {name} is another")
        elif not said(row["quote"] or "") or said(row["quote"]) not in texts[row["page_id"]]:
            ledger.broken("activities", where, f"the quote of {name} does not stand on its page", found=row["quote"])
        ledger.count("activities found on their pages")


def check_activity_prompts(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Hold each prompt against the activity that it asks for."""
    where, source = f"{stage.name}/prompts.parquet", tree.source(stage, "activities")
    if source is None:
        ledger.note("prompts", stage.name, "its activities are not here")
        return
    wanted = {row["activity_id"]: row for row in pl.read_parquet(source).iter_rows(named=True)}
    prompts = {row["prompt_id"]: row for row in pl.read_parquet(stage.folder / "prompts.parquet").iter_rows(named=True)}
    if prompts.keys() != wanted.keys():
        ledger.broken("prompts", where, "not one prompt for each activity", expected=len(wanted), found=len(prompts))
    for key in sorted(prompts.keys() & wanted.keys()):
        row, asked = prompts[key], wanted[key]
        begins = f"A photorealistic photo of {asked['activity']} in "
        place = (row["country"], row["concept"], row["activity"])
        if place != (asked["country"], asked["category"], asked["activity"]) or not row["text"].startswith(begins):
            ledger.broken("prompts", where, f"the prompt {key} asks for something else", found=row["text"])
        ledger.count("prompts held against their activities")


def check_descriptors(tree: RunTree, stage: FinishedStage, ledger: Ledger) -> None:
    """Follow each descriptor to those who proposed it, and each proposal to what became of it."""
    where = f"{stage.name}/descriptor_trail.parquet"
    tables = [pl.read_parquet(path) for _, path in tree.sources_of(stage, "proposed_descriptors.parquet")]
    if not tables:
        ledger.note("descriptors", stage.name, "its proposals are not here")
        return
    proposers: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for row in pl.concat(tables).filter(outcome="proposed").iter_rows(named=True):
        proposers[named(row)].add(row["proposer"])
    kept: dict[tuple[str, ...], set[str]] = defaultdict(set)
    told = set()
    for row in pl.read_parquet(stage.folder / "descriptor_trail.parquet").iter_rows(named=True):
        key = named(row)
        if key in proposers and proposers[key] <= set(row["proposers"]):
            told.add(key)
        if row["outcome"] in {"kept", "merged"}:
            kept[row["prompt_id"], row["dimension"], said(row["kept_as"] or "").casefold()] |= set(row["proposers"])
            if proposers.get(key) != set(row["proposers"]):
                ledger.broken("descriptors", where, f"{row['token']!r} was not proposed by those who are named")
    for key in sorted(proposers.keys() - told):
        ledger.broken("descriptors", where, f"what became of the proposal {key[-1]!r} is not said", found=key[0])
    descriptors = pl.read_parquet(stage.folder / "descriptors.parquet")
    listed = {named(row): set(row["proposers"]) for row in descriptors.iter_rows(named=True)}
    for key in sorted(listed.keys() ^ kept.keys()):
        ledger.broken(
            "descriptors", f"{stage.name}/descriptors.parquet", f"{key[-1]!r} is not what was kept", found=key[0]
        )
    for key in sorted(key for key in listed.keys() & kept.keys() if listed[key] != kept[key]):
        ledger.broken(
            "descriptors", f"{stage.name}/descriptors.parquet", f"{key[-1]!r} has other proposers", found=key[0]
        )
    ledger.count("descriptors followed to their proposals", descriptors.height)


def named(row: dict[str, Any]) -> tuple[str, ...]:
    """Give the place of a phrase, however it is written."""
    return (*(row[name] for name in CELL), said(row["token"]).casefold())
