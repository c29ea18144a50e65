"""What the page about activities says in short: an interval decides who is first, and nobody is ranked unseen."""

import polars as pl

from culturekit.recipes.cultivate.page import verdict

MODELS = ("broad", "showy")


def scores(labels: str, **values: tuple[float, float, float]) -> pl.DataFrame:
    """Make a table with ALIGN of models over all countries: value and limits."""
    rows = [
        {"metric": "align", "labels": labels, "model": model, "country": None, "group": None}
        | {"value": value, "ci_low": low, "ci_high": high}
        for model, (value, low, high) in values.items()
    ]
    return pl.DataFrame(rows, schema_overrides={"country": pl.String, "group": pl.String})


def test_people_turn_the_order_round() -> None:
    judged = scores("judged", broad=(0.5, 0.49, 0.51), showy=(0.6, 0.59, 0.61))
    corrected = scores("corrected", broad=(0.6, 0.55, 0.65), showy=(0.4, 0.35, 0.45))
    truth = scores("truth", broad=(0.61, 0.6, 0.62), showy=(0.41, 0.4, 0.42), real=(0.9, 0.8, 1.0))
    said = list(verdict(pl.concat([judged, corrected]), truth, MODELS))
    assert said == [
        "The judge alone ranks showy first; put right by people, ALIGN ranks broad first.",
        "In truth ALIGN ranks broad first.",
    ]


def test_models_whose_intervals_overlap_are_not_told_apart() -> None:
    judged = scores("judged", broad=(0.5, 0.49, 0.51), showy=(0.6, 0.59, 0.61))
    corrected = scores("corrected", broad=(0.6, 0.5, 0.7), showy=(0.55, 0.45, 0.65))
    (said,) = verdict(pl.concat([judged, corrected]), None, MODELS)
    assert said.endswith("put right by people, ALIGN ranks broad and showy first, whose intervals overlap.")


def test_a_model_that_people_did_not_put_right_is_not_ranked_last() -> None:
    judged = scores("judged", broad=(0.5, 0.49, 0.51), showy=(0.6, 0.59, 0.61))
    corrected = scores("corrected", broad=(0.6, 0.5, 0.7))
    (said,) = verdict(pl.concat([judged, corrected]), None, MODELS)
    assert said == "People did not put right 1 of 2 models: what the judge says of them stands as it is."
    assert list(verdict(None, None, MODELS)) == [
        "Nobody put the judge right: what the judge says of them stands as it is."
    ]
