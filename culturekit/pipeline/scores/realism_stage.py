"""The stage that scores realism: vectors of real and generated images in."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from culturekit.families.family_stage import family_stage
from culturekit.families.vector_files import (
    gathered,
    images_with_prompts,
    labelled,
    one_identity_of_all,
    tables_of_images,
    vector_inputs,
)
from culturekit.metrics.realism.extractors import check_extractor
from culturekit.metrics.scoring.score_realism import RealismInput, RealismOptions, score_realism
from culturekit.metrics.scoring.scored import Scored
from culturekit.stages.stage import Stage

__all__ = ["RealismFiles", "realism_stage"]


@dataclass(frozen=True, slots=True)
class RealismFiles:
    """The folders and files that realism is scored from; those of generated images by their role.

    Attributes:
        real: folder of vectors of real images.
        fake: folders of vectors of generated images.
        images: tables of the generated images; may be none.
        references: table of the real images; may be none.
        prompts: prompts of the images, for what their tables do not say; may be none.
        probs: folders of class probabilities, in the form of vectors; may be none.
    """

    real: Path
    fake: Mapping[str, Path]
    images: Mapping[str, Path] = field(default_factory=dict)
    references: Path | None = None
    prompts: Path | None = None
    probs: Mapping[str, Path] = field(default_factory=dict)

    @property
    def inputs(self) -> dict[str, Path]:
        """Every file by its role."""
        tables = {"references": self.references, "prompts": self.prompts}
        folders = vector_inputs({"real": self.real, **self.fake, **self.probs})
        given = {role: path for role, path in tables.items() if path is not None}
        return {**folders, **self.images, **given}


def realism_stage(files: RealismFiles, options: RealismOptions, *, name: str = "scores") -> Stage:
    """Score generated images against real ones; what made the vectors is read from their manifests when it is due."""
    settings = asdict(options)
    seed = settings.pop("seed")

    def score(scratch: Path) -> Scored:
        fakes, probs = list(files.fake.values()), list(files.probs.values())
        encoder = one_identity_of_all([files.real, *fakes])
        check_extractor(encoder, where=", ".join(map(str, [files.real, *fakes])))
        tables, real = list(files.images.values()), files.references
        given = RealismInput(
            real=labelled(files.real),
            fake=gathered(fakes, scratch / "fake.npy"),
            images=tables_of_images(tables, files.prompts, scratch) if tables else None,
            references=None if real is None else images_with_prompts(real, files.prompts, scratch),
            probs=gathered(probs, scratch / "probs.npy", role="probs") if probs else None,
        )
        known = replace(options, encoder=encoder, classifier=one_identity_of_all(probs) if probs else {})
        return score_realism(given, options=known)

    return family_stage(
        "realism", files.inputs, settings, lambda work: score(work.scratch), version=2, seeds={"references": seed},
        name=name,
    )  # fmt: skip
