"""Keys of the recipe `cube` that hold more than one value: references, audit, diagnosis, faithfulness, realism."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import numpy as np
import polars as pl
from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.judging.image_judge import vqascore as weighing
from culturekit.config.checks import BLIND, checked_spec, existing_folder, existing_project
from culturekit.config.recipe_parts import BackendSpec, Buying, EncoderSpec, File, JudgeSpec, ModelName, ScorerSpec
from culturekit.core.choices import NO_CULTURE, ChannelsName, PromptKind
from culturekit.core.declared import rules_of
from culturekit.core.registry import parse_spec
from culturekit.core.schemas import AUDITS
from culturekit.core.yaml_source import StrictModel, not_empty
from culturekit.generation.backend import BACKENDS
from culturekit.generation.runner import ImagePlan
from culturekit.index.encoder import ENCODERS
from culturekit.index.folder.build import IndexOptions
from culturekit.index.matching.mapping import diagnosis_stage
from culturekit.index.raters.picture_spread import PAIR_MEASURES
from culturekit.metrics.corrected.audit_gates import Design
from culturekit.scores.diversity import Correction
from culturekit.scores.faithfulness import QuestionOptions
from culturekit.scores.gaps import GapOptions
from culturekit.scores.realism import RealismMeans, RealismOptions

_POOL = "simulated"
# artifact, country and continent; all three are None for a picture of nothing
_Labels: TypeAlias = tuple[str | None, str | None, str | None]


@dataclass(frozen=True, slots=True)
class SimulatedRaters:
    """How many label each image, and how often one of them is right; an error names any other artifact."""

    raters: Annotated[int, Field(ge=1, le=100)] = 1
    accuracy: Annotated[float, Field(gt=0, le=1)] = 1.0


def simulated_audits(
    truth: pl.DataFrame, space: pl.DataFrame, images: Sequence[str], how: SimulatedRaters, *, seed: int
) -> pl.DataFrame:
    """Label images as people would who know what was drawn.

    Args:
        truth: MATCHES of the method `truth`.
        space: CSPACE, from which an error is drawn.
        images: which to label.
        how: how many raters, and how good.
        seed: of their errors; an image's labels do not depend on which others are labelled.

    Returns:
        AUDITS of the pool `simulated`.
    """
    shown = truth.filter(pl.col("image_id").is_in(list(images))).sort("image_id")
    places = space.select("artifact_id", "country", "continent").unique().sort("artifact_id", "country").rows()
    rows = [row for image in shown.iter_rows(named=True) for row in _labels_of(image, places, how, seed)]
    return pl.DataFrame(rows, schema={**AUDITS.schema, "none_means": pl.String()}).sort(AUDITS.key)


def _labels_of(
    image: dict[str, Any], places: Sequence[_Labels], how: SimulatedRaters, seed: int
) -> Iterator[dict[str, Any]]:
    """Give what each rater says of one image."""
    true: _Labels = (image["artifact_id"], image["country"], image["continent"])
    for number in range(how.raters):
        annotator = f"{_POOL}-{number + 1}"
        label = true
        key = hashlib.sha256(f"{seed}\0{annotator}\0{image['image_id']}".encode()).digest()
        numbers = np.random.default_rng(int.from_bytes(key[:16], "big"))
        if numbers.random() >= how.accuracy:
            others: list[_Labels] = [labels for labels in places if labels[0] != true[0]]
            label = others[int(numbers.integers(len(others)))] if others else (None, None, None)
        artifact, country, continent = label
        yield {
            "image_id": image["image_id"],
            "pool": _POOL,
            "annotator": annotator,
            "artifact_id": artifact,
            "country": country,
            "continent": continent,
            "none_of_these": artifact is None,
            "none_means": NO_CULTURE if artifact is None else None,
        }


INCEPTION = "inception"
DRAWN = 4  # pictures of an artifact, where nobody says how many


def seeing(judge: str) -> str:
    """Accept a judge that looks at pictures, as far as its name tells."""
    if parse_spec(judge).name == BLIND:
        raise ValueError(f"{BLIND} reads words only and sees no image: name a vision model, such as openai:MODEL")
    return judge


class Review(StrictModel):
    """What people decided about candidates that waited for them: sheets, and exports in JSON with their `project`.

    `by` and `on` say who decided, and on which day, where a sheet or an export does not.
    """

    files: Annotated[tuple[File, ...], AfterValidator(not_empty)]
    project: Annotated[str, AfterValidator(existing_project)] | None = None
    by: str | None = None
    on: Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")] | None = None


class References(StrictModel):
    """Pictures that show each artifact as it is: the index is made from them.

    Without `per_artifact` all pictures of a folder are taken, and 4 are drawn.
    """

    backend: BackendSpec
    per_artifact: Annotated[int, Field(ge=1, le=200)] | None = None

    @property
    def counted(self) -> bool:
        """Tell whether the recipe says how many pictures an artifact has."""
        return self.per_artifact is not None

    @property
    def images(self) -> ImagePlan:
        """What is made where the pictures are drawn."""
        return ImagePlan(slots=self.per_artifact or DRAWN, kinds=("cube",))


SECOND_TAGS = "tags"  # What `audit.second` calls the tags of a vision model


class Audit(StrictModel):
    """A look at some images by people: with it the diversity is corrected for the errors of the mapping.

    `file` is an `audits.parquet` that people filled in; without it the raters are simulated, and know what
    simulated models drew: `images` of each model and concept. `sample` is what `score audit-sample` drew for it, and
    `design: unknown` takes answers about images that nobody drew; their scores are marked. `second` names one of the
    `instruments`, or is `tags`: what it says of the same images makes corrected intervals narrower.
    """

    images: Annotated[int, Field(ge=10, le=100_000)] = 50
    raters: SimulatedRaters = SimulatedRaters()
    file: File | None = None
    pool: Annotated[str | None, rules_of(Correction, "pool")] = None
    sample: File | None = None
    design: Annotated[Design, rules_of(Correction, "design")] = "drawn"
    second: str | None = None

    @model_validator(mode="after")
    def design_is_of_people(self) -> "Audit":
        """Refuse a sample or a design that would decide nothing."""
        if self.file is None and (self.sample is not None or self.design != "drawn"):
            raise ValueError("sample and design are about the answers of people: give file, or leave them out")
        idle = sorted(self.model_fields_set & {"images", "raters"})
        if self.file is not None and idle:
            raise ValueError(f"people have answered (file), so {' and '.join(idle)} would decide nothing: leave it out")
        if self.sample is not None and self.design == "unknown":
            raise ValueError("a sample is given, so the design is known: leave one of them out")
        return self


class Diagnosis(StrictModel):
    """A look at the instrument, beside the scores: floor, ceiling, hubs, and what held-out references say of it.

    `floor_repeats` repeats of each prompt are drawn as pictures of nothing, and as many of the first model's images are
    shuffled; the ceiling has `ceiling_repeats` batches of each concept.
    """

    floor_repeats: Annotated[int, Field(ge=1)] = 5
    ceiling_repeats: Annotated[int, rules_of(diagnosis_stage, "repeats")] = 50


class Instrument(StrictModel):
    """Another encoder or channel that maps the same images, to see whether it ranks the models alike."""

    name: ModelName
    encoder: Annotated[EncoderSpec, rules_of(IndexOptions, "encoder")]
    channel: ChannelsName = "image"


class Tags(Buying):
    """A vision model names what images show, beside the mapping to the nearest artifact; both routes are compared.

    `images` is how many of each model and concept it looks at, drawn by whole repeats, or `all`. The budget is for all
    models together.
    """

    judge: Annotated[JudgeSpec, AfterValidator(seeing)]
    images: Literal["all"] | Annotated[int, Field(ge=1)] = "all"


class Gaps(StrictModel):
    """Gaps between groups of countries, over the scores of prompts that name countries.

    `scheme` is one that comes with culturekit, or one of `file`.
    """

    scheme: Annotated[str, Field(min_length=1)] = "cultivate"
    file: Annotated[File | None, rules_of(GapOptions, "groups")] = None


def writing(spec: str) -> str:
    """Accept a client that could write questions."""
    if parse_spec(spec).name == BLIND:
        raise ValueError(f"{BLIND} has no rules for writing questions: name a language model")
    return spec


class Faithfulness(StrictModel):
    """Whether images show what their prompts ask for; every part is optional, and at least one is named.

    `questions` turns prompts into questions, `answers` looks at the images and answers them (DSG); `vqascore` says how
    probable it finds Yes; `scorers` compare image and text, such as `clipscore:SPEC`. `per_prompt` is how many images
    of each model and prompt the models look at; `denominator` and `of` are those of `score questions` and `vqascore`.
    """

    questions: Annotated[JudgeSpec, AfterValidator(writing)] | None = None
    answers: Annotated[JudgeSpec, AfterValidator(seeing)] | None = None
    vqascore: Annotated[JudgeSpec, AfterValidator(seeing)] | None = None
    scorers: tuple[ScorerSpec, ...] = ()
    per_prompt: Annotated[int | None, rules_of(weighing, "per_prompt")] = None
    denominator: Annotated[Literal["all", "valid"], rules_of(QuestionOptions, "denominator")] = "all"
    of: Annotated[Literal["yes-no", "vocabulary"], rules_of(weighing, "of")] = "yes-no"

    @model_validator(mode="after")
    def parts_fit_together(self) -> "Faithfulness":
        """Refuse questions that nobody answers, answers to no questions, and nothing at all."""
        if (self.questions is None) != (self.answers is None):
            raise ValueError("questions and answers belong together: one model writes them, one looks at the images")
        if self.questions is None and self.vqascore is None and not self.scorers:
            raise ValueError("name at least one of questions with answers, vqascore, and scorers")
        if len(set(self.scorers)) < len(self.scorers):
            raise ValueError("a scorer is named twice")
        return self


def real_images(text: str) -> str:
    """Accept a table of images, a folder that has one, a folder of pictures, or a SPEC of such a folder."""
    if text.startswith("folder:"):
        return existing_folder(checked_spec(BACKENDS)(text))
    path = Path(text)
    if not path.is_dir() and not (path.is_file() and path.suffix == ".parquet"):
        raise ValueError(f"there is neither a folder nor a table of real images at {text!r}")
    return text


def classifier(spec: str) -> str:
    """Accept an encoder that gives class probabilities."""
    checked_spec(ENCODERS)(spec)
    if parse_spec(spec).name != INCEPTION:
        raise ValueError(f"class probabilities come from inception:FILE alone, not from {spec}")
    return spec


def lpips_of(text: str) -> str:
    """Write the weights of LPIPS as a SPEC: a path stands for `lpips:PATH`."""
    return text if text.startswith("lpips:") else f"lpips:{text}"


def pair_measure(text: str) -> str:
    """Accept weights of LPIPS that are there."""
    spec = lpips_of(text)
    checked_spec(PAIR_MEASURES)(spec)
    parsed = parse_spec(spec)
    for name in filter(None, (parsed.target, parsed.options.get("backbone", ""))):
        if not Path(name).is_file():
            raise ValueError(f"there is no file of weights {name!r}")
    return text


def features_of(spec: str) -> str:
    """Let InceptionV3 give its features as they are: FID and KID are defined on these."""
    parsed = parse_spec(spec)
    if parsed.name != INCEPTION:
        return spec
    return str(type(parsed)(parsed.name, parsed.target, {**parsed.options, "give": "features"}))


class Realism(StrictModel):
    """Generated images beside real ones, and how unlike the images of a prompt look.

    Attributes:
        real: real images: a table, a stage folder with one, a folder of pictures, or `folder:DIR?pattern=...`;
            without it the references of the run.
        encoder: who turns pictures into vectors; `inception:FILE` gives FID and KID, and with DINOv2 or DINOv3
            `transformers:FOLDER?give=features` distances on these.
        classes: `inception:FILE`, for the inception score; where the encoder is one, it is not needed.
        lpips: weights of LPIPS, a safetensors file or `lpips:HEADS?backbone=FILE`.
        images: of each model at most, each prompt giving as many; sets larger than this cost time and say little more.
        per_concept: whether each concept is scored, too.
        fewest: images, real and generated, without which a concept is not scored.
    """

    real: Annotated[str, AfterValidator(real_images)] | None = None
    encoder: Annotated[str, AfterValidator(checked_spec(ENCODERS))] = "embedded"
    classes: Annotated[str, AfterValidator(classifier)] | None = None
    lpips: Annotated[str, AfterValidator(pair_measure)] | None = None
    k: Annotated[int, rules_of(RealismOptions, "k"), Field(le=1000)] = 5
    splits: Annotated[int, rules_of(RealismOptions, "splits"), Field(le=1000)] = 10
    images: Annotated[int, Field(ge=2)] = 10_000
    per_concept: bool = True
    fewest: Annotated[int, Field(ge=2)] = 50

    @model_validator(mode="after")
    def encoder_gives_features(self) -> "Realism":
        """Refuse an encoder that is told to give something else."""
        parsed = parse_spec(self.encoder)
        if parsed.name == INCEPTION and parsed.options.get("give", "features") != "features":
            raise ValueError(f"realism compares pool3 features as they are: leave give={parsed.options['give']} out")
        return self

    def scoring(self, *, seed: int, confidence: float) -> RealismOptions:
        """Say how the images of a run are scored: references are drawn evenly, regions are not looked at."""
        by = (("concept",),) if self.per_concept else ()
        means = RealismMeans(by, scheme="", groups={}, confidence=confidence)
        return RealismOptions(
            k=self.k, splits=self.splits, means=means, most=self.images, balanced=True, fewest=self.fewest, seed=seed
        )


class Within(StrictModel):
    """Diversity within countries: images of prompts that name a country, made beside the others.

    Attributes:
        kinds: of prompts that name a country; where images of these are made already, those are scored.
        repeats: of each prompt.
        slots: images of a repeat.
    """

    kinds: tuple[PromptKind, ...] = ("within-country",)
    repeats: Annotated[int, rules_of(ImagePlan, "repeats")] = 5
    slots: Annotated[int, rules_of(ImagePlan, "slots")] = 8

    @model_validator(mode="after")
    def kinds_name_a_country(self) -> "Within":
        """Refuse prompts that name no country."""
        if not self.kinds or "underspecified" in self.kinds:
            raise ValueError("within.kinds are kinds of prompts that name a country: within-country, cube")
        return self
