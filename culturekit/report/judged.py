"""What judges say beside what it is once people have put them right."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from culturekit.metrics.scoring.value_sets import parsed
from culturekit.report.faithfulness_judges import title_of
from culturekit.report.figures import Figure, figure_in
from culturekit.report.run_folders import RunFolders
from culturekit.stages import roles

__all__ = ["JudgedLine", "JudgedScores", "judged_in"]

PLACES = ("concept", "country", "group")


@dataclass(frozen=True, slots=True)
class JudgedLine:
    """A score as the judge has it, and put right by a pool of people.

    Attributes:
        model: whose images.
        place: concept, country or group; `all` for all images.
        title: of the metric.
        judge: who judged.
        judged: what the judge alone says.
        corrected: what people would say of all images.
        people: how many images they marked.
        trust: how far the judge counts, from 0 to 1.
        pool: of the people.
        marked: what a reader must know of their answers.
    """

    model: str
    place: str
    title: str
    judge: str
    judged: Figure
    corrected: Figure
    people: int
    trust: float
    pool: str
    marked: str


@dataclass(frozen=True, slots=True)
class JudgedScores:
    """All of them, what people were asked, and what could not be put right, counted by reason."""

    lines: tuple[JudgedLine, ...]
    question: str
    left_out: Mapping[str, int]


def judged_in(run: RunFolders, models: Sequence[str]) -> JudgedScores | None:
    """Read the scores that people put right; None for a run in which nobody was to."""
    scores = run.numbered(roles.JUDGED)
    if scores is None:
        return None
    manifest = run.manifest(roles.JUDGED)
    rows = [{**row, "about": parsed(row["params"])} for row in scores.to_dicts()]
    lines = sorted(lines_of(rows), key=lambda line: (line.title, line.judge, line.place != "all", line.place))
    shown = tuple(line for model in models for line in lines if line.model == model)
    asked = " ".join(str(manifest.options[name]) for name in ("criterion", "choice") if manifest.options.get(name))
    return JudgedScores(shown, asked, dict(manifest.drops))


def lines_of(rows: Sequence[Mapping[str, Any]]) -> Iterator[JudgedLine]:
    """Put each corrected score beside what its judge says alone."""
    alone = {key_of(row): row for row in rows if row["about"]["labels"] == "judged"}
    for row in rows:
        about = row["about"]
        if about["labels"] != "corrected":
            continue
        judge = str(about.get("judge") or about.get("scorer") or "")
        place = ", ".join(row[name] for name in PLACES if row[name])
        yield JudgedLine(
            row["model"], place or "all", title_of(row["metric"], judge), judge,
            figure_in(alone[key_of(row)]), figure_in(row), about["people"], about["trust"], about["pool"],
            ", ".join(about.get("marked", ())),
        )  # fmt: skip


def key_of(row: Mapping[str, Any]) -> tuple[object, ...]:
    """Name the score that a row is about, whoever says it."""
    about = row["about"]
    own = {name: value for name, value in about.items() if name not in OF_PEOPLE}
    return (row["metric"], row["model"], *(row[name] for name in PLACES), repr(sorted(own.items())))


OF_PEOPLE = frozenset(("labels", "criterion", "pool", "pools_by", "people", "trust", "choice", "marked"))
