"""A file of weights of a known kind: found, held to be of that kind, and loaded; nothing but safetensors is opened."""

import hashlib
import importlib
import json
import re
import struct
import warnings
import zipfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, get_args

from culturekit.core.atomic import whole_file
from culturekit.core.digests import digest_file
from culturekit.core.errors import CultureKitError, IntegrityError, UsageError
from culturekit.core.model_files import check_safetensors, digest_of_files, hub_folder, read_header, read_json
from culturekit.core.registry import Spec, needing

PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt")
# what decides a vector besides the weights
_TOLD_BY = (
    "config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "*.model",
)

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A folder with a model in it; `revision` is the commit of a hub id, and `local` of a folder of one's own."""

    path: Path
    revision: str

    def files(self) -> list[Path]:
        """List what decides a vector, in alphabetical order: the weights that are loaded, and what tells how."""
        return sorted({*self._texts(), *weight_files(self.path)})

    def _texts(self) -> set[Path]:
        return {path for pattern in _TOLD_BY for path in self.path.glob(pattern) if path.is_file()}

    def digest_of_texts(self) -> str:
        """Hash what decides how texts are read, of a folder that may have no weights."""
        return digest_of_files(sorted(self._texts()), root=self.path)

    def digest(self) -> str:
        """Hash the names and bytes of all that decides a vector."""
        return digest_of_files(self.files(), root=self.path)


def find_model(target: str, *, revision: str = "", kind: str) -> ModelFolder:
    """Find the folder of a model: a local one, or that of a hub id in the local cache.

    Only what the cache lacks is fetched, and nothing is when the hub is switched off (HF_HUB_OFFLINE=1). Pickles are
    neither fetched nor read.

    Args:
        target: a folder, or a hub id such as `openai/clip-vit-base-patch32`.
        revision: a branch, tag or commit of the hub id.
        kind: who asks, for messages, such as `transformers`.
    """
    path = Path(target).expanduser()
    if path.is_dir() and target:
        if revision:
            raise UsageError("only a hub id has revisions", where=target, found=f"revision={revision}")
        return ModelFolder(path, "local")
    if not _HUB_ID.fullmatch(target) or path.exists():
        raise UsageError(
            "this is not a folder with a model in it",
            where=target or kind,
            expected=f"{kind}:FOLDER or {kind}:OWNER/NAME of the Hugging Face hub",
        )
    folder = hub_folder(target, revision, complete=_weight_names, extra="embed", asked_by=kind)
    return ModelFolder(folder, folder.name)


def weight_files(folder: Path) -> list[Path]:
    """List the weights of a folder as they are loaded: one safetensors file, or those that an index names."""
    names = _weight_names(folder)
    if not names:
        raise no_weights(folder)
    for name in names:
        if not (folder / name).is_file():
            raise IntegrityError("a part of the weights is missing", where=str(folder), expected=name)
    return [folder / name for name in names]


def _weight_names(folder: Path) -> list[str]:
    """Name the weights that a folder promises; what else lies there, pickles included, is never opened."""
    if (folder / "model.safetensors").is_file():
        return ["model.safetensors"]
    index = folder / "model.safetensors.index.json"
    if not index.is_file():
        return []
    listed = read_json(index).get("weight_map", {})
    names = sorted({str(name) for name in listed.values()}) if isinstance(listed, dict) else []
    outside = [name for name in names if Path(name).name != name or not name.endswith(".safetensors")]
    if outside:
        raise IntegrityError("an index of weights names what is no safetensors file beside it", where=str(index),
                             found=outside[0])  # fmt: skip
    return names


def no_weights(folder: Path) -> UsageError:
    """Say that a folder has no weights that may be read."""
    pickles = sorted(path.name for pattern in PICKLES for path in folder.glob(pattern))
    if not pickles:
        return UsageError("there are no weights in this folder", where=str(folder), expected="model.safetensors")
    return UsageError(
        "these weights are a pickle, which can run any code when it is opened",
        where=str(folder),
        expected="model.safetensors",
        found=pickles[0],
        hint=f"Convert a checkpoint that you trust: culturekit weights convert {folder / pickles[0]} --sha256 HEX "
        f"--out {folder / 'model.safetensors'}",
    )


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


