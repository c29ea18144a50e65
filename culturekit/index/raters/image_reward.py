"""ImageReward: BLIP's picture and text encoders and a small network on top, fine-tuned on what people prefer."""

import importlib
import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from culturekit.core.digests import digest_file
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.registry import Spec
from culturekit.core.torch_places import chosen_device, needed_package
from culturekit.index.encoder import Prepared, TooLong
from culturekit.index.models.torch_device import Batches, TorchOptions, on_device, usual_batch
from culturekit.index.models.transformers_encoder import checked_model, load_tokenizer
from culturekit.index.models.transformers_pictures import PicturePlan, picture_plan
from culturekit.index.raters.quality import QualityScorer
from culturekit.index.weights import Kind, fill_network, find_model, known_weights, loaded_tensors

LONGEST = 35  # tokens of a prompt that are read
MEAN, DEVIATION = 0.16717362830052426, 1.0333394966054072  # of rewards, as published with the weights
_HEAD = 64  # numbers of one head of attention, in all sizes of ViT and BERT
_IMAGES, _TEXTS, _TOP = "blip.visual_encoder.", "blip.text_encoder.", "mlp.layers."
_KINDS: tuple[Kind, ...] = ("imagereward",)
_CAVEAT = (
    "ImageReward was learned from what people preferred among generated pictures, few of whom knew the culture shown. "
    "It reads the first 35 tokens of a prompt."
)


@dataclass(frozen=True, slots=True)
class Options(TorchOptions):
    """How the scorer is run.

    Attributes:
        tokenizer: Folder, or hub id, of the tokenizer: that of bert-base-uncased.
    """

    tokenizer: str = "google-bert/bert-base-uncased"


