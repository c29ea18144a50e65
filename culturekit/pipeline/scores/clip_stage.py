"""The stage that scores images against texts: vectors of both in, CLIPScores out."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from culturekit.families.family_stage import family_stage
from culturekit.families.vector_files import images_with_prompts, labelled, one_identity, vector_inputs
from culturekit.metrics.scoring.score_clip import ClipInput, ClipOptions, score_clip
from culturekit.metrics.scoring.scored import Scored
from culturekit.records.schemas import ANNOTATIONS, YES_BY_SCORE
from culturekit.records.work import Work
from culturekit.stages.stage import Stage
from culturekit.storage.tables import read_table, write_table

__all__ = ["ClipFiles", "clip_stage"]


@dataclass(frozen=True, slots=True)
class ClipFiles:
    """The folders and files that CLIPScore is computed from.

    Attributes:
        vectors: folder of vectors of images.
        texts: folder of vectors of texts.
        images: table of the images.
        prompts: prompts of the images, for what their table does not say; may be none.
        annotations: what people answered about the images; may be none.
    """

    vectors: Path
    texts: Path
    images: Path
    prompts: Path | None = None
    annotations: Path | None = None

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        tables = {"images": self.images, "prompts": self.prompts, "annotations": self.annotations}
        folders = vector_inputs({"vectors": self.vectors, "texts": self.texts})
        return {**folders, **{role: path for role, path in tables.items() if path is not None}}


def clip_stage(files: ClipFiles, options: ClipOptions, *, name: str = "scores") -> Stage:
    """Score images against texts; what made the vectors is read from their manifests."""
    options = replace(options, encoder=one_identity(files.vectors, files.texts))
    return family_stage("clip", files.inputs, asdict(options), lambda work: score(work, files, options), name=name)


def score(work: Work, files: ClipFiles, options: ClipOptions) -> Scored:
    """Read, score, and write the curve of people's answers beside the scores."""
    table = images_with_prompts(files.images, files.prompts, work.scratch)
    people = None if files.annotations is None else read_table(files.annotations, ANNOTATIONS)
    given = ClipInput(labelled(files.vectors), labelled(files.texts), table, people)
    answer = score_clip(given, options=options)
    if people is not None:
        write_table(work.out, YES_BY_SCORE, answer.curve)
    return answer.scored
