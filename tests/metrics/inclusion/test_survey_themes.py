"""Numbers of the study that follow from its other numbers (Hall et al. 2024), and themes of its survey."""

import itertools

import numpy as np
import polars as pl
import pytest
from statsmodels.stats import inter_rater

from culturekit.core.errors import UsageError
from culturekit.core.schemas import SURVEY_CODES
from culturekit.metrics import Themes, survey_themes

MODELS, PER_ITEM, IMAGES = 2, 3, 100


PLACES = ("Africa", "Europe", "Africa", "SouthEastAsia", "Europe", "Africa")


def codes(votes: dict[str, list[int]]) -> pl.DataFrame:
    """Make codes from the number of coders, of three, who see a code in each response."""
    rows = [
        {"response_id": f"r{number}", "location": PLACES[number], "topic": "object", "coder": f"c{coder}",
         "code": code, "present": coder < yes}
        for code, counts in votes.items() for (number, yes), coder in itertools.product(enumerate(counts), range(3))
    ]  # fmt: skip
    return pl.DataFrame(rows, schema=SURVEY_CODES.schema)


VOTES = {"people": [3, 3, 0, 0, 3, 0], "nature": [2, 3, 0, 0, 3, 1], "tools": [2, 1, 2, 1, 1, 2], "brand": [0] * 6}


def test_codes_are_kept_from_a_kappa_on() -> None:
    found = survey_themes(codes(VOTES))
    assert isinstance(found, Themes)
    for row in found.kappas.iter_rows(named=True):
        counts = np.array([(yes, 3 - yes) for yes in VOTES[row["code"]]])
        if row["code"] == "brand":
            assert (row["kappa"], row["kept"]) == (None, False)
            continue
        assert row["kappa"] == pytest.approx(inter_rater.fleiss_kappa(counts), abs=1e-12)
        assert row["kept"] == (row["kappa"] >= 0.6)
    assert found.kappas["code"].to_list() == ["people", "nature", "tools", "brand"]
    assert found.kappas.filter("kept")["code"].to_list() == ["people"]
    assert survey_themes(codes(VOTES), least=0.5).kappas["kept"].sum() == 2
    exact = found.kappas["kappa"][1]
    assert survey_themes(codes(VOTES), least=exact).kappas["kept"].to_list()[:2] == [True, True]


def test_the_majority_decides_and_shares_are_by_location() -> None:
    found = survey_themes(codes(VOTES), least=0.4)
    assert found.votes.filter(code="nature").sort("response_id")["present"].to_list() == [
        True, True, False, False, True, False,
    ]  # fmt: skip
    assert found.shares.filter(code="nature").select("location", "share", "n").rows() == [
        ("Africa", pytest.approx(1 / 3), 3), ("Europe", 1.0, 2), ("SouthEastAsia", 0.0, 1),
    ]  # fmt: skip


def test_the_order_of_rows_and_names_of_coders_do_not_matter() -> None:
    table = codes(VOTES)
    renamed = table.with_columns(coder=pl.col("coder").replace({"c0": "c2", "c2": "c0"}))
    for other in (table.sample(fraction=1, shuffle=True, seed=0), renamed):
        found, again = survey_themes(table), survey_themes(other)
        for name in ("kappas", "votes", "shares"):
            assert getattr(again, name).equals(getattr(found, name)), name


def test_arguments_are_checked() -> None:
    table = codes(VOTES)
    with pytest.raises(UsageError, match="were not read by 3 coders"):
        survey_themes(table.slice(1))
    with pytest.raises(UsageError, match="coders must be an odd number"):
        survey_themes(table, coders=2)
    with pytest.raises(UsageError, match="codes must be a frame with the columns"):
        survey_themes(table.drop("topic"))
