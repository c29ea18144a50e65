"""Lines that hold what others wrote, such as labels of Wikidata."""

from collections.abc import Iterable

from culturekit.core.foreign_text import JOINERS, printable


def show_lines(lines: Iterable[str]) -> None:
    """Print lines, each as one line in which nothing steers the terminal."""
    for line in lines:
        print(printable(line, keep=JOINERS))
