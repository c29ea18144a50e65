"""The stage that scores AHEaD: descriptors, what was said of images, and vectors of phrases in."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from culturekit.errors import UsageError
from culturekit.families.family_stage import family_stage
from culturekit.families.public_files import prompts_table
from culturekit.index.embedding.vector_folder import load_vectors
from culturekit.kg.countries import countries
from culturekit.metrics.scoring.score_ahead import AheadInput, AheadOptions, score_ahead
from culturekit.metrics.scoring.scored import Scored
from culturekit.records.schemas import (
    DESCRIPTOR_MATCHES,
    DESCRIPTORS,
    EXAGGERATIONS,
    IMAGES,
    JUDGMENTS,
)
from culturekit.records.tables import Table
from culturekit.records.work import Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, write_table

__all__ = ["AheadFiles", "ahead_stage", "groups_of"]


@dataclass(frozen=True, slots=True)
class AheadFiles:
    """The files that AHEaD reads; of some there may be several, such as one per model.

    Attributes:
        images: tables of images.
        prompts: the prompts, with their countries.
        descriptors: what a picture of each prompt should show.
        extracted: judgments of the task `extract`.
        phrases: a folder of vectors, one per phrase.
        stereotypes: judgments of the task `stereotype`; may be none.
    """

    images: Sequence[Path]
    prompts: Path
    descriptors: Path
    extracted: Sequence[Path]
    phrases: Path
    stereotypes: Sequence[Path] = ()

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        many = {"images": self.images, "extracted": self.extracted, "stereotypes": self.stereotypes}
        return {
            **{f"{role}-{number}": path for role, paths in many.items() for number, path in enumerate(paths)},
            "prompts": self.prompts,
            "descriptors": self.descriptors,
            "phrase-vectors": self.phrases / "vectors.npy",
            "phrase-ids": self.phrases / "ids.parquet",
        }


def ahead_stage(files: AheadFiles, options: AheadOptions, *, name: str = "scores") -> Stage:
    """Score the images of every model against the descriptors of their prompts."""
    return family_stage("ahead", files.inputs, asdict(options), lambda work: score(work, files, options), name=name)


def score(work: Work, files: AheadFiles, options: AheadOptions) -> Scored:
    """Read, score, and write what stands behind the scores beside them."""
    vectors, ids = load_vectors(files.phrases)
    answer = score_ahead(
        AheadInput(
            images=together(files.images, IMAGES),
            prompts=pl.read_parquet(prompts_table(files.prompts, work.scratch)),
            descriptors=read_table(files.descriptors, DESCRIPTORS),
            extracted=together(files.extracted, JUDGMENTS),
            vectors=vectors,
            ids=ids,
            stereotypes=together(files.stereotypes, JUDGMENTS) if files.stereotypes else None,
        ),
        options=options,
    )
    write_table(work.out, DESCRIPTOR_MATCHES, answer.descriptors)
    if answer.exaggerations.height:
        write_table(work.out, EXAGGERATIONS, answer.exaggerations)
    return answer.scored


def together(paths: Sequence[Path], table: Table) -> pl.DataFrame:
    """Read tables of one kind as one; columns that only some have are left out."""
    return pl.concat([read_table(path, table).select(list(table.schema)) for path in paths])


def groups_of(scheme: str) -> Mapping[str, str]:
    """Give the group of each country in a scheme, such as `cultivate`: GN or GS."""
    every = countries().values()
    known = sorted({name for country in every for name in country.groups})
    if scheme not in known:
        raise UsageError("unknown scheme of country groups", expected=" or ".join(known), found=repr(scheme))
    return {country.iso: country.groups[scheme] for country in every if scheme in country.groups}
