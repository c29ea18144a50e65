"""Linguistic and Cultural Biases: what its tables about groups say of its prompts, and of each other.

What follows from Tables 1 to 3 and from single cells of Table 4 is held in test_dialects, test_skin_tone,
test_neutral_groups and test_human_tables.
"""

import pytest

from culturekit.recipes.linguistic.lists import shipped_lists

# Mean and deviation (n - 1) of whole ratings from 1 to 5, by criterion; some are rounded, some cut
TABLE_4 = {
    "Africa": "2.188 1.276 1.875 .885 3.688 1.662 4.875 .5 3.438 1.549",
    "America": "4.438 .6292 3.625 .8062 5 0 5 0 4.875 .5",
    "Asia": "3.22 1.476 2.694 .9804 2.638 1.355 4.88 .3984 2.527 1.298",
    "Europe": "4.938 .25 4.25 .4472 4.563 .5123 5 0 4.875 .3416",
    "Latin America": "3.45 .9987 2.9 1.0208 4.6 .5026 4.6 .7539 4.35 .9333",
    "African American": "4 .9661 2.75 1 4.75 .4472 4.875 .3416 4.3125 1.0145",
    "Asian": "4.38 .9608 3.2 .6761 4.46 1.198 3.8125 1.759 3.25 1.6931",
    "Hispanic": "3.83 1.030 2.916 .7930 4.75 .4523 4.83 .3892 4.33 1.073",
    "White": "4.25 1 2.875 .8062 4.875 .3416 4.8125 .75 4.6875 .8732",
}  # fmt: skip

# Shares of traditional and modern environments, then of settings
TABLE_5 = {
    "Africa": (0.8576, 0.1423, 0.6391, 0.3610), "America": (0.5014, 0.4987, 0.2890, 0.7110),
    "Asia": (0.8314, 0.1686, 0.6412, 0.3588), "Europe": (0.7244, 0.2757, 0.5475, 0.4524),
    "Latin America": (0.8331, 0.1669, 0.6165, 0.3836), "African American": (0.8010, 0.1991, 0.4694, 0.5306),
    "Asian": (0.7841, 0.2159, 0.5054, 0.4946), "Hispanic": (0.6755, 0.3245, 0.4989, 0.5012),
    "White": (0.6087, 0.3912, 0.4275, 0.5724),
}  # fmt: skip

PER_PROMPT, PROMPTS = 4, 42


def step(printed: str) -> float:
    return 10.0 ** -len(printed.partition(".")[2])


def fits(mean: str, deviation: str, images: int) -> bool:
    """Tell whether so many whole ratings have the mean and the deviation that are printed."""
    for total in range(images, 5 * images + 1):
        if abs(total / images - float(mean)) >= step(mean):
            continue
        # Squares of whole numbers add up to a whole number, odd where the numbers do.
        low, high = ((max(0.0, float(deviation) + side) ** 2 * (images - 1) + total**2 / images)
                     for side in (-step(deviation), step(deviation)))  # fmt: skip
        if any(low < squares < high and (squares - total) % 2 == 0 for squares in range(int(low), int(high) + 2)):
            return True
    return False


def sizes_of(group: str) -> list[set[int]]:
    """Give for each criterion of a group the numbers of images that could have been rated, up to ten prompts."""
    cells = TABLE_4[group].split()
    pairs = zip(cells[::2], cells[1::2], strict=True)
    return [{n for n in range(2, 10 * PER_PROMPT + 1) if fits(mean, sd, n)} for mean, sd in pairs]


def test_the_number_of_prompts_of_a_group_follows_from_its_means_and_deviations() -> None:
    """They tell of 41 prompts; one group lacks answers. One cell is of no whole ratings: 3.438 with 1.549 for 1.548."""
    sizes = {group: sizes_of(group) for group in TABLE_4}
    assert sizes["Africa"][-1] == set()
    assert fits("3.438", "1.548", 16)
    asian = sizes.pop("Asian")
    assert [min(numbers) for numbers in asian] == [13, 15, 13, 16, 16], "pictures of four prompts, not all rated"
    told = {group: set.intersection(*filter(None, numbers)) for group, numbers in sizes.items()}
    assert told == {"Africa": {16}, "America": {16}, "Asia": {36}, "Europe": {16}, "Latin America": {20},
                    "African American": {16}, "Hispanic": {12}, "White": {16}}  # fmt: skip
    assert sum(map(min, told.values())) + 16 == PER_PROMPT * (PROMPTS - 1)
    assert PROMPTS * PER_PROMPT == 168


