"""Models of open_clip: pictures and texts to vectors of one space."""

import importlib
import math
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.digests import digest
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.model_files import check_safetensors, digest_of_files, hub_folder, read_json
from culturekit.core.registry import Spec
from culturekit.core.torch_places import chosen_device, chosen_dtype, needed_package
from culturekit.index.encoder import EncoderIdentity, Prepared, TooLong, Vectors
from culturekit.index.models.torch_device import Batches, TorchOptions, usual_batch
from culturekit.index.weights import no_weights

# Pictures as open_clip's models take them: size, crop and range by the model's own settings, with Pillow alone.

_CLIP_MEAN = (0.48145466, 0.4578275, 0.40821073)
_CLIP_STD = (0.26862954, 0.26130258, 0.27577711)
# a picture whose resized form has this many times the pixels that are kept is not resized beyond them
_FAR_TOO_LONG = 16


@dataclass(frozen=True, slots=True)
class PictureSettings:
    """What is done to a picture: open_clip's `preprocess_cfg`."""

    size: tuple[int, int]  # height and width of what the model looks at
    mean: tuple[float, float, float] = _CLIP_MEAN  # of each channel between 0 and 1, which is taken off
    std: tuple[float, float, float] = _CLIP_STD  # what each channel is divided by then
    interpolation: Literal["bicubic", "bilinear"] = "bicubic"  # Pillow's filter
    # `shortest` side to the size and the middle of that, `longest` and the rest filled, or `squash`
    resize_mode: Literal["shortest", "longest", "squash"] = "shortest"
    fill_color: int = 0  # of what is filled

    def __str__(self) -> str:
        """Write them as they stand in an identity."""
        height, width = self.size
        fill = f", filled with {self.fill_color}" if self.resize_mode == "longest" else ""
        mean, std = (" ".join(f"{number:.8g}" for number in numbers) for numbers in (self.mean, self.std))
        return f"{self.resize_mode} to {height}x{width}, Pillow {self.interpolation}{fill}; mean {mean}; std {std}"

    def fitted(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bring a picture, uint8 (height, width, 3), to the model's size; its range stays."""
        image = Image.fromarray(picture)
        height, width = self.size
        if self.resize_mode == "squash":
            return np.asarray(image.resize((width, height), self.filter))
        if self.resize_mode == "longest":
            return _middle(np.asarray(image.resize(self.scaled_size(image, longest=True), self.filter)), self.size,
                          fill=self.fill_color)  # fmt: skip
        size = self.scaled_size(image, longest=False)
        if size[0] * size[1] > _FAR_TOO_LONG * width * height:
            return self.middle_alone(image, size)
        return _middle(np.asarray(image.resize(size, self.filter)), self.size, fill=0)

    @property
    def filter(self) -> Image.Resampling:
        """Pillow's filter; for a size that is not square open_clip's shortest side is always bicubic."""
        oblong = self.resize_mode == "shortest" and self.size[0] != self.size[1]
        bilinear = self.interpolation == "bilinear" and not oblong
        return Image.Resampling.BILINEAR if bilinear else Image.Resampling.BICUBIC

    def scaled_size(self, image: Image.Image, *, longest: bool) -> tuple[int, int]:
        """Find the width and height that keep a picture's proportions, rounded as open_clip does."""
        height, width = self.size
        if not longest and height == width:
            shorter = min(image.size)
            across, down = (height if side == shorter else int(height * side / shorter) for side in image.size)
            return across, down
        ratios = (image.height / height, image.width / width)
        ratio = max(ratios) if longest else min(ratios)
        return max(1, round(image.width / ratio)), max(1, round(image.height / ratio))

    def middle_alone(self, image: Image.Image, size: tuple[int, int]) -> NDArray[np.uint8]:
        """Resize the middle only, of a picture so long that the rest would fill the memory.

        Pillow resizes along rows first and rounds; done in two steps here, for in one step with a box it rounds
        elsewhere.
        """
        (height, width), (across, down) = self.size, size
        left, top = round((across - width) / 2), round((down - height) / 2)
        step_x, step_y = image.width / across, image.height / down
        margin = math.ceil(2 * max(step_y, 1)) + 2
        first = max(0, math.floor(top * step_y) - margin)
        last = min(image.height, math.ceil((top + height) * step_y) + margin)
        strip = image.crop((0, first, image.width, last))
        columns = (left * step_x, 0, min((left + width) * step_x, image.width), strip.height)
        strip = strip.resize((width, strip.height), self.filter, box=columns)
        rows = (0, top * step_y - first, width, min((top + height) * step_y, image.height) - first)
        return np.asarray(strip.resize((width, height), self.filter, box=rows))


def _middle(picture: NDArray[np.uint8], size: tuple[int, int], *, fill: int) -> NDArray[np.uint8]:
    """Take the middle of a picture; where it is too small, fill around it first."""
    short = [max(0, wanted - side) for wanted, side in zip(size, picture.shape, strict=False)]
    if any(short):
        around = [*((less // 2, (less + 1) // 2) for less in short), (0, 0)]
        picture = np.pad(picture, around, constant_values=fill)
    top, left = (round((side - wanted) / 2) for wanted, side in zip(size, picture.shape, strict=False))
    return picture[top : top + size[0], left : left + size[1]]


def picture_settings(given: Mapping[str, object], *, size: object, where: str) -> PictureSettings:
    """Read open_clip's `preprocess_cfg`; `size` is what the model itself says."""
    interpolation, mode = given.get("interpolation") or "bicubic", given.get("resize_mode") or "shortest"
    if interpolation == "random":
        interpolation = "bicubic"
    if interpolation not in ("bicubic", "bilinear") or mode not in ("shortest", "longest", "squash"):
        raise IntegrityError("the model's preprocessing is not known", where=where, found=f"{interpolation}, {mode}")
    try:
        height, width = (int(side) for side in (size if isinstance(size, (list, tuple)) else (size, size)))
        return PictureSettings(
            (height, width),
            _channels(given.get("mean") or _CLIP_MEAN),
            _channels(given.get("std") or _CLIP_STD),
            interpolation,
            mode,
            int(cast("int", given.get("fill_color") or 0)),
        )
    except (TypeError, ValueError) as error:
        raise IntegrityError("the model's preprocessing cannot be read", where=where, found=str(error)) from error


def _channels(value: object) -> tuple[float, float, float]:
    """Read a number per channel, or one for all three."""
    numbers = value if isinstance(value, (list, tuple)) else (value,) * 3
    red, green, blue = (float(number) for number in numbers)
    return red, green, blue


# Where a model of open_clip comes from: a folder, a file of weights, or a name; safetensors only.

_CONFIG = "open_clip_config.json"
_WEIGHTS = ("open_clip_model.safetensors", "open_clip_pytorch_model.safetensors", "model.safetensors")
_TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "vocab.txt", "merges.txt", "tokenizer.model", "sentencepiece.bpe.model",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _OpenClipSource:
    """A model's settings and its weights."""

    model: Mapping[str, Any]  # open_clip's `model_cfg`
    preprocessing: Mapping[str, object]  # open_clip's `preprocess_cfg`
    weights: Path  # a safetensors file
    tokenizer: str  # what `open_clip.get_tokenizer` is asked for
    revision: str = "local"  # the commit of a hub id; `local` otherwise
    files: tuple[Path, ...] = field(default=())  # what else decides a vector, such as the files of a tokenizer

    def digest(self) -> str:
        """Hash the weights, the model's settings, and the files of its tokenizer."""
        weights = digest_of_files([self.weights], root=self.weights.parent)
        others = [digest_of_files([file], root=file.parent) for file in self.files]
        return digest([weights, dict(self.model), others])


def find_source(spec: Spec, *, model: str, pretrained: str, revision: str, package: Any) -> _OpenClipSource:  # noqa: ANN401 - open_clip
    """Find what a SPEC names: `FOLDER`, `FILE.safetensors?model=NAME`, `NAME?pretrained=FILE-or-tag`, or a hub id."""
    path = Path(spec.target).expanduser()
    if spec.target and path.is_dir():
        _refuse(spec, model=model, pretrained=pretrained, revision=revision)
        return _in_folder(path)
    if spec.target and path.is_file():
        _refuse(spec, pretrained=pretrained, revision=revision)
        return _of_file(path, model, spec, package)
    if spec.target.replace("/", "-") in package.list_models():
        _refuse(spec, model=model)
        return _of_name(spec.target.replace("/", "-"), pretrained, revision, spec, package)
    if spec.target.count("/") == 1 and not path.is_absolute() and not spec.target.startswith("."):
        _refuse(spec, model=model, pretrained=pretrained)
        folder = _fetched(spec.target, revision)
        return _in_folder(folder, revision=folder.name)
    raise UsageError(
        "this is neither a folder, a file, a hub id, nor a model that open_clip knows",
        where=str(spec),
        expected=f"a folder with {_CONFIG}, FILE.safetensors?model=NAME, or NAME?pretrained=FILE.safetensors",
    )


def _refuse(spec: Spec, **given: str) -> None:
    """Refuse an option that does not go with what the SPEC names."""
    useless = [name for name, value in given.items() if value]
    if useless:
        raise UsageError(f"{useless[0]} does not go with what is named here", where=str(spec))


def _in_folder(folder: Path, *, revision: str = "local") -> _OpenClipSource:
    """Read a folder as open_clip's own tools write it."""
    config = read_json(folder / _CONFIG)
    model = config.get("model_cfg")
    if not isinstance(model, dict):
        raise UsageError("the settings hold no model", where=str(folder / _CONFIG), expected="the key model_cfg")
    preprocessing = config.get("preprocess_cfg")
    weights = _weights_in(folder)
    check_safetensors([weights])
    return _OpenClipSource(
        model,
        preprocessing if isinstance(preprocessing, dict) else {},
        weights,
        f"local-dir:{folder}",
        revision,
        tuple(folder / name for name in _TOKENIZER if (folder / name).is_file()),
    )


def _weights_in(folder: Path) -> Path:
    """Find the weights of a folder; pickles beside them are never opened."""
    found = sorted(folder.glob("*.safetensors"))
    named = [folder / name for name in _WEIGHTS if folder / name in found]
    if named:
        return named[0]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError("which of these are the weights?", where=str(folder), found=", ".join(p.name for p in found),
                         hint=f"Name one of them {_WEIGHTS[0]}.")  # fmt: skip
    raise no_weights(folder)


def _of_file(path: Path, model: str, spec: Spec, package: Any) -> _OpenClipSource:  # noqa: ANN401 - open_clip
    """Take a file of weights; its settings are those of a named model, or lie beside it."""
    if path.suffix != ".safetensors":
        raise UsageError(
            "these weights are a pickle, which can run any code when it is opened", where=str(path),
            expected="safetensors", hint="Convert a checkpoint that you trust: culturekit weights convert "
            f"{path} --sha256 HEX --out {path.with_suffix('.safetensors')}",
        )  # fmt: skip
    check_safetensors([path])
    if not model and (path.parent / _CONFIG).is_file():
        beside = _in_folder(path.parent)
        return _OpenClipSource(beside.model, beside.preprocessing, path, beside.tokenizer, files=beside.files)
    if model not in package.list_models():
        raise UsageError(
            "a file of weights needs the name of its model" if not model else f"open_clip knows no model {model!r}",
            where=str(spec),
            expected="?model=NAME, such as ViT-B-32; open_clip.list_models() lists all",
        )
    return _OpenClipSource(package.get_model_config(model), _usual_preprocessing(model, package), path, model)


def _of_name(name: str, pretrained: str, revision: str, spec: Spec, package: Any) -> _OpenClipSource:  # noqa: ANN401 - open_clip
    """Load a named model, with weights from a file or by their tag on the hub."""
    path = Path(pretrained).expanduser()
    if pretrained and path.is_file():
        _refuse(spec, revision=revision)
        return _of_file(path, name, spec, package)
    tagged = package.get_pretrained_cfg(name, pretrained) if pretrained else {}
    hub_id = str(tagged.get("hf_hub", "")).rstrip("/")
    if hub_id.count("/") != 1:
        tags = package.list_pretrained_tags_by_model(name)
        raise UsageError(
            "a name needs its weights" if not pretrained else "these weights are neither a file nor on the hub",
            where=str(spec),
            expected=f"?pretrained=FILE.safetensors, or a tag: {' or '.join(tags) or 'there is none'}",
        )
    folder = _fetched(hub_id, revision)
    weights = _weights_in(folder)
    check_safetensors([weights])
    return _OpenClipSource(package.get_model_config(name), tagged, weights, name, folder.name)


def _usual_preprocessing(model: str, package: Any) -> Mapping[str, object]:  # noqa: ANN401 - open_clip
    """Give the preprocessing that all published weights of a model share; open_clip's default where they differ."""
    keys = ("mean", "std", "interpolation", "resize_mode")
    shared: list[Mapping[str, object]] = []
    for tag in package.list_pretrained_tags_by_model(model):
        config = package.get_pretrained_cfg(model, tag)
        settings = {key: config.get(key) for key in keys}
        if settings not in shared:
            shared.append(settings)
    return shared[0] if len(shared) == 1 else {}


def _fetched(name: str, revision: str) -> Path:
    """Find a hub id in the local cache, or fetch its safetensors and settings where that is allowed."""
    return hub_folder(
        name,
        revision,
        complete=lambda folder: any(folder.glob("*.safetensors")),
        extra="openclip",
        asked_by="open_clip",
    )


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

    def __init__(self, source: _OpenClipSource, options: Options, *, package: Any) -> None:  # noqa: ANN401 - open_clip
        """Load a model; `package` is open_clip."""
        self.device = chosen_device(options.device)
        self.dtype = chosen_dtype(options.dtype, self.device)
        self.model = _built(source, package).to(device=self.device, dtype=self.dtype)
        self.tokenizer = _tokenizer_of(source, package)
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
        return [TooLong(index, count, self.context) for index, count in enumerate(counts) if count > self.context]

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
        return _unit(self.model.encode_image(planes.sub_(mean).div_(std).to(self.dtype).contiguous(), normalize=False))

    def encode_tokens(self, tokens: Sequence[NDArray[np.int64]]) -> Vectors:
        """Encode one batch of texts."""
        torch = importlib.import_module("torch")
        return _unit(self.model.encode_text(torch.from_numpy(np.stack(tokens)).to(self.device), normalize=False))


def _unit(rows: Any) -> Vectors:  # noqa: ANN401 - a torch tensor
    """Bring rows to unit length, in float32."""
    rows = rows.float()
    vectors: Vectors = (rows / rows.norm(dim=-1, keepdim=True).clamp_min(1e-12)).cpu().numpy()
    return vectors


def _built(source: _OpenClipSource, package: Any) -> Any:  # noqa: ANN401 - open_clip and its model
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


def _tokenizer_of(source: _OpenClipSource, package: Any) -> Any:  # noqa: ANN401 - open_clip and its tokenizer
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
