"""What people mark in scenes, counted once more: what each image shows, and which references matter to them."""

import itertools
import json
import math
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from culturekit.verify.findings import Ledger
from culturekit.verify.run_tree import FinishedStage, RunTree
from culturekit.verify.scores.averages import Answer
from culturekit.verify.scores.people_answers import RECRUITMENT
from culturekit.verify.scores.score_rows import SCORES_FILE, compare_row
from culturekit.verify.tables.index_vectors import vectors_of

__all__ = ["check_marks"]

TABLE = "annotations.parquet"
KINDS = ("background", "objects", "attire", "interaction", "spatial")
NEAR = 1e-5
"""How far from the threshold a similarity may lie so that rounding decides."""

Phrases: TypeAlias = Mapping[str, set[str]]
"""Phrases by kind."""


@dataclass(frozen=True, slots=True)
class Forms:
    """What those say who read along at home: the value, or the text, of an answer by item, person and question."""

    said: Mapping[tuple[str, str, str], Any]

    def people(self, item: str) -> list[str]:
        """Name who filled in the form about an item."""
        return sorted(who for about, who, question in self.said if about == item and question == "faith")

    def yes(self, item: str, who: str, question: str) -> float:
        """Give 1 for what somebody ticks."""
        return float(self.said.get((item, who, question), 0.0))


def check_marks(tree: RunTree, stage: FinishedStage, rows: Sequence[dict[str, Any]], ledger: Ledger) -> None:
    """Recompute what each image shows to most people, and which share of the references of each country matters."""
    paths = tree.inputs_of(stage)
    if paths is None:
        ledger.not_verifiable(stage.name, rows, "the answers are not here")
        return
    said = {}
    for one in pl.read_parquet(paths["annotations"]).to_dicts():
        if one["in_region"] and all(flag.startswith(RECRUITMENT) for flag in one["flags"]):
            number = one["text"] if one["criterion"] == "other" else one["value"]
            said[one["item_id"], one["annotator"], one["criterion"]] = number
    forms, items = Forms(said), pl.read_parquet(paths["items"]).to_dicts()
    asked: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in pl.read_parquet(paths["descriptors"]).to_dicts():
        asked[one["prompt_id"]][kind_of(one["dimension"])].add(plain(one["token"]))
    check_relevant(stage, rows, forms, items, asked, ledger)
    check_shown(stage, forms, items, asked, paths, ledger)


def check_relevant(
    stage: FinishedStage, rows: Sequence[dict[str, Any]], forms: Forms, items: Sequence[Mapping[str, Any]],
    asked: Mapping[str, Phrases], ledger: Ledger,
) -> None:  # fmt: skip
    """Hold the share of references that matter against the answers; what nobody ticks counts as 0."""
    marks: dict[str | None, list[float]] = defaultdict(list)
    for item in items:
        wanted = set(itertools.chain.from_iterable(asked[item["prompt_id"]].values()))
        for who in forms.people(item["item_id"]):
            own = [forms.yes(item["item_id"], who, f"relevant/{phrase}") for phrase in
                   set(item["descriptors"]) if phrase in wanted]  # fmt: skip
            marks[item["country"]] += own
            marks[None] += own
    how = "from the answers: the share of references that are marked as relevant"
    for row in rows:
        own = marks.pop(row["country"], [])
        value = math.fsum(own) / len(own) if own else math.nan
        compare_row(stage.name, row, Answer(value, math.nan, math.nan), len(own), how, ledger)
    for country in marks:
        ledger.broken("scores", f"{stage.name}/{SCORES_FILE}", "a country is missing", expected=str(country))