def test_the_shipped_prompts_are_as_many_and_the_one_nobody_tells_of_stands_where_answers_are_missing() -> None:
    shipped = {group.group: len(group.prompts) for group in shipped_lists().specific}
    told = {group: min(set.intersection(*filter(None, sizes_of(group)))) // PER_PROMPT
            for group in TABLE_4 if group != "Asian"}  # fmt: skip
    assert shipped == {**told, "Asian": PROMPTS - sum(told.values())}
    assert [text for group in shipped_lists().specific for text in group.printed] == [
        "an African person's home", "a plaza in America", "a street in an East Asian city in the 21st century",
    ]  # fmt: skip


@pytest.mark.parametrize("group", TABLE_5)
def test_both_captions_of_a_pair_share_the_whole(group: str) -> None:
    """To half a digit of each, and one of a slip: 0.5475 and 0.4524."""
    for first in (0, 2):
        assert sum(TABLE_5[group][first : first + 2]) == pytest.approx(1, abs=1.5e-4)


def test_both_wordings_order_the_regions_nearly_alike() -> None:
    """America looks least traditional in either; the wording of a setting finds every group less so."""
    regions = list(TABLE_5)[:5]
    by_environment, by_setting = (sorted(regions, key=lambda name: TABLE_5[name][column]) for column in (0, 2))
    assert by_environment[:2] == by_setting[:2] == ["America", "Europe"]
    assert all(values[2] < values[0] for values in TABLE_5.values())


def test_a_share_and_what_is_left_scatter_alike() -> None:
    """To a unit of the last digit, cut or rounded; Asia's environments, .1723 and .1728, cannot both be right."""
    apart = {group: [abs(float(one) - float(other)) / max(step(one), step(other))
                     for one, other in zip(cells[::2], cells[1::2], strict=True)]
             for group, cells in ((group, text.split()) for group, text in DEVIATIONS.items())}  # fmt: skip
    assert {group for group, units in apart.items() if max(units) > 1.01} == {"Asia"}
    assert apart["Asia"] == pytest.approx([5, 0])


# Of Table 5, in the order of its columns
DEVIATIONS = {
    "Africa": ".1212 .1212 .2024 .2025", "America": ".2069 .2069 .1730 .1730", "Asia": ".1723 .1728 .2431 .2431",
    "Europe": ".1412 .1411 .1730 .1729", "Latin America": ".1371 .13703 .2072 .2072",
    "African American": ".1464 .1464 .1625 .1625", "Asian": ".1850 .1850 .2026 .2026",
    "Hispanic": ".2346 .2346 .2550 .2551", "White": ".2142 .2143 .1865 .1865",
}  # fmt: skip


def test_people_contradict_that_all_models_are_more_even_in_the_standard_dialect() -> None:
    """Table 2, MAD and STD: of SAE and AAE by the rule, then by people, who find Min-DALLE more even in AAE."""
    table = {
        "Min-DALLE": (0.1268, 0.1509, 0.1307, 0.1904, 0.1302, 0.1877, 0.1259, 0.1872),
        "Stable Diffusion": (0.1433, 0.2087, 0.1742, 0.2531, 0.1562, 0.2167, 0.1808, 0.2614),
        "Midjourney": (0.1174, 0.1408, 0.1653, 0.2139, 0.1196, 0.1499, 0.1642, 0.2201),
    }
    less_even = {model: [row[at] < row[at + 2] for at in (0, 1, 4, 5)] for model, row in table.items()}
    assert less_even == {"Min-DALLE": [True, True, False, False], "Stable Diffusion": [True] * 4,
                         "Midjourney": [True] * 4}  # fmt: skip
    for best, places in (("Midjourney", (0, 1, 4, 5)), ("Min-DALLE", (2, 3, 6, 7))):
        assert all(min(table, key=lambda model: table[model][place]) == best for place in places)


def test_the_grid_of_images() -> None:
    """210 prompts by 9, 9 and 4 images."""
    assert 30 * (6 + 1) == 210
    assert 210 * (9 + 9 + 4) == 4620
