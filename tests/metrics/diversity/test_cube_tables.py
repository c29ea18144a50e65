"""What CUBE printed: its Table 5 is quality times diversity of its Table 4, in 56 cells of 60."""

from culturekit.metrics import STANDARD_KERNELS

MODELS = ("IM", "SDXL", "PG", "RV")
CONCEPTS = ("cuisine", "landmarks", "art")
COLUMNS = [(concept, model) for concept in CONCEPTS for model in MODELS]

QUALITY = "0.27 0.21 0.29 0.27  0.25 0.22 0.21 0.23  0.31 0.30 0.34 0.33"
"""Table 4, first row: the mean of HPS-v2."""

DIVERSITY = {
    "continent": "0.32 0.23 0.24 0.27  0.17 0.27 0.23 0.25  0.23 0.14 0.18 0.16",
    "country": "0.59 0.53 0.51 0.51  0.50 0.65 0.34 0.52  0.42 0.29 0.37 0.23",
    "artifact": "0.91 0.71 0.82 0.74  0.73 0.84 0.58 0.81  0.72 0.60 0.51 0.44",
    "hierarchical": "0.51 0.44 0.41 0.38  0.42 0.53 0.31 0.45  0.36 0.24 0.31 0.22",
    "uniform": "0.72 0.58 0.66 0.59  0.55 0.66 0.45 0.52  0.52 0.39 0.41 0.30",
}
"""Table 4: VS/8 per kernel."""

WEIGHTED = {
    "continent": "0.08 0.04 0.07 0.07  0.04 0.06 0.04 0.05  0.07 0.042 0.06 0.05",
    "country": "0.15 0.11 0.14 0.13  0.12 0.14 0.07 0.12  0.13 0.08 0.12 0.07",
    "artifact": "0.24 0.14 0.23 0.20  0.18 0.18 0.12 0.18  0.22 0.18 0.17 0.14",
    "hierarchical": "0.13 0.09 0.12 0.10  0.10 0.11 0.06 0.10  0.11 0.07 0.10 0.072",
    "uniform": "0.19 0.12 0.19 0.16  0.14 0.15 0.09 0.12  0.16 0.12 0.14 0.10",
}
"""Table 5: the quality-weighted score per kernel."""

TOO_LOW = {
    ("continent", "cuisine", "SDXL"),
    ("continent", "landmarks", "PG"),
    ("continent", "landmarks", "RV"),
    ("country", "cuisine", "IM"),
}
"""The cells of Table 5 that no values rounding to those of Table 4 can give; all four are printed too low."""


def rounding(printed: str) -> tuple[float, float]:
    """Give the range of values that print like this."""
    half = 0.5 * 10 ** -len(printed.split(".")[1])
    return float(printed) - half, float(printed) + half


def test_table_5_is_table_4_multiplied_but_for_four_cells() -> None:
    misses, cells = {}, 0
    for kernel, row in WEIGHTED.items():
        for column, quality, diversity, weighted in zip(
            COLUMNS, QUALITY.split(), DIVERSITY[kernel].split(), row.split(), strict=True
        ):
            cells += 1
            (q_low, q_high), (d_low, d_high), (low, high) = map(rounding, (quality, diversity, weighted))
            if not (q_low * d_low <= high and low <= q_high * d_high):
                misses[kernel, *column] = high < q_low * d_low
    assert cells == 60
    assert set(misses) == TOO_LOW
    assert all(misses.values())


def test_the_kernels_are_those_of_the_paper() -> None:
    third = 1 / 3
    assert dict(STANDARD_KERNELS) == {
        "continent": (1, 0, 0),
        "country": (0, 1, 0),
        "artifact": (0, 0, 1),
        "hierarchical": (0.5, 0.5, 0),
        "uniform": (third, third, third),
    }
    assert list(WEIGHTED) == list(STANDARD_KERNELS)
