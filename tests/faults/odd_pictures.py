"""Read thousands of odd and hostile picture files in one process: right pixels or a reason, and never much memory.

`python tests/faults/odd_pictures.py --count 2000` makes so many files from seeds, half of them odd ones whose pixels
are known, half hostile, reads each, and prints what came of them by reason. It exits 1 if anything was raised, if
pixels or reasons were other than they should be, or if the process ever held more than 512 MB.
"""

import argparse
import sys
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from culturekit.storage.picture_files import REASONS, NoPicture
from culturekit.storage.picture_reading import ReadPicture, picture_from
from tests.peak_memory import peak_mebibytes
from tests.storage.hostile_pictures import HOSTILE, hostile_picture
from tests.storage.odd_pictures import KINDS, odd_picture

MOST_MEMORY = 512


@dataclass
class Tally:
    """What came of the files, and what should not have."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def read_odd_pictures(count: int, *, seed: int = 0) -> Tally:
    """Make and read so many files, of every kind in turn."""
    tally = Tally()
    odd, hostile = list(KINDS), list(HOSTILE)
    for number in range(count):
        turn = number // 2
        if number % 2:
            kind = hostile[turn % len(hostile)]
            found = read_hostile(kind, seed + turn // len(hostile))
        else:
            kind = odd[turn % len(odd)]
            found = read_odd(kind, seed + turn // len(odd))
        outcome, wrong = found
        tally.outcomes[outcome] += 1
        if wrong:
            tally.wrong.append(f"{kind}, seed {seed + turn // len(hostile if number % 2 else odd)}: {wrong}")
    return tally


def read_odd(kind: str, seed: int) -> tuple[str, str]:
    """Read a file whose pixels are known; give the outcome and what is wrong with it."""
    made = odd_picture(kind, seed)
    found = attempt(made.content)
    if not isinstance(found, ReadPicture):
        return outcome_of(found), f"no pixels: {found}"
    if found.pixels.shape != made.right.shape or found.pixels.dtype != np.uint8:
        return "read", f"shape {found.pixels.shape}, right is {made.right.shape}"
    off = int(np.abs(found.pixels.astype(int) - made.right).max())
    if off > made.tolerance:
        return "read", f"pixels are off by up to {off}"
    return "read", "" if found.changed == made.changed else f"changed {found.changed}, right is {made.changed}"


def read_hostile(kind: str, seed: int) -> tuple[str, str]:
    """Read a file that should mostly be refused; give the outcome and what is wrong with it."""
    made = hostile_picture(kind, seed)
    found = attempt(made.content)
    if isinstance(found, ReadPicture):
        return "read", "" if made.may_be_read else f"read, but should be refused: {', '.join(made.reasons)}"
    fine = isinstance(found, NoPicture) and found.reason in made.reasons and found.reason in REASONS
    return outcome_of(found), "" if fine else f"{found}, right is {', '.join(made.reasons)}"


def attempt(content: bytes) -> ReadPicture | NoPicture | Exception:
    """Read a file, and keep what it raises."""
    try:
        return picture_from(content)
    except Exception as error:
        return error


def outcome_of(found: NoPicture | Exception) -> str:
    """Name what came of a file that was not read."""
    return found.reason if isinstance(found, NoPicture) else f"raised {type(found).__name__}"


def main() -> int:
    """Read the files and print what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=2000, help="how many files")
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    arguments = parser.parse_args()
    tally = read_odd_pictures(arguments.count, seed=arguments.seed)
    peak = peak_mebibytes()
    for outcome, number in sorted(tally.outcomes.items(), key=lambda item: -item[1]):
        sys.stdout.write(f"{number:7,}  {outcome}\n")
    for wrong in tally.wrong[:50]:
        sys.stdout.write(f"WRONG: {wrong}\n")
    sys.stdout.write(f"{arguments.count:,} files, {len(tally.wrong)} wrong, {peak:.0f} MB at most\n")
    return 1 if tally.wrong or peak > MOST_MEMORY else 0


if __name__ == "__main__":
    sys.exit(main())
