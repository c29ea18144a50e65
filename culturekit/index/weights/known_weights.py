"""A file of weights of a known kind: found, held to be of that kind, and loaded; nothing but safetensors is opened."""

import importlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.model_files import check_safetensors, read_header
from culturekit.core.registry import Spec, needing

# The kinds of weights that are known, each by the names and the shapes of its tensors.

_Shapes: TypeAlias = Mapping[str, tuple[int, ...]]  # the shape of each tensor by its name
Kind: TypeAlias = Literal[
    "hpsv2.0", "hpsv2.1", "open-clip", "transformers-clip", "transformers-siglip", "transformers-dinov2",
    "transformers-bert", "imagereward", "lpips", "lpips-backbone", "fid-inception", "inception",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)

# which network the channels of the linear layers belong to
LPIPS: Mapping[tuple[int, ...], str] = {
    (64, 192, 384, 256, 256): "AlexNet",
    (64, 128, 256, 512, 512): "VGG-16",
    (64, 128, 256, 384, 384, 512, 512): "SqueezeNet",
}

_CLIP_NAMES = (
    r"(text\.)?(positional_embedding|text_projection|token_embedding\.weight|attn_mask|cls_emb|ln_final\..+|transformer\..+)"
    r"|visual\..+|logit_(scale|bias)"
)
_PLAIN = r"(features|classifier)\..+"  # the names of torchvision's AlexNet, VGG and SqueezeNet
_BLOCKS = r"Conv2d_(1a_3x3|2a_3x3|2b_3x3|3b_1x1|4a_3x3)|Mixed_(5[bcd]|6[a-e]|7[abc])"


@dataclass(frozen=True, slots=True)
class _KnownKind:
    """What a file turned out to be: its kind, and which member of that kind."""

    kind: Kind
    variant: str


@dataclass(frozen=True, slots=True)
class _Signature:
    """How a kind is known.

    Attributes:
        kind: what it is then.
        shapes: tensors that have to be there, by a pattern of their shape, such as `*,3,*,*`.
        names: what the name of every tensor looks like.
    """

    kind: Kind
    shapes: Mapping[str, str]
    names: str


_SIGNATURES = (
    _Signature(
        "fid-inception",
        {"Conv2d_1a_3x3.conv.weight": "32,3,3,3", "Mixed_7c.branch_pool.conv.weight": "192,2048,1,1",
         "fc.weight": "1008,2048", "fc.bias": "1008"},
        rf"({_BLOCKS}|fc)\..+",
    ),
    _Signature(
        "inception",
        {"Conv2d_1a_3x3.conv.weight": "32,3,3,3", "Mixed_7c.branch_pool.conv.weight": "192,2048,1,1",
         "fc.weight": "1000,2048", "fc.bias": "1000"},
        rf"({_BLOCKS}|fc|AuxLogits)\..+",
    ),
    _Signature(
        "lpips",
        {f"lin{layer}.model.1.weight": "1,*,1,1" for layer in range(5)},
        r"(lins?\.?\d\.model\.1\.weight)|net\..+|scaling_layer\..+",
    ),
    _Signature("lpips-backbone", {"features.0.weight": "64,3,11,11", "features.10.weight": "256,256,3,3"}, _PLAIN),
    _Signature(
        "lpips-backbone",
        {"features.0.weight": "64,3,3,3", "features.26.weight": "512,512,3,3", "features.28.weight": "512,512,3,3"},
        _PLAIN,
    ),
    _Signature(
        "lpips-backbone", {"features.0.weight": "64,3,3,3", "features.12.expand3x3.weight": "256,64,3,3"}, _PLAIN
    ),
    _Signature(
        "imagereward",
        {"blip.visual_encoder.cls_token": "1,1,*", "blip.visual_encoder.patch_embed.proj.weight": "*,3,*,*",
         "blip.text_encoder.embeddings.word_embeddings.weight": "*,*", "mlp.layers.0.weight": "*,*"},
        r"(blip|mlp)\..+|mask",
    ),
    _Signature(
        "open-clip",
        {"visual.conv1.weight": "*,3,*,*", "visual.proj": "*,*", "positional_embedding": "*,*",
         "token_embedding.weight": "*,*", "text_projection": "*,*", "logit_scale": ""},
        _CLIP_NAMES,
    ),
    _Signature(
        "open-clip",
        {"visual.conv1.weight": "*,3,*,*", "visual.proj": "*,*", "text.positional_embedding": "*,*",
         "text.token_embedding.weight": "*,*"},
        _CLIP_NAMES,
    ),
    _Signature(
        "open-clip",
        {"visual.conv1.weight": "*,3,*,*", "visual.attnpool.positional_embedding": "*,*",
         "positional_embedding": "*,*", "token_embedding.weight": "*,*", "text_projection": "*,*"},
        _CLIP_NAMES,
    ),
    _Signature(
        "open-clip",
        {"visual.trunk.patch_embed.proj.weight": "*,3,*,*", "text.token_embedding.weight": "*,*"},
        _CLIP_NAMES,
    ),
    _Signature(
        "transformers-clip",
        {"vision_model.embeddings.class_embedding": "*", "vision_model.embeddings.patch_embedding.weight": "*,3,*,*",
         "text_model.embeddings.token_embedding.weight": "*,*", "visual_projection.weight": "*,*",
         "text_projection.weight": "*,*", "logit_scale": ""},
        r"(vision_model|text_model|visual_projection|text_projection)\..+|logit_scale",
    ),
    _Signature(
        "transformers-siglip",
        {"vision_model.embeddings.patch_embedding.weight": "*,3,*,*", "vision_model.head.probe": "1,1,*",
         "text_model.embeddings.token_embedding.weight": "*,*", "text_model.head.weight": "*,*", "logit_bias": "*"},
        r"(vision_model|text_model)\..+|logit_(scale|bias)",
    ),
    _Signature(
        "transformers-dinov2",
        {"embeddings.cls_token": "1,1,*", "embeddings.patch_embeddings.projection.weight": "*,3,*,*",
         "encoder.layer.0.layer_scale1.lambda1": "*", "layernorm.weight": "*"},
        r"(embeddings|encoder|layernorm)\..+",
    ),
    _Signature(
        "transformers-bert",
        {"embeddings.word_embeddings.weight": "*,*", "embeddings.position_embeddings.weight": "*,*",
         "encoder.layer.0.attention.self.query.weight": "*,*"},
        r"(embeddings|encoder|pooler)\..+",
    ),
)  # fmt: skip


