"""The bank of images that a correction for hubs learns from: independent of what is evaluated, and balanced."""

from collections.abc import Sequence

import polars as pl

from culturekit.errors import UsageError
from culturekit.index.encoder import Vectors

__all__ = ["balance_of", "check_balanced", "check_independent"]

MOST_UNEQUAL = 2.0
"""How many times as often the most frequent artifact, or country, may be shown as the rarest."""


def check_independent(
    bank: pl.DataFrame, bank_vectors: Vectors, images: pl.DataFrame, vectors: Vectors, *, where: str
) -> None:
    """Refuse a bank that shares an image with those that are mapped, by its file or by its vector."""
    files = bank.join(images.select("sha256"), on="sha256", how="semi")
    seen = {row.tobytes() for row in bank_vectors}
    alike = sum(row.tobytes() in seen for row in vectors)
    if files.height or alike:
        raise UsageError(
            "the bank shares images with those that are mapped",
            where=where,
            expected="other images: of another model, or references",
            found=f"{files.height:,} equal files and {alike:,} equal vectors",
            hint="Corrected with its own images as the bank, a model's bias is taken for hubs and corrected away.",
        )


def balance_of(names: Sequence[str | None], every: Sequence[str]) -> tuple[int, int, str]:
    """Count how often the rarest and the most frequent of `every` name occur, and name the rarest."""
    counts = dict.fromkeys(every, 0)
    for name in names:
        if name in counts:
            counts[name] += 1
    rarest = min(sorted(counts), key=lambda name: counts[name])
    return counts[rarest], max(counts.values()), rarest


def check_balanced(bank: pl.DataFrame, artifacts: pl.DataFrame, *, where: str) -> dict[str, object]:
    """Refuse a bank that shows some artifacts and some countries much more often than others; give its figures.

    It is balanced if each artifact of the index, or each country that stands first with one, is shown, and none more
    than twice as often as another.

    Args:
        bank: artifact_id, the artifact that each image shows.
        artifacts: artifact_id and countries of those that images are compared with.
        where: the bank, for messages.
    """
    first = artifacts.select("artifact_id", place=pl.col("countries").list.first())
    shown = bank.join(first, on="artifact_id", how="left", maintain_order="left")
    by_artifact = balance_of(shown["artifact_id"].to_list(), first["artifact_id"].to_list())
    by_country = balance_of(shown["place"].to_list(), first["place"].drop_nulls().unique().to_list())
    if not any(fewest > 0 and most <= MOST_UNEQUAL * fewest for fewest, most, _ in (by_artifact, by_country)):
        raise UsageError(
            "the bank is not balanced",
            where=where,
            expected=f"every artifact, or every country, shown at least once and none over {MOST_UNEQUAL:g} times as "
            "often as another",
            found=f"countries {by_country[0]:,} ({by_country[2]}) to {by_country[1]:,} times, artifacts "
            f"{by_artifact[0]:,} ({by_artifact[2]}) to {by_artifact[1]:,} times",
        )
    return {
        "images": bank.height,
        "per_artifact": {"fewest": by_artifact[0], "most": by_artifact[1]},
        "per_country": {"fewest": by_country[0], "most": by_country[1]},
    }
