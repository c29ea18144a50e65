"""What a quality scorer is: pictures in, and for some scorers what was asked for, one number each out."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Protocol, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray
from PIL import Image
from pydantic import Field

from culturekit.core.atomic import explained_outside
from culturekit.core.choices import PICTURES_PER_SHARD
from culturekit.core.declared import StageCommand, Typed
from culturekit.core.digests import digest
from culturekit.core.errors import NothingScored, UsageError
from culturekit.core.inputs import roles_among
from culturekit.core.pictures.picture_files import NoPicture
from culturekit.core.plugins import Contract
from culturekit.core.registry import Entry, Registry, Spec, check_ready, parse_spec, spec_state
from culturekit.core.schemas import IMAGES, PROMPTS
from culturekit.core.schemas import QUALITY as QUALITY_TABLE
from culturekit.core.stage import Outcome, Stage, Work, run_shards, seal
from culturekit.core.tables import merge_parts, prompts_table, read_table, save_parquet, write_drops, write_table
from culturekit.index.embedding.embedding import encoding_pool, try_picture
from culturekit.index.encoder import ENCODERS, Prepared, held_array


class QualityScorer(Protocol):
    """Judges how good a picture is.

    Preparing and scoring are apart, as with encoders, so that no more than a batch of small pictures is in memory.
    """

    @property
    def name(self) -> str:
        """The scorer's name as it stands in the `quality` table."""

    @property
    def caveat(self) -> str:
        """What a reader of a score must know about this scorer; empty when nothing."""

    @property
    def needs_prompts(self) -> bool:
        """Whether a picture is judged together with the text it was asked for by."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Everything that decides a value: weights (`none`, or their hash), preprocessing, and constants."""

    @property
    def batch_size(self) -> int:
        """How many pictures are judged at once."""

    def prepare(self, picture: NDArray[np.uint8]) -> Prepared:
        """Bring one picture, uint8 (height, width, 3), to the form that is judged; any thread may call this."""

    def score_prepared(self, pictures: Sequence[Prepared], prompts: Sequence[str] = ()) -> NDArray[np.float64]:
        """Score prepared pictures, each beside its prompt where prompts are needed."""

    def score(self, pictures: Sequence[NDArray[np.uint8]], prompts: Sequence[str] = ()) -> NDArray[np.float64]:
        """Prepare and score pictures; a value never depends on its neighbours."""


# The quality scorers that culturekit knows by name.


def values(_: object, answer: object, pictures: Sequence[object], prompts: Sequence[str] = ()) -> NDArray[np.float64]:
    """Take one finite number for each picture."""
    del prompts
    return held_array(answer, (len(pictures),))


_QUALITY = Contract(
    (QualityScorer,),
    answers={"score_prepared": values, "score": values},
    says=lambda scorer: {"parameters": dict(scorer.parameters)},
)

SCORERS: Registry[QualityScorer] = Registry(
    "quality scorer",
    [
        Entry(
            "embedded",
            "culturekit.index.raters.quality:make",
            "clarity: sharp edges, contrast, little noise; without weights",
        ),
        Entry(
            "hpsv2",
            "culturekit.index.raters.preference_quality:make_hps",
            "Human Preference Score 2.0 or 2.1: the cosine of picture and prompt, by ViT-H-14 fine-tuned on choices",
            options="culturekit.index.raters.preference_quality:HpsOptions",
            extra="openclip",
            packages=("open_clip",),
        ),
        Entry(
            "pickscore",
            "culturekit.index.raters.preference_quality:make_pick",
            "PickScore: the cosine of picture and prompt times the model's scale, by CLIP fine-tuned on choices",
            options="culturekit.index.models.torch_device:TorchOptions",
            extra="embed",
            packages=("torch", "transformers"),
        ),
        Entry(
            "imagereward",
            "culturekit.index.raters.image_reward:make",
            "ImageReward: BLIP with a network on top, fine-tuned on choices: a file that `weights convert` wrote",
            options="culturekit.index.raters.image_reward:Options",
            extra="embed",
            packages=("torch", "transformers"),
        ),
        Entry(
            "clipscore",
            "culturekit.index.raters.preference_quality:make_clip",
            "CLIPScore by any encoder of pictures and texts: clipscore:SPEC",
        ),
    ],
    point="quality",
    contract=_QUALITY,
)


# A quality scorer over a table of images, in shards that outlive a kill.

