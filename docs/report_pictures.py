"""Take the pictures of a report that the documentation shows: `python docs/report_pictures.py RUN/report/report.html`."""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.chromium import browser

PICTURES = Path(__file__).parent / "pictures"
SIZES = {"wide": (1440, 900), "narrow": (390, 844)}
COLOURS = 128
"""A page of text and flat colours needs no more, and the files stay small."""


def main(page: Path) -> None:
    """Photograph the first screen at two widths and in both themes."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as running:
        tab = running.tab()
        for size, (width, height) in SIZES.items():
            for dark in (False, True):
                tab.look(width=width, height=height, dark=dark)
                tab.open(page)
                taken = Image.open(io.BytesIO(tab.picture())).convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
                taken.save(PICTURES / f"report-{size}-{'dark' if dark else 'light'}.png", optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
