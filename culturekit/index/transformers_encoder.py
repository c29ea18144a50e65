"""CLIP, SigLIP, SigLIP 2 and DINOv2 from a folder: pictures, and for all but DINOv2 texts, to unit vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import UsageError
from culturekit.index.encoder import EncoderIdentity, ImageEncoder, Prepared, TooLong, Vectors
from culturekit.index.torch_device import (
    Batches,
    TorchOptions,
    chosen_device,
    chosen_dtype,
    needed_package,
    usual_batch,
)
from culturekit.index.transformers_models import (
    FAMILIES,
    Family,
    family_of,
    load_model,
    load_tokenizer,
    picture_settings,
)
from culturekit.index.transformers_patches import PatchPlan, patch_plan, shapes_and_patches
from culturekit.index.transformers_pictures import PicturePlan, picture_plan
from culturekit.index.transformers_texts import Tokens
from culturekit.index.unit_vectors import unit
from culturekit.index.weights_identity import ModelFolder, find_model
from culturekit.registry import Spec

__all__ = ["Logits", "TransformersEncoder", "TransformersImageEncoder", "TransformersOptions", "make"]


@dataclass(frozen=True, slots=True)
class TransformersOptions(TorchOptions):
    """How a model is run; `lowercase` writes texts in small letters first, whatever the tokenizer does."""

    lowercase: bool = False


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

    def __init__(self, loaded: LoadedModel, *, texts: str = "") -> None:
        """Take a model, and what its identity says of texts."""
        self.loaded = loaded
        self.batch_size = loaded.batch
        self.batches = Batches(loaded.batch)
        self.identity = EncoderIdentity(
            name="transformers",
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
        return unit(self.batches.run(self.forward, pictures, dim=self.identity.dim), where=self.identity.dtype)

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Prepare and encode pictures."""
        return self.encode_prepared([self.prepare(picture) for picture in pictures])

    def forward(self, pictures: Sequence[Prepared]) -> Vectors:
        """Run the model over one batch."""
        network = self.loaded.network
        inputs = self.inputs(np.stack(pictures))
        told = network.get_image_features(**inputs) if self.loaded.family.texts else network(**inputs)
        return as_array(told)

    def inputs(self, prepared: NDArray[np.uint8]) -> Mapping[str, Any]:
        """Bring a batch to the device, and its bytes to the numbers that the model reads."""
        torch = needed_package("torch", kind="encoder transformers", extra="embed")
        plan, device = self.loaded.plan, self.loaded.device
        tensor = partial(torch.as_tensor, device=device)
        colours = plan.normalisation
        mean, deviation = tensor(colours.mean, dtype=torch.float32), tensor(colours.deviation, dtype=torch.float32)
        if isinstance(plan, PicturePlan):
            pixels = tensor(prepared).float().mul_(colours.scale).sub_(mean).div_(deviation)
            return {"pixel_values": pixels.permute(0, 3, 1, 2).to(self.loaded.dtype)}
        shapes, patches = shapes_and_patches(prepared)
        pixels = tensor(np.ascontiguousarray(patches)).float().unflatten(-1, (-1, 3))
        pixels = pixels.mul_(colours.scale).sub_(mean).div_(deviation).flatten(-2)
        there = np.arange(plan.most) < shapes.prod(axis=1, keepdims=True)
        return {
            "pixel_values": pixels.to(self.loaded.dtype),
            "pixel_attention_mask": tensor(there.astype(np.int64)),
            "spatial_shapes": tensor(shapes),
        }


class TransformersEncoder(TransformersImageEncoder):
    """Turns pictures and texts into vectors of one space."""

    def __init__(self, loaded: LoadedModel, tokens: Tokens, *, lowercase: bool) -> None:
        """Take a model and its tokenizer."""
        super().__init__(loaded, texts=f"{tokens}{', in small letters' if lowercase else ''}")
        self.tokens = tokens
        self.lowercase = lowercase
        if loaded.family.texts == "full" and not lowercase and self.keeps_capitals():
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
        for group in self.tokens.groups(self.cased(texts)):
            vectors[list(group.places)] = self.batches.run(self.forward_texts, group.rows, dim=self.identity.dim)
        return unit(vectors, where=self.identity.dtype)

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """List the texts that are longer than the model's context."""
        return self.tokens.too_long(self.cased(texts))

    def forward_texts(self, rows: Sequence[NDArray[np.int64]]) -> Vectors:
        """Run the model over one batch of tokens."""
        torch = needed_package("torch", kind="encoder transformers", extra="embed")
        columns = torch.as_tensor(np.stack(rows), device=self.loaded.device).unbind(1)
        return as_array(self.loaded.network.get_text_features(**dict(zip(self.tokens.names, columns, strict=True))))

    def cased(self, texts: Sequence[str]) -> Sequence[str]:
        """Write texts in small letters if that was asked for."""
        return [text.lower() for text in texts] if self.lowercase else texts

    def keeps_capitals(self) -> bool:
        """Find out whether the tokenizer tells capitals from small letters."""
        large, small = self.tokens.tokenizer(["KYIV", "kyiv"], padding=False)["input_ids"]
        return bool(large != small)


def as_array(told: Any) -> Vectors:  # noqa: ANN401 - a model's output
    """Take the pooled vectors from what a model says, as float32 in this machine's memory."""
    vectors: Vectors = getattr(told, "pooler_output", told).float().cpu().numpy()
    return vectors


def make(spec: Spec) -> ImageEncoder:
    """Make the encoder of a folder or a hub id."""
    options = spec.read(TransformersOptions)
    needed_package("torch", kind="encoder transformers", extra="embed")
    needed_package("transformers", kind="encoder transformers", extra="embed")
    folder = find_model(spec.target, revision=options.revision, kind=spec.name)
    family = family_of(folder)
    if family.texts is None and options.lowercase:
        raise UsageError("this model reads no texts", where=str(spec), found="lowercase=true")
    device = chosen_device(options.device)
    dtype = chosen_dtype(options.dtype, device)
    plan = plan_of(folder, family)
    tokenizer = load_tokenizer(folder) if family.texts else None
    network = load_model(folder, family, device=device, dtype=dtype)
    loaded = LoadedModel(folder, family, network, plan, device, dtype, usual_batch(options, device))
    check_size(loaded)
    if tokenizer is None:
        return TransformersImageEncoder(loaded)
    context = min(int(network.config.text_config.max_position_embeddings), int(tokenizer.model_max_length))
    tokens = Tokens(tokenizer, most=context, fill=family.texts == "full")
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
