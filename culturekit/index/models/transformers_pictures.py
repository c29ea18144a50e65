"""How a model wants its pictures: resized, cropped and normalised as its preprocessor_config.json says, in Pillow."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.errors import UsageError

_Size: TypeAlias = tuple[int, int]  # height and width
_Span: TypeAlias = tuple[int, int]  # first and one past last
LARGEST = 16_000_000  # pixels of a resized picture that is made whole before its middle is cut out
_CLIP_COLOURS = {"image_mean": [0.48145466, 0.4578275, 0.40821073], "image_std": [0.26862954, 0.26130258, 0.27577711]}
_IMAGENET_COLOURS = {"image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
_EVEN_COLOURS = {"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]}
_CLIP_SETTINGS = {
    "size": {"shortest_edge": 224},
    "crop_size": 224,
    "do_center_crop": True,
    "resample": 3,
    **_CLIP_COLOURS,
}
# what a processor does where its file does not say; `size` alone is the shortest edge if pictures are cropped
_USUAL: Mapping[str, Mapping[str, Any]] = {
    "CLIPImageProcessor": _CLIP_SETTINGS,
    "CLIPFeatureExtractor": _CLIP_SETTINGS,
    "BitImageProcessor": _CLIP_SETTINGS,
    "SiglipImageProcessor": {"size": 224, "do_center_crop": False, "resample": 3, **_EVEN_COLOURS},
    "ViTImageProcessor": {"size": 224, "do_center_crop": False, "resample": 2, **_EVEN_COLOURS},
    "DINOv3ViTImageProcessor": {"size": 224, "do_center_crop": False, "resample": 2, **_IMAGENET_COLOURS},
    "Siglip2ImageProcessor": {"patch_size": 16, "max_num_patches": 256, "resample": 2, **_EVEN_COLOURS},
}

# steps that none of the models read here has
_CHANGING = ("do_pad", "do_flip_channel_order", "do_thumbnail", "do_align_long_axis", "do_reduce_labels")


@dataclass(frozen=True, slots=True)
class _Normalisation:
    """How bytes become the numbers a model reads: times `scale`, less `mean`, by `deviation`, for red, green, blue."""

    scale: float
    mean: tuple[float, ...]
    deviation: tuple[float, ...]

    def __str__(self) -> str:
        mean, deviation = (" ".join(f"{value:.6g}" for value in values) for values in (self.mean, self.deviation))
        return f"times {self.scale:.8g}, mean {mean}, deviation {deviation}"


@dataclass(frozen=True, slots=True)
class PicturePlan:
    """Resizing to a size or by the shortest edge, then cutting out the middle."""

    exact: _Size | None
    shortest: int | None
    crop: _Size | None
    resample: Image.Resampling
    normalisation: _Normalisation

    @property
    def size(self) -> _Size:
        """How large every prepared picture is."""
        size = self.crop or self.exact
        assert size is not None, "a plan gives pictures of one size"
        return size

    def __str__(self) -> str:
        """Say it as it stands in an identity."""
        steps = ["RGB"]
        pillow = f"with Pillow's {self.resample.name.lower()} filter"
        if self.exact:
            steps.append(f"resized to {_shown(self.exact)} {pillow}")
        if self.shortest:
            steps.append(f"shortest edge to {self.shortest} {pillow}")
        if self.crop:
            steps.append(f"middle {_shown(self.crop)}")
        return ", ".join([*steps, str(self.normalisation)])

    def resized(self, height: int, width: int) -> _Size:
        """Give the size that a picture is resized to, before the middle is cut out."""
        if self.exact is not None:
            return self.exact
        if self.shortest is None:
            return height, width
        longest = int(self.shortest * max(height, width) / min(height, width))
        return (longest, self.shortest) if width <= height else (self.shortest, longest)

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Bring a picture to the plan's size."""
        whole = self.resized(*picture.shape[:2])
        size = self.crop or whole
        top, left = (whole[0] - size[0]) // 2, (whole[1] - size[1]) // 2
        rows, columns = _window(top, size[0], whole[0]), _window(left, size[1], whole[1])
        resize = _resized_part if whole[0] * whole[1] > LARGEST else _cut_after_resizing
        part = np.asarray(resize(Image.fromarray(picture), whole, rows, columns, self.resample))
        if part.shape[:2] == size:
            return part
        black = np.zeros((*size, 3), np.uint8)
        black[rows[0] - top : rows[1] - top, columns[0] - left : columns[1] - left] = part
        return black