_INCEPTION = "Conv2d_1a_3x3.conv.weight 32,3,3,3  Mixed_7c.branch_pool.conv.weight 192,2048,1,1"
_TEXT_TOWER = "text.positional_embedding *,*  text.token_embedding.weight *,*"

# A kind, what the name of each of its tensors looks like, and those that have to be there: a name, a pattern of shape.
_SIGNATURES: tuple[tuple[Kind, str, str], ...] = (
    ("fid-inception", rf"({_BLOCKS}|fc)\..+", f"{_INCEPTION}  fc.weight 1008,2048  fc.bias 1008"),
    ("inception", rf"({_BLOCKS}|fc|AuxLogits)\..+", f"{_INCEPTION}  fc.weight 1000,2048  fc.bias 1000"),
    ("lpips", r"(lins?\.?\d\.model\.1\.weight)|net\..+|scaling_layer\..+",
     "  ".join(f"lin{layer}.model.1.weight 1,*,1,1" for layer in range(5))),
    ("lpips-backbone", _PLAIN, "features.0.weight 64,3,11,11  features.10.weight 256,256,3,3"),
    ("lpips-backbone", _PLAIN,
     "features.0.weight 64,3,3,3  features.26.weight 512,512,3,3  features.28.weight 512,512,3,3"),
    ("lpips-backbone", _PLAIN, "features.0.weight 64,3,3,3  features.12.expand3x3.weight 256,64,3,3"),
    ("imagereward", r"(blip|mlp)\..+|mask",
     "blip.visual_encoder.cls_token 1,1,*  blip.visual_encoder.patch_embed.proj.weight *,3,*,*  "
     "blip.text_encoder.embeddings.word_embeddings.weight *,*  mlp.layers.0.weight *,*"),
    ("open-clip", _CLIP_NAMES,
     "visual.conv1.weight *,3,*,*  visual.proj *,*  positional_embedding *,*  token_embedding.weight *,*  "
     "text_projection *,*  logit_scale -"),
    ("open-clip", _CLIP_NAMES, f"visual.conv1.weight *,3,*,*  visual.proj *,*  {_TEXT_TOWER}"),
    ("open-clip", _CLIP_NAMES,
     "visual.conv1.weight *,3,*,*  visual.attnpool.positional_embedding *,*  positional_embedding *,*  "
     "token_embedding.weight *,*  text_projection *,*"),
    ("open-clip", _CLIP_NAMES, "visual.trunk.patch_embed.proj.weight *,3,*,*  text.token_embedding.weight *,*"),
    ("transformers-clip", r"(vision_model|text_model|visual_projection|text_projection)\..+|logit_scale",
     "vision_model.embeddings.class_embedding *  vision_model.embeddings.patch_embedding.weight *,3,*,*  "
     "text_model.embeddings.token_embedding.weight *,*  visual_projection.weight *,*  text_projection.weight *,*  "
     "logit_scale -"),
    ("transformers-siglip", r"(vision_model|text_model)\..+|logit_(scale|bias)",
     "vision_model.embeddings.patch_embedding.weight *,3,*,*  vision_model.head.probe 1,1,*  "
     "text_model.embeddings.token_embedding.weight *,*  text_model.head.weight *,*  logit_bias *"),
    ("transformers-dinov2", r"(embeddings|encoder|layernorm)\..+",
     "embeddings.cls_token 1,1,*  embeddings.patch_embeddings.projection.weight *,3,*,*  "
     "encoder.layer.0.layer_scale1.lambda1 *  layernorm.weight *"),
    ("transformers-bert", r"(embeddings|encoder|pooler)\..+",
     "embeddings.word_embeddings.weight *,*  embeddings.position_embeddings.weight *,*  "
     "encoder.layer.0.attention.self.query.weight *,*"),
)  # fmt: skip


