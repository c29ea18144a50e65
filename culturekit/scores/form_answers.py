"""Which answers a form offered: what people answered, and what is said of it, is held against that."""

import logging
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import polars as pl

from culturekit.core.digests import read_manifest
from culturekit.core.errors import CultureKitError, NothingScored, UsageError, argument_error
from culturekit.core.package_data import shipped, shipped_names
from culturekit.core.schemas import ANNOTATIONS
from culturekit.core.tables import read_table
from culturekit.core.yaml_source import read_yaml
from culturekit.metrics.realism.clip_scores import YesBucket
from culturekit.scores.catalog import CATALOG
from culturekit.scores.score_rows import Row

Ends: TypeAlias = tuple[float | None, float | None]
"""The lowest and the highest rating that people could give; none where that is not known."""

NO_ENDS: Ends = (None, None)

Offered: TypeAlias = Mapping[str, Sequence[str]]
"""The answers to each question, in order."""

logger = logging.getLogger(__name__)

SHIPPED = "people/schemes"


def read_answers(annotations: Path, *, stated: Ends = NO_ENDS) -> pl.DataFrame:
    """Read what people answered; a rating off the scale of its form is refused.

    The form stands beside answers that were imported, or is one of ours, by the name of its scheme. Where neither it
    nor anybody else states the scale, it is said which ratings are taken as they are.
    """
    table, beside, known = read_table(annotations, ANNOTATIONS), offered_beside(annotations), dict[str, Offered]()
    for scheme, criterion in table.select("scheme", "criterion").unique().sort("scheme", "criterion").iter_rows():
        form = beside or known.setdefault(scheme, offered_by(scheme))
        rated = table.filter(scheme=scheme, criterion=criterion)
        where, ends = f"{annotations}, {criterion} of {scheme}", scale_of(form.get(criterion, ()))
        check_on_scale(rated, ends, where=where)
        given = rated["value"].filter(rated["value"].is_finite()).unique().to_list()
        if NO_ENDS == ends == stated and not set(given) <= {0.0, 1.0}:
            said = "%s: no form tells the scale; ratings from %g to %g count as they are"
            logger.warning(said, where, min(given), max(given))
    return table


def check_on_scale(answers: pl.DataFrame, ends: Ends, *, where: str = "") -> None:
    """Refuse a rating below the lowest or above the highest that people could give, where these are known."""
    lowest, highest = ends
    if lowest is None or highest is None:
        return
    off = answers.filter(pl.col("value").is_finite(), ~pl.col("value").is_between(lowest, highest))
    if off.height:
        row = off.sort(ANNOTATIONS.key).row(0, named=True)
        raise UsageError(
            f"{off.height:,} ratings lie off their scale", where=where, expected=f"from {lowest:g} to {highest:g}",
            found=f"{row['value']:g} for {row['criterion']}, by {row['annotator']!r} of {row['item_id']!r}",
            hint="Mend these, or take them out.",
        )  # fmt: skip


def check_ends(ends: Ends) -> None:
    """Refuse a scale with one end, and one that is upside down."""
    lowest, highest = ends
    if (lowest is None) != (highest is None):
        raise argument_error("lowest and highest", "both, or none", ends)
    if lowest is not None and highest is not None and not lowest < highest:
        raise argument_error("lowest", "below highest", ends)


def check_offered(annotations: Path, criterion: str, choice: str | None, ends: Ends) -> None:
    """Refuse another scale than that of the form, and a choice that it did not offer: these would shift means.

    What the form offered stands, in order, beside the answers that were imported; of others it is not known.
    """
    offered = offered_beside(annotations).get(criterion, ())
    if not offered:
        return
    if choice is not None and choice not in offered:
        raise UsageError(
            "the form did not offer the choice that is to count 1", expected=" or ".join(offered), found=repr(choice)
        )
    lowest, highest = ends
    if lowest is not None and [f"{lowest:g}", f"{highest:g}"] != [offered[0], offered[-1]]:
        raise UsageError(
            "the scale that is stated is not the form's",
            expected=f"the ends of {', '.join(offered)}",
            found=f"from {lowest:g} to {highest:g}",
        )


