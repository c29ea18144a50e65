"""Linguistic and Cultural Biases: what its tables about groups say of its prompts, and of each other.

What follows from Tables 1 to 3 and from single cells of Table 4 is held in test_dialects, test_skin_tone,
test_neutral_groups and test_human_tables.
"""

import pytest

TABLE_4 = {
    "Africa": "2.188 1.875 3.688 4.875 3.438", "America": "4.438 3.625 5 5 4.875",
    "Asia": "3.22 2.694 2.638 4.88 2.527", "Europe": "4.938 4.25 4.563 5 4.875",
    "Latin America": "3.45 2.9 4.6 4.6 4.35", "African American": "4 2.75 4.75 4.875 4.3125",
    "Asian": "4.38 3.2 4.46 3.8125 3.25", "Hispanic": "3.83 2.916 4.75 4.83 4.33",
    "White": "4.25 2.875 4.875 4.8125 4.6875",
}  # fmt: skip
"""Mean ratings of whole steps from 1 to 5, by criterion; some are rounded, some cut."""

TABLE_5 = {
    "Africa": (0.8576, 0.1423, 0.6391, 0.3610), "America": (0.5014, 0.4987, 0.2890, 0.7110),
    "Asia": (0.8314, 0.1686, 0.6412, 0.3588), "Europe": (0.7244, 0.2757, 0.5475, 0.4524),
    "Latin America": (0.8331, 0.1669, 0.6165, 0.3836), "African American": (0.8010, 0.1991, 0.4694, 0.5306),
    "Asian": (0.7841, 0.2159, 0.5054, 0.4946), "Hispanic": (0.6755, 0.3245, 0.4989, 0.5012),
    "White": (0.6087, 0.3912, 0.4275, 0.5724),
}  # fmt: skip
"""Shares of traditional and modern environments, then of settings."""

PER_PROMPT, PROMPTS = 4, 42


def fits(printed: str, images: int) -> bool:
    """Tell whether so many whole ratings have the mean that is printed."""
    step = 10.0 ** -len(printed.partition(".")[2])
    return any(abs(total / images - float(printed)) < step for total in range(images, 5 * images + 1))


def test_the_number_of_prompts_of_a_group_follows_from_its_means() -> None:
    """Of one group the answers to a question are missing; it has what is left to 42 prompts, or 168 images."""
    sizes: dict[str, int | None] = {}
    for group, printed in TABLE_4.items():
        fitting = (n for n in range(1, 10) if all(fits(mean, PER_PROMPT * n) for mean in printed.split()))
        sizes[group] = next(fitting, None)
    told = {"Africa": 4, "America": 4, "Asia": 9, "Europe": 4, "Latin America": 5, "African American": 4,
            "Hispanic": 3, "White": 4}  # fmt: skip
    assert sizes == {**told, "Asian": 8}, "only twice 16 images have the means of the group whose answers are missing"
    assert not fits("3.8125", PER_PROMPT * 5)
    assert PROMPTS - sum(told.values()) == 5
    assert PROMPTS * PER_PROMPT == 168


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


def test_the_grid_of_images() -> None:
    """210 prompts by 9, 9 and 4 images."""
    assert 30 * (6 + 1) == 210
    assert 210 * (9 + 9 + 4) == 4620