def recognised(shapes: _Shapes, *, asked: Kind | None = None) -> tuple[Kind, str] | None:
    """Find out what weights these are, and which member of their kind; None when they are of no known kind.

    The two HPS scorers are fine-tuned ViT-H-14 and look alike: `asked` decides which it is, where the shapes allow it.
    """
    for kind, names, needed in _SIGNATURES:
        if _fits(shapes, names, needed.split()):
            variant = _variant_of(kind, shapes)
            scorer = asked in ("hpsv2.0", "hpsv2.1") and (kind, variant) == ("open-clip", "ViT-H-14")
            return asked if asked and scorer else kind, variant
    return None


def _fits(shapes: _Shapes, names: str, needed: Sequence[str]) -> bool:
    """Tell whether every tensor that has to be there is there, and none that has no place."""
    for name, pattern in zip(needed[::2], needed[1::2], strict=True):
        shape, sides = shapes.get(name), [] if pattern == "-" else pattern.split(",")
        if shape == (1,) and not sides:
            continue  # a lone number may stand in a shape of its own
        if shape is None or len(sides) != len(shape):
            return False
        if any(side not in ("*", str(length)) for side, length in zip(sides, shape, strict=True)):
            return False
    return all(re.fullmatch(names, name) for name in shapes)


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
    kind, _ = recognised(shapes) or (None, "")
    if kind is None or kind not in kinds:
        found = kind or f"{len(shapes)} tensors of no known kind"
        raise IntegrityError(f"the weights are not those of {of}", where=str(path), expected=expected, found=found)
    return path, kind


def loaded_tensors(path: Path, *, asked_by: str) -> dict[str, Any]:
    """Load the tensors of a file as float32, or say which command installs what that needs."""
    with needing("embed", asked_by):
        importlib.import_module("torch")
        load_file = importlib.import_module("safetensors.torch").load_file
    return {name: tensor.float() for name, tensor in load_file(path).items()}


def fill_network(network: Any, state: Mapping[str, Any], *, of: str, where: str) -> None:  # noqa: ANN401 - a module
    """Put tensors into a network that was built without numbers: all that it has, and no others."""
    try:
        network.load_state_dict(state, assign=True)
    except RuntimeError as error:
        found = "; ".join(str(error).split("\n\t")[1:3])
        raise IntegrityError(f"the weights of {of} are not complete", where=where, found=found) from error
    network.eval().requires_grad_(False)


# Weights that are published as pickles, made into safetensors; nothing else in culturekit reads a pickle.


_SHARED = 4  # times the bytes of its file that all tensors may take, where some share theirs
_INSIDE = ("state_dict", "model_state_dict", "model", "module", "params", "params_ema", "net")
_PREFIXES = ("module.", "_orig_mod.", "_orig_module.")  # what wrappers put before every name
_ALIGNMENT = 8  # tensor data begins at a multiple of this many bytes

_TYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConvertedWeights:
    """A safetensors file and where it comes from."""

    path: Path
    sha256: str
    kind: str
    variant: str
    tensors: int
    numbers: int
    left_out: tuple[str, ...]
    source_sha256: str


