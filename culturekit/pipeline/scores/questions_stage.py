"""The stage that scores what was said of images: judgments, quality and the questions asked in."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import polars as pl

from culturekit.families.family_stage import family_stage
from culturekit.families.value_files import roles
from culturekit.families.vector_files import images_with_prompts
from culturekit.metrics.scoring.score_questions import QuestionInput, QuestionOptions, score_questions
from culturekit.metrics.scoring.scored import Scored
from culturekit.records.schemas import JUDGMENTS, QUALITY, QUESTIONS
from culturekit.records.tables import Table
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table

__all__ = ["QuestionFiles", "questions_stage"]


@dataclass(frozen=True, slots=True)
class QuestionFiles:
    """The files that are scored; of some there may be several, such as one per model.

    Attributes:
        images: tables of images.
        judgments: what judges said of them.
        quality: what quality scorers gave them.
        questions: the questions of each prompt; may be none.
        prompts: prompts of the images, for what their tables do not say; may be none.
    """

    images: Sequence[Path]
    judgments: Sequence[Path] = ()
    quality: Sequence[Path] = ()
    questions: Path | None = None
    prompts: Path | None = None

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        single = {"questions": self.questions, "prompts": self.prompts}
        return {
            **roles("images", self.images),
            **roles("judgments", self.judgments),
            **roles("quality", self.quality),
            **{role: path for role, path in single.items() if path is not None},
        }


def questions_stage(files: QuestionFiles, options: QuestionOptions, *, name: str = "scores") -> Stage:
    """Score images by answers, probabilities of yes, and quality."""
    return family_stage(
        "questions", files.inputs, asdict(options), lambda work: score(work.scratch, files, options), name=name
    )


def score(scratch: Path, files: QuestionFiles, options: QuestionOptions) -> Scored:
    """Read and score."""
    tables = [images_with_prompts(path, files.prompts, scratch) for path in files.images]
    given = QuestionInput(
        images=pl.concat(tables, how="diagonal"),
        judgments=together(files.judgments, JUDGMENTS),
        questions=None if files.questions is None else read_table(files.questions, QUESTIONS),
        quality=together(files.quality, QUALITY),
    )
    return score_questions(given, options=options)


def together(paths: Sequence[Path], table: Table) -> pl.DataFrame | None:
    """Read tables of one kind as one."""
    return pl.concat([read_table(path, table).select(list(table.schema)) for path in paths]) if paths else None
