"""CLIP, SigLIP, SigLIP 2, DINOv2 and DINOv3 from a folder: pictures, and but for DINO texts, to unit vectors."""

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.index.embedding.unit_vectors import unit
from culturekit.index.encoder import EncoderIdentity, ImageEncoder, Prepared, TooLong, Vectors
from culturekit.index.models.torch_device import (
    Batches,
    TorchOptions,
    chosen_device,
    chosen_dtype,
    needed_package,
    on_device,
    usual_batch,
)
from culturekit.index.models.transformers_models import (
    FAMILIES,
    Family,
    family_of,
    load_model,
    load_tokenizer,
    picture_settings,
)
from culturekit.index.models.transformers_patches import PatchPlan, patch_plan, shape_of
from culturekit.index.models.transformers_pictures import PicturePlan, picture_plan
from culturekit.index.models.transformers_texts import Tokens
from culturekit.index.weights.weights_identity import ModelFolder, find_model
from culturekit.registry import Spec

__all__ = ["Logits", "TransformersEncoder", "TransformersImageEncoder", "TransformersOptions", "make"]


@dataclass(frozen=True, slots=True)
class TransformersOptions(TorchOptions):
    """How a model is run.

    Attributes:
        lowercase: Write texts in small letters first, whatever the tokenizer does.
        give: What the vectors are: of length one, or with `features` as DINOv2 and DINOv3 give them, for distances of
            distributions.
    """

    lowercase: bool = False
    give: Literal["unit", "features"] = "unit"


@dataclass(frozen=True, slots=True)
class Logits:
    """How a model turns a cosine into a score: times `scale`, plus `bias`. No part of a vector."""

    scale: float
    bias: float


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model on its device, and how it wants its pictures."""

    folder: ModelFolder
    family: Family
    network: Any
    plan: PicturePlan | PatchPlan
    device: Any
    dtype: Any
    batch: int

    @property
    def dim(self) -> int:
        """How long a vector is."""
        return self.family.dim(self.network.config)


class TransformersImageEncoder:
    """Turns pictures into vectors; on its own for models that read no texts."""

    caveat = ""

    def __init__(self, loaded: LoadedModel, *, texts: str = "", as_they_are: bool = False) -> None:
        """Take a model, what its identity says of texts, and whether vectors keep their length."""
        self.loaded, self.as_they_are = loaded, as_they_are
        self.batch_size = loaded.batch
        self.batches = Batches(loaded.batch)
        colours = loaded.plan.normalisation
        deviation = np.array(colours.deviation)
        self.factor, self.shift = (
            on_device(list(numbers.astype(np.float32)), loaded.device)
            for numbers in (colours.scale / deviation, -np.array(colours.mean) / deviation)
        )
        self.identity = EncoderIdentity(
            name=f"{loaded.family.features} features" if as_they_are else "transformers",
            weights=loaded.folder.digest(),
            revision=loaded.folder.revision,
            preprocessing="; ".join(filter(None, [str(loaded.plan), texts])),
            dtype=str(loaded.dtype).removeprefix("torch."),
            dim=loaded.dim,
        )

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Resize and crop one picture, in bytes; they become the model's numbers on the device."""
        return self.loaded.plan.prepare(picture)

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        """Encode prepared pictures, `batch_size` at once."""
        vectors = self.batches.run(self.forward, pictures, dim=self.identity.dim)
        return vectors if self.as_they_are else unit(vectors, where=self.identity.dtype)

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Prepare and encode pictures."""
        return self.encode_prepared([self.prepare(picture) for picture in pictures])

    def forward(self, pictures: Sequence[Prepared]) -> Any:  # noqa: ANN401 - a tensor
        """Run the model over one batch."""
        network, inputs = self.loaded.network, self.inputs(pictures)
        told = network.get_image_features(**inputs) if self.loaded.family.texts else network(**inputs)
        return pooled(told)

    def inputs(self, pictures: Sequence[Prepared]) -> Mapping[str, Any]:
        """Bring a batch to the device, and its bytes to the numbers that the model reads."""
        device, dtype, plan = self.loaded.device, self.loaded.dtype, self.loaded.plan
        prepared = on_device(pictures, device)
        if isinstance(plan, PicturePlan):
            return {"pixel_values": self.numbers(prepared).permute(0, 3, 1, 2).to(dtype)}
        shapes = [shape_of(picture) for picture in pictures]
        there = [(np.arange(plan.most) < shape.prod()).astype(np.int64) for shape in shapes]
        return {
            "pixel_values": self.numbers(prepared[:, 1:].unflatten(-1, (-1, 3))).flatten(-2).to(dtype),
            "pixel_attention_mask": on_device(there, device),
            "spatial_shapes": on_device(shapes, device),
        }

    def numbers(self, pixels: Any) -> Any:  # noqa: ANN401 - tensors
        """Make numbers of bytes (..., 3), scaled, centred and divided in one go."""
        torch = importlib.import_module("torch")
        return torch.addcmul(self.shift, pixels.float(), self.factor)


class TransformersEncoder(TransformersImageEncoder):
    """Turns pictures and texts into vectors of one space."""

    def __init__(self, loaded: LoadedModel, tokens: Tokens, *, lowercase: bool) -> None:
        """Take a model and its tokenizer."""
        super().__init__(loaded, texts=f"{tokens}{', in small letters' if lowercase else ''}")
        self.tokens = tokens
        if loaded.family.texts == "full" and tokens.keeps_capitals():
            self.caveat = (
                "The tokenizer of this model tells capitals from small letters. SigLIP and SigLIP 2 were taught with "
                "small letters only: unless this one was not, write ?lowercase=true."
            )

    @property
    def logits(self) -> Logits:
        """How the model turns a cosine of its vectors into a score of its own."""
        network = self.loaded.network
        bias = getattr(network, "logit_bias", None)
        return Logits(float(network.logit_scale.exp().item()), 0.0 if bias is None else float(bias.item()))

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts; what is longer than the context is cut, and `too_long` says which those are."""
        vectors = np.empty((len(texts), self.identity.dim), np.float32)
        for group in self.tokens.groups(texts):
            vectors[list(group.places)] = self.batches.run(self.forward_texts, group.rows, dim=self.identity.dim)
        return unit(vectors, where=self.identity.dtype)

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """List the texts that are longer than the model's context."""
        return self.tokens.too_long(texts)

    def forward_texts(self, rows: Sequence[NDArray[np.int64]]) -> Any:  # noqa: ANN401 - a tensor
        """Run the model over one batch of tokens."""
        columns = on_device(rows, self.loaded.device).unbind(1)
        return pooled(self.loaded.network.get_text_features(**dict(zip(self.tokens.names, columns, strict=True))))


