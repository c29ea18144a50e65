"""What a recipe of the kind `c3` says, key by key."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

import polars as pl
from pydantic import AfterValidator, Field, model_validator

from culturekit.builders.captions.cultures import culture_file
from culturekit.builders.captions.expanding import ExpandOptions
from culturekit.builders.captions.exporting_pairs import PairOptions
from culturekit.builders.captions.objects import ObjectsOptions, ObjectsReads
from culturekit.builders.captions.sampling import SampleOptions
from culturekit.builders.captions.selecting import SelectOptions, Strategy
from culturekit.builders.judging.scene_judge import ExtractReads
from culturekit.builders.judging.simulated_people import SimulatedPeople
from culturekit.config.checks import existing_table
from culturekit.config.recipe_parts import AskingRecipe, BackendSpec, EncoderSpec, File, JudgeSpec, ModelName
from culturekit.defaults import RATERS, RESAMPLES
from culturekit.families.family import rules_of
from culturekit.families.meta import MetaOptions
from culturekit.generation.diffusion.diffusers_options import DIFFUSERS
from culturekit.generation.finetuning.tuning_plan import TAKEN, TuningOptions
from culturekit.generation.runner import ImagePlan
from culturekit.generation.simulated.scenes.vocabulary import world
from culturekit.kg.concepts import CountryCode
from culturekit.records.schemas import CAPTIONS, IMAGES
from culturekit.registry import Spec, parse_spec
from culturekit.stages.caption_roles import PAIRS
from culturekit.storage.yaml_model import StrictModel, not_empty

__all__ = ["C3", "Captions", "Finetune", "Pairs", "People"]

Share = Annotated[float, Field(ge=0, le=1)]

SCENES = "simulated-scenes"
"""The backend whose scenes come with what they show."""

EVERY: tuple[Strategy, ...] = ("random", "labse", "clip", "objects", "no-objects", "c3")


class Captions(StrictModel):
    """How captions grow from the seeds of a culture, and how many of them models draw; or `file` with captions."""

    proposer: Annotated[JudgeSpec | None, Field(description="Who proposes captions, as a SPEC.")] = None
    count: Annotated[int, rules_of(ExpandOptions, "captions")] = ExpandOptions("").captions
    per_round: Annotated[int, rules_of(ExpandOptions, "per_round")] = ExpandOptions("").per_round
    encoder: Annotated[EncoderSpec | None, rules_of(ExpandOptions, "encoder")] = None
    similarity: Annotated[float, rules_of(ExpandOptions, "similarity")] = ExpandOptions("").similarity
    sample: Annotated[int, rules_of(SampleOptions, "size")] = SampleOptions().size
    file: Annotated[
        Annotated[str, AfterValidator(existing_table(CAPTIONS))] | None,
        Field(description="A table CAPTIONS that was expanded elsewhere."),
    ] = None
    beside: Annotated[
        Mapping[Annotated[str, Field(pattern="^[a-z][a-z0-9]*$")], File],
        Field(description="Other captions whose statistics stand beside, by name: such as COCO's JSON."),
    ] = {}

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Make sure that captions come from one place."""
        if (self.proposer is None) == (self.file is None):
            raise ValueError("captions are expanded (captions.proposer) or given (captions.file); give one of them")
        return self


class Objects(StrictModel):
    """Who lists the objects that captions name and pictures show; a detector may look at pictures instead."""

    lister: JudgeSpec
    dimensions: Annotated[tuple[str, ...], rules_of(ExtractReads, "dimensions")] = ("objects",)
    detector: Annotated[str | None, rules_of(ObjectsOptions, "detector")] = None
    labels: Annotated[File | None, rules_of(ObjectsReads, "labels")] = None
    threshold: Annotated[float, rules_of(ObjectsOptions, "threshold")] = ObjectsOptions().threshold

    @model_validator(mode="after")
    def detector_has_labels(self) -> Self:
        """Refuse a detector that does not know what to look for."""
        if (self.detector is None) != (self.labels is None):
            raise ValueError("objects.detector looks for what objects.labels lists; give both or neither")
        return self


class Encoders(StrictModel):
    """Who turns texts and pictures into vectors: LaBSE and CLIP in the paper."""

    text: EncoderSpec
    image: EncoderSpec