_NO_PROMPT = "no prompt"
_NOT_MADE = "no picture was made"
# a row has a value, or the reason why there is none
_PART = {**QUALITY_TABLE.schema, "reason": pl.String(), "detail": pl.String()}


@dataclass(frozen=True, slots=True)
class RatedShard:
    """A run of images, or of batches of them, to be rated by whom a SPEC names, as a work item."""

    rater: str
    root: Path
    items: tuple[Any, ...]
    part: Path


def score_pictures(work: Work, images_path: Path, scorer: str, *, prompts_path: Path | None = None) -> Outcome:
    """Write the quality of every image that has a picture and, where the scorer needs one, a prompt."""
    loaded = SCORERS.kept(scorer)
    images = _with_prompts(read_table(images_path, IMAGES), prompts_path).sort("image_id")
    ready = images.filter(pl.col("status") == "ok")
    asked = ready.filter(pl.col("prompt").is_not_null()) if loaded.needs_prompts else ready
    if loaded.needs_prompts and asked.is_empty() and not ready.is_empty():
        raise UsageError(
            f"{loaded.name} compares pictures with their prompts, and no image has one",
            where=str(images_path),
            expected="a column prompt_sent, or --prompts with the table the images were made from",
        )
    if prompts_path is not None and not loaded.needs_prompts and not work.in_run:
        raise UsageError(
            f"{loaded.name} looks at pictures alone", expected="no --prompts, or a scorer such as clipscore"
        )
    rows = scored(work, asked, images_path.parent, scorer)
    absent = pl.concat([
        images.filter(pl.col("status") != "ok").select("image_id", reason=pl.lit(_NOT_MADE), detail="status"),
        ready.join(asked, on="image_id", how="anti").select(
            "image_id", reason=pl.lit(_NO_PROMPT), detail=pl.lit(None, pl.String())
        ),
        rows.filter(pl.col("reason").is_not_null()).select("image_id", "reason", "detail"),
    ])  # fmt: skip
    dropped = absent.select(
        "reason", "detail", key="image_id", concept=pl.lit(None, pl.String), stage=pl.lit("quality")
    )
    left_out = {} if dropped.is_empty() else write_drops(work.out, dropped)
    if rows["reason"].null_count() == 0 and not work.in_run:
        raise NothingScored.because("no image can be scored", left_out, where=str(images_path))
    write_table(work.out, QUALITY_TABLE, rows.filter(pl.col("reason").is_null()).select(list(QUALITY_TABLE.schema)))
    notes = {
        "scorer": scorer,
        "caveat": loaded.caveat,
        "parameters": dict(loaded.parameters),
        **_cut_prompts(loaded, asked),
    }
    counts = {"quality": rows["reason"].null_count()}
    return Outcome(counts | ({"drops": absent.height} if absent.height else {}), left_out, notes)


def _with_prompts(images: pl.DataFrame, prompts_path: Path | None) -> pl.DataFrame:
    """Add what each image was asked for by: the text of its prompt, else what was sent."""
    sent = pl.when(pl.col("prompt_sent").str.strip_chars() != "").then("prompt_sent")
    if prompts_path is None:
        return images.with_columns(prompt=sent)
    texts = read_table(prompts_path, PROMPTS).select("prompt_id", asked_text="text")
    joined = images.join(texts, on="prompt_id", how="left", maintain_order="left")
    return joined.with_columns(prompt=pl.coalesce("asked_text", sent)).drop("asked_text")


def _cut_prompts(scorer: QualityScorer, asked: pl.DataFrame) -> dict[str, object]:
    """Say how many prompts the scorer reads only in part."""
    too_long = getattr(scorer, "too_long", None)
    if not scorer.needs_prompts or too_long is None:
        return {}
    texts = asked["prompt"].unique().sort().to_list()
    cut = too_long(texts)
    return (
        {"prompts_cut": len(cut), "longest_prompt_tokens": max((one.tokens for one in cut), default=0)} if cut else {}
    )


def scored(work: Work, images: pl.DataFrame, root: Path, scorer: str) -> pl.DataFrame:
    """Score images: id, path, hash and prompt of each."""
    listed = images.select("image_id", "path", "sha256", pl.col("prompt").fill_null("")).rows()
    parameters = dict(SCORERS.kept(scorer).parameters)
    parts = rated(work, listed, root, scorer, parameters, score_shard, name="quality", at_once=PICTURES_PER_SHARD,
                  unit="images")  # fmt: skip
    return merge_parts(parts, _PART)


