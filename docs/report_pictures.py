"""Take the pictures of reports that the documentation shows: `python docs/report_pictures.py RUNS`, a run a recipe."""

import io
import sys
import tempfile
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.chromium import browser

PICTURES = Path(__file__).parent / "pictures"
RECIPES = ("cube", "cultivate", "c3", "inclusion", "linguistic")
SIZES = {"wide": (1440, 900), "narrow": (390, 844), "print": (1047, 718)}
"""A desktop, a telephone, and what A4 on its side leaves between margins."""
COLOURS = 128
"""A page of text and flat colours needs no more, and the files stay small."""


def main(runs: Path) -> None:
    """Photograph the first screen of each recipe at three sizes, that of `cube` on both screens in the dark, too."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as profile, browser(Path(profile)) as running:
        tab = running.tab()
        for recipe in RECIPES:
            for size, (width, height) in SIZES.items():
                for dark in (False, True)[: 2 if recipe == "cube" and size != "print" else 1]:
                    tab.look(width=width, height=height, dark=dark)
                    tab.open(runs / recipe / "report" / "report.html")
                    if size == "print":
                        tab.ask("Emulation.setEmulatedMedia", media="print")
                    taken = Image.open(io.BytesIO(tab.picture())).convert("RGB")
                    name = f"{recipe}-{size}{'-dark' if dark else ''}.png"
                    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(PICTURES / name, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