class SimulatedPairs(StrictModel):
    """Pictures of a country with captions, as the web of the simulated world has them."""

    country: CountryCode
    backend: BackendSpec
    each: Annotated[int, Field(ge=1, le=255, description="Pictures of each activity.")] = 10
    names: Annotated[Share, Field(description="How much of a picture its caption names.")] = 0.6
    wrong: Annotated[Share, Field(description="How much of what captions name is not shown, on average.")] = 0.3


class Pairs(StrictModel):
    """Pictures with captions in another language, from which strategies choose those to train on.

    `images` and `captions` (id of the image, text) are tables of the user; `simulated` makes them.
    """

    images: Annotated[str, AfterValidator(existing_table(IMAGES))] | None = None
    captions: File | None = None
    rights: Annotated[File | None, Field(description="Licence and source by image_id.")] = None
    simulated: SimulatedPairs | None = None
    translator: Annotated[JudgeSpec, Field(description="Who translates captions into English, as a SPEC.")]
    keep: Annotated[int, rules_of(SelectOptions, "keep")] = 300_000
    strategies: Annotated[tuple[Strategy, ...], AfterValidator(not_empty)] = EVERY
    missing: Annotated[Literal["sum", "leave-out"], rules_of(SelectOptions, "missing")] = SelectOptions(1).missing
    forms: Annotated[tuple[Literal["imagefolder", "webdataset"], ...], rules_of(PairOptions, "forms")] = (
        PairOptions().forms
    )
    unlicensed: Annotated[Literal["refuse", "leave-out", "include"], rules_of(PairOptions, "unlicensed")] = "refuse"

    @property
    def count(self) -> int:
        """Count the pairs."""
        if self.simulated is not None:
            return self.simulated.each * len(world().activities)
        return int(pl.scan_parquet(str(self.images)).select(pl.len()).collect().item())

    def given(self) -> tuple[Path, Path, Path | None]:
        """Name the user's tables of images, captions and rights."""
        return Path(str(self.images)), Path(str(self.captions)), None if self.rights is None else Path(self.rights)

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Make sure that pairs come from one place."""
        if (self.simulated is None) == (self.images is None) or (self.images is None) != (self.captions is None):
            raise ValueError("pairs are pairs.simulated, or pairs.images with pairs.captions; give one of them")
        return self


class Finetune(StrictModel):
    """A training on the pairs that a strategy exports: `model` is one of `models`, which stands beside itself as NAME.

    What it draws of the same captions before and after is judged, aligned and rated alike, and compared.
    """

    model: Annotated[str, Field(description="Which of the models is trained: one of diffusers:FOLDER.")]
    name: Annotated[ModelName, Field(description="What it is called with what it learnt.")] = "tuned"
    strategy: Strategy = "c3"
    steps: Annotated[int, rules_of(TuningOptions, "steps")] = TuningOptions("").steps
    rank: Annotated[int, rules_of(TuningOptions, "rank")] = TuningOptions("").rank
    rate: Annotated[float, rules_of(TuningOptions, "rate")] = TuningOptions("").rate
    batch: Annotated[int, rules_of(TuningOptions, "batch")] = TuningOptions("").batch
    accumulate: Annotated[int, rules_of(TuningOptions, "accumulate")] = TuningOptions("").accumulate
    size: Annotated[int, rules_of(TuningOptions, "size")] = TuningOptions("").size
    every: Annotated[int, rules_of(TuningOptions, "every")] = TuningOptions("").every
    recompute: Annotated[bool, rules_of(TuningOptions, "recompute")] = False

    def options(self, backend: str, seed: int) -> TuningOptions:
        """Give the options of the training: how the model draws decides nothing of it."""
        spec = parse_spec(backend)
        kept = {name: value for name, value in spec.options.items() if name in TAKEN}
        stated = self.model_dump(exclude={"model", "name", "strategy"})
        return TuningOptions(str(Spec(spec.name, spec.target, kept)), **stated, seed=seed)


class People(StrictModel):
    """People who rate in six criteria: images of `prompts` captions, and `pairs` translated captions.

    Without answers the forms are handed out and wait; with `simulated` people answer them who know the truth.
    """

    prompts: Annotated[int, Field(ge=1, le=1_000_000)] = 120
    pairs: Annotated[int, Field(ge=1, le=1_000_000)] = 500
    raters: Annotated[int, Field(ge=1, le=50, description="People who rate each item.")] = RATERS
    image_answers: tuple[File, ...] = ()
    pair_answers: tuple[File, ...] = ()
    simulated: SimulatedPeople | None = None
    resamples: Annotated[int, rules_of(MetaOptions, "resamples"), Field(le=1_000_000)] = RESAMPLES

    @model_validator(mode="after")
    def one_source(self) -> Self:
        """Make sure that answers come from one place."""
        if self.simulated is not None and (self.image_answers or self.pair_answers):
            raise ValueError("people has both simulated people and files of answers; give one of them")
        return self


class C3(AskingRecipe):
    """How well models draw what is hard about a culture, and which captioned pictures would teach them."""

    recipe: Literal["c3"]
    culture: Annotated[str, AfterValidator(lambda said: str(culture_file(said)) and said)] = "chinese"
    captions: Captions
    images: ImagePlan = ImagePlan()
    judge: Annotated[
        JudgeSpec, Field(description="Who says how probable it is that an image shows its caption, as a SPEC.")
    ]
    objects: Objects
    encoders: Encoders
    pairs: Pairs | None = None
    finetune: Finetune | None = None
    people: People | None = None

    @property
    def evaluated(self) -> tuple[str, ...]:
        """The names of the models, and what the trained one is called."""
        return (*super().evaluated, *(() if self.finetune is None else (self.finetune.name,)))

    def images_of(self, name: str) -> int:
        """Count the images of a model, or the pairs."""
        if name == PAIRS:
            return 0 if self.pairs is None else self.pairs.count
        return self.captions.sample * self.images.repeats * self.images.slots

    @property
    def truthful(self) -> bool:
        """Whether it is known what all images truly show."""
        return all(parse_spec(model.backend).name == SCENES for model in self.models)

    @model_validator(mode="after")
    def enough_of_each(self) -> Self:
        """Refuse to draw, rate or keep more than there will be."""
        wanted = []
        if self.captions.file is None:
            wanted.append(("captions.sample", self.captions.sample, self.captions.count, "captions"))
        if self.people is not None:
            wanted.append(("people.prompts", self.people.prompts, self.captions.sample, "captions in the sample"))
        if self.pairs is not None and self.pairs.simulated is not None:
            there = self.pairs.count
            rated = 0 if self.people is None else self.people.pairs
            wanted += [("pairs.keep", self.pairs.keep, there, "pairs"), ("people.pairs", rated, there, "pairs")]
        for name, count, known, of in wanted:
            if count > known:
                raise ValueError(f"{name} asks for {count:,} of {known:,} {of}")
        return self

    @model_validator(mode="after")
    def trains_one_of_its_models(self) -> Self:
        """Refuse a training of what is no model of the recipe, or on what it does not export."""
        if (wanted := self.finetune) is None:
            return self
        trained = next((model for model in self.models if model.name == wanted.model), None)
        if trained is None or parse_spec(trained.backend).name != DIFFUSERS:
            raise ValueError(f"finetune.model is to be one of the models, of {DIFFUSERS}:FOLDER; got {wanted.model}")
        if self.pairs is None or wanted.strategy not in self.pairs.strategies or "imagefolder" not in self.pairs.forms:
            raise ValueError(f"finetune trains on pairs as an imagefolder, chosen by {wanted.strategy}: see pairs")
        if wanted.name in {model.name for model in self.models}:
            raise ValueError(f"finetune.name is a model already: {wanted.name}")
        return self

    @model_validator(mode="after")
    def names_and_truth(self) -> Self:
        """Refuse a model that is called as pairs are, and simulated people who could not know what is true."""
        if PAIRS in self.evaluated:
            raise ValueError(f"no model can be called {PAIRS}: folders call pairs of captions and pictures so")
        simulated = self.people is not None and self.people.simulated is not None
        if simulated and not (self.truthful and (self.pairs is None or self.pairs.simulated is not None)):
            raise ValueError(f"simulated people know only what {SCENES} drew; real pictures need people's answers")
        return self
