"""From coded responses to a survey to themes: which ones coders agree on, and who mentions them."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.declared import kept
from culturekit.core.defaults import CONFIDENCE
from culturekit.core.inputs import roles_of
from culturekit.core.schemas import SURVEY_CODES
from culturekit.core.stage import Stage
from culturekit.core.tables import read_table
from culturekit.core.work import Work
from culturekit.metrics.inclusion.region_rates import CODERS, LEAST_KAPPA, survey_themes
from culturekit.metrics.statistics.intervals import Interval, proportion_interval
from culturekit.scores.family import Confidence, Family, described, family_stage
from culturekit.scores.image_collections import Place, checked
from culturekit.scores.score_rows import Row, Scored, scored, statistic_row, value_rows

RESPONDENTS = "people"
"""What stands in the column model: no model's pictures are scored here."""


@dataclass(frozen=True, slots=True)
class SurveyReads:
    """What coders wrote down."""

    codes: Annotated[Path, Field(description="Table of how coders read the responses.")]


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """What to score, and how."""

    least: Annotated[float, Field(ge=-1, le=1, description="Fleiss' kappa that a code must reach.")] = LEAST_KAPPA
    coders: Annotated[int, Field(ge=3, description="How many coders read each response; an odd number.")] = CODERS
    confidence: Confidence = CONFIDENCE
    benchmark: str = "inclusion"


def survey(given: SurveyReads, options: SurveyOptions, *, name: str = "scores") -> Stage:
    """Score the themes of a survey.

    Coders' agreement, and who mentions what.
    """

    def score(_: Work) -> Scored:
        return score_survey(read_table(given.codes, SURVEY_CODES), options=options)

    return family_stage("survey", roles_of(given), kept(options), score, version=2, name=name)


SURVEY = Family(
    survey,
    metrics=described("theme_kappa theme_share"),
    example="--codes survey_codes.parquet --out scores",
)


def score_survey(codes: pl.DataFrame, *, options: SurveyOptions) -> Scored:
    """Score the kappa of every code, and for those kept the share of responses by topic and location.

    Raises:
        UsageError: the table does not conform, or a response was not read by all coders.
    """
    themes = survey_themes(checked(codes, SURVEY_CODES), least=options.least, coders=options.coders)
    responses = codes["response_id"].n_unique()
    rows: list[Row] = []
    values: list[pl.DataFrame] = []
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
        place = Place("theme_share", RESPONDENTS, options.benchmark, head["location"])
        rows.append(statistic_row(**asdict(place), answer=answer, params=about))
        values.append(value_rows(asdict(place), about, cell.select(item="response_id", value="present")))
    unknown = themes.kappas["kappa"].null_count()
    left_out = {
        "codes that coders do not agree on": themes.kappas.filter(~pl.col("kept")).height - unknown,
        "codes of which coders say the same of every response, so that kappa is not known": unknown,
    }
    return scored(rows, values, left_out=left_out)


def kappa_row(answer: Interval, params: dict[str, object], options: SurveyOptions) -> Row:
    """Make the row of one code's kappa."""
    why = {"no_interval": "kappa decides which codes are kept, and is given as it is"}
    return statistic_row(
        "theme_kappa", model=RESPONDENTS, benchmark=options.benchmark, answer=answer, params={**params, **why}
    )
