"""A report on paper: Chromium prints its page, with everything that folds away opened."""

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from culturekit.core.errors import MissingDependency

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
LONGEST = 300  # seconds until a page of thousands of pictures is given up


def browser() -> str:
    """Find Chromium.

    Raises:
        MissingDependency: there is none.
    """
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise MissingDependency(
            "a PDF is printed by Chromium, and there is none here", expected=f"one of {', '.join(BROWSERS)}",
            hint="Install it (Debian: apt-get install chromium), or print the page from any browser.",
        )  # fmt: skip
    return found


def print_page(page: Path, pdf: Path) -> None:
    """Print a page to a PDF file."""
    with tempfile.TemporaryDirectory(prefix="culturekit-print-") as scratch:
        opened = page.with_name(f".{page.stem}-printed.html")
        opened.write_text(re.sub(r"<details\b", "<details open", page.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={scratch}",
                       "--no-pdf-header-footer", f"--print-to-pdf={pdf.resolve()}",
                       opened.resolve().as_uri()]  # fmt: skip
            ended = subprocess.run(command, capture_output=True, text=True, timeout=LONGEST, check=False)
        finally:
            opened.unlink()
    if not pdf.is_file():
        raise MissingDependency(
            "Chromium printed no page", where=str(pdf), expected="a PDF file",
            found=(ended.stderr.strip().splitlines() or ["no message"])[-1], hint="Print the page from any browser.",
        )  # fmt: skip
