"""How far the pictures of a batch are apart: a measure of pairs over a table of images, in resumable shards."""

import importlib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image

from culturekit.core.atomic import explained_outside
from culturekit.core.choices import BATCHES_PER_SHARD
from culturekit.core.digests import digest, digest_file
from culturekit.core.errors import IntegrityError, UsageError
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.plugins import Contract, hold
from culturekit.core.registry import Entry, Registry, Spec
from culturekit.core.schemas import IMAGES, PAIR_DISTANCES
from culturekit.core.stage import Outcome, Work, seal
from culturekit.core.table import check_slots
from culturekit.core.tables import merge_parts, read_table, save_parquet, write_table
from culturekit.core.torch_places import chosen_device, needed_package, same_bits
from culturekit.index.embedding.embedding import try_picture
from culturekit.index.encoder import Prepared, held_array
from culturekit.index.raters.quality import RatedShard, rated
from culturekit.index.weights import LPIPS, fill_network, known_weights, loaded_tensors

# What a measure of pairs is: the pictures of a batch in, how far every two of them are apart out.


class PairMeasure(Protocol):
    """Says how far pictures are apart.

    Preparing and measuring are apart, as with encoders, so that no more than a batch of small pictures is in memory.
    """

    @property
    def name(self) -> str:
        """The measure's name as it stands in tables."""

    @property
    def caveat(self) -> str:
        """What a reader must know about this measure; empty when nothing."""

    @property
    def licence(self) -> str:
        """Of the weights."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Everything that decides a value: weights (`none`, or their hash), preprocessing, and constants."""

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring a picture, uint8 (height, width, 3), to the form that is measured."""

    def distances(self, pictures: Sequence[Prepared]) -> NDArray[np.float64]:
        """Measure every two pictures of a batch, float64 (n, n): symmetric, zeros on the diagonal."""


# The measures of pairs of pictures that culturekit knows by name.


def distances(_: object, answer: object, pictures: Sequence[object]) -> NDArray[np.float64]:
    """Take a finite distance of every two pictures."""
    found: NDArray[np.float64] = held_array(answer, (len(pictures), len(pictures)))
    hold(bool((found >= 0).all()), "finite numbers of at least 0", "others")
    hold(bool((np.diag(found) == 0).all()), "zeros on the diagonal", "others")
    hold(bool(np.allclose(found, found.T)), "one distance both ways", "two")
    return found


_MEASURE = Contract(
    (PairMeasure,), answers={"distances": distances}, says=lambda measure: {"parameters": dict(measure.parameters)}
)

PAIR_MEASURES: Registry[PairMeasure] = Registry(
    "measure of pairs",
    [
        Entry(
            "lpips",
            "culturekit.index.raters.picture_spread:make",
            "LPIPS on AlexNet, VGG-16 or SqueezeNet: lpips:FILE, or lpips:HEADS?backbone=FILE, both safetensors",
            options="culturekit.index.raters.picture_spread:Options",
            extra="embed",
            packages=("torch", "torchvision"),
        )
    ],
    point="measure",
    contract=_MEASURE,
)


_UNREADABLE = "images of a batch with a picture that cannot be read: "
# a row has a distance, or the reason why there is none; then the distance is NaN
_PART = {**PAIR_DISTANCES.schema, "reason": pl.String()}
_NO_PROMPT = "images that name no prompt or repeat"
_INCOMPLETE = "images of an incomplete batch"


@dataclass(frozen=True, slots=True)
class _RepeatBatch:
    """One full batch: where it stands, and path and hash of each picture."""

    model: str
    concept: str | None
    prompt_id: str
    repeat: int
    number: int
    pictures: tuple[tuple[str, str], ...]


def measure_spread(work: Work, images_path: Path, measure: str, *, size: int) -> Outcome:
    """Write the mean distance over all pairs of each full batch; a batch with an unreadable picture has none."""
    loaded = PAIR_MEASURES.kept(measure)
    batches, left_out = repeat_batches(read_table(images_path, IMAGES), size)
    parts = rated(work, batches, images_path.parent, measure, loaded.parameters, _measure_shard, name="spread",
                  at_once=BATCHES_PER_SHARD, unit="batches")  # fmt: skip
    rows = merge_parts(parts, _PART)
    lost = rows.filter(pl.col("reason").is_not_null())
    for reason, count in lost.group_by("reason").agg(pl.col("images").sum()).sort("reason").iter_rows():
        left_out[f"{_UNREADABLE}{reason}"] += count
    table = rows.filter(pl.col("reason").is_null()).select(list(PAIR_DISTANCES.schema))
    write_table(work.out, PAIR_DISTANCES, table)
    notes = {"caveat": loaded.caveat, "parameters": dict(loaded.parameters), "licence": loaded.licence}
    counts = {"pair_distances": table.height, "images": int(table["images"].sum())}
    return Outcome(counts, +left_out, notes)


def _measure_shard(shard: RatedShard) -> int:
    """Measure a run of batches and keep a row for each."""
    measure = PAIR_MEASURES.kept(shard.rater)
    rows = []
    for batch in shard.items:
        with explained_outside(f"the measure {shard.rater}"):
            distance, reason = _distance_of(batch, shard.root, measure)
        cells = (batch.model, batch.concept, batch.prompt_id, batch.repeat, batch.number, len(batch.pictures))
        rows.append((measure.name, *cells, distance, reason))
    save_parquet(pl.DataFrame(rows, _PART, orient="row"), shard.part)
    seal(shard.part)
    return len(shard.items)


def _distance_of(batch: _RepeatBatch, root: Path, measure: PairMeasure) -> tuple[float, str | None]:
    """Average the distances of all pairs of a batch, or say why there is none."""
    ready = []
    for path, sha256 in batch.pictures:
        found = try_picture(root, path, sha256=sha256)
        if isinstance(found, NoPicture):
            return float("nan"), found.reason
        ready.append(measure.prepare(found))
    distances, count = measure.distances(ready), len(ready)
    return float(distances.sum() / (count * (count - 1))), None


def repeat_batches(images: pl.DataFrame, size: int) -> tuple[list[_RepeatBatch], Counter[str]]:
    """Cut images that have a picture into full batches, and count the images that are in none."""
    left_out: Counter[str] = Counter()
    ready = images.filter(pl.col("status") == "ok")
    left_out["images without a picture"] += images.height - ready.height
    check_slots(ready)
    placed = ready.drop_nulls(["prompt_id", "repeat"])
    left_out[_NO_PROMPT] += ready.height - placed.height
    concept = [] if "concept" in placed.columns else [pl.lit(None, pl.String).alias("concept")]
    ordered = placed.with_columns(concept).sort("model", "prompt_id", "repeat", "slot", "image_id")
    batches: list[_RepeatBatch] = []
    for (model, prompt, repeat), rows in ordered.group_by("model", "prompt_id", "repeat", maintain_order=True):
        pictures = tuple(rows.select("path", "sha256").iter_rows())
        full = len(pictures) // size
        left_out[_INCOMPLETE] += len(pictures) - full * size
        for number in range(full):
            batch = pictures[number * size : (number + 1) * size]
            batches.append(_RepeatBatch(str(model), rows["concept"][0], str(prompt), int(str(repeat)), number, batch))
    return batches, left_out


# LPIPS of weights from local files: torchvision's three networks, and how unlike two pictures look to them.


_Tensor: TypeAlias = Any  # a torch tensor; planes are (n, channels, height, width)
# what brings colours from -1 to 1 to the range that the networks were trained with
SHIFT, SCALE = (-0.030, -0.088, -0.188), (0.458, 0.448, 0.450)
_EPSILON = 1e-10  # what the authors add to the length of a feature


class _Backbone(NamedTuple):
    """A network, and the layers whose answers are compared."""

    short: str
    model: str  # its name in torchvision
    taken: tuple[int, ...]


_BACKBONES = {
    "AlexNet": _Backbone("alex", "alexnet", (1, 4, 7, 9, 11)),
    "VGG-16": _Backbone("vgg", "vgg16", (3, 8, 15, 22, 29)),
    "SqueezeNet": _Backbone("squeeze", "squeezenet1_1", (1, 4, 7, 9, 10, 11, 12)),
}


@dataclass(frozen=True, slots=True)
class _Lpips:
    """The measure of Zhang et al. 2018, version 0.1."""

    name: str  # which network looks at the pictures
    layers: Any  # its `features`
    heads: Sequence[_Tensor]  # of each layer taken, how much each channel weighs, (1, channels, 1, 1)

    def to(self, device: object) -> "_Lpips":
        return replace(self, layers=self.layers.to(device), heads=[head.to(device) for head in self.heads])

    def distances(self, pictures: _Tensor) -> _Tensor:
        """Measure every two pictures of (n, 3, height, width), from -1 to 1: (n, n), zeros on the diagonal."""
        torch = importlib.import_module("torch")
        count = len(pictures)
        found = torch.zeros(count, count, dtype=torch.float64, device=pictures.device)
        for planes, head in zip(self.taken(pictures), self.heads, strict=True):
            unit = planes / (planes.square().sum(1, keepdim=True).sqrt() + _EPSILON)
            for first in range(count - 1):
                apart = (unit[first + 1 :] - unit[first]).square()
                mean = (apart * head).sum(1).mean((1, 2), dtype=torch.float64)
                found[first, first + 1 :] += mean
                found[first + 1 :, first] += mean
        return found

    def taken(self, pictures: _Tensor) -> Iterator[_Tensor]:
        """Give the answers of the layers that are compared, one after the other."""
        shift, scale = (pictures.new_tensor(numbers).view(1, 3, 1, 1) for numbers in (SHIFT, SCALE))
        planes = (pictures - shift) / scale
        for number, layer in enumerate(self.layers):
            planes = layer(planes)
            if number in _BACKBONES[self.name].taken:
                yield planes


_HEAD = re.compile(r"lins?\.?(\d)\.model\.1\.weight")
_LAYER = re.compile(r"(?:net\.slices?\.?\d|features)\.(\d+(?:\.(?:squeeze|expand1x1|expand3x3))?\.(?:weight|bias))")

# whoever trained others knows theirs
_LICENCE = (
    "published weights: heads BSD-2-Clause (PerceptualSimilarity), network BSD-3-Clause (torchvision), trained on "
    "ImageNet"
)

_SMALLEST = 32


@dataclass(frozen=True, slots=True)
class Options:
    """How the network is run.

    Attributes:
        backbone: file of the network's weights, where the first file holds the heads alone.
        side: to what square pictures are brought; 0 leaves them as they are.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
    """

    backbone: str = ""
    side: Annotated[int, msgspec.Meta(ge=0, le=4096)] = 256
    device: str = "auto"

    def __post_init__(self) -> None:
        """Refuse pictures that are too small for the networks."""
        if 0 < self.side < _SMALLEST:
            raise ValueError(f"side is 0, or at least {_SMALLEST} pixels, not {self.side}")


class LpipsMeasure:
    """The perceptual distance of Zhang et al. 2018 between the pictures of a batch."""

    caveat = (
        "LPIPS was trained on what people say of small distortions of one picture. Between different pictures it is "
        "large for anything that looks different: pose, colours, noise. It does not know what a picture shows."
    )
    licence = _LICENCE

    def __init__(self, network: _Lpips, weights: str, options: Options) -> None:
        """Take a network and the hash of its weights."""
        self.device = chosen_device(options.device)
        self.network = network.to(self.device)
        self.side = options.side
        self.name = f"lpips-{_BACKBONES[network.name].short}"
        size = f"resized to {self.side} x {self.side}, bilinear" if self.side else "size left as it is"
        self.parameters: Mapping[str, Any] = {
            "name": self.name,
            "version": "0.1",
            "backbone": network.name,
            "weights": weights,
            "preprocessing": f"RGB; {size}; x / 127.5 - 1",
            "dtype": "float32",
        }

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring a picture to its size and range: float32 (3, height, width)."""
        if self.side and picture.shape[:2] != (self.side, self.side):
            resized = Image.fromarray(picture).resize((self.side, self.side), Image.Resampling.BILINEAR)
            picture = np.asarray(resized)
        elif min(picture.shape[:2]) < _SMALLEST:
            raise UsageError(
                "a picture is too small for LPIPS", expected=f"at least {_SMALLEST} x {_SMALLEST} pixels",
                found=f"{picture.shape[1]} x {picture.shape[0]}", hint="Give a side, such as ?side=256.",
            )  # fmt: skip
        ranged = picture.astype(np.float32) / np.float32(127.5) - 1
        return np.ascontiguousarray(ranged.transpose(2, 0, 1), np.float32)

    def distances(self, pictures: Sequence[Prepared]) -> NDArray[np.float64]:
        """Measure every two pictures of a batch, float64 (n, n)."""
        sizes = {picture.shape for picture in pictures}
        if len(sizes) > 1:
            found = ", ".join(sorted(f"{width} x {height}" for _, height, width in sizes))
            raise UsageError(
                "pictures of several sizes cannot be compared", expected="one size", found=found,
                hint="Give a side, such as ?side=256.",
            )  # fmt: skip
        torch = importlib.import_module("torch")
        if len(pictures) < 2:
            return np.zeros((len(pictures), len(pictures)))
        with same_bits():
            stacked = torch.from_numpy(np.stack(pictures)).to(self.device)
            found_distances: NDArray[np.float64] = self.network.distances(stacked).cpu().numpy()
        return found_distances


