"""Whether images show what their prompts ask for: questions and answers, the probability of yes, further scorers."""

from dataclasses import replace
from pathlib import Path

from culturekit.config.faithfulness import Faithfulness
from culturekit.families.compare import CompareReads, ComparisonOptions, compare
from culturekit.families.faithfulness import faithfulness
from culturekit.families.image_levels import MeanOptions
from culturekit.families.inputs import Numbered, ValueTables
from culturekit.families.questions import QuestionOptions, QuestionReads
from culturekit.llm.answers import LlmOptions
from culturekit.pipeline.cube.run import CubeRun
from culturekit.pipeline.cube.scores import few_prompts
from culturekit.pipeline.steps.image_stages import quality_stage
from culturekit.pipeline.steps.question_stages import answers_stage, graphs_stage
from culturekit.pipeline.steps.vqascore_stage import vqascore_stage
from culturekit.report.stage_names import FAITHFULNESS, FAITHFULNESS_COMPARISON
from culturekit.stages.stage import Stage

__all__ = ["faithfulness_stages"]

BY = (("concept",), ("country",))
"""The levels besides all prompts of a model."""


def faithfulness_stages(run: CubeRun) -> list[Stage]:
    """List the stages, where the recipe asks for some."""
    wanted = run.recipe.faithfulness
    if wanted is None:
        return []
    looks = [stage for model in run.names for stage in looks_at(run, wanted, model)]
    return [*questions_of(run, wanted), *looks, score_of(run, wanted), *comparison_of(run)]


def buying(run: CubeRun, name: str) -> LlmOptions:
    """Give the options of the recipe; what other stages have spent is taken from the budget first."""
    return replace(run.recipe.llm.options(), beside=run.asking(besides=name))


def questions_of(run: CubeRun, wanted: Faithfulness) -> list[Stage]:
    """Turn the prompts that images are made from into questions."""
    if wanted.questions is None:
        return []
    name = "questions"
    return [
        graphs_stage(run.prompts, wanted.questions, kinds=run.recipe.images.kinds, llm=buying(run, name), name=name)
    ]


def looks_at(run: CubeRun, wanted: Faithfulness, model: str) -> list[Stage]:
    """Let every judge and scorer look at the images of a model."""
    images, stages = run.images(model), []
    if wanted.answers is not None:
        name = f"answers-{model}"
        stages.append(
            answers_stage(
                images, run.workdir / "questions/questions.parquet", wanted.answers, per_prompt=wanted.per_prompt,
                llm=buying(run, name), name=name,
            )
        )  # fmt: skip
    if wanted.vqascore is not None:
        name = f"vqascore-{model}"
        stages.append(
            vqascore_stage(
                images, wanted.vqascore, prompts=run.prompts, of=wanted.of, per_prompt=wanted.per_prompt,
                llm=buying(run, name), name=name,
            )
        )  # fmt: skip
    stages += [
        quality_stage(images, scorer=scorer, prompts=run.prompts, name=scorer_folder(number, model))
        for number, scorer in enumerate(wanted.scorers, start=1)
    ]
    return stages


def scorer_folder(number: int, model: str) -> str:
    """Name the folder of a further scorer."""
    return f"scorer-{number}-{model}"


def score_of(run: CubeRun, wanted: Faithfulness) -> Stage:
    """Score all models together; the quality that stands in qVS is a scorer beside the others."""
    judges = [name for name, spec in (("answers", wanted.answers), ("vqascore", wanted.vqascore)) if spec is not None]
    scorers = [
        folder
        for model in run.names
        for folder in (f"quality-{model}", *(scorer_folder(number + 1, model) for number in range(len(wanted.scorers))))
    ]
    given = QuestionReads(
        Numbered({f"images-{model}": run.images(model) for model in run.names}),
        Numbered({
            f"{judge}-{model}": run.workdir / f"{judge}-{model}/judgments.parquet"
            for model in run.names
            for judge in judges
        }),
        None if wanted.questions is None else run.workdir / "questions/questions.parquet",
        Numbered({folder: table_of(run, folder) for folder in scorers}),
        run.prompts,
    )  # fmt: skip
    scores = run.recipe.scores
    means = MeanOptions(BY, scheme="", groups={}, confidence=scores.confidence, benchmark=scores.benchmark)
    return faithfulness(given, QuestionOptions(wanted.denominator, means), name=FAITHFULNESS)


def table_of(run: CubeRun, folder: str) -> Path:
    """Name the table of quality in a folder."""
    return run.workdir / folder / "quality.parquet"


def comparison_of(run: CubeRun) -> list[Stage]:
    """Compare every two models, prompt by prompt."""
    recipe = run.recipe
    if len(recipe.models) < 2:
        return []
    options = ComparisonOptions(
        target="these" if few_prompts(recipe) else "population",
        confidence=recipe.scores.confidence,
        seed=recipe.seed,
    )
    values = run.workdir / FAITHFULNESS / "values.parquet"
    return [compare(CompareReads(ValueTables([values])), options, name=FAITHFULNESS_COMPARISON)]