def recognised(shapes: _Shapes, *, asked: Kind | None = None) -> _KnownKind | None:
    """Find out what weights these are; None when they are of no known kind.

    The two HPS scorers are fine-tuned ViT-H-14 and look alike: `asked` decides which it is, where the shapes allow it.
    """
    for signature in _SIGNATURES:
        if _fits(shapes, signature):
            variant = _variant_of(signature.kind, shapes)
            if asked in ("hpsv2.0", "hpsv2.1") and (signature.kind, variant) == ("open-clip", "ViT-H-14"):
                return _KnownKind(asked, variant)
            return _KnownKind(signature.kind, variant)
    return None


def _fits(shapes: _Shapes, signature: _Signature) -> bool:
    """Tell whether every tensor that has to be there is there, and none that has no place."""
    for name, pattern in signature.shapes.items():
        sides, shape = pattern.split(",") if pattern else [], shapes.get(name)
        lone = not sides and shape == (1,)  # a lone number may stand in a shape of its own
        if shape is None or (not lone and len(sides) != len(shape)):
            return False
        if not lone and any(side not in ("*", str(length)) for side, length in zip(sides, shape, strict=True)):
            return False
    return all(re.fullmatch(signature.names, name) for name in shapes)


def _variant_of(kind: Kind, shapes: _Shapes) -> str:
    """Name the member of a kind, as far as its shapes tell."""
    if kind == "lpips":
        layers = sorted(name for name in shapes if re.fullmatch(r"lin\d\.model\.1\.weight", name))
        return LPIPS.get(tuple(shapes[name][1] for name in layers), "unknown network")
    if kind == "lpips-backbone":
        other = "VGG-16" if "features.28.weight" in shapes else "SqueezeNet"
        return "AlexNet" if shapes["features.0.weight"][2] == 11 else other
    if kind == "open-clip" and "visual.proj" in shapes:
        width, _, patch, _ = shapes["visual.conv1.weight"]
        depth = len({name.split(".")[3] for name in shapes if name.startswith("visual.transformer.resblocks.")})
        size = {(768, 12): "B", (1024, 24): "L", (1280, 32): "H", (1408, 40): "g"}.get((width, depth))
        return f"ViT-{size}-{patch}" if size else f"ViT of width {width}, depth {depth}, patch {patch}"
    return ""


def known_weights(
    target: str, spec: Spec, kinds: Collection[Kind], *, of: str, expected: str, convert: str
) -> tuple[Path, Kind]:
    """Find a file of weights, and say which of some kinds it is.

    Args:
        target: the file.
        spec: that names it, for messages.
        kinds: what it may be.
        of: whose weights they are, such as `InceptionV3`.
        expected: the kinds in words.
        convert: what `culturekit weights convert FILE --sha256 HEX` is told besides.
    """
    path = Path(target).expanduser()
    if not target or not path.is_file():
        expected = f"{spec.name}:FILE.safetensors"
        raise UsageError("there is no such file of weights", where=str(spec), expected=expected, found=target)
    if path.suffix != ".safetensors":
        raise UsageError(
            "these weights are not safetensors, and nothing else is opened",
            where=str(path),
            hint=f"Convert a checkpoint that you trust: culturekit weights convert {path} --sha256 HEX {convert}",
        )
    check_safetensors([path])
    shapes = {name: entry.shape for name, entry in read_header(path).tensors.items()}
    known = recognised(shapes)
    if known is None or known.kind not in kinds:
        found = known.kind if known else f"{len(shapes)} tensors of no known kind"
        raise IntegrityError(f"the weights are not those of {of}", where=str(path), expected=expected, found=found)
    return path, known.kind


def loaded_tensors(path: Path, *, asked_by: str) -> dict[str, Any]:
    """Load the tensors of a file as float32, or say which command installs what that needs."""
    with needing("embed", asked_by):
        importlib.import_module("torch")
        load_file = importlib.import_module("safetensors.torch").load_file
    return {name: tensor.float() for name, tensor in load_file(path).items()}