def common_range(metric: str) -> tuple[float, float]:
    """Give the range of a metric that people can be asked about."""
    if metric not in CATALOG:
        raise UsageError("a metric of another package has no range that is known here", found=metric)
    low, high = CATALOG[metric].low, CATALOG[metric].high
    if math.isinf(low) and math.isinf(high):
        raise UsageError("a metric on the scale of its scorer has none in common with people", found=metric)
    return low, high


def offered_beside(annotations: Path) -> Offered:
    """Give the answers to each question of the form that stands beside answers; nothing where none does."""
    manifest = read_manifest(annotations.parent)
    answers = {} if manifest is None else manifest.notes.get("answers", {})
    return answers if isinstance(answers, Mapping) else {}


def offered_by(scheme: str) -> Offered:
    """Give the ends of each scale of a form of ours; nothing of other forms."""
    if scheme not in shipped_names(SHIPPED, ".yaml"):
        return {}
    form: Any = read_yaml(shipped(f"{SHIPPED}/{scheme}.yaml")).value
    return {one["name"]: (one["low"], one["high"]) for one in form["criteria"] if one["type"] == "scale"}


def scale_of(offered: Sequence[str]) -> Ends:
    """Read the ends of a scale; answers in words have none."""
    try:
        return (float(offered[0]), float(offered[-1])) if offered else NO_ENDS
    except ValueError:
        return NO_ENDS


# Why numbers could not be had: counted by reason, with the first case of each told whole.


class Refusals:
    """Gathers what was refused, case by case."""

    def __init__(self) -> None:
        """Begin with nothing refused."""
        self.counts: Counter[str] = Counter()
        self.cases: dict[str, str] = {}
        self.hint = ""

    def note(self, error: CultureKitError, *whose: str | None) -> None:
        """Count a refusal; `whose` numbers it concerns is said of the first of its kind."""
        self.counts[error.problem] += 1
        said = [f"expected {error.expected}" if error.expected else "", f"found {error.found}" if error.found else ""]
        case = ": ".join(filter(None, (", ".join(filter(None, (*whose, error.where))), ", ".join(filter(None, said)))))
        self.cases.setdefault(error.problem, f"{error.problem} ({case})" if case else error.problem)
        self.hint = self.hint or error.hint

    def left_out(self, prefix: str) -> dict[str, int]:
        """Count by reason, as manifests do."""
        return {f"{prefix}{self.cases[why]}": self.counts[why] for why in sorted(self.counts)}

    def refusal(self, problem: str, counted: Callable[[int], str], *, expected: str = "") -> NothingScored:
        """Say that nothing could be had, with every reason."""
        found = "; ".join(f"{self.cases[why]}: {counted(self.counts[why])}" for why in self.counts)
        return NothingScored(problem, expected=expected, found=found or "nothing", hint=self.hint)


# Answers of people that say yes or no, and how often they say yes, as rows.

YES, NO = ("yes", "y", "true", "1"), ("no", "n", "false", "0")


def yes_or_no() -> pl.Expr:
    """Read an answer from the value (1 or 0) or the choice (yes or no); null for anything else."""
    choice = pl.col("choice").str.strip_chars().str.to_lowercase()
    return (
        pl.when(pl.col("value").is_in([0.0, 1.0]))
        .then(pl.col("value") == 1)
        .when(choice.is_in(YES))
        .then(statement=True)
        .when(choice.is_in(NO))
        .then(statement=False)
        .otherwise(None)
    )


def bucket_row(bucket: YesBucket) -> Row:
    """Write a bucket; a limit that is not known is null."""
    return {
        "low": bucket.low,
        "score": bucket.score,
        "rate": bucket.rate,
        "ci_low": None if np.isnan(bucket.ci_low) else bucket.ci_low,
        "ci_high": None if np.isnan(bucket.ci_high) else bucket.ci_high,
        "images": bucket.images,
        "answers": bucket.answers,
    }