def pooled(told: Any) -> Any:  # noqa: ANN401 - tensors
    """Take one vector per picture or text from what a model says."""
    return getattr(told, "pooler_output", told)


def make(spec: Spec) -> ImageEncoder:
    """Make the encoder of a folder or a hub id."""
    options = spec.read(TransformersOptions)
    needed_package("torch", kind="encoder transformers", extra="embed")
    needed_package("transformers", kind="encoder transformers", extra="embed")
    folder = find_model(spec.target, revision=options.revision, kind=spec.name)
    family = family_of(folder)
    if family.texts is None and options.lowercase:
        raise UsageError("this model reads no texts", where=str(spec), found="lowercase=true")
    if not family.features and options.give == "features":
        raise UsageError("this model gives vectors of length one only", where=str(spec), found="give=features",
                         expected="DINOv2 or DINOv3")  # fmt: skip
    device = chosen_device(options.device)
    dtype = chosen_dtype(options.dtype, device)
    plan = plan_of(folder, family)
    tokenizer, rewrite = load_tokenizer(folder) if family.texts else (None, str)
    network = load_model(folder, family, device=device, dtype=dtype)
    loaded = LoadedModel(folder, family, network, plan, device, dtype, usual_batch(options, device))
    check_size(loaded)
    if tokenizer is None:
        return TransformersImageEncoder(loaded, as_they_are=options.give == "features")
    context = min(int(network.config.text_config.max_position_embeddings), int(tokenizer.model_max_length))
    tokens = Tokens(
        tokenizer,
        most=context,
        fill=family.texts == "full",
        rewrite=(lambda text: rewrite(text.lower())) if options.lowercase else rewrite,
    )
    return TransformersEncoder(loaded, tokens, lowercase=options.lowercase)


def plan_of(folder: ModelFolder, family: Family) -> PicturePlan | PatchPlan:
    """Read how a model wants its pictures."""
    settings, place = picture_settings(folder)
    read = patch_plan if family.patches else picture_plan
    return read(settings, processor=family.processor, where=str(place))


def check_size(loaded: LoadedModel) -> None:
    """Make sure that pictures are prepared in the size that the model was made for."""
    plan, config = loaded.plan, loaded.network.config
    if isinstance(plan, PatchPlan):
        made_for, given = int(config.vision_config.patch_size), plan.patch
    elif loaded.family.any_size:
        return
    else:
        side = int(config.vision_config.image_size)
        made_for, given = side, side if plan.size == (side, side) else max(plan.size)
    if made_for != given:
        known = " or ".join(FAMILIES)
        raise UsageError(
            "pictures are prepared in another size than the model was made for",
            where=str(loaded.folder.path),
            expected=f"{made_for} pixels, as config.json says",
            found=f"{given} pixels, as the preprocessor's file says",
            hint=f"The folder must hold one model ({known}) with its own preprocessor_config.json.",
        )