def check_shown(
    stage: FinishedStage, forms: Forms, items: Sequence[Mapping[str, Any]], asked: Mapping[str, Phrases],
    paths: Mapping[str, Path], ledger: Ledger,
) -> None:  # fmt: skip
    """Hold ALIGN, HAL and FAITH of each image and person against the ticks, and ratings against what went in."""
    about = json.loads(pl.read_parquet(paths["scores"]).filter(pl.col("metric") == "align")["params"][0])
    ids, vectors = vectors_of(paths["phrase-vectors"].parent)
    known = {plain(one): row.astype(np.float64) / np.linalg.norm(row) for one, row in zip(ids, vectors, strict=True)}
    stated = {(one["item_id"], one["annotator"], one["criterion"]): one["text"] if one["criterion"] == "other" else
              one["value"] for one in pl.read_parquet(stage.folder / TABLE).to_dicts()}  # fmt: skip
    expected = {key: (value, value) for key, value in forms.said.items() if "/" not in key[2]}
    for item in items:
        people = forms.people(item["item_id"])
        wanted = {kind: phrases for kind, phrases in asked[item["prompt_id"]].items() if kind in KINDS}
        if not people or not wanted:
            continue
        listed, more = shown_to_most(item, people, forms)
        pairs = [shares(listed, more, wanted, known, about["tau"] + off, about["aggregate"]) for off in (-NEAR, NEAR)]
        for who in people:
            exag = (forms.said[item["item_id"], who, "exag"] - 1) / 4
            found = [(align, hal, (align + 1 - hal + 1 - exag) / 3) for align, hal in pairs]
            for name, (one, other) in zip(("align", "hal", "faith"), zip(*found, strict=True), strict=True):
                expected[item["item_id"], who, f"{name}_marked"] = (min(one, other), max(one, other))
    for key in sorted(stated.keys() | expected.keys()):
        ledger.count("marks counted again")
        ends, value = expected.get(key), stated.get(key)
        alike = ends is not None and key in stated and (
            value == ends[0] if not isinstance(value, float) else ends[0] - 1e-9 <= value <= ends[1] + 1e-9
        )  # fmt: skip
        if not alike:
            ledger.broken(
                "marks", f"{stage.name}/{TABLE} ({', '.join(key)})", "is not what people marked", expected=str(ends),
                found=str(value),
            )  # fmt: skip


def shown_to_most(
    item: Mapping[str, Any], people: Sequence[str], forms: Forms
) -> tuple[dict[str, set[str]], dict[str, int]]:
    """Gather by kind what more than half of the people tick, and count what so many name besides."""
    listed: dict[str, set[str]] = defaultdict(set)
    for phrase, kind in zip(item["descriptors"], item["dimensions"], strict=True):
        if 2 * math.fsum(forms.yes(item["item_id"], who, f"shown/{phrase}") for who in people) > len(people):
            listed[kind_of(kind)].add(plain(phrase))
    named: dict[tuple[str, str], set[str]] = defaultdict(set)
    for who in people:
        for part in str(forms.said.get((item["item_id"], who, "other")) or "").split(";"):
            kind, colon, phrase = part.partition(":")
            if colon and kind_of(kind) in KINDS:
                named[kind_of(kind), plain(phrase.partition(":")[0])].add(who)
    more: dict[str, int] = defaultdict(int)
    for (kind, _), whose in named.items():
        more[kind] += 2 * len(whose) > len(people)
    return listed, more


def shares(
    listed: Phrases, more: Mapping[str, int], wanted: Phrases, known: Mapping[str, Any], tau: float, aggregate: str
) -> tuple[float, float]:
    """Give the share of what is wanted that is shown, and of what is shown that nothing asks for."""
    cells = list(counted(listed, more, wanted, known, tau))
    if aggregate == "pooled":
        cells = [tuple(map(sum, zip(*cells, strict=True)))]  # type: ignore[list-item]
    align = math.fsum(covered / asked for covered, asked, _, _ in cells) / len(cells)
    return align, math.fsum(wrong / max(said, 1) for _, _, wrong, said in cells) / len(cells)


def counted(
    listed: Phrases, more: Mapping[str, int], wanted: Phrases, known: Mapping[str, Any], tau: float
) -> Iterator[tuple[int, int, int, int]]:
    """Count by kind what is covered, what was wanted, what is wrong, and what is shown."""
    for kind, phrases in wanted.items():
        here, others = listed.get(kind, set()), more.get(kind, 0)
        near = {(one, each): float(known[one] @ known[each]) >= tau for one in phrases for each in here}
        covered = sum(any(near[one, each] for each in here) for one in phrases)
        wrong = sum(not any(near[one, each] for one in phrases) for each in here)
        yield covered, len(phrases), wrong + others, len(here) + others


def kind_of(written: str) -> str:
    """Give the one name of a kind."""
    name = plain(written)
    return "background" if name == "setting" else name


def plain(phrase: str) -> str:
    """Write a phrase in small letters and single spaces."""
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", phrase).casefold())
    return " ".join(folded.split())
