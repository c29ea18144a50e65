"""What each metric is: range, direction, source, and what a reader may get wrong; and which families have them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import Literal, TypeAlias

Direction: TypeAlias = Literal["higher", "lower", "neither"]


@dataclass(frozen=True, slots=True)
class Metric:
    """The description of a metric, for the command line, the documentation and the report.

    Attributes:
        name: as it stands in the `metric` column of a scores table.
        title: for people.
        formula: in plain text.
        low: the smallest value possible.
        high: the largest value possible.
        direction: whether `higher` or `lower` values are better, or `neither`.
        unit: as it stands in the `unit` column.
        paper: where it was defined.
        inputs: the tables and columns it reads.
        pitfalls: what a reader may get wrong, one sentence or two each.
        licence: of the weights that it needs; empty when it needs none.
    """

    name: str
    title: str
    formula: str
    low: float
    high: float
    direction: Direction
    unit: str
    paper: str
    inputs: tuple[str, ...]
    pitfalls: tuple[str, ...]
    licence: str = ""


def describe(
    name: str,
    title: str,
    formula: str,
    *,
    paper: str,
    inputs: tuple[str, ...],
    pitfalls: tuple[str, ...],
    low: float = 0.0,
    high: float = 1.0,
    direction: Direction = "neither",
    unit: str = "share",
    licence: str = "",
) -> Metric:
    """Describe a metric: a share, of which neither more nor less is better, unless said otherwise."""
    return Metric(name, title, formula, low, high, direction, unit, paper, inputs, pitfalls, licence)


UNBOUNDED = float("inf")

# What is said of `inputs` by metrics of values
VALUES_READ = "values: metric, model, benchmark, concept, country, group, params, item, prompt_id, value"

# A pitfall of every comparison
CORRECTION = (
    "params.p_corrected is the p value to read: it is corrected for params.family comparisons. An interval is not "
    "corrected; it speaks of its own row."
)

# The families by the names of their commands, in the order of the help
FAMILIES = {
    "qvs": "culturekit.scores.qvs:qvs",
    "ahead": "culturekit.recipes.cultivate.scores:ahead",
    "c3": "culturekit.recipes.c3.scores:c3",
    "compare": "culturekit.scores.compare:compare",
    "stability": "culturekit.scores.stability:stability",
    "routes": "culturekit.scores.routes:routes",
    "gaps": "culturekit.scores.gaps:gaps",
    "meta": "culturekit.scores.meta:meta",
    "agreement": "culturekit.scores.agreement:agreement",
    "audit-sample": "culturekit.scores.audited:draw_audit_sample",
    "audited": "culturekit.scores.audited:audited",
    "judged": "culturekit.scores.judged:judged",
    "distribution": "culturekit.scores.distribution:distribution",
    "task1": "culturekit.recipes.inclusion.scores:task1",
    "task2": "culturekit.recipes.inclusion.scores:task2",
    "survey": "culturekit.recipes.inclusion.scores:survey",
    "tones": "culturekit.recipes.linguistic.tones:tones",
    "dialects": "culturekit.recipes.linguistic.scores:dialects",
    "neutral": "culturekit.recipes.linguistic.scores:neutral",
    "question-pairs": "culturekit.recipes.linguistic.scores:question_pairs",
    "ranks": "culturekit.scores.compare:ranks",
    "ratings": "culturekit.scores.ratings:ratings",
    "realism": "culturekit.scores.realism:realism",
    "clip": "culturekit.scores.clip:clip",
    "questions": "culturekit.scores.faithfulness:questions",
    "pairs": "culturekit.scores.spread:pairs",
    "spread": "culturekit.scores.spread:spread",
    "within": "culturekit.scores.within:within",
}

_KNOWN: dict[str, Metric] = {}  # The metrics of the families that are imported


def register(*metrics: Metric) -> None:
    """Make metrics known as soon as their family is imported."""
    _KNOWN.update((metric.name, metric) for metric in metrics)


class _Catalog(Mapping[str, Metric]):
    """Every metric by its name; families are imported only for names that none of those at work knows."""

    def __getitem__(self, name: str) -> Metric:
        return _KNOWN[name] if name in _KNOWN else self._all[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @cached_property
    def _all(self) -> Mapping[str, Metric]:
        """Import every family."""
        for where in FAMILIES.values():
            import_module(where.partition(":")[0])
        return dict(sorted(_KNOWN.items()))


CATALOG: Mapping[str, Metric] = _Catalog()  # Every metric by the name it has in a scores table

# What scorers of quality can say, by how their names begin: clarity, and a cosine.
SCALES = {"embedded": (0.0, 1.0), "hpsv2": (-1.0, 1.0)}


def scale_of(scorer: str) -> tuple[float, float] | None:
    """Give the smallest and the largest quality that a scorer can say; None where nobody knows."""
    return next((ends for name, ends in SCALES.items() if scorer.startswith(name)), None)