def _cut_after_resizing(
    picture: Image.Image, whole: _Size, rows: _Span, columns: _Span, resample: Image.Resampling
) -> Image.Image:
    """Resize a picture and cut its middle out, as the models' authors did."""
    resized = picture.resize((whole[1], whole[0]), resample)
    return resized.crop((columns[0], rows[0], columns[1], rows[1]))


def _resized_part(
    picture: Image.Image, whole: _Size, rows: _Span, columns: _Span, resample: Image.Resampling
) -> Image.Image:
    """Resize only what is cut out of a picture that is many times as long as it is wide.

    A picture of 50,000,000 pixels by 1 would take gigabytes otherwise. Where colours are sharp against each other, a
    pixel can differ from that of the whole resized picture: Pillow chooses which side to resize first by the sizes.
    """
    high, wide = picture.height / whole[0], picture.width / whole[1]
    box = (
        columns[0] * wide,
        rows[0] * high,
        min(picture.width, columns[1] * wide),
        min(picture.height, rows[1] * high),
    )
    return picture.resize((columns[1] - columns[0], rows[1] - rows[0]), resample, box=box)


def _window(start: int, length: int, whole: int) -> _Span:
    """Give the part of a range that lies within a whole."""
    return max(start, 0), min(start + length, whole)


def _shown(size: _Size) -> str:
    """Write a size, width first, as people do."""
    return f"{size[1]}x{size[0]}"


def picture_plan(stated: Mapping[str, Any], *, processor: str, where: str) -> PicturePlan:
    """Read the settings of an image processor.

    Args:
        stated: what preprocessor_config.json says.
        processor: the image processor that a model usually has, for what the file leaves out.
        where: the file, for messages.
    """
    settings = _usual(stated, processor) | {name: value for name, value in stated.items() if value is not None}
    odd = [name for name in _CHANGING if settings.get(name)]
    if odd:
        raise _unusable(where, f"{odd[0]}: true")
    crop = _size_of(settings.get("crop_size"), where) if settings.get("do_center_crop") else None
    exact, shortest = None, None
    if settings.get("do_resize", True):
        exact, shortest = _target_of(settings["size"], cropped=crop is not None, where=where)
    if crop is None and exact is None:
        raise _unusable(where, "pictures of differing sizes")
    return PicturePlan(exact, shortest, crop, _filter_of(settings, where), _normalisation_of(settings, where))


def _usual(settings: Mapping[str, Any], processor: str) -> dict[str, Any]:
    """Give what a processor does where its file does not say."""
    named = str(settings.get("image_processor_type") or settings.get("feature_extractor_type") or processor)
    return dict(_USUAL.get(named.removesuffix("Fast").removesuffix("Pil"), _USUAL[processor]))


def _target_of(size: Any, *, cropped: bool, where: str) -> tuple[_Size | None, int | None]:  # noqa: ANN401 - JSON
    """Read what pictures are resized to: an exact size, or the length of the shortest edge."""
    if isinstance(size, Mapping) and set(size) == {"shortest_edge"}:
        return None, _positive(size["shortest_edge"], where)
    if isinstance(size, int) and cropped:
        return None, _positive(size, where)
    return _size_of(size, where), None


def _size_of(size: Any, where: str) -> _Size:  # noqa: ANN401 - JSON
    """Read a height and a width; one number is both."""
    if isinstance(size, Mapping) and set(size) == {"height", "width"}:
        return _positive(size["height"], where), _positive(size["width"], where)
    if isinstance(size, list) and len(size) == 2:
        return _positive(size[0], where), _positive(size[1], where)
    return _positive(size, where), _positive(size, where)


