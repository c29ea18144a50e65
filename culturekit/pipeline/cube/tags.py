"""A vision model names what images show: the other route beside the nearest artifact, and how far both agree."""

from dataclasses import asdict, replace
from pathlib import Path

from culturekit.builders.judging.image_sample import ImageSample
from culturekit.families.inputs import Files
from culturekit.families.routes import RouteOptions, RouteReads, routes
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.steps.tag_stage import tag_stage
from culturekit.report.stage_names import ROUTES
from culturekit.stages.stage import Stage

__all__ = ["routes_of", "sample_of", "tag_stages", "tags_folder"]


def tags_folder(run: CubeRun, model: str) -> Path:
    """Name the folder of what a model's images were tagged with."""
    return run.workdir / f"tags-{model}"


def sample_of(run: CubeRun) -> ImageSample | None:
    """Say which images are tagged; None for all."""
    tags = run.recipe.tags
    return None if tags is None or tags.images == "all" else ImageSample(tags.images, run.recipe.seed)


def tag_stages(run: CubeRun) -> list[Stage]:
    """Tag the images of each model; what the others have spent is taken from the budget."""
    tags = run.recipe.tags
    if tags is None:
        return []
    folders = {name: tags_folder(run, name) for name in run.names}
    return [
        tag_stage(
            run.images(name),
            tags.judge,
            cspace=run.space,
            sample=sample_of(run),
            llm=replace(tags.options(), beside=tuple(folder for other, folder in folders.items() if other != name)),
            name=f"tags-{name}",
        )
        for name in run.names
    ]


def routes_of(run: CubeRun) -> list[Stage]:
    """Hold the tags against the nearest artifacts, where there are tags."""
    if run.recipe.tags is None:
        return []
    folders = {name: tags_folder(run, name) for name in run.names}
    given = RouteReads(
        Files({f"a-{name}": run.matches(name) for name in run.names}),
        Files({f"b-{name}": folder / "matches.parquet" for name, folder in folders.items()}),
        Files({f"judgments-{name}": folder / "judgments.parquet" for name, folder in folders.items()}),
        Files({f"quality-{name}": run.workdir / f"quality-{name}/quality.parquet" for name in run.names}),
    )
    return [routes(given, RouteOptions(**asdict(run.scoring)), name=ROUTES)]
