"""ImageReward: BLIP's picture and text encoders and a small network on top, fine-tuned on what people prefer."""

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
from culturekit.index.models.transformers_encoder import load_tokenizer
from culturekit.index.models.transformers_pictures import PicturePlan, picture_plan
from culturekit.index.raters.quality import QualityScorer
from culturekit.index.weights import Kind, find_model, known_weights, loaded_tensors

LONGEST = 35  # tokens of a prompt that are read
MEAN, DEVIATION = 0.16717362830052426, 1.0333394966054072  # of rewards, as published with the weights
_HEAD = 64  # numbers of one head of attention, in all sizes of ViT and BERT
_VIT_EPSILON, _BERT_EPSILON = 1e-6, 1e-12
_IMAGES, _TEXTS = "blip.visual_encoder", "blip.text_encoder"
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


class _Network:
    """The forward pass over named tensors, as they are published: a reward for each picture beside its prompt."""

    def __init__(self, tensors: Mapping[str, Any]) -> None:
        self.tensors = tensors
        self.torch = needed_package("torch", kind="quality scorer imagereward", extra="embed")
        self.layers = {
            name: self._count(name) for name in (f"{_IMAGES}.blocks", f"{_TEXTS}.encoder.layer", "mlp.layers")
        }

    def _count(self, prefix: str) -> int:
        numbers = {name[len(prefix) + 1 :].partition(".")[0] for name in self.tensors if name.startswith(f"{prefix}.")}
        return 1 + max(map(int, numbers))

    def __call__(self, pixels: Any, ids: Any, mask: Any) -> Any:  # noqa: ANN401 - tensors
        """Give the reward of each picture, (n, 1); `mask` tells tokens from what fills them up."""
        text = self.texts(ids, mask[:, None, None, :].bool(), self.pictures(pixels))
        value = text[:, 0]
        for number in range(self.layers["mlp.layers"]):
            if f"mlp.layers.{number}.weight" in self.tensors:  # between them it drops out, in training alone
                value = self.linear(value, f"mlp.layers.{number}")
        return (value - MEAN) / DEVIATION

    def pictures(self, pixels: Any) -> Any:  # noqa: ANN401 - tensors
        """Encode pictures patch by patch."""
        functional, known = self.torch.nn.functional, self.tensors
        weight = known[f"{_IMAGES}.patch_embed.proj.weight"]
        patches = functional.conv2d(pixels, weight, known[f"{_IMAGES}.patch_embed.proj.bias"], stride=weight.shape[-1])
        first = known[f"{_IMAGES}.cls_token"].expand(len(pixels), -1, -1)
        state = self.torch.cat([first, patches.flatten(2).transpose(1, 2)], dim=1) + known[f"{_IMAGES}.pos_embed"]
        for number in range(self.layers[f"{_IMAGES}.blocks"]):
            block = f"{_IMAGES}.blocks.{number}"
            normed = self.norm(state, f"{block}.norm1", _VIT_EPSILON)
            asked, keys, values = self.linear(normed, f"{block}.attn.qkv").chunk(3, dim=-1)
            state = state + self.linear(self.attention(asked, keys, values), f"{block}.attn.proj")
            normed = self.norm(state, f"{block}.norm2", _VIT_EPSILON)
            state = state + self.linear(functional.gelu(self.linear(normed, f"{block}.mlp.fc1")), f"{block}.mlp.fc2")
        return self.norm(state, f"{_IMAGES}.norm", _VIT_EPSILON)

    def texts(self, ids: Any, mask: Any, seen: Any) -> Any:  # noqa: ANN401 - tensors
        """Encode texts that look at pictures."""
        embeddings, functional = f"{_TEXTS}.embeddings", self.torch.nn.functional
        places = self.tensors[f"{embeddings}.position_embeddings.weight"][: ids.shape[1]]
        state = self.tensors[f"{embeddings}.word_embeddings.weight"][ids] + places
        state = self.norm(state, f"{embeddings}.LayerNorm", _BERT_EPSILON)
        for number in range(self.layers[f"{_TEXTS}.encoder.layer"]):
            layer = f"{_TEXTS}.encoder.layer.{number}"
            state = self.looked(state, state, f"{layer}.attention", mask)
            state = self.looked(state, seen, f"{layer}.crossattention", None)
            inner = functional.gelu(self.linear(state, f"{layer}.intermediate.dense"))
            state = self.norm(self.linear(inner, f"{layer}.output.dense") + state, f"{layer}.output.LayerNorm",
                              _BERT_EPSILON)  # fmt: skip
        return state

    def looked(self, state: Any, at: Any, name: str, mask: Any) -> Any:  # noqa: ANN401 - tensors
        """Let a state attend to itself or to a picture."""
        asked = self.linear(state, f"{name}.self.query")
        keys, values = (self.linear(at, f"{name}.self.{part}") for part in ("key", "value"))
        found = self.linear(self.attention(asked, keys, values, mask), f"{name}.output.dense")
        return self.norm(found + state, f"{name}.output.LayerNorm", _BERT_EPSILON)

    def attention(self, asked: Any, keys: Any, values: Any, mask: Any = None) -> Any:  # noqa: ANN401 - tensors
        heads = max(1, asked.shape[-1] // _HEAD)
        parts = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in (asked, keys, values))
        found = self.torch.nn.functional.scaled_dot_product_attention(*parts, attn_mask=mask)
        return found.transpose(1, 2).flatten(2)

    def linear(self, state: Any, name: str) -> Any:  # noqa: ANN401 - tensors
        weight, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        return self.torch.nn.functional.linear(state, weight, bias)

    def norm(self, state: Any, name: str, epsilon: float) -> Any:  # noqa: ANN401 - tensors
        weight, bias = self.tensors[f"{name}.weight"], self.tensors[f"{name}.bias"]
        return self.torch.nn.functional.layer_norm(state, weight.shape, weight, bias, epsilon)


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
        torch, colours = self.network.torch, self.plan.normalisation
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
    words = len(tensors[f"{_TEXTS}.embeddings.word_embeddings.weight"])
    if len(tokenizer) > words:
        raise UsageError("the tokenizer has more words than the weights", where=str(folder.path),
                         expected=f"at most {words:,}", found=f"{len(tokenizer):,}")  # fmt: skip
    device = chosen_device(options.device)
    patch = tensors[f"{_IMAGES}.patch_embed.proj.weight"].shape[-1]
    side = round((tensors[f"{_IMAGES}.pos_embed"].shape[1] - 1) ** 0.5) * patch
    plan = picture_plan({"size": {"shortest_edge": side}, "crop_size": side}, processor="CLIPImageProcessor",
                        where=str(path))  # fmt: skip
    assert isinstance(plan, PicturePlan)
    try:
        network = _Network({name: tensor.to(device) for name, tensor in tensors.items()})
    except ValueError as error:
        raise IntegrityError("the weights lack a part of the network", where=str(path)) from error
    parameters = {"name": "imagereward", "weights": digest_file(path), "tokenizer": folder.digest_of_texts(),
                  "preprocessing": str(plan), "tokens": LONGEST, "mean": MEAN, "deviation": DEVIATION}  # fmt: skip
    return _ImageReward(network, tokenizer, plan, parameters, device, Batches(usual_batch(options, device)))
