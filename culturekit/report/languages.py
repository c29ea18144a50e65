"""Whether the language of prompts matters: scores in each, their differences, and the words that nobody verified."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import polars as pl
from babel import Locale, UnknownLocaleError

from culturekit.core import roles
from culturekit.core.schemas import SCORES
from culturekit.report.run_folders import Figure, RunFolders, figure_in

NAMES = {"vs": "diversity, VS", "qvs": "quality times diversity, qVS"}


@dataclass(frozen=True, slots=True)
class LanguageLine:
    """A score of a model by prompts in two languages, `first` less `second`; p is corrected."""

    model: str
    metric: str
    concept: str | None
    labels: str
    first: str
    second: str
    sides: tuple[Figure | None, Figure | None]
    gap: Figure
    p: float | None
    prompts: int
    target: str

    @property
    def beyond_chance(self) -> bool:
        """Tell whether the difference is more than chance."""
        return self.p is not None and self.p < 0.05


@dataclass(frozen=True, slots=True)
class Languages:
    """The lines, and of each language which words of its prompts nobody verified: in how many, of how many."""

    lines: tuple[LanguageLine, ...]
    marks: tuple[tuple[str, str, int, int], ...]


def languages_in(run: RunFolders) -> Languages | None:
    """Read what prompts in several languages show; None where they are in one."""
    scores = run.read(roles.LANGUAGES, SCORES)
    if scores is None:
        return None
    prompts = pl.read_parquet(run.table(roles.PROMPTS), columns=["language", "marks"])
    sizes = dict(prompts.group_by("language").len().iter_rows())
    marks = prompts.explode("marks").drop_nulls().group_by("language", "marks").len().sort("language", "marks")
    unverified = tuple((in_english(code), mark, count, sizes[code]) for code, mark, count in marks.iter_rows())
    return Languages(tuple(lines_of(scores, run)), unverified)


def lines_of(scores: pl.DataFrame, run: RunFolders) -> Iterator[LanguageLine]:
    """Give the differences under the kernel that leads, over all concepts where there are several."""
    said = [
        {**row, **json.loads(row["params"]), "kind": row["metric"]} for row in scores.with_row_index("row").to_dicts()
    ]
    means: Mapping[object, Figure] = {
        (*key_of(row), row["group"]): figure_in(row) for row in said if row["kind"] == "group_mean"
    }
    shown = [row for row in said if row["kind"] == "group_gap" and row["of"].get("kernel", run.kernel) == run.kernel]
    shown = [row for row in shown if row["of"].get("labels") != "truth" and row["model"] in run.models]
    over_all = {key_of(row)[1:] for row in shown if row["concept"] is None}
    for row in shown:
        if row["concept"] is None or key_of(row)[1:] not in over_all:
            a, b = row["a"], row["b"]
            yield LanguageLine(
                row["model"], NAMES.get(row["metric"], row["metric"].replace("_", " ")), row["concept"],
                row["of"].get("labels", ""), in_english(a), in_english(b),
                (means.get((*key_of(row), a)), means.get((*key_of(row), b))), figure_in(row), row["p_corrected"],
                row["prompts"], row["target"],
            )  # fmt: skip


def key_of(row: Mapping[str, object]) -> tuple[object, ...]:
    """Name the score that a row speaks of, its concept first."""
    return row["concept"], row["model"], row["metric"], json.dumps(row["of"], sort_keys=True)


def in_english(language: str) -> str:
    """Call a language as CLDR does; its code where that does not know it."""
    try:
        return Locale.parse(language, sep="-").get_display_name("en") or language
    except (UnknownLocaleError, ValueError):
        return language
