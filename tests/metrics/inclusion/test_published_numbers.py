"""Numbers of the study that follow from its other numbers (Hall et al. 2024), and themes of its survey."""

import itertools
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from statsmodels.stats import inter_rater

from culturekit.core.errors import UsageError
from culturekit.core.schemas import SURVEY_CODES
from culturekit.metrics import Themes, survey_themes
from culturekit.metrics.inclusion.region_rates import LEAST_KAPPA
from culturekit.metrics.inclusion.task2_files import LEAST_ACCURACY
from culturekit.metrics.inclusion.triplet_distances import COMBOS, OF_HUNDRED
from culturekit.metrics.realism.clip_scores import PRESENCE_THRESHOLDS
from culturekit.recipes.inclusion.people import FAR, NEAR
from culturekit.recipes.inclusion.prompts import load_places, place_file

# Table 3: Fleiss' kappa of each code
KAPPAS = {
    "External search": 0.91, "People": 0.80, "Nature & natural world": 0.77, "Feature-based representation": 0.76,
    "Unclassified": 0.73, "Stereotyped representations": 0.72, "Built environment": 0.71, "Absence of detail": 0.70,
    "Culture, art & religion": 0.63, "Personal lived experience": 0.60, "Media portrayals": 0.60,
    "Brand identification": 0.52, "Overgeneralised representations": 0.48, "Objects and tools": 0.41,
    "Erroneous representation": 0.41, "Uniqueness": 0.15,
}  # fmt: skip

# The themes of table 2
QUOTED = ("Built environment", "Culture, art & religion", "Absence of detail", "External search",
          "Personal lived experience", "Nature & natural world", "People", "Stereotyped representations")  # fmt: skip

SURVEYED = {"Africa": 5, "Europe": 8, "Southeast Asia": 10}
PEOPLE = {"Africa": 20, "Europe": 17, "Southeast Asia": 23}
MODELS, PER_ITEM, IMAGES = 2, 3, 100


def cells() -> int:
    places = load_places(place_file("study"))
    assert (len(places.objects), len(places.regions)) == (6, 3)
    return len(places.objects) * len(places.regions)


def test_triplets() -> None:
    """85 references are the 60 nearest and the 25 farthest; five combinations make 425 of each object and region."""
    assert NEAR + FAR == 85
    assert len(COMBOS) * 85 == 425
    assert cells() * 425 * MODELS == 15_300
    assert max(place.furthest for one in COMBOS.values() for place in (one.first, one.second)) == 48 < OF_HUNDRED


def test_images_of_task_2() -> None:
    """100 photographs of each object and region; of each model 100 of each prompt, with a region and without."""
    real, prompted, plain = cells() * IMAGES, cells() * IMAGES, 6 * IMAGES
    assert real + MODELS * (prompted + plain) == 6_600


def test_annotations_are_more_than_65_000_before_the_filter_and_fewer_after() -> None:
    """“Over 65,000” counts what was collected; 13 % of Task 1 and 2 % of Task 2 were then left out."""
    first, second = 15_300 * PER_ITEM, 6_600 * PER_ITEM
    assert (first, second, first + second) == (45_900, 19_800, 65_700)
    assert round(0.87 * first + 0.98 * second) == 59_337 < 65_000
    photographs = cells() * IMAGES * PER_ITEM
    assert photographs - 5_378 == 22, "of the public annotations of photographs .4 % are missing, not 2 %"


def test_people() -> None:
    """15 to 25 people of each region; three of each image, one of each region."""
    assert all(15 <= count <= 25 for count in PEOPLE.values())
    assert sum(PEOPLE.values()) == 60
    assert len(list(combinations(SURVEYED, 2))) == PER_ITEM, "as many pairs agree or do not as people look"


def test_the_survey_has_23_responses_and_not_20() -> None:
    """The abstract and the introduction say 20 survey responses; the section on the survey counts 23."""
    assert sum(SURVEYED.values()) == 23


def test_codes() -> None:
    """Sixteen codes; those below .6 fell. The caption says “greater than 0.6”, which would leave out two that stay."""
    assert len(KAPPAS) == 16
    kept = {code for code, kappa in KAPPAS.items() if kappa >= LEAST_KAPPA}
    assert len(kept) == 11
    assert set(QUOTED) <= kept
    by_caption = {code for code, kappa in KAPPAS.items() if kappa > LEAST_KAPPA}
    assert kept - by_caption == {"Personal lived experience", "Media portrayals"}
    assert list(KAPPAS.values()) == sorted(KAPPAS.values(), reverse=True)


def test_thresholds() -> None:
    """Objects are seen from cosines of .21 to .25 on; annotators have to see nine of ten in photographs."""
    assert set(PRESENCE_THRESHOLDS.values()) == {0.21, 0.25}
    assert PRESENCE_THRESHOLDS["ldm"] == 0.25
    assert LEAST_ACCURACY == 0.9


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


# Table 3 of the paper: the kappa of its sixteen codes
PRINTED = (
    0.91, 0.80, 0.77, 0.76, 0.73, 0.72, 0.71, 0.70, 0.63, 0.60, 0.60, 0.52, 0.48, 0.41, 0.41, 0.15,
)  # fmt: skip


def test_the_papers_rule_keeps_eleven_of_its_sixteen_codes() -> None:
    assert (len(PRINTED), sum(kappa >= 0.6 for kappa in PRINTED)) == (16, 11)


def test_arguments_are_checked() -> None:
    table = codes(VOTES)
    with pytest.raises(UsageError, match="were not read by 3 coders"):
        survey_themes(table.slice(1))
    with pytest.raises(UsageError, match="coders must be an odd number"):
        survey_themes(table, coders=2)
    with pytest.raises(UsageError, match="codes must be a frame with the columns"):
        survey_themes(table.drop("topic"))