def convert_weights(file: Path, *, sha256: str, out: Path, kind: str | None = None) -> ConvertedWeights:
    """Convert a file of a known kind, if it is the one with this SHA-256; it is hashed before anything reads it.

    `torch.load(weights_only=True)` reads it, which builds tensors and plain containers and calls nothing else.
    """
    asked = None if kind is None else next((each for each in KINDS if each == kind), None)
    if asked != kind:
        raise UsageError(f"there is no kind of weights {kind!r}", expected=" or ".join(KINDS))
    expected = sha256.strip().lower().removeprefix("sha256:")
    if re.fullmatch("[0-9a-f]{64}", expected) is None:
        raise UsageError("not a SHA-256", expected="64 hexadecimal digits", found=repr(sha256))
    if out.suffix != ".safetensors":
        raise UsageError("the file to write has another ending", expected="NAME.safetensors", found=out.name)
    if not out.absolute().parent.is_dir():
        raise UsageError("there is no such folder", where=str(out.parent))
    try:
        with file.open("rb") as opened:
            found = hashlib.file_digest(opened, "sha256").hexdigest()
            if found != expected:
                raise IntegrityError(
                    "not the file that was published", where=str(file), expected=f"SHA-256 {expected}", found=found,
                    hint="Nothing in it was read. Fetch it again.",
                )  # fmt: skip
            _refuse_overwriting(out, expected)
            tensors, left_out = _weights_in(_loaded(opened, file), file)
    except (FileNotFoundError, IsADirectoryError) as error:
        raise UsageError("there is no such file", where=str(file)) from error
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    known = recognised(shapes, asked=asked)
    if known is None:
        shown = [f"{_printable(name)} {shape}" for name, shape in sorted(shapes.items())[:6]]
        more = ", ..." if len(shapes) > len(shown) else ""
        raise _unknown(file, f"{len(shapes)} tensors: {', '.join(shown)}{more}")
    if asked not in (None, known[0]):
        found = " ".join(filter(None, known))
        raise UsageError("the weights are of another kind", where=str(file), expected=str(asked), found=found)
    notes = {
        "culturekit.kind": known[0], "culturekit.variant": known[1], "culturekit.source": file.name,
        "culturekit.source_sha256": expected, "format": "pt",
    }  # fmt: skip
    write_tensors(out, [_stored(name, tensor) for name, tensor in tensors.items()], notes)
    numbers = sum(tensor.numel() for tensor in tensors.values())
    return ConvertedWeights(out, digest_file(out), *known, len(tensors), numbers, tuple(left_out), expected)


def _refuse_overwriting(out: Path, sha256: str) -> None:
    """Keep a file that is not an earlier conversion of the same weights."""
    source = None
    with suppress(IntegrityError, OSError):
        source = read_header(out).notes.get("culturekit.source_sha256")
    if out.exists() and source != sha256:
        raise UsageError("something else stands there", where=str(out), hint="Name another file, or move this one.")


