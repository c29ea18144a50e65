"""How real and how unlike images look: embedded, measured and scored."""

from pathlib import Path

from culturekit.core import roles
from culturekit.core.registry import parse_spec
from culturekit.core.run import Run
from culturekit.generation.stages.generate_stage import image_folder, stage_of
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.recipes.cube.nested_keys import INCEPTION, Realism, features_of, lpips_of
from culturekit.scores.inputs import ImageTables, PairFolders, ProbabilityFolders, VectorFolder, VectorFolders
from culturekit.scores.realism import realism
from culturekit.scores.spread import SpreadOptions, pairs, spread

FOLDER = "folder:"


def looks_scored(run: Run, wanted: Realism, options: SpreadOptions, *, seed: int) -> None:
    """Embed real and generated images, measure batches, and score how real and how unlike images look."""
    real, encoder = real_images(run, wanted), features_of(wanted.encoder)
    run.add(embed_stage(EmbedSource(real), encoder=encoder), roles.VECTORS, roles.REAL_IMAGES)
    for name, table in run.by_model(roles.IMAGES).items():
        run.add(embed_stage(EmbedSource(table), encoder=encoder), roles.VECTORS, name)
        if wanted.classes is not None:
            run.add(embed_stage(EmbedSource(table), encoder=features_of(wanted.classes)), roles.CLASSES, name)
        if wanted.lpips is not None:
            measured = pairs.stage(table, measure=lpips_of(wanted.lpips), size=options.size)
            run.add(measured, roles.PAIRS, name)
    images, prompts = ImageTables(run.tables(roles.IMAGES)), run.table(roles.PROMPTS)
    vectors = VectorFolders(run.tables(roles.VECTORS))
    beside_real = realism.stage(
        VectorFolder(run.folder(roles.VECTORS, roles.REAL_IMAGES)), vectors, images, real, prompts,
        ProbabilityFolders(probabilities(run, wanted)),
        options=wanted.scoring(seed=seed, confidence=options.confidence),
    )  # fmt: skip
    run.add(beside_real, roles.REALISM)
    distances = PairFolders(run.tables(roles.PAIRS))
    run.add(spread.stage(images, vectors, distances, prompts, options=options), roles.SPREAD)


def real_images(run: Run, wanted: Realism) -> Path:
    """Find the table of real images, and make it where they are a folder of pictures."""
    if wanted.real is None:
        return run.table(roles.REFERENCES)
    path = Path(wanted.real)
    if wanted.real.startswith(FOLDER) or (path.is_dir() and not (path / "images.parquet").is_file()):
        spec = wanted.real if wanted.real.startswith(FOLDER) else f"{FOLDER}{wanted.real}"
        return run.add(stage_of(image_folder(spec, None, model=roles.REAL_IMAGES)), roles.REAL)
    return path / "images.parquet" if path.is_dir() else path


def probabilities(run: Run, wanted: Realism) -> dict[str, Path]:
    """Name the class probabilities of each model, for the inception score, where its encoder or another gives them."""
    if wanted.classes is None and parse_spec(wanted.encoder).name != INCEPTION:
        return {}
    found = run.by_model(roles.VECTORS if wanted.classes is None else roles.CLASSES, file="probabilities.npy")
    return {f"probs-{name}": path for name, path in found.items()}
