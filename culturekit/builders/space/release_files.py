"""The files of a release: the space as a whole and by concept, in each form, and the checksums of all."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import polars as pl

from culturekit.builders.prompt_rows import Wording, artifact_prompt
from culturekit.builders.space.public_cube import key_of
from culturekit.builders.space.public_layout import public_rows, statements_of, write_public
from culturekit.errors import UsageError
from culturekit.records.choices import TRIPLE_SUFFIXES, ReleaseFormat
from culturekit.records.schemas import CSPACE
from culturekit.registry import needing
from culturekit.storage.atomic import write_atomically
from culturekit.storage.digests import digest_file
from culturekit.storage.spreadsheet_cells import export_table
from culturekit.storage.tables import save_parquet

__all__ = ["PUBLIC", "SPLITS", "SUMS", "ReleaseFormat", "check_formats", "read_formats", "write_release_files"]

ROWS_AT_ONCE = 20_000
SPLITS = "splits"
SUMS = "SHA256SUMS"
PUBLIC = "cube.json"


def read_formats(text: str) -> tuple[ReleaseFormat, ...]:
    """Read the forms of a release, divided by commas; each counts once, in the order of the list below."""
    known: tuple[ReleaseFormat, ...] = get_args(ReleaseFormat)
    stated = [word.strip().lower() for word in text.split(",") if word.strip()]
    unknown = sorted(set(stated) - set(known))
    if unknown or not stated:
        raise UsageError("not a form of a release", expected=" or ".join(known), found=", ".join(unknown) or repr(text))
    return tuple(form for form in known if form in stated)


def check_formats(formats: Sequence[ReleaseFormat]) -> None:
    """Make sure that the package that writes triples is there, where they are asked for."""
    if any(form in TRIPLE_SUFFIXES for form in formats):
        with needing("kg", "a release in triples"):
            import culturekit.builders.space.space_triples  # noqa: F401


def write_release_files(
    out: Path, space: pl.DataFrame, kept: pl.DataFrame, formats: Sequence[ReleaseFormat]
) -> dict[str, int]:
    """Write the space in more forms beside `cspace.parquet`, split by concept; nothing where no form is asked for."""
    if not formats:
        return {}
    folder = out / SPLITS
    folder.mkdir(exist_ok=True)
    ordered = space.sort(CSPACE.key, maintain_order=True)
    concepts = ordered["concept"].unique().sort().to_list()
    for concept in concepts:
        parquet = folder / f"{concept}.parquet"
        save_parquet(ordered.filter(pl.col("concept") == concept), parquet)
        write_forms(parquet, formats)
        if "parquet" not in formats:
            parquet.unlink()
    write_forms(out / "cspace.parquet", formats)
    counts = {"splits": len(concepts)}
    if "public" in formats:
        counts["public_rows"] = write_public(out / PUBLIC, public_layout(ordered, kept))
    write_sums(out)
    return counts


def write_forms(parquet: Path, formats: Sequence[ReleaseFormat]) -> None:
    """Write a table in the plain forms beside itself."""
    if "jsonl" in formats:
        export_table(parquet, "jsonl")
    if "csv" in formats:
        export_table(parquet, "csv")
    if any(form in TRIPLE_SUFFIXES for form in formats):
        from culturekit.builders.space.space_triples import space_triples

        for form, suffix in TRIPLE_SUFFIXES.items():
            if form in formats:
                write_atomically(parquet.with_suffix(suffix), space_triples(pl.read_parquet(parquet), form))


def public_layout(space: pl.DataFrame, kept: pl.DataFrame) -> Iterator[dict[str, str]]:
    """Give the rows of the public layout, each with the released prompt that names its artifact."""
    wording = Wording("released")
    for part in space.iter_slices(ROWS_AT_ONCE):
        rows = list(part.iter_rows(named=True))
        made = (artifact_prompt(row, wording) for row in rows)
        texts = {key_of(row): row["text"] for row in made if "text" in row}
        known = kept.join(part, left_on=["concept", "qid"], right_on=["concept", "artifact_id"], how="semi")
        yield from public_rows(rows, texts, statements_of(known))


def write_sums(out: Path) -> None:
    """Write the checksums of all files, as `sha256sum --check` reads them."""
    paths = sorted(path for path in out.rglob("*") if path.is_file() and path.name != SUMS)
    lines = [f"{digest_file(path)}  {path.relative_to(out).as_posix()}\n" for path in paths]
    write_atomically(out / SUMS, "".join(lines).encode("utf-8"))