def _loaded(file: BinaryIO, path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """Unpickle tensors and plain containers, and nothing else."""
    with needing("embed", "culturekit weights convert"):
        import torch

    size = path.stat().st_size
    file.seek(0)
    try:
        unpacked = sum(entry.file_size for entry in zipfile.ZipFile(file).infolist()) if zipfile.is_zipfile(file) else 0
        if unpacked > size:  # torch stores tensors, it does not compress them
            raise _bomb(path, f"{unpacked:,} bytes in an archive of {size:,}")
        file.seek(0)
        with warnings.catch_warnings(action="ignore"):  # of TorchScript archives, which are refused below
            return torch.load(file, map_location="cpu", weights_only=True)
    except (CultureKitError, MemoryError):
        raise
    except Exception as error:  # a hostile file may raise anything
        raise _refusal(error, path) from error


def _refusal(error: Exception, path: Path) -> IntegrityError:
    """Say why a file could not be loaded: it holds more than tensors, or it is broken."""
    text = str(error)
    first = text.splitlines()[0] if text else ""
    names = re.search(r"GLOBAL (\S+)|Trying to (?:instantiate|call) (?:type |function )?(\S+)", text)
    found = "a TorchScript archive" if "TorchScript" in text else (names[1] or names[2]).rstrip(".") if names else ""
    if not found and re.search("Unsupported operand|Unsupported class|Blocklisted", text):
        found = first
    if found:
        return IntegrityError(
            "the file holds more than tensors, and nothing of it was run", where=str(path),
            expected="tensors and plain containers, as torch.load reads them with weights_only=True",
            found=_printable(found),
            hint="If you trust its maker, ask for a file of tensors alone, best as safetensors.",
        )  # fmt: skip
    problem = "the file is cut short or broken, or not made by torch.save"
    return IntegrityError(
        problem, where=str(path), found=_printable(f"{type(error).__name__}: {first}"), hint="Fetch it again."
    )


def _bomb(path: Path, found: str) -> IntegrityError:
    """Make the error for a file that would fill the memory."""
    hint = "Nothing of it was unpacked."
    return IntegrityError("the file unpacks to more than it is", where=str(path), found=found, hint=hint)


def _unknown(path: Path, found: str) -> UsageError:
    """Make the error for weights that nobody knows."""
    return UsageError("the weights are of no known kind", where=str(path), expected=" or ".join(KINDS), found=found)


def _weights_in(content: Any, path: Path) -> tuple[dict[str, Any], list[str]]:  # noqa: ANN401 - anything
    """Find the weights in what was loaded: named tensors, without a wrapper's prefix. List what else there was.

    Tensors that show more numbers than they have, views that repeat one number without end, are refused.
    """
    import torch

    left_out: list[str] = []
    while isinstance(content, Mapping) and not any(isinstance(value, torch.Tensor) for value in content.values()):
        inner = next((name for name in _INSIDE if isinstance(content.get(name), Mapping)), None)
        if inner is None:
            break
        left_out += [_printable(str(name)) for name in content if name != inner]
        content = content[inner]
    if not isinstance(content, Mapping):
        raise _unknown(path, f"a {type(content).__name__}, not named tensors")
    tensors = {k: v for k, v in content.items() if isinstance(k, str) and isinstance(v, torch.Tensor)}
    left_out += [_printable(str(name)) for name in content if name not in tensors]
    if not tensors:
        raise _unknown(path, "no tensor under " + (", ".join(left_out[:8]) or "any name"))
    total = 0
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or _type_of(tensor) not in _TYPES:
            raise _unknown(path, f"a tensor of {tensor.dtype} with layout {tensor.layout}")
        size = tensor.numel() * tensor.element_size()
        if size > tensor.untyped_storage().nbytes():
            raise _bomb(path, f"{_printable(name)}, {tuple(tensor.shape)} repeated from fewer numbers")
        total += size
    if total > _SHARED * path.stat().st_size:
        raise _bomb(path, f"tensors of {total:,} bytes in a file of {path.stat().st_size:,}")
    for prefix in _PREFIXES:
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
    return tensors, left_out


def _type_of(tensor: Any) -> str:  # noqa: ANN401 - torch is not imported at the top
    return str(tensor.dtype).removeprefix("torch.")


def _printable(text: str) -> str:
    """Make text of a stranger fit to be shown."""
    return ascii(text)[1:-1][:120]


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor to be written: the format's name of its type, its shape, and who gives its little-endian bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int
    content: Callable[[], bytes | memoryview]


def _stored(name: str, tensor: Any) -> StoredTensor:  # noqa: ANN401 - torch is not imported at the top
    """Describe a tensor for writing; its bytes are laid out row after row when they are asked for."""
    import torch

    def content() -> memoryview:
        return memoryview(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy())

    size = tensor.numel() * tensor.element_size()
    return StoredTensor(name, _TYPES[_type_of(tensor)], tuple(tensor.shape), size, content)


def write_tensors(path: Path, tensors: Sequence[StoredTensor], notes: Mapping[str, str]) -> None:
    """Write safetensors, one tensor in memory at a time; equal tensors and notes give equal bytes."""
    widths = {"64": 8, "32": 4, "16": 2}  # the widest come first, so that all stay aligned
    ordered = sorted(tensors, key=lambda tensor: (-widths.get(tensor.dtype[-2:], 1), tensor.name))
    header: dict[str, object] = {"__metadata__": dict(sorted(notes.items()))}
    offset = 0
    for tensor in ordered:
        offsets = [offset, offset + tensor.size]
        header[tensor.name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": offsets}
        offset += tensor.size
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    with whole_file(path) as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for tensor in ordered:
            file.write(tensor.content())
