"""From coded responses to a survey to themes: which ones coders agree on, and who mentions them."""

import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.core.defaults import CONFIDENCE
from culturekit.core.schemas import SURVEY_CODES
from culturekit.core.tables import read_table
from culturekit.metrics.inclusion.region_rates import CODERS, LEAST_KAPPA, survey_themes
from culturekit.metrics.statistics.intervals import Interval, proportion_interval
from culturekit.scores.catalog import describe
from culturekit.scores.family import Confidence, scores
from culturekit.scores.image_collections import Place, checked
from culturekit.scores.score_rows import Scored, scored, statistic_row, value_rows

# What stands in the column model: no model's pictures are scored here.
RESPONDENTS = "people"

_PAPER = "Towards Geographic Inclusion in the Evaluation of Text-to-Image Models (Hall et al. 2024), section 2.3"

THEME_KAPPA = describe(
    "theme_kappa",
    "Agreement of coders on a theme",
    "Fleiss' kappa of the coders over all responses",
    paper=f"{_PAPER} and table 3",
    inputs=("survey_codes: response_id, location, topic, coder, code, present",),
    pitfalls=("A theme that no response has, or all have, has no kappa.",),
    low=-1.0,
    direction="higher",
    unit="coefficient",
)
THEME_SHARE = describe(
    "theme_share",
    "Responses that mention a theme",
    "share of responses to a survey, by location of the respondent, in which most coders see params.code",
    paper=f"{_PAPER} and figure 9",
    inputs=THEME_KAPPA.inputs,
    pitfalls=(
        "Codes on which coders agree with a Fleiss' kappa below params.least are left out and counted.",
        "Surveys have few respondents; the interval is Wilson's over responses, and it is wide.",
    ),
)


@scores("survey", THEME_KAPPA, THEME_SHARE, version=2, example="--codes survey_codes.parquet --out scores")
def survey(
    codes: Annotated[Path, Field(description="Table of how coders read the responses.")],
    *,
    least: Annotated[float, Field(ge=-1, le=1, description="Fleiss' kappa that a code must reach.")] = LEAST_KAPPA,
    coders: Annotated[int, Field(ge=3, description="How many coders read each response; an odd number.")] = CODERS,
    confidence: Confidence = CONFIDENCE,
    benchmark: str = "inclusion",
) -> Scored:
    """Score the themes of a survey.

    Coders' agreement, and who mentions what.
    """
    table = read_table(codes, SURVEY_CODES)
    return score_survey(table, least=least, coders=coders, confidence=confidence, benchmark=benchmark)


def score_survey(
    codes: pl.DataFrame,
    *,
    least: float = LEAST_KAPPA,
    coders: int = CODERS,
    confidence: float = CONFIDENCE,
    benchmark: str = "inclusion",
) -> Scored:
    """Score the kappa of every code, and for those kept the share of responses by topic and location.

    Raises:
        UsageError: the table does not conform, or a response was not read by all coders.
    """
    themes = survey_themes(checked(codes, SURVEY_CODES), least=least, coders=coders)
    responses = codes["response_id"].n_unique()
    rows, values = [], []
    for code in themes.kappas.drop_nulls("kappa").iter_rows(named=True):
        params = {
            "code": code["code"], "kept": code["kept"], "coders": coders,
            "no_interval": "kappa decides which codes are kept, and is given as it is",
        }  # fmt: skip
        answer = Interval(code["kappa"], math.nan, math.nan, responses, "these")
        rows.append(statistic_row("theme_kappa", model=RESPONDENTS, benchmark=benchmark, answer=answer, params=params))
    votes = themes.votes.sort("topic", "location", "code", "response_id")
    for cell in votes.partition_by("topic", "location", "code", maintain_order=True):
        head = cell.row(0, named=True)
        about = {"topic": head["topic"], "code": head["code"], "least": least}
        answer = proportion_interval(int(cell["present"].sum()), cell.height, confidence=confidence)
        place = asdict(Place("theme_share", RESPONDENTS, benchmark, head["location"]))
        rows.append(statistic_row(**place, answer=answer, params=about))
        values.append(value_rows(place, about, cell.select(item="response_id", value="present")))
    unknown = themes.kappas["kappa"].null_count()
    left_out = {
        "codes that coders do not agree on": themes.kappas.filter(~pl.col("kept")).height - unknown,
        "codes of which coders say the same of every response, so that kappa is not known": unknown,
    }
    return scored(rows, values, left_out=left_out)
