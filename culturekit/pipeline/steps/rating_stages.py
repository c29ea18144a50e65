"""The stages around ratings in a run: which images people rate, and simulated people who do."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import polars as pl

from culturekit.annotate.export import HAND_OUT
from culturekit.annotate.importing import read_project
from culturekit.annotate.rated_sample import rated_sample, simulated_export
from culturekit.builders.judging.simulated_people import AskedFor, Shown, SimulatedPeople
from culturekit.families.handles.value_files import roles
from culturekit.records.schemas import ANNOTATION_KEY, AUDIT_SAMPLE, CSPACE, IMAGES, MATCHES, PROMPTS
from culturekit.records.work import Outcome, Work
from culturekit.stages.stage import Stage
from culturekit.storage.atomic import write_atomically
from culturekit.storage.tables import read_table, write_table

__all__ = ["ANSWERS_FILE", "rated_sample_stage", "simulated_answers_stage"]

ANSWERS_FILE = "answers.json"
"""What simulated people answered, as an export of Label Studio."""

CAVEAT = "The ratings are by simulated people, who know what the simulated models drew."


def rated_sample_stage(images: list[Path], prompts: Path, *, count: int, seed: int) -> Stage:
    """Draw the images that people are to rate."""

    def run(work: Work) -> Outcome:
        table = pl.concat([read_table(path, IMAGES).select(list(IMAGES.schema)) for path in images])
        sample = rated_sample(table, read_table(prompts, PROMPTS), count=count, rng=np.random.default_rng(seed))
        write_table(work.out, AUDIT_SAMPLE, sample)
        return Outcome({"audit_sample": sample.height, "prompts": sample["prompt_id"].n_unique()})

    inputs = {**roles("images", images), "prompts": prompts}
    return Stage("rated-sample", "rated-sample", 1, run, inputs, {"prompts": count}, {"sample": seed})


def simulated_answers_stage(
    project: Path, truth: list[Path], prompts: Path, cspace: Path, how: SimulatedPeople, *, seed: int
) -> Stage:
    """Let simulated people fill in a project that was handed out."""

    def run(work: Work) -> Outcome:
        _, scheme = read_project(project)
        key = read_table(project / f"{ANNOTATION_KEY.name}.parquet", ANNOTATION_KEY)
        tasks = handed_out(project)
        known = pl.concat([read_table(path, MATCHES).select(list(MATCHES.schema)) for path in truth])
        shown = {
            image: Shown(*labels)
            for image, *labels in known.select("image_id", "artifact_id", "country", "continent").iter_rows()
        }
        meant = asked_for(read_table(prompts, PROMPTS), read_table(cspace, CSPACE))
        answered = simulated_export(tasks, key, scheme, shown, meant, how, seed=seed)
        write_atomically(work.out / ANSWERS_FILE, orjson.dumps(answered, option=orjson.OPT_INDENT_2) + b"\n")
        given = sum(len(task["annotations"]) for task in answered)
        return Outcome({"tasks": len(answered), "annotations": given}, notes={"caveat": CAVEAT})

    inputs = {"project": project, **roles("truth", truth), "prompts": prompts, "cspace": cspace}
    return Stage("simulated-answers", "simulated-answers", 1, run, inputs, asdict(how), {"answers": seed})


def handed_out(project: Path) -> list[dict[str, Any]]:
    """Read the tasks that the annotation tool shows."""
    folder = project / HAND_OUT / "label-studio"
    projects = orjson.loads((folder / "projects.json").read_bytes())
    return [task for one in projects for task in orjson.loads((folder / one["tasks"]).read_bytes())]


def asked_for(prompts: pl.DataFrame, space: pl.DataFrame) -> dict[str, AskedFor]:
    """Say what each prompt asks for."""
    continents = dict(space.select("country", "continent").unique().sort("country", "continent").iter_rows())
    return {
        prompt: AskedFor(artifact, country, continents.get(country))
        for prompt, artifact, country in prompts.select("prompt_id", "artifact_id", "country").iter_rows()
    }
