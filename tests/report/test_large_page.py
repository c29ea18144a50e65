"""How large a report becomes."""

import pytest

from culturekit.report.write import render
from tests.report.large import large_page


def tiles_on(text: str) -> int:
    """Count the images a page shows of single prompts and in mosaics."""
    return text.count('<span class="tile">') + text.count('alt="image of ')


@pytest.mark.slow
def test_a_page_of_ten_thousand_images_stays_below_five_megabytes() -> None:
    text = render(large_page(10_000))
    assert tiles_on(text) >= 10_000
    assert len(text.encode("utf-8")) <= 5_000_000
    assert "base64" not in text


@pytest.mark.slow
def test_a_page_does_not_grow_faster_than_its_images() -> None:
    half, whole = (len(render(large_page(images)).encode("utf-8")) for images in (10_000, 20_000))
    assert whole <= 2.2 * half
