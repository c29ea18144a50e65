"""Whether images show what their prompts ask for, how real and how unlike they look: looked at, and scored."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from culturekit.builders.judging import question_graph
from culturekit.builders.judging.image_judge import vqascore
from culturekit.core import roles
from culturekit.core.inputs import Numbered
from culturekit.core.registry import parse_spec
from culturekit.core.roles import Role
from culturekit.core.run import Run
from culturekit.generation.runner import ImagePlan
from culturekit.generation.stages.generate_stage import image_folder, stage_of
from culturekit.index.embedding.embed_table import EmbedSource, embed_stage
from culturekit.index.raters.quality import quality_stage
from culturekit.llm.answers import LlmOptions
from culturekit.recipes.cube.nested_keys import INCEPTION, Faithfulness, Realism, features_of, lpips_of
from culturekit.recipes.planning import Prompts, asks
from culturekit.scores.faithfulness import QuestionOptions, faithfulness
from culturekit.scores.image_levels import MeanOptions
from culturekit.scores.inputs import ImageTables, PairFolders, ProbabilityFolders, VectorFolder, VectorFolders
from culturekit.scores.realism import realism
from culturekit.scores.spread import SpreadOptions, pairs, spread


@dataclass(frozen=True, slots=True)
class FaithfulnessLooks:
    """What is asked about the images of a run, and how much of it there is."""

    run: Run
    wanted: Faithfulness  # who writes questions, answers them, and compares
    plan: ImagePlan  # what each model made
    prompts: Prompts  # counts the prompts of some kinds, as far as that can be known now
    asking: Callable[[Role, str], LlmOptions]  # says how the stage of a role and a model asks for words

    def asked_prompts(self) -> int | None:
        """Count the prompts whose images are looked at."""
        return self.prompts(self.plan.kinds)

    def per_prompt(self) -> int:
        """Count the images of a model and prompt that are looked at."""
        made = self.plan.repeats * self.plan.slots
        return made if self.wanted.per_prompt is None else min(made, self.wanted.per_prompt)

    def images(self) -> int | None:
        """Count the images of a model that are looked at."""
        prompts = self.asked_prompts()
        return None if prompts is None else prompts * self.per_prompt()

    def questions(self) -> int | None:
        """Count the questions about the images of a model, once they are written: a request for each of both."""
        asked = self.run.table(roles.QUESTIONS)
        if not asked.is_file() or self.images() is None:
            return None
        return pl.read_parquet(asked, columns=["prompt_id"]).height * self.per_prompt()


def faithfulness_scores(looks: FaithfulnessLooks, means: MeanOptions) -> None:
    """Have prompts turned into questions, images looked at, and all models scored together."""
    run, wanted = looks.run, looks.wanted
    if wanted.questions is not None:
        writing = question_graph.build.stage(
            run.table(roles.PROMPTS), writer=wanted.questions, kinds=looks.plan.kinds,
            llm=looks.asking(roles.QUESTIONS, ""),
        )  # fmt: skip
        run.add(writing, roles.QUESTIONS, plan=asks(count=looks.asked_prompts, requests=looks.asked_prompts))
    for model in run.models:
        look_at(looks, model)
    scored = faithfulness.stage(**what_was_said(run), options=QuestionOptions(wanted.denominator, means))
    run.add(scored, roles.FAITHFULNESS)


def look_at(looks: FaithfulnessLooks, model: str) -> None:
    """Have the images of a model looked at: a request for each image and question, one for each image, or none."""
    run, wanted = looks.run, looks.wanted
    images, prompts, limit = run.table(roles.IMAGES, model), run.table(roles.PROMPTS), wanted.per_prompt
    if wanted.answers is not None:
        stage = question_graph.answer.stage(
            images, run.table(roles.QUESTIONS), judge=wanted.answers, per_prompt=limit,
            llm=looks.asking(roles.ANSWERS, model),
        )  # fmt: skip
        run.add(stage, roles.ANSWERS, model, plan=asks(count=looks.images, requests=looks.questions))
    if wanted.vqascore is not None:
        stage = vqascore.stage(
            images, prompts, judge=wanted.vqascore, of=wanted.of, per_prompt=limit,
            llm=looks.asking(roles.VQASCORE, model),
        )  # fmt: skip
        run.add(stage, roles.VQASCORE, model, plan=asks(count=looks.images, requests=looks.images))
    for number, scorer in enumerate(wanted.scorers, start=1):
        stage = quality_stage(images, prompts, scorer=scorer)
        run.add(stage, roles.SCORER, model, str(number))


def what_was_said(run: Run) -> dict[str, Any]:
    """Name what was said of the images of all models; the quality of each is a scorer beside the others."""
    judgments: dict[str, Path] = {}
    quality: dict[str, Path] = {}
    for model in run.models:
        judges = [role for role in (roles.ANSWERS, roles.VQASCORE) if run.has(role, model)]
        judgments |= {role.folder(model): run.table(role, model) for role in judges}
        quality |= (
            {roles.QUALITY.folder(model): run.table(roles.QUALITY, model)} if run.has(roles.QUALITY, model) else {}
        )
        for variant in run.variants(roles.SCORER, model):
            quality[roles.SCORER.folder(model, variant)] = run.table(roles.SCORER, model, variant)
    return {
        "images": Numbered(run.tables(roles.IMAGES)),
        "judgments": Numbered(judgments),
        "questions": run.table(roles.QUESTIONS) if run.has(roles.QUESTIONS) else None,
        "quality": Numbered(quality),
        "prompts": run.table(roles.PROMPTS),
    }


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
