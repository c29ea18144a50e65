"""The stage that scores realism: vectors of real and generated images in."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from culturekit.metrics.scoring.score_realism import RealismInput, RealismOptions, score_realism
from culturekit.metrics.scoring.scored import Scored
from culturekit.pipeline.family_stage import family_stage
from culturekit.pipeline.scores.vector_files import (
    identity_behind,
    images_with_prompts,
    labelled,
    one_identity,
    vector_inputs,
)
from culturekit.pipeline.stage import Stage
from culturekit.records.schemas import IMAGES
from culturekit.storage.tables import read_table

__all__ = ["RealismFiles", "realism_stage"]


@dataclass(frozen=True, slots=True)
class RealismFiles:
    """The folders and files that realism is scored from.

    Attributes:
        real: folder of vectors of real images.
        fake: folder of vectors of generated images.
        images: table of the generated images; may be none.
        references: table of the real images; may be none.
        prompts: prompts of the generated images, for what their table does not say; may be none.
        probs: folder of class probabilities, in the form of vectors; may be none.
    """

    real: Path
    fake: Path
    images: Path | None = None
    references: Path | None = None
    prompts: Path | None = None
    probs: Path | None = None

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        tables = {"images": self.images, "references": self.references, "prompts": self.prompts}
        folders = vector_inputs({"real": self.real, "fake": self.fake, "probs": self.probs})
        return {**folders, **{role: path for role, path in tables.items() if path is not None}}


def realism_stage(files: RealismFiles, options: RealismOptions, *, name: str = "scores") -> Stage:
    """Score generated images against real ones; what made the vectors is read from their manifests."""
    options = replace(
        options,
        encoder=one_identity(files.real, files.fake),
        classifier={} if files.probs is None else identity_behind(files.probs),
    )
    settings = asdict(options)
    seed = settings.pop("seed")

    def score(scratch: Path) -> Scored:
        given = RealismInput(
            real=labelled(files.real),
            fake=labelled(files.fake),
            images=None if files.images is None else images_with_prompts(files.images, files.prompts, scratch),
            references=None if files.references is None else read_table(files.references, IMAGES),
            probs=None if files.probs is None else labelled(files.probs, role="probs"),
        )
        return score_realism(given, options=options)

    return family_stage(
        "realism", files.inputs, settings, lambda work: score(work.scratch), seeds={"references": seed}, name=name
    )
