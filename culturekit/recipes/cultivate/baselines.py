"""What others score images by, beside ours, and ablations of ours: values that people's ratings are held against."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, Self

import polars as pl
from pydantic import AfterValidator, model_validator

from culturekit.builders.judging import image_judge
from culturekit.builders.judging.scene_judge import MOST_STEREOTYPES
from culturekit.config.recipe_parts import EncoderSpec, JudgeSpec, ScorerSpec
from culturekit.core import roles
from culturekit.core.declared import rules_of, staged
from culturekit.core.inputs import Files, Numbered
from culturekit.core.inputs import roles as named_roles
from culturekit.core.roles import Role
from culturekit.core.run import Run
from culturekit.core.schemas import (
    DESCRIPTORS,
    IMAGES,
    JUDGMENTS,
    PROMPTS,
    PROPOSED_DESCRIPTORS,
    QUALITY,
    STEREOTYPES,
    VALUES,
)
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.core.tables import read_table, read_together, table_outcome
from culturekit.core.yaml_source import StrictModel, not_empty
from culturekit.index.raters.quality import quality_stage
from culturekit.kg.countries import countries
from culturekit.llm.answers import LlmOptions
from culturekit.metrics.ahead.matching import PUBLISHED_TAUS, calibrate_tau
from culturekit.recipes.cultivate import roles as folders
from culturekit.recipes.cultivate.cells import compare_images, described_images, excess_of_images, pictured
from culturekit.recipes.cultivate.marks import extracted_phrases
from culturekit.recipes.cultivate.scores import PhraseVectors, image_scores
from culturekit.recipes.parts import Looks
from culturekit.scores.faithfulness import QuestionOptions
from culturekit.scores.image_levels import MeanOptions

OURS = ("align", "hal", "exag", "faith")
CANDIDATES: Mapping[str, str] = {
    "references": "descriptors of the prompt",
    "described": "descriptors of a vision model",
}
"""What EXAG can be measured by in place of stereotypes, as the paper tried."""
LEVELS = ("named", "placed")
"""What CuRe compares an image with: what it is asked for by name, and its category and country."""


class Baselines(StrictModel):
    """What others score images by, held against people beside ours: whatever is named.

    `scorers` are quality scorers such as `clipscore:SPEC`, `pickscore:FOLDER` or `imagereward:FILE`; `cure` is the
    encoder of pictures and texts of CuRe's image-text score; `exag` measures EXAG once more, by the references of the
    prompts or by what the extractor sees.
    """

    scorers: tuple[ScorerSpec, ...] = ()
    cure: EncoderSpec | None = None
    vqascore: JudgeSpec | None = None
    questions: JudgeSpec | None = None
    answers: JudgeSpec | None = None
    per_prompt: Annotated[int | None, rules_of(image_judge.vqascore, "per_prompt")] = None
    exag: Annotated[
        tuple[Literal["references", "described"], ...], AfterValidator(lambda names: tuple(dict.fromkeys(names)))
    ] = ()

    @model_validator(mode="after")
    def parts_fit_together(self) -> Self:
        """Refuse questions that nobody answers, and nothing at all."""
        if (self.questions is None) != (self.answers is None):
            raise ValueError("questions and answers belong together: one model writes them, one looks at the images")
        not_empty(tuple(filter(None, (self.questions, self.vqascore, self.cure, *self.scorers, *self.exag))))
        return self


# The stages of baselines that ask or compute something about images.


def wire_baselines(
    run: Run, wanted: Baselines, counts: Mapping[str, int], prompts: int, buying: Callable[[Role, str], LlmOptions]
) -> None:
    """Have images scored by others: a number a model of how many images it has says what that takes."""
    table, limit = run.table(roles.PROMPTS), wanted.per_prompt
    looks = Looks(
        run, buying, lambda: prompts, lambda model: min(counts[model], (limit or counts[model]) * prompts),
        wanted.questions, wanted.answers, wanted.vqascore, wanted.scorers, limit,
    )  # fmt: skip
    looks.write_questions()
    levels = LEVELS if wanted.cure is not None else ()
    for level in levels:
        run.add(level_stage(table, level=level), folders.LEVELS, variant=level)
    cosine = f"clipscore:{wanted.cure}{'&' if '?' in str(wanted.cure) else '?'}factor=1"
    for model in counts:
        looks.look_at(model)
        for level in levels:
            texts = run.table(folders.LEVELS, variant=level)
            run.add(quality_stage(run.table(roles.IMAGES, model), texts, scorer=cosine), folders.CURE, model, level)
    looks.score(QuestionOptions(means=MeanOptions((("country",),), scheme="", groups={}, benchmark="cultivate")))


@staged("prompt-levels", "levels")
def level_stage(work: Work, prompts: Path, *, level: str) -> Outcome:
    """Write prompts that say less: the activity without the country (`named`), or the category with it."""
    table = read_table(prompts, PROMPTS).drop_nulls("country")
    activity = pl.coalesce("activity", "text") if "activity" in table.columns else pl.col("text")
    names = {code: each.in_a_sentence for code, each in countries().items()}
    country = pl.col("country").replace_strict(names, default=pl.col("country"), return_dtype=pl.String)
    kind = pl.coalesce("concept", activity)
    texts = (pl.format("A photorealistic photo of {}.", activity),
             pl.format("A photorealistic photo of {} in {}.", kind, country))  # fmt: skip
    return table_outcome(work, PROMPTS, table.with_columns(text=texts[LEVELS.index(level)]))


@staged("exaggeration-candidates", "candidates")
def candidates_stage(work: Work, source: Numbered, prompts: Path, *, candidates: str) -> Outcome:
    """List, by country, what most prompts should show, or what is most often seen, as if it were stereotypes."""
    countries_asked = read_table(prompts, PROMPTS).select("prompt_id", "country").drop_nulls()
    if candidates == "references":
        tokens = source.together(DESCRIPTORS).select("prompt_id", "token")
    else:
        tokens = extracted_phrases(source.together(JUDGMENTS)).select("prompt_id", token="item")
    counted = tokens.join(countries_asked, on="prompt_id").group_by("country", "token").len()
    first = counted.sort("country", "len", "token", descending=[False, True, False]).group_by(
        "country", maintain_order=True
    )
    return table_outcome(work, STEREOTYPES, first.head(MOST_STEREOTYPES).select(list(STEREOTYPES.schema)))


# Values of all of it, of the images of models alone: what meta holds against people.


@staged("compared-values", "compared")
def compared_stage(work: Work, values: Path, *, models: Sequence[str]) -> Outcome:
    """Keep our values of the images of models, beside their composite without EXAG."""
    ours = read_table(values, VALUES).filter(pl.col("metric").is_in(OURS), pl.col("model").is_in(list(models)))
    wide = ours.pivot("metric", index="item", values="value", aggregate_function="first")
    both = wide.select("item", value=(pl.col("align") + 1 - pl.col("hal")) / 2).drop_nulls()
    rows = ours.filter(metric="align").drop("value").join(both, on="item").with_columns(metric=pl.lit("align_hal"))
    return table_outcome(work, VALUES, pl.concat([ours, rows.select(list(VALUES.schema))]))


def baseline_values_stage(
    images: Mapping[str, Path], real: Path, prompts: Path, *, cure: Mapping[str, Sequence[Path]],
    exag: Mapping[str, Sequence[Path]],
) -> Stage:  # fmt: skip
    """Write CuRe's score, and EXAG by other candidates, as values of the images of models."""

    def run(work: Work) -> Outcome:
        placed = _placed(list(images.values()), real, prompts)
        parts = []
        for name, paths in cure.items():  # an image that lacks the cosine with one of its texts has no score
            cosines = pl.concat([read_table(path, QUALITY).select("image_id", "value") for path in paths])
            means = cosines.group_by("image_id").agg(pl.col("value").sort().mean(), n=pl.len())
            parts.append(("cure", name, means.filter(n=len(LEVELS)).select("value", item="image_id")))
        for kind, paths in exag.items():
            excess = excess_of_images(placed, read_together(list(paths), JUDGMENTS), real=roles.REAL_IMAGES,
                                      reduce="mean", left_out=Counter())  # fmt: skip
            parts.append(("exag", CANDIDATES[kind], excess.per_image.select(item="image_id", value="exag")))
        return _written(work, parts, placed, list(images))

    tables = {f"cure-{name}": paths for name, paths in cure.items()} | {f"exag-{name}": exag[name] for name in exag}
    inputs = {"prompts": prompts, "real": real, **named_roles("images", list(images.values()))}
    inputs |= {role: path for name, paths in tables.items() for role, path in named_roles(name, list(paths)).items()}
    return Stage("others", "baseline-values", 1, run, inputs, {"models": list(images)})


