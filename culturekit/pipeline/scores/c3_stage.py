"""The stage that scores C³: vectors of captions, images and objects in, scores and the captions to keep out."""

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from culturekit.index.embedding.vector_folder import load_vectors
from culturekit.metrics.scoring.score_c3 import C3Options, LabelledVectors, score_c3
from culturekit.metrics.scoring.scored import Scored
from culturekit.pipeline.family_stage import family_stage
from culturekit.pipeline.stage import Stage
from culturekit.records.schemas import SELECTION
from culturekit.records.work import Work
from culturekit.storage.tables import write_table

__all__ = ["c3_stage"]

FILES = {"vectors": "vectors.npy", "ids": "ids.parquet"}


def c3_stage(folders: Mapping[str, Path], options: C3Options, *, name: str = "scores") -> Stage:
    """Score captions from folders of vectors, by role: source, target, objects, image, image_target."""
    inputs = {f"{role}-{part}": folder / file for role, folder in folders.items() for part, file in FILES.items()}
    return family_stage("c3", inputs, asdict(options), lambda work: score(work, folders, options), name=name)


def score(work: Work, folders: Mapping[str, Path], options: C3Options) -> Scored:
    """Read, score, and write the list of what to keep beside the scores."""
    vectors = {role: LabelledVectors(*load_vectors(folder)) for role, folder in folders.items()}
    answer = score_c3(vectors, options=options)
    if options.keep is not None:
        write_table(work.out, SELECTION, answer.selection)
    return answer.scored