# how the tensors of BLIP's picture encoder are called in transformers
_RENAMED = {
    r"^blocks\.": "encoder.layers.", r"\battn\.proj\b": "self_attn.projection", r"\battn\.": "self_attn.",
    r"\bnorm(?=\d)": "layer_norm", r"^norm\b": "post_layernorm", r"^patch_embed\.proj\b": "embeddings.patch_embedding",
    r"^cls_token$": "embeddings.class_embedding", r"^pos_embed$": "embeddings.position_embedding",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Network:
    """BLIP's two encoders as transformers has them, and the layers on top."""

    pictures: Any
    texts: Any
    top: Any

    def __call__(self, pixels: Any, ids: Any, mask: Any) -> Any:  # noqa: ANN401 - tensors
        """Give the reward of each picture, (n, 1); `mask` tells tokens from what fills them up."""
        seen = self.pictures(pixel_values=pixels).last_hidden_state
        read = self.texts(input_ids=ids, attention_mask=mask, encoder_hidden_states=seen).last_hidden_state
        return (self.top(read[:, 0]) - MEAN) / DEVIATION


def _built(tensors: Mapping[str, Any], side: int, *, device: Any, where: str) -> _Network:  # noqa: ANN401 - torch types
    """Build the network of the size that its tensors have."""
    transformers = needed_package("transformers", kind="quality scorer imagereward", extra="embed")
    torch = importlib.import_module("torch")
    seen, read, top = (
        {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
        for prefix in (_IMAGES, _TEXTS, _TOP)
    )
    for pattern, name in _RENAMED.items():
        seen = {re.sub(pattern, name, old): tensor for old, tensor in seen.items()}
    read.pop("embeddings.position_ids", None)  # which are counted, not learned
    width, _, _, patch = seen["embeddings.patch_embedding.weight"].shape
    words, inner = read["embeddings.word_embeddings.weight"].shape
    vision = transformers.BlipVisionConfig(
        hidden_size=width, num_attention_heads=max(1, width // _HEAD), num_hidden_layers=_count(seen, "encoder.layers"),
        intermediate_size=len(seen["encoder.layers.0.mlp.fc1.bias"]), image_size=side, patch_size=patch,
        layer_norm_eps=1e-6,
    )  # fmt: skip
    text = transformers.BlipTextConfig(
        hidden_size=inner, num_attention_heads=max(1, inner // _HEAD), num_hidden_layers=_count(read, "encoder.layer"),
        intermediate_size=len(read["encoder.layer.0.intermediate.dense.bias"]), encoder_hidden_size=width,
        vocab_size=words, max_position_embeddings=len(read["embeddings.position_embeddings.weight"]),
    )  # fmt: skip
    with torch.device("meta"):
        numbers = sorted({name.partition(".")[0] for name in top}, key=int)
        linear = {number: torch.nn.Linear(*top[f"{number}.weight"].shape[::-1]) for number in numbers}
        head = torch.nn.Sequential(OrderedDict(linear))
    fill_network(head, top, of="ImageReward", where=where)
    pictures = checked_model("BlipVisionModel", None, where=where, config=vision, state_dict=seen)
    texts = checked_model("BlipTextModel", None, where=where, config=text, state_dict=read, add_pooling_layer=False)
    return _Network(pictures.to(device), texts.to(device), head.to(device))


def _count(tensors: Mapping[str, Any], prefix: str) -> int:
    """Count layers."""
    return len({name[len(prefix) + 1 :].partition(".")[0] for name in tensors if name.startswith(f"{prefix}.")})


@dataclass(frozen=True, slots=True)
class _ImageReward:
    """Scores pictures beside their prompts."""

    network: _Network
    tokenizer: Any
    plan: PicturePlan
    parameters: Mapping[str, Any]
    device: Any
    batches: Batches
    name: str = "imagereward"
    caveat: str = _CAVEAT
    needs_prompts: bool = True

    @property
    def batch_size(self) -> int:
        """As many as are scored at once."""
        return self.batches.size

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Resize and crop a picture."""
        return self.plan.prepare(picture)

    def score_prepared(self, pictures: Sequence[Prepared], prompts: Sequence[str] = ()) -> NDArray[np.float64]:
        """Score each prepared picture beside its prompt."""
        if len(pictures) != len(prompts):
            raise ValueError(f"a prompt per picture: {len(pictures)} pictures, {len(prompts)} prompts")
        pairs = list(zip(pictures, prompts, strict=True))
        return self.batches.run(self.rewards, pairs, dim=1)[:, 0].astype(np.float64)

    def rewards(self, pairs: Sequence[tuple[Prepared, str]]) -> Any:  # noqa: ANN401 - a tensor
        """Score one batch."""
        torch, colours = importlib.import_module("torch"), self.plan.normalisation
        pixels = on_device([picture for picture, _ in pairs], self.device).permute(0, 3, 1, 2).float() * colours.scale
        mean, deviation = (
            torch.tensor(part, device=self.device)[:, None, None] for part in (colours.mean, colours.deviation)
        )
        written = self.tokenizer(
            [text for _, text in pairs], padding="max_length", truncation=True, max_length=LONGEST, return_tensors="pt"
        )
        ids, mask = (written[name].to(self.device) for name in ("input_ids", "attention_mask"))
        return self.network((pixels - mean) / deviation, ids, mask)

    def score(self, pictures: Sequence[NDArray[np.uint8]], prompts: Sequence[str] = ()) -> NDArray[np.float64]:
        return self.score_prepared([self.prepare(picture) for picture in pictures], prompts)

    def too_long(self, prompts: Sequence[str]) -> list[TooLong]:
        """List the prompts that are read only in part."""
        if not prompts:
            return []
        counts = map(len, self.tokenizer(list(prompts), truncation=False, verbose=False)["input_ids"])
        return [TooLong(index, count, LONGEST) for index, count in enumerate(counts) if count > LONGEST]


def make(spec: Spec) -> QualityScorer:
    """Make the scorer of a file of converted weights, `imagereward:FILE.safetensors?tokenizer=FOLDER`."""
    options = spec.read(Options)
    path, _ = known_weights(
        spec.target, spec, _KINDS, of="ImageReward", expected="ImageReward, converted to safetensors",
        convert="--kind imagereward",
    )  # fmt: skip
    folder = find_model(options.tokenizer, revision=options.revision, kind="imagereward")
    tokenizer, _ = load_tokenizer(folder)
    tensors = loaded_tensors(path, asked_by="the quality scorer imagereward")
    words = len(tensors[f"{_TEXTS}embeddings.word_embeddings.weight"])
    if len(tokenizer) > words:
        raise UsageError("the tokenizer has more words than the weights", where=str(folder.path),
                         expected=f"at most {words:,}", found=f"{len(tokenizer):,}")  # fmt: skip
    device = chosen_device(options.device)
    patch = tensors[f"{_IMAGES}patch_embed.proj.weight"].shape[-1]
    side = round((tensors[f"{_IMAGES}pos_embed"].shape[1] - 1) ** 0.5) * patch
    plan = picture_plan({"size": {"shortest_edge": side}, "crop_size": side}, processor="CLIPImageProcessor",
                        where=str(path))  # fmt: skip
    assert isinstance(plan, PicturePlan)
    try:
        network = _built(tensors, side, device=device, where=str(path))
    except KeyError as error:
        raise IntegrityError("the weights lack a part of the network", where=str(path), found=str(error)) from error
    parameters = {
        "name": "imagereward", "weights": digest_file(path), "network": "BLIP of transformers",
        "tokenizer": folder.digest_of_texts(), "preprocessing": str(plan), "tokens": LONGEST, "mean": MEAN,
        "deviation": DEVIATION,
    }  # fmt: skip
    return _ImageReward(network, tokenizer, plan, parameters, device, Batches(usual_batch(options, device)))