def rated(
    work: Work,
    items: Sequence[Any],
    root: Path,
    rater: str,
    parameters: Mapping[str, Any],
    rate: Callable[[RatedShard], int],
    *,
    name: str,
    at_once: int,
    unit: str,
) -> list[Path]:
    """Rate items shard by shard, and name their parts; those of a cut run are not rated again."""
    mark = digest(dict(parameters))[:16]
    shards = [
        RatedShard(
            rater, root, tuple(items[start : start + at_once]), work.scratch / f"{name}-{mark}-{start:09d}.parquet"
        )
        for start in range(0, len(items), at_once)
    ]
    mapper = None if parameters.get("weights") == "none" else partial(_in_threads, workers=work.engine.workers)
    run_shards(work, shards, rate, size=lambda shard: len(shard.items), unit=unit, mapper=mapper)
    return [shard.part for shard in shards]


def _in_threads(rate: Callable[[RatedShard], int], shards: Sequence[RatedShard], *, workers: int) -> Iterator[int]:
    """Rate with weights that are loaded once, in this process.

    On a GPU a second thread reads pictures while the first computes.
    """
    with encoding_pool(workers, on_gpu=2, plain=workers) as (pool, _):
        yield from pool.map(rate, shards)


def score_shard(shard: RatedShard) -> int:
    """Score a run of images and keep a row for each, with a value or a reason."""
    scorer = SCORERS.kept(shard.rater)
    rows: list[tuple[str, str, float | None, str | None, str | None]] = []
    for start in range(0, len(shard.items), scorer.batch_size):
        some = shard.items[start : start + scorer.batch_size]
        found = [_prepared_picture(shard.root, path, sha256, scorer) for _, path, sha256, _ in some]
        prepared = [picture for picture in found if not isinstance(picture, NoPicture)]
        texts = [image[3] for image, picture in zip(some, found, strict=True) if not isinstance(picture, NoPicture)]
        with explained_outside(f"the scorer {shard.rater}"):
            values = iter(scorer.score_prepared(prepared, texts if scorer.needs_prompts else ()).tolist())
        rows += [
            (image[0], scorer.name, None, picture.reason, picture.detail or None)
            if isinstance(picture, NoPicture)
            else (image[0], scorer.name, next(values), None, None)
            for image, picture in zip(some, found, strict=True)
        ]
    save_parquet(pl.DataFrame(rows, _PART, orient="row"), shard.part)
    seal(shard.part)
    return len(shard.items)


def _prepared_picture(root: Path, path: str, sha256: str, scorer: QualityScorer) -> Prepared | NoPicture:
    """Read one picture and make it small at once, or say why it cannot be read."""
    picture = try_picture(root, path, sha256=sha256)
    return picture if isinstance(picture, NoPicture) else scorer.prepare(picture)


# A quality score without weights: how sharp a picture's edges are, and how far they rise above its noise.


_Values: TypeAlias = NDArray[np.float64]
LARGEST, SMALLEST = 256, 16  # pictures are brought within these sizes first, in pixels along a side
_REACH = 4  # pixels between the two points whose difference is the full height of an edge
_EDGE_PART = 0.15  # the part of a picture that counts as near its edges: where it changes most within REACH pixels
_NOISE_COST = 10.0  # how many times as high as the noise an edge must be to keep half its clarity
_FAINT = 0.1  # the height of an edge, of the range from black to white, that halves the clarity for lack of contrast


class _EmbeddedQuality:
    """Measures clarity: sharp, high edges score high; blur, noise and lack of contrast score low."""

    name = "embedded"
    caveat = (
        "The embedded quality score measures clarity only: sharp edges, good contrast, little noise. It says "
        "nothing of beauty, of faithfulness to a prompt, or of what people prefer."
    )

    needs_prompts = False
    batch_size = 16
    parameters: Mapping[str, Any] = MappingProxyType({"name": "embedded", "weights": "none", "revision": "1"})

    def prepare(self, picture: NDArray[np.uint8]) -> NDArray[np.float32]:
        return _lightness(picture)

    def score_prepared(self, pictures: Sequence[NDArray[np.float32]], prompts: Sequence[str] = ()) -> _Values:
        """Score lightnesses, one after the other; prompts do not matter."""
        return np.array([_clarity(light) for light in pictures], np.float64)

    def score(self, pictures: Sequence[NDArray[np.uint8]], prompts: Sequence[str] = ()) -> _Values:
        return self.score_prepared([self.prepare(picture) for picture in pictures])


