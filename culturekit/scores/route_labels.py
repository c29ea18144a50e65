"""What two routes say of the same images: the nearest artifact and a model's tag, side by side."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from culturekit.core.errors import UsageError
from culturekit.core.schemas import JUDGMENTS
from culturekit.metrics.diversity.labels import LEVELS, spell
from culturekit.scores.image_collections import checked, nearest_of

NONE_SHOWN = "(none shown)"
"""The label, on every level, of images of which a judge says that they show no artifact: they are alike in that."""

SAID = ("named", "abstained", "none shown", "no answer")
"""What a route says of an image: a label; a label it is not sure of, or none; that nothing is shown; nothing at all."""

READ = ("ok", "repaired")
"""Outcomes of judgments whose reply could be read."""

PLACE = ("model", "prompt_id", "concept", "repeat", "slot")


@dataclass(frozen=True, slots=True)
class Route:
    """What one route says of images.

    Attributes:
        name: its method, such as `nearest` or `vlm`.
        images: the nearest match of each image, and the column `said`, one of SAID.
    """

    name: str
    images: pl.DataFrame

    @property
    def labelled(self) -> pl.DataFrame:
        """The images that have a label to be scored by; where none is shown, that is the label."""
        none = pl.col("said") == "none shown"
        labels = [pl.when(none).then(pl.lit(NONE_SHOWN)).otherwise(pl.col(level)).alias(level) for level in LEVELS]
        return self.images.with_columns(labels).drop_nulls("artifact")


def read_route(matches: pl.DataFrame, judgments: pl.DataFrame | None, *, name: str) -> Route:
    """Read one route: its matches, and what the judge said, where there was one.

    Only judgments tell an image that is said to show nothing from one about which there is no answer; without them
    an image without a label counts as one about which nothing is known.

    Raises:
        UsageError: a table does not conform, or the route has several methods.
    """
    nearest = nearest_of(matches)
    methods = nearest["method"].unique().sort().to_list()
    if len(methods) > 1:
        raise UsageError(f"route {name} has several methods", expected="one", found=", ".join(methods))
    unlabelled = pl.col("artifact").is_null()
    said = (
        pl.when(unlabelled & (pl.col("choice") == "no"))
        .then(pl.lit("none shown"))
        .when(unlabelled & pl.col("choice").is_null())
        .then(pl.lit("no answer"))
        .when(pl.col("abstained") | unlabelled)
        .then(pl.lit("abstained"))
        .otherwise(pl.lit("named"))
    )
    told = nearest.join(choices(judgments), on="image_id", how="left").with_columns(said=said).drop("choice")
    return Route(methods[0] if methods else name, told.sort("image_id"))


def choices(judgments: pl.DataFrame | None) -> pl.DataFrame:
    """Give what the judge chose for each image, where its reply could be read."""
    if judgments is None:
        return pl.DataFrame(schema={"image_id": pl.String, "choice": pl.String})
    read = checked(judgments, JUDGMENTS).filter(pl.col("outcome").is_in(READ))
    one = read.select("image_id", "choice").drop_nulls("choice")
    if one["image_id"].is_duplicated().any():
        raise UsageError("judgments say several things of one image", hint="Give the judgments of this route only.")
    return one


def common_images(a: Route, b: Route) -> pl.DataFrame:
    """Put what two routes say of the images that both have side by side.

    Returns:
        image_id, model, prompt_id, concept, repeat, slot, and for both `said_` and the three labels, such as
        `country_a`, in the order of the images.

    Raises:
        UsageError: the routes say different things of where an image stands.
    """
    columns = ["image_id", *LEVELS, "said"]
    joined = a.images.select(*PLACE, *columns).join(
        b.images.select(*columns, **{f"{name}_other": name for name in PLACE}), on="image_id", suffix="_b"
    )
    apart = joined.filter(pl.any_horizontal(pl.col(name).ne_missing(pl.col(f"{name}_other")) for name in PLACE))
    if apart.height:
        raise UsageError(
            f"{apart.height} images stand elsewhere in the two tables",
            where=f"image {apart['image_id'][0]!r}",
            expected="the same model, prompt, concept, repeat and slot in both",
            hint="Map and tag the same table of images, with the same prompts.",
        )
    named = {name: f"{name}_a" for name in (*LEVELS, "said")}
    return joined.rename(named).drop([f"{name}_other" for name in PLACE]).sort("image_id")


def side_by_side(common: pl.DataFrame, level: str) -> pl.DataFrame:
    """Take the images for which both routes name a label of a level, spelled alike: `a`, `b` and `batch`.

    `label_a` and `label_b` are spelled as they came.
    """
    both = common.filter((pl.col("said_a") == "named") & (pl.col("said_b") == "named"))
    known = both.drop_nulls([f"{level}_a", f"{level}_b"])
    repeat = pl.col("repeat").cast(pl.String)
    batch = pl.when(pl.col("prompt_id").is_null() | pl.col("repeat").is_null()).then(pl.col("image_id"))
    return known.select(
        pl.col(f"{level}_a").alias("label_a"),
        pl.col(f"{level}_b").alias("label_b"),
        spelled(known[f"{level}_a"]).alias("a"),
        spelled(known[f"{level}_b"]).alias("b"),
        batch.otherwise(pl.concat_str("prompt_id", repeat, separator="\n")).alias("batch"),
    )


def spelled(labels: pl.Series) -> pl.Series:
    """Write labels without differences of case, spaces and composition."""
    spellings = {label: spell(label) for label in labels.unique()}
    return labels.replace_strict(spellings, return_dtype=pl.String) if spellings else labels.cast(pl.String)


def counted(common: pl.DataFrame) -> Mapping[str, int]:
    """Count what each route says of common images, such as `abstained_a`."""
    found = {side: Counter(common[f"said_{side}"].to_list()) for side in ("a", "b")}
    return {f"{said.replace(' ', '_')}_{side}": found[side][said] for side in ("a", "b") for said in SAID}
