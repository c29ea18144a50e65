"""From coded responses to a survey to themes: which ones coders agree on, and who mentions them."""

import math
from dataclasses import dataclass

import polars as pl

from culturekit.metrics.inclusion.survey_themes import CODERS, LEAST_KAPPA, survey_themes
from culturekit.metrics.scoring.image_collections import checked
from culturekit.metrics.scoring.prompted_images import Place, value_rows
from culturekit.metrics.scoring.scored import Row, Scored, scored
from culturekit.metrics.scoring.value_sets import statistic_row
from culturekit.metrics.statistics.intervals import Interval
from culturekit.metrics.statistics.proportions import proportion_interval
from culturekit.records.schemas import SURVEY_CODES

__all__ = ["RESPONDENTS", "SurveyOptions", "score_survey"]

RESPONDENTS = "people"
"""What stands in the column model: no model's pictures are scored here."""


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """What to score, and how.

    Attributes:
        least: the Fleiss' kappa that a code must reach.
        coders: how many coders read each response.
        confidence: of the intervals.
        benchmark: the name under which the scores stand.
    """

    least: float = LEAST_KAPPA
    coders: int = CODERS
    confidence: float = 0.95
    benchmark: str = "inclusion"


def score_survey(codes: pl.DataFrame, *, options: SurveyOptions) -> Scored:
    """Score the kappa of every code, and for those kept the share of responses by topic and location.

    Raises:
        UsageError: the table does not conform, or a response was not read by all coders.
    """
    themes = survey_themes(checked(codes, SURVEY_CODES), least=options.least, coders=options.coders)
    responses = codes["response_id"].n_unique()
    rows: list[Row] = []
    values: list[Row] = []
    for code in themes.kappas.drop_nulls("kappa").iter_rows(named=True):
        params = {"code": code["code"], "kept": code["kept"], "coders": options.coders}
        answer = Interval(code["kappa"], math.nan, math.nan, responses, "these")
        rows.append(kappa_row(answer, params, options))
    for cell in themes.votes.sort("topic", "location", "code", "response_id").partition_by(
        "topic", "location", "code", maintain_order=True
    ):
        head = cell.row(0, named=True)
        about = {"topic": head["topic"], "code": head["code"], "least": options.least}
        answer = proportion_interval(int(cell["present"].sum()), cell.height, confidence=options.confidence)
        rows.append(
            statistic_row(
                "theme_share", model=RESPONDENTS, benchmark=options.benchmark, answer=answer, params=about,
                group=head["location"],
            )
        )  # fmt: skip
        place = Place("theme_share", RESPONDENTS, options.benchmark, head["location"])
        marked = cell.select("response_id", pl.lit(None, pl.String), pl.col("present").cast(pl.Float64))
        values += value_rows(marked.iter_rows(), place, about)
    unkept = themes.kappas.filter(~pl.col("kept")).height
    return scored(rows, values, left_out={"codes that coders do not agree on": unkept} if unkept else {})


def kappa_row(answer: Interval, params: dict[str, object], options: SurveyOptions) -> Row:
    """Make the row of one code's kappa."""
    why = {"no_interval": "kappa decides which codes are kept, and is given as it is"}
    return statistic_row(
        "theme_kappa", model=RESPONDENTS, benchmark=options.benchmark, answer=answer, params={**params, **why}
    )