def _positive(value: Any, where: str, *, least: int = 1) -> int:  # noqa: ANN401 - JSON
    """Read a length in pixels, or a number of patches."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= 8192:
        raise _unusable(where, f"a size of {value!r}")
    return value


def _filter_of(settings: Mapping[str, Any], where: str) -> Image.Resampling:
    number = settings["resample"]
    if number not in list(Image.Resampling):
        raise _unusable(where, f"resample {number!r}")
    return Image.Resampling(number)


def _normalisation_of(settings: Mapping[str, Any], where: str) -> _Normalisation:
    """Read how bytes become numbers."""
    scale = float(settings.get("rescale_factor", 1 / 255)) if settings.get("do_rescale", True) else 1.0
    if not settings.get("do_normalize", True):
        return _Normalisation(scale, (0.0,) * 3, (1.0,) * 3)
    mean, deviation = (tuple(map(float, settings[name])) for name in ("image_mean", "image_std"))
    if len(mean) != 3 or len(deviation) != 3 or 0 in deviation:
        raise _unusable(where, f"image_mean {mean} and image_std {deviation}")
    return _Normalisation(scale, mean, deviation)


def _unusable(where: str, found: str) -> UsageError:
    """Say that a model prepares its pictures in a way that is not known here."""
    return UsageError("pictures are prepared in a way that this encoder cannot follow", where=where, found=found)


# Pictures of any proportions as a row of patches, as SigLIP 2 with flexible resolution (NaFlex) reads them.

_STEP = 1e-5
_LARGEST_SCALE = 100.0


@dataclass(frozen=True, slots=True)
class PatchPlan:
    """Resizing, proportions kept as far as whole patches allow, to at most so many patches."""

    patch: int
    most: int
    resample: Image.Resampling
    normalisation: _Normalisation

    def __str__(self) -> str:
        """Say it as it stands in an identity."""
        return (
            f"RGB, proportions kept, at most {self.most} patches of {self.patch}x{self.patch} with Pillow's "
            f"{self.resample.name.lower()} filter, {self.normalisation}"
        )

    def resized(self, height: int, width: int) -> _Size:
        """Give the largest size of whole patches that keeps the proportions and the number of patches.

        The scale is found by halving, in the very steps of the model's authors: another search would end at another
        scale for some pictures.
        """
        low, high = _STEP / 10, _LARGEST_SCALE
        while high - low >= _STEP:
            scale = (low + high) / 2
            rows, columns = self.in_patches(scale, height) // self.patch, self.in_patches(scale, width) // self.patch
            low, high = (scale, high) if rows * columns <= self.most else (low, scale)
        return self.in_patches(low, height), self.in_patches(low, width)

    def in_patches(self, scale: float, length: int) -> int:
        """Scale a length up to whole patches."""
        return max(self.patch, math.ceil(length * scale / self.patch) * self.patch)

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Cut a picture into patches: (1 + most, patch * patch * 3), the first row holding how many each way."""
        height, width = self.resized(*picture.shape[:2])
        resized = np.asarray(Image.fromarray(picture).resize((width, height), self.resample))
        rows, columns = height // self.patch, width // self.patch
        tiles = resized.reshape(rows, self.patch, columns, self.patch, 3).swapaxes(1, 2)
        prepared = np.zeros((1 + self.most, self.patch * self.patch * 3), np.uint8)
        prepared[1 : 1 + rows * columns] = tiles.reshape(rows * columns, -1)
        prepared[0, :8] = np.array([rows, columns], "<u4").view(np.uint8)
        return prepared


def shape_of(prepared: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Read how many patches each way a prepared picture has: rows, columns."""
    return prepared[0, :8].view("<u4").astype(np.int64)


def patch_plan(stated: Mapping[str, Any], *, processor: str, where: str) -> PatchPlan:
    """Read the settings of an image processor that cuts pictures into patches."""
    settings = _usual(stated, processor) | {name: value for name, value in stated.items() if value is not None}
    return PatchPlan(
        patch=_positive(settings["patch_size"], where, least=2),
        most=_positive(settings["max_num_patches"], where),
        resample=_filter_of(settings, where),
        normalisation=_normalisation_of(settings, where),
    )