def make(spec: Spec) -> LpipsMeasure:
    """Make the measure from one file, or from one of heads and one of the network."""
    options = spec.read(Options)
    files = [_one_file(spec.target, spec)]
    if options.backbone:
        files.append(_one_file(options.backbone, spec))
    tensors = {name: one for path in files for name, one in loaded_tensors(path, asked_by="lpips").items()}
    heads = {int(match[1]): tensor for name, tensor in tensors.items() if (match := _HEAD.fullmatch(name))}
    layers = {match[1]: tensor for name, tensor in tensors.items() if (match := _LAYER.fullmatch(name))}
    widths = tuple(int(heads[number].shape[1]) for number in sorted(heads))
    name = LPIPS.get(widths)
    if name is None:
        raise IntegrityError(
            "the heads are not those of LPIPS", where=str(files[0]), expected=" or ".join(_BACKBONES),
            found=f"channels {', '.join(map(str, widths)) or 'of none'}",
        )  # fmt: skip
    if not layers:
        raise UsageError(
            "these weights are the heads of LPIPS alone, without the network they belong to",
            where=str(files[0]),
            expected=f"lpips:HEADS.safetensors?backbone=FILE.safetensors, the {name} of torchvision",
        )
    models = needed_package("torchvision.models", kind="measure of pairs lpips", extra="embed")
    with importlib.import_module("torch").device("meta"):
        features = getattr(models, _BACKBONES[name].model)(weights=None).features
    fill_network(features, layers, of=name, where=", ".join(map(str, files)))
    upto = features[: _BACKBONES[name].taken[-1] + 1]  # what lies behind would not fit the smallest pictures
    network = _Lpips(name, upto, [heads[number] for number in sorted(heads)])
    hashes = [digest_file(path) for path in files]
    return LpipsMeasure(network, (hashes[0] if len(hashes) == 1 else digest(hashes)), options)


def _one_file(target: str, spec: Spec) -> Path:
    if not target:
        raise UsageError("lpips needs a file of weights", where=str(spec), expected="lpips:FILE.safetensors")
    path, _ = known_weights(
        target, spec, ("lpips", "lpips-backbone"), of="LPIPS",
        expected="lpips (heads, with or without the network) or lpips-backbone (AlexNet, VGG-16, SqueezeNet)",
        convert=f"--out {Path(target).with_suffix('.safetensors')}",
    )  # fmt: skip
    return path
