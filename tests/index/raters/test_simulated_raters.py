import polars as pl

from culturekit.core.schemas import AUDITS, CSPACE
from culturekit.index.raters.simulated_raters import SimulatedRaters, simulated_audits
from tests.metrics.corrected.audits_by_hand import matches_of

COUNTRIES = ["JP", "IN", "FR", "US"]
TRUTH = matches_of([*(COUNTRIES * 250), None])
SPACE = pl.DataFrame(
    [
        {"artifact_id": f"dish of {country}", "name": country, "concept": "cuisine", "country": country,
         "country_name": country, "continent": "somewhere", "source": "wikidata", "path": []}
        for country in COUNTRIES
    ],
    schema=CSPACE.schema,
    orient="row",
)  # fmt: skip
IMAGES = TRUTH["image_id"].to_list()


def test_raters_without_error_say_what_was_drawn() -> None:
    audits = simulated_audits(TRUTH, SPACE, IMAGES, SimulatedRaters(), seed=1)
    assert AUDITS.problems(audits) == []
    both = audits.join(TRUTH, on="image_id", suffix="_true")
    assert both.filter(pl.col("artifact_id").ne_missing(pl.col("artifact_id_true"))).is_empty()
    assert audits["none_of_these"].sum() == 1


def test_raters_err_as_often_as_they_are_told_to_and_each_on_their_own() -> None:
    audits = simulated_audits(TRUTH, SPACE, IMAGES, SimulatedRaters(raters=3, accuracy=0.8), seed=1)
    both = audits.join(TRUTH, on="image_id", suffix="_true")
    right = both.group_by("annotator").agg((pl.col("country") == pl.col("country_true")).mean()).sort("annotator")
    assert right["annotator"].to_list() == ["simulated-1", "simulated-2", "simulated-3"]
    assert all(abs(share - 0.8) < 0.05 for share in right["country"])
    wrong = both.pivot("annotator", index="image_id", values="country")
    assert wrong.filter(pl.col("simulated-1") != pl.col("simulated-2")).height > 200


def test_an_image_is_labelled_alike_whoever_else_is_audited() -> None:
    how = SimulatedRaters(accuracy=0.5)
    every = simulated_audits(TRUTH, SPACE, IMAGES, how, seed=1)
    some = simulated_audits(TRUTH, SPACE, IMAGES[100:200], how, seed=1)
    assert some.equals(every.filter(pl.col("image_id").is_in(IMAGES[100:200])))
    assert not every.equals(simulated_audits(TRUTH, SPACE, IMAGES, how, seed=2))
