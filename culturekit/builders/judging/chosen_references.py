"""Real images of activities: of the candidates of each prompt those that show it best, and why the others went."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import polars as pl
from pydantic import Field

from culturekit.builders.judging.image_judge import TASK
from culturekit.errors import UsageError
from culturekit.records.schemas import IMAGES, JUDGMENTS, PROMPTS, QUALITY
from culturekit.records.work import Outcome, Work
from culturekit.stages.roles import REAL_IMAGES
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest_bytes
from culturekit.storage.picture_files import read_bytes_inside
from culturekit.storage.picture_reading import NoPicture
from culturekit.storage.tables import read_table, write_drops, write_table

__all__ = ["ChooseOptions", "ChooseReads", "choose_references"]

STAGE = "choose"
NAME_LETTERS = 16
"""Letters of a picture's hash that its file is named by."""

SUFFIX = r"(\.[^./]*)$"
NO_PROMPT, NO_SCORE, TWICE = "no known prompt", "no score", "the same picture as a better one"


@dataclass(frozen=True, slots=True)
class ChooseReads:
    """Candidates, what they are candidates for, and how well they show it."""

    images: Annotated[Path, Field(description="Images table of candidates; its pictures lie beside it.")]
    prompts: Annotated[
        Path,
        Field(description="Prompts of the candidates; a translation is a row with the pair_id of the English one."),
    ]
    scores: Annotated[
        Path, Field(description="How well each shows its prompt: what `quality` (clipscore) or `vqascore` wrote.")
    ]


@dataclass(frozen=True, slots=True)
class ChooseOptions:
    """How many are looked at and kept."""

    per_language: Annotated[
        int, Field(ge=1, description="Candidates of a prompt that count, in each language it was asked in.")
    ] = 10
    at_least: Annotated[float, Field(description="Score that an image must reach.")] = 0.0
    keep: Annotated[int, Field(ge=1, description="Images of each prompt that are kept: the best.")] = 5


def choose_references(work: Work, given: ChooseReads, options: ChooseOptions) -> Outcome:
    """Write the chosen images as those of the model `real`, and every other one with its reason."""
    table = read_table(given.images, IMAGES)
    placed = table.join(languages(read_table(given.prompts, PROMPTS)), on="prompt_id", how="left")
    judged = ranked(placed.join(scores_of(given.scores), on="image_id", how="left"), options)
    kept, gone = judged.filter(pl.col("gone").is_null()), judged.filter(pl.col("gone").is_not_null())
    dropped = gone.select(
        key="image_id", concept=pl.lit(None, pl.String), stage=pl.lit(STAGE), reason="gone",
        detail=pl.col("score").round(4).cast(pl.String),
    )  # fmt: skip
    reasons = write_drops(work.out, dropped)
    if kept.is_empty():
        raise UsageError(
            "no candidate is kept", where=str(given.images), expected="images that reach at_least",
            found=", ".join(f"{count} {why}" for why, count in reasons.items()) or "no candidates",
        )  # fmt: skip
    for path, sha256 in kept.select("path", "sha256").iter_rows():
        copied(given.images.parent, path, sha256, work.out)
    chosen = kept.with_columns(
        model=pl.lit(REAL_IMAGES), prompt_id="about", path=file_of(), repeat=pl.lit(0, pl.UInt16),
        slot=(pl.col("place") - 1).cast(pl.UInt8),
    )  # fmt: skip
    write_table(work.out, IMAGES, chosen.select(table.columns))
    without = placed.drop_nulls("about")["about"].n_unique() - kept["about"].n_unique()
    counts = {"images": kept.height, "prompts": kept["about"].n_unique(), "drops": gone.height}
    return Outcome(counts, reasons, {"prompts_without_images": without} if without else {})


def languages(prompts: pl.DataFrame) -> pl.DataFrame:
    """Say of each prompt which English one it asks for, and in which language."""
    if "pair_id" not in prompts.columns:
        return prompts.select("prompt_id", "language", about="prompt_id")
    english = prompts.filter(language="en").select("pair_id", about="prompt_id").drop_nulls()
    paired = prompts.join(english.unique("pair_id"), on="pair_id", how="left")
    return paired.select("prompt_id", "language", about=pl.coalesce("about", "prompt_id"))


def scores_of(path: Path) -> pl.DataFrame:
    """Read one score an image: of a scorer of pictures and texts, or of a model's probability of yes."""
    columns = pl.read_parquet_schema(path)
    if "scorer" in columns:
        found = read_table(path, QUALITY).select("image_id", "value", by="scorer")
    else:
        found = read_table(path, JUDGMENTS).filter(task=TASK).select("image_id", "value", by="judge")
    if found["by"].n_unique() != 1:
        raise UsageError("candidates are compared by one score", where=str(path), expected="one scorer",
                         found=", ".join(found["by"].unique().sort()) or "none")  # fmt: skip
    return found.select("image_id", score="value")


def ranked(placed: pl.DataFrame, options: ChooseOptions) -> pl.DataFrame:
    """Add `gone`, why a candidate is not kept, and its `place` among those of its prompt."""
    unscored = (
        pl.when(pl.col("status") != "ok").then(pl.concat_str(pl.lit("no picture: "), "status"))
        .when(pl.col("about").is_null()).then(pl.lit(NO_PROMPT))
        .when(pl.col("score").is_null()).then(pl.lit(NO_SCORE))
    )  # fmt: skip
    table = placed.with_columns(gone=unscored).sort("prompt_id", "repeat", "slot", "image_id", nulls_last=True)
    turn = pl.int_range(pl.len()).over("about", "language")
    late = pl.when(turn >= options.per_language).then(pl.lit(f"beyond the first {options.per_language} of a language"))
    table = table.with_columns(gone=pl.coalesce("gone", late))
    low = pl.when(pl.col("score") < options.at_least).then(pl.lit(f"score below {options.at_least:g}"))
    table = table.with_columns(gone=pl.coalesce("gone", low))
    table = table.sort("about", "score", "image_id", descending=[False, True, False], nulls_last=True)
    again = pl.col("gone").is_null() & (pl.int_range(pl.len()).over("gone", "about", "sha256") > 0)
    table = table.with_columns(gone=pl.when(again).then(pl.lit(TWICE)).otherwise("gone"))
    place = pl.col("gone").is_null().cast(pl.Int64).cum_sum().over("about")
    table = table.with_columns(place=place)
    beyond = pl.when(pl.col("gone").is_null() & (pl.col("place") > options.keep))
    return table.with_columns(gone=beyond.then(pl.lit(f"not among the best {options.keep}")).otherwise("gone"))


def copied(root: Path, path: str, sha256: str, out: Path) -> None:
    """Copy a picture, if it is the one that the table lists."""
    content = read_bytes_inside(root, path)
    if isinstance(content, NoPicture) or digest_bytes(content) != sha256:
        why = content.reason if isinstance(content, NoPicture) else "another picture than when it was listed"
        raise UsageError(
            "a candidate cannot be copied", where=str(root / path), found=why, expected=f"SHA-256 {sha256}"
        )
    target = out / "files" / f"{sha256[:NAME_LETTERS]}{Path(path).suffix}"
    target.parent.mkdir(exist_ok=True)
    write_atomically(target, content)


def file_of() -> pl.Expr:
    """Say where a copied picture lies."""
    return pl.concat_str(pl.lit("files/"), pl.col("sha256").str.head(NAME_LETTERS), pl.col("path").str.extract(SUFFIX))