def _placed(images: Sequence[Path], real: Path, prompts: Path) -> pl.DataFrame:
    """Give all images that were made, real ones among them, with model, prompt and country."""
    return pictured(read_together([*images, real], IMAGES), read_table(prompts, PROMPTS), Counter())


def _written(
    work: Work, parts: Sequence[tuple[str, str, pl.DataFrame]], placed: pl.DataFrame, models: Sequence[str]
) -> Outcome:
    """Write numbers of images as values: metric, what tells one from others of its name, and item with value."""
    about, nothing = (
        placed.filter(pl.col("model").is_in(list(models))).rename({"image_id": "item"}),
        pl.lit(None, pl.String),
    )
    rows = [
        found.drop_nulls("value").join(about, on="item").with_columns(
            metric=pl.lit(metric), benchmark=pl.lit("cultivate"), concept=nothing, group=nothing,
            params=pl.struct(variant=pl.lit(variant)).struct.json_encode(),
        ).select(list(VALUES.schema))
        for metric, variant, found in parts
    ]  # fmt: skip
    return table_outcome(work, VALUES, pl.concat([pl.DataFrame(schema=VALUES.schema), *rows]))


@staged("descriptor-ablations", "ablations")
def ablations_stage(
    work: Work, images: Numbered, real: Path, prompts: Path, descriptors: Path, proposals: Files, extracted: Numbered,
    phrases: PhraseVectors, *, tau: float | None, models: Sequence[str],
) -> Outcome:  # fmt: skip
    """Score ALIGN at the quartiles of the real images' best matches, and by what each proposer said alone."""
    judgments = extracted.together(JUDGMENTS)
    placed, (known, ids) = _placed(images.places, real, prompts), phrases.vectors()
    found = described_images(placed, read_table(descriptors, DESCRIPTORS), judgments, has=None, left_out=Counter())
    cells = compare_images(found, known, ids)
    best = cells.best_of(found.images.filter(model=roles.REAL_IMAGES))
    taus = (
        {f"tau at quantile {name:g}": calibrate_tau(best, quantile=name) for name in PUBLISHED_TAUS}
        if len(best)
        else {}
    )
    parts = [(name, image_scores(cells.counted(value), "dimension")) for name, value in taus.items()]
    usual = tau if tau is not None else taus.get("tau at quantile 0.75", 0.0)
    for path in proposals.places:
        alone = read_table(path, PROPOSED_DESCRIPTORS).filter(outcome="proposed")
        listed = alone.with_columns(proposers=pl.concat_list("proposer")).select(list(DESCRIPTORS.schema))
        matched = described_images(placed, listed, judgments, has=None, left_out=Counter())
        scored = image_scores(compare_images(matched, known, ids).counted(usual), "dimension")
        parts.append((f"proposer {alone['proposer'][0] if alone.height else path.parent.name}", scored))
    rows = [("align", name, one.select(item="image_id", value="align")) for name, one in parts]
    outcome = _written(work, rows, placed, models)
    return replace(outcome, notes={"taus": taus})
