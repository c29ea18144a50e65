"""Models of open_clip: pictures and texts to vectors of one space."""

import importlib
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.errors import IntegrityError, UsageError
from culturekit.index.encoder import EncoderIdentity, Prepared, TooLong, Vectors
from culturekit.index.models.open_clip_pictures import picture_settings
from culturekit.index.models.open_clip_source import OpenClipSource, find_source
from culturekit.index.models.torch_device import (
    Batches,
    TorchOptions,
    chosen_device,
    chosen_dtype,
    needed_package,
    usual_batch,
)
from culturekit.registry import Spec

__all__ = ["OpenClipEncoder", "Options", "make"]


@dataclass(frozen=True, slots=True)
class Options(TorchOptions):
    """How a model is run, and which it is.

    Attributes:
        model: of a file of weights, the name of its model, such as `ViT-B-32`.
        pretrained: of a named model, a file of weights or open_clip's tag of published ones.
    """

    model: str = ""
    pretrained: str = ""


class OpenClipEncoder:
    """A picture tower and a text tower."""

    caveat = ""

    def __init__(self, source: OpenClipSource, options: Options, *, package: Any) -> None:  # noqa: ANN401 - open_clip
        """Load a model; `package` is open_clip."""
        self.device = chosen_device(options.device)
        self.dtype = chosen_dtype(options.dtype, self.device)
        self.model = built(source, package).to(device=self.device, dtype=self.dtype)
        self.tokenizer = tokenizer_of(source, package)
        self.settings = picture_settings(
            source.preprocessing,
            size=getattr(self.model.visual, "image_size", source.preprocessing.get("size", 224)),
            where=str(source.weights),
        )
        self.batch_size = usual_batch(options, self.device)
        self.batches = Batches(self.batch_size)
        self.identity = EncoderIdentity(
            name="open_clip",
            weights=source.digest(),
            revision=source.revision,
            preprocessing=str(self.settings),
            dtype=str(self.dtype).removeprefix("torch."),
            dim=int(source.model["embed_dim"]),
        )

    @property
    def scale(self) -> float:
        """What the model multiplies a cosine with for a score of its own; no part of a vector."""
        return float(self.model.logit_scale.detach().float().exp().item())

    @property
    def context(self) -> int:
        """How many tokens of a text are read."""
        return int(self.tokenizer.context_length)

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring a picture to the model's size; its range is changed where the model runs."""
        return self.settings.fitted(picture)

    def encode_prepared(self, pictures: Sequence[Prepared]) -> Vectors:
        """Encode prepared pictures."""
        return self.batches.run(self.encode_pictures, pictures, dim=self.identity.dim)

    def encode_images(self, pictures: Sequence[NDArray[np.uint8]]) -> Vectors:
        """Prepare and encode pictures."""
        return self.encode_prepared([self.prepare(picture) for picture in pictures])

    def encode_texts(self, texts: Sequence[str]) -> Vectors:
        """Encode texts; `too_long` says which are cut."""
        if not texts:
            return np.empty((0, self.identity.dim), np.float32)
        tokens = list(self.tokenizer(list(texts)).numpy())
        return self.batches.run(self.encode_tokens, tokens, dim=self.identity.dim)

    def too_long(self, texts: Sequence[str]) -> list[TooLong]:
        """List the texts whose tokens, begin and end included, are more than the model reads."""
        counts = [self.count_tokens(text) for text in texts]
        return [TooLong(place, count, self.context) for place, count in enumerate(counts) if count > self.context]

    def count_tokens(self, text: str) -> int:
        """Count the tokens of a whole text."""
        if hasattr(self.tokenizer, "encode"):
            return len(self.tokenizer.encode(text)) + 2
        if getattr(self.tokenizer, "tokenizer_mode", "") == "clips":
            cleaned = self.tokenizer.clean_fn(text)
            return len(self.tokenizer.tokenizer(cleaned, add_special_tokens=False, verbose=False).input_ids) + 3
        return len(self.tokenizer.tokenizer(self.tokenizer.clean_fn(text), verbose=False).input_ids)

    def encode_pictures(self, pictures: Sequence[Prepared]) -> Vectors:
        """Encode one batch."""
        torch = importlib.import_module("torch")
        planes = torch.from_numpy(np.stack(pictures)).to(self.device).permute(0, 3, 1, 2).float().div_(255)
        mean, std = (torch.tensor(numbers, device=self.device).view(1, 3, 1, 1)
                     for numbers in (self.settings.mean, self.settings.std))  # fmt: skip
        return unit(self.model.encode_image(planes.sub_(mean).div_(std).to(self.dtype).contiguous(), normalize=False))

    def encode_tokens(self, tokens: Sequence[NDArray[np.int64]]) -> Vectors:
        """Encode one batch of texts."""
        torch = importlib.import_module("torch")
        return unit(self.model.encode_text(torch.from_numpy(np.stack(tokens)).to(self.device), normalize=False))


def unit(rows: Any) -> Vectors:  # noqa: ANN401 - a torch tensor
    """Bring rows to unit length, in float32."""
    rows = rows.float()
    vectors: Vectors = (rows / rows.norm(dim=-1, keepdim=True).clamp_min(1e-12)).cpu().numpy()
    return vectors


def built(source: OpenClipSource, package: Any) -> Any:  # noqa: ANN401 - open_clip and its model
    """Make the model with its weights; no tower fetches weights of its own."""
    settings = deepcopy(dict(source.model))
    try:
        pictures, texts = settings["vision_cfg"], settings["text_cfg"]
        if "timm_model_name" in pictures:
            pictures["timm_model_pretrained"] = False
        if "hf_model_name" in texts:
            texts["hf_model_pretrained"] = False
        apart = settings.pop("custom_text", False) or "hf_model_name" in texts
        kind = package.CLIP if not apart else package.CoCa if "multimodal_cfg" in settings else package.CustomTextCLIP
        model = kind(**settings)
        package.load_checkpoint(model, str(source.weights), strict=True)
    except (RuntimeError, KeyError, TypeError, ValueError, AssertionError) as error:
        lines = str(error).strip().splitlines()
        raise IntegrityError(
            "the weights and the settings of the model do not belong together",
            where=str(source.weights),
            found="; ".join(line.strip() for line in lines[:2]) or type(error).__name__,
        ) from error
    except OSError as error:
        raise UsageError("a part of the model is not in the local cache", found=str(error)) from error
    return model.eval().requires_grad_(requires_grad=False)


def tokenizer_of(source: OpenClipSource, package: Any) -> Any:  # noqa: ANN401 - open_clip and its tokenizer
    """Make the model's tokenizer."""
    try:
        return package.get_tokenizer(source.tokenizer)
    except (OSError, ValueError) as error:
        raise UsageError(
            "the model's tokenizer is not there", where=str(source.weights.parent), found=str(error).partition("\n")[0]
        ) from error


def make(spec: Spec) -> OpenClipEncoder:
    """Make the encoder that a SPEC names."""
    options = spec.read(Options)
    package = needed_package("open_clip", kind="encoder open_clip", extra="openclip")
    source = find_source(
        spec, model=options.model, pretrained=options.pretrained, revision=options.revision, package=package
    )
    return OpenClipEncoder(source, options, package=package)
