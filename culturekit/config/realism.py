"""The parts of a recipe that say how realism, variety and diversity within countries are scored."""

from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, model_validator

from culturekit.config.checks import checked_spec, existing_folder
from culturekit.families.family import rules_of
from culturekit.families.realism_cells import RealismMeans, RealismOptions
from culturekit.generation.backends import BACKENDS
from culturekit.generation.runner import ImagePlan
from culturekit.index.encoders import ENCODERS
from culturekit.index.spread.pair_measures import PAIR_MEASURES
from culturekit.records.choices import PromptKind
from culturekit.registry import parse_spec
from culturekit.storage.yaml_model import StrictModel

__all__ = ["Realism", "Within", "features_of", "lpips_of"]

INCEPTION = "inception"
FOLDER = "folder:"


def real_images(text: str) -> str:
    """Accept a table of images, a folder that has one, a folder of pictures, or a SPEC of such a folder."""
    if text.startswith(FOLDER):
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