def _lightness(picture: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Give the lightness of a picture, 0 to 1, within the sizes that are looked at."""
    height, width, _ = picture.shape
    scale = min(1.0, LARGEST / max(height, width))
    size = max(SMALLEST, round(width * scale)), max(SMALLEST, round(height * scale))
    if size != (width, height):
        picture = np.asarray(Image.fromarray(picture).resize(size, Image.Resampling.HAMMING))
    light: NDArray[np.float32] = picture.sum(axis=2, dtype=np.float32)
    light /= 765
    return light


def _clarity(light: NDArray[np.float32]) -> float:
    """Score lightness (height, width) between 0 and 1.

    Three shares are multiplied: of an edge's height, what lies between neighbouring pixels (1 when it is
    sharp, 0 for an even ramp); and how far that height rises above the noise, and above faintness.
    """
    height = _highest(_changes(light, _REACH), part=_EDGE_PART)
    step = _highest(_changes(light, 1), part=_EDGE_PART / _REACH)  # a sharp edge is as rarely crossed as that
    if height == 0:
        return 0.0
    ramp = 1 / _REACH
    sharpness = min(max((step / height - ramp) / (1 - ramp), 0.0), 1.0)
    return sharpness * height / (height + _NOISE_COST * noise(light)) * height / (height + _FAINT)


def _changes(light: NDArray[np.float32], reach: int) -> NDArray[np.float32]:
    """Find how much lightness changes at each pixel over some pixels to the left or above, whichever is more."""
    change = np.zeros_like(light)
    change[:, reach:] = np.abs(light[:, reach:] - light[:, :-reach])
    np.maximum(change[reach:], np.abs(light[reach:] - light[:-reach]), out=change[reach:])
    return change


def _highest(values: NDArray[np.float32], *, part: float) -> float:
    rank = int(values.size * (1 - part))
    return float(np.partition(values.ravel(), rank)[rank])


def noise(light: NDArray[np.float32]) -> float:
    """Estimate the standard deviation of the noise between pixels, from where a picture is smooth.

    The differences leave out what is flat, sloped or a straight level or upright edge; 6 is their norm.
    Their median is that of the smooth parts as long as these are more than half of a picture; 1.4826
    turns the median of a normal variable's size into its standard deviation.
    """
    down = light[:-2] - 2 * light[1:-1] + light[2:]
    both = down[:, :-2] - 2 * down[:, 1:-1] + down[:, 2:]
    return 1.4826 / 6 * float(np.median(np.abs(both)))


def make(spec: Spec) -> QualityScorer:
    """Make the scorer; it takes no options."""
    spec.refuse_options()
    return _EmbeddedQuality()


def quality_stage(
    images: Annotated[Path, Field(description="Images table.")],
    prompts: Annotated[
        Path | None, Field(description="Prompts the images were asked for by. [what the images table says was sent]")
    ] = None,
    *,
    scorer: Annotated[
        str,
        Field(description="Who scores, as a SPEC: embedded, hpsv2, pickscore, imagereward or clipscore."),
        Typed(offers="culturekit.index.raters.quality:SCORERS"),
    ],
) -> Stage:
    """Score the quality of every image.

    What cannot be scored is listed with its reason.
    """
    SCORERS.check(scorer)

    def run(work: Work) -> Outcome:
        table = None if prompts is None else prompts_table(prompts, work.scratch)
        return score_pictures(work, images, scorer, prompts_path=table)

    version = 3 if parse_spec(scorer).name == "imagereward" else 2  # 3: its BLIP is that of transformers
    return Stage(
        "quality", "quality", version, run, roles_among({"images": images, "prompts": prompts}),
        {"scorer": scorer, **spec_state(SCORERS, scorer, targets=ENCODERS)}, packages=("numpy", "pillow", "polars"),
        before=partial(check_ready, SCORERS, scorer),
    )  # fmt: skip


QUALITY = StageCommand(
    quality_stage,
    "--images images/images.parquet --scorer clipscore:transformers:clip --prompts prompts/prompts.parquet "
    "--out quality",
    workers=True,
    engine=True,
)
