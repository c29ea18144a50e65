"""Every number of the study that follows from its other numbers (Hall et al. 2024), and the slips among them."""

from itertools import combinations

from culturekit.metrics.inclusion.region_rates import LEAST_KAPPA
from culturekit.metrics.inclusion.task2_files import LEAST_ACCURACY
from culturekit.metrics.inclusion.triplet_distances import COMBOS, OF_HUNDRED
from culturekit.metrics.realism.clip_scores import PRESENCE_THRESHOLDS
from culturekit.recipes.inclusion.people import FAR, NEAR
from culturekit.recipes.inclusion.prompts import load_places, place_file

KAPPAS = {
    "External search": 0.91, "People": 0.80, "Nature & natural world": 0.77, "Feature-based representation": 0.76,
    "Unclassified": 0.73, "Stereotyped representations": 0.72, "Built environment": 0.71, "Absence of detail": 0.70,
    "Culture, art & religion": 0.63, "Personal lived experience": 0.60, "Media portrayals": 0.60,
    "Brand identification": 0.52, "Overgeneralised representations": 0.48, "Objects and tools": 0.41,
    "Erroneous representation": 0.41, "Uniqueness": 0.15,
}  # fmt: skip
"""Table 3: Fleiss' kappa of each code."""

QUOTED = ("Built environment", "Culture, art & religion", "Absence of detail", "External search",
          "Personal lived experience", "Nature & natural world", "People", "Stereotyped representations")  # fmt: skip
"""The themes of table 2."""

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
