"""The stages of linguistic and cultural biases: tones, dialects, neutral prompts, question pairs and ratings."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from culturekit.families.family_stage import family_stage
from culturekit.families.public_files import prompts_table
from culturekit.families.value_files import roles
from culturekit.index.embedding.vector_folder import load_vectors
from culturekit.metrics.linguistic.picture_tones import TONE_WARNINGS
from culturekit.metrics.linguistic.skin_pixels import Detector
from culturekit.metrics.scoring.score_dialects import DialectOptions, score_dialects
from culturekit.metrics.scoring.score_neutral import NeutralOptions, score_neutral
from culturekit.metrics.scoring.score_question_pairs import QuestionPairOptions, score_question_pairs
from culturekit.metrics.scoring.score_ratings import RatingOptions, score_ratings
from culturekit.metrics.scoring.score_tones import ToneOptions, score_tones
from culturekit.metrics.scoring.scored import Scored
from culturekit.pipeline.scores.picture_tones import tones_of_pictures
from culturekit.records.schemas import ANNOTATIONS, IMAGES, QUALITY
from culturekit.records.tables import Table
from culturekit.records.work import Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table

__all__ = ["LinguisticFiles", "dialect_stage", "neutral_stage", "question_pair_stage", "rating_stage", "tone_stage"]


@dataclass(frozen=True, slots=True)
class LinguisticFiles:
    """The files that these scores read; each stage says which it needs.

    Attributes:
        images: tables of images, such as one per model.
        prompts: the prompts, with their groups.
        quality: scores of single images.
        annotations: what people answered.
        vectors: a folder of vectors of images.
        captions: a folder of vectors of captions, its ids the captions.
    """

    images: Sequence[Path] = ()
    prompts: Path | None = None
    quality: Sequence[Path] = ()
    annotations: Path | None = None
    vectors: Path | None = None
    captions: Path | None = None

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        single = {"prompts": self.prompts, "annotations": self.annotations}
        folders = {"vectors": self.vectors, "captions": self.captions}
        return {
            **roles("images", self.images),
            **roles("quality", self.quality),
            **{role: path for role, path in single.items() if path is not None},
            **{
                f"{role}-{part}": folder / file
                for role, folder in folders.items()
                if folder is not None
                for part, file in (("values", "vectors.npy"), ("ids", "ids.parquet"))
            },
        }

    def asked(self, work: Work) -> pl.DataFrame:
        """Read the prompts."""
        if self.prompts is None:
            raise ValueError("no prompts were given")
        return pl.read_parquet(prompts_table(self.prompts, work.scratch))


def tone_stage(files: LinguisticFiles, options: ToneOptions, detector: Detector, *, name: str = "scores") -> Stage:
    """Score the skin tones of pictures, and of people's answers where there are any."""

    def score(work: Work) -> Scored:
        tables = [(path, read_table(path, IMAGES)) for path in files.images]
        return score_tones(
            tones_of_pictures(work, tables, detector),
            together([table for _, table in tables], IMAGES),
            None if files.prompts is None else files.asked(work),
            None if files.annotations is None else read_table(files.annotations, ANNOTATIONS),
            options=options,
        )

    settings = {**settings_of(options), "warning": TONE_WARNINGS.get(detector, "")}
    packages = ("numpy", "pillow", "polars", "scipy")
    return family_stage("tones", files.inputs, settings, score, name=name, packages=packages)


def dialect_stage(files: LinguisticFiles, options: DialectOptions, *, name: str = "scores") -> Stage:
    """Score the gap between two dialects."""

    def score(work: Work) -> Scored:
        return score_dialects(
            read_all(files.images, IMAGES),
            files.asked(work),
            read_all(files.quality, QUALITY) if files.quality else None,
            None if files.annotations is None else read_table(files.annotations, ANNOTATIONS),
            options=options,
        )

    seeds = {"permutations": options.seed}
    return family_stage("dialects", files.inputs, settings_of(options), score, seeds=seeds, name=name)


def neutral_stage(files: LinguisticFiles, options: NeutralOptions, *, name: str = "scores") -> Stage:
    """Score neutral pictures against those of groups."""

    def score(work: Work) -> Scored:
        vectors, ids = load_vectors(folder_of(files.vectors))
        return score_neutral(read_all(files.images, IMAGES), files.asked(work), vectors, ids, options=options)

    return family_stage("neutral", files.inputs, settings_of(options), score, name=name)


def question_pair_stage(files: LinguisticFiles, options: QuestionPairOptions, *, name: str = "scores") -> Stage:
    """Score pairs of captions against pictures."""

    def score(work: Work) -> Scored:
        words, captions = load_vectors(folder_of(files.captions))
        return score_question_pairs(
            read_all(files.images, IMAGES),
            files.asked(work),
            load_vectors(folder_of(files.vectors)),
            dict(zip(captions, words, strict=True)),
            options=options,
        )

    return family_stage("question-pairs", files.inputs, settings_of(options), score, name=name)


def rating_stage(files: LinguisticFiles, options: RatingOptions, *, name: str = "scores") -> Stage:
    """Score what people answered, as tables of means and rates."""

    def score(work: Work) -> Scored:
        return score_ratings(
            read_table(folder_of(files.annotations), ANNOTATIONS),
            read_all(files.images, IMAGES) if files.images else None,
            None if files.prompts is None else files.asked(work),
            options=options,
        )

    return family_stage("ratings", files.inputs, settings_of(options), score, name=name)


Options = ToneOptions | DialectOptions | NeutralOptions | QuestionPairOptions | RatingOptions


def settings_of(options: Options) -> Mapping[str, object]:
    """Give the options as the manifest names them; the seed stands apart."""
    return {name: value for name, value in asdict(options).items() if name != "seed"}


def folder_of(path: Path | None) -> Path:
    """Give a path that the stage cannot do without."""
    if path is None:
        raise ValueError("a path was not given")
    return path


def read_all(paths: Sequence[Path], table: Table) -> pl.DataFrame:
    """Read tables of one kind as one."""
    return together([read_table(path, table) for path in paths], table)


def together(frames: Sequence[pl.DataFrame], table: Table) -> pl.DataFrame:
    """Put tables of one kind below each other; columns that only some have are left out."""
    return pl.concat([frame.select(list(table.schema)) for frame in frames])
