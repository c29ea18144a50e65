"""A finished run as the report reads it: which models, which tables, which manifests."""

import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeAlias

import polars as pl
from markupsafe import Markup

from culturekit.core import roles
from culturekit.core.digests import Manifest
from culturekit.core.errors import UsageError
from culturekit.core.inputs import manifest_of
from culturekit.core.roles import Role
from culturekit.core.run import Run
from culturekit.core.schemas import CSPACE, IMAGES, MATCHES, PROMPTS, SCORES, VALUES
from culturekit.core.table import Table
from culturekit.core.tables import read_table

# Numbers of the page, read from the scores, and how they are written in words.

FEW = "too few batches"  # what stands for a number that is none, and for limits that tell nothing

ALIKE = "no spread"
"""What stands for limits of no width: no batch, or no image, differed, which does not say that others would not."""

TELLS_NOTHING = 0.5  # limits of a share that are further apart tell nothing: they come of two batches or so


@dataclass(frozen=True, slots=True)
class Figure:
    """One score as it stands in the scores table, and the row it stands in."""

    value: float
    low: float | None
    high: float | None
    n: int
    row: int


def figure(rows: pl.DataFrame, **conditions: str | None) -> Figure | None:
    """Look up the score that meets all conditions; None where there is none or several."""
    for column, value in conditions.items():
        rows = rows.filter(pl.col(column).eq_missing(pl.lit(value, pl.String)))
    if rows.height != 1:
        return None
    return figure_in(rows.row(0, named=True))


def figure_in(row: Mapping[str, Any], *, suffix: str = "") -> Figure:
    """Read a score with its interval, its count and where it stands; a joined row has a second with a suffix."""
    value, low, high, count, row_number = (row[name + suffix] for name in ("value", "ci_low", "ci_high", "n", "row"))
    return Figure(value, low, high, count, row_number)


Rows: TypeAlias = tuple[SimpleNamespace, ...]  # of a table, as templates read them: an attribute a column


def rows_of(table: pl.DataFrame, **figures: str) -> Rows:
    """Give the rows of a table; each figure is read from the columns with its suffix."""
    return tuple(
        SimpleNamespace(**row, **{name: figure_in(row, suffix=suffix) for name, suffix in figures.items()})
        for row in table.iter_rows(named=True)
    )


def values_in(table: pl.DataFrame | None, column: str) -> list[str]:
    """List what stands in a column, in order."""
    return [] if table is None else table[column].drop_nulls().unique().sort().to_list()


def with_params(scores: pl.DataFrame, *names: str, **places: str) -> pl.DataFrame:
    """Add what the parameters say of a score as columns, each by its name in them, or from its place."""
    named = {name: name for name in names} | places
    return scores.with_columns(
        pl.col("params").str.json_path_match(f"$.{path}").alias(name) for name, path in named.items()
    )


def larger_first(row: Mapping[str, Any]) -> tuple[str, str, Figure]:
    """Read how far two are apart, `a` less `b`: first the one that scores more, then the other."""
    found = figure_in(row)
    if not found.value < 0:
        return row["a"], row["b"], found
    low, high = (None if end is None else -end for end in (found.high, found.low))
    return row["b"], row["a"], Figure(-found.value, low, high, found.n, found.row)


def limits_of(found: Figure | None, *, between: str = ", ") -> str:
    """Write the limits of a score; words where they tell nothing, nothing where there are none."""
    if found is None or math.isnan(found.value) or found.low is None or found.high is None:
        return ""
    if found.high - found.low > TELLS_NOTHING:
        return FEW
    if found.high == found.low:
        return ALIKE
    return f"{found.low:.3f}{between}{found.high:.3f}"


def text_of(found: Figure | None) -> str:
    """Write a figure with its interval."""
    if found is None:
        return "not known"
    if math.isnan(found.value):
        return FEW
    limits = limits_of(found)
    if not limits:
        return f"{found.value:.3f}"
    return f"{found.value:.3f} {limits if limits in {ALIKE, FEW} else f'[{limits}]'}"


def span(found: Figure, *, percent: bool = False) -> str:
    """Write the limits of a share in words, such as 93 to 98 %."""
    if found.low is None or found.high is None:
        return f"{found.value:.0%}" if percent else f"{found.value:.3f}"
    if percent:
        return f"{found.low * 100:.0f} to {found.high * 100:.0f} %"
    return f"{found.low:.3f} to {found.high:.3f}"


def listed(names: Sequence[str]) -> str:
    """Write names one after the other, such as a, b and c."""
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def ordinal_span(rank: Figure) -> str:
    """Write a rank with the ranks that it may have, such as 2nd to 3rd."""
    low = int(rank.value if rank.low is None else rank.low)
    high = int(rank.value if rank.high is None else rank.high)
    return ordinal(low) if low == high else f"{ordinal(low)} to {ordinal(high)}"


def ordinal(number: int) -> str:
    """Write an ordinal number."""
    ending = "th" if number // 10 % 10 == 1 else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


# Text of strangers on the page: what it says is shown, what it could do to the page is taken out.

LONGEST = 400  # characters of one text that are shown; labels of Wikidata have at most 250

CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]")
"""Marks and overrides of direction: the page isolates each text and finds its direction itself."""

PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def inert(text: str) -> str:
    """Replace what no font draws, drop what turns the text around it, and shorten what is too long to read."""
    shown = CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text[: LONGEST * 4])
    shown = DIRECTIONS.sub("", shown)
    if len(text) <= LONGEST:
        return shown
    return f"{shown[:LONGEST]}… ({len(text):,} characters)"


def inert_value(value: object) -> object:
    """Make a value of a template inert; markup of the page's own is left alone."""
    return inert(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def plain(text: str) -> str:
    """Give a text as part of an id or a file name: plain words as they are, all else by hash."""
    return text if PLAIN.fullmatch(text) else f"x{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


HEADLINE_KERNEL = "country"

ABOUT = pl.Struct({"kernel": pl.String, "labels": pl.String, "scorer": pl.String, "weights": pl.List(pl.Float64)})
"""What the page reads of the parameters of a score."""


class RunFolders(Run):
    """The folders of a finished run, read: `stages` are their names, each after what it reads."""

    __slots__ = ()

    @property
    def truthful(self) -> tuple[str, ...]:
        """The models of which it is known what their images really show."""
        return self.models_with(roles.TRUTH)

    def manifest(self, role: Role, model: str = "", variant: str = "") -> Manifest:
        """Read the manifest of a stage."""
        return manifest_of(self.folder(role, model, variant))

    def found(self, role: Role, model: str = "", variant: str = "") -> Manifest | None:
        """Read the manifest of a stage; None for a run without it."""
        return self.manifest(role, model, variant) if self.has(role, model, variant) else None

    def read(self, role: Role, table: Table, model: str = "", variant: str = "") -> pl.DataFrame | None:
        """Read a table of a stage; None for a run without that stage."""
        return self.needed(role, table, model, variant) if self.has(role, model, variant) else None

    def needed(self, role: Role, table: Table, model: str = "", variant: str = "") -> pl.DataFrame:
        """Read a table of a stage that every run has; scores say in `trace` which folder and row they stand in."""
        found = read_table(self.table(role, model, variant, file=f"{table.name}.parquet"), table)
        if table is not SCORES:
            return found
        folder = pl.lit(role.folder(model, variant))
        return found.with_columns(trace=pl.concat_str(folder, pl.int_range(pl.len()).cast(pl.String), separator="#"))

    def scored(
        self, role: Role, model: str = "", variant: str = "", /, *names: str, **paths: str
    ) -> pl.DataFrame | None:
        """Read the scores of a stage with parameters as columns, as `with_params` does; None for a run without it."""
        found = self.read(role, SCORES, model, variant)
        return None if found is None else with_params(found, *names, **paths)

    def numbered(self, role: Role) -> pl.DataFrame | None:
        """Read the scores of a stage with the number of each row; None for a run without that stage."""
        found = self.read(role, SCORES)
        return None if found is None else found.with_row_index("row")

    @property
    def kernel(self) -> str:
        """Name the kernel of the headline: that of countries, or the first of a run that scores others."""
        kernels = self.headline_scores()["kernel"].drop_nulls().to_list()
        return HEADLINE_KERNEL if HEADLINE_KERNEL in kernels or not kernels else str(kernels[0])

    @property
    def size(self) -> int:
        """Say how many images a batch of the scores has."""
        return int(self.manifest(roles.SCORES).options["size"])

    def confidence(self, role: Role = roles.SCORES) -> str:
        """Say how often intervals of the scores are to hold the truth, such as 95 %."""
        return f"{100 * float(self.manifest(role).options['confidence']):g} %"

    def headline_scores(self) -> pl.DataFrame:
        """Read the scores, with the number of each row and the parameters as columns."""
        scores = self.of_main_order(self.needed(roles.SCORES, SCORES).with_row_index("row"))
        return with_named_kernel(scores.with_columns(p=pl.col("params").str.json_decode(ABOUT)).unnest("p"))

    def values(self) -> pl.DataFrame:
        """Read what scores are means of, with the parameters as columns."""
        values = self.of_main_order(self.needed(roles.SCORES, VALUES))
        return with_named_kernel(values.with_columns(p=pl.col("params").str.json_decode(ABOUT)).unnest("p"))

    def of_main_order(self, table: pl.DataFrame, role: Role = roles.SCORES, *, at: str = "$") -> pl.DataFrame:
        """Keep one order of each kernel: that which was corrected, or else the one that a stage calls its main."""
        main = self.manifest(role).options.get("q", 1.0)
        orders = self.corrected_orders() if role == roles.SCORES else {}
        params = pl.col("params").str
        order = params.json_path_match(f"{at}.q").cast(pl.Float64)
        kernel = params.json_path_match(f"{at}.weights")
        default = math.inf if main is None else float(main)
        wanted = kernel.replace_strict(orders, default=default, return_dtype=pl.Float64) if orders else default
        return table.filter(order.is_null() | (order == wanted))

    def corrected_orders(self) -> dict[str, float]:
        """Say of which order each kernel was corrected: those with artifacts have another than the main one."""
        of = with_params(self.needed(roles.SCORES, SCORES), "labels", "weights", "q").select("labels", "weights", "q")
        # differences that looks told of have no order
        corrected = of.filter(labels="corrected").drop_nulls("q").unique().sort("weights")
        return {row["weights"]: float(row["q"]) for row in corrected.to_dicts()}

    def prompts(self) -> dict[str, str]:
        """Read the text of each prompt."""
        return dict(self.needed(roles.PROMPTS, PROMPTS).select("prompt_id", "text").iter_rows())

    def images(self, model: str) -> pl.DataFrame:
        """Read the images of a model."""
        return self.needed(roles.IMAGES, IMAGES, model)

    def matches(self, model: str) -> pl.DataFrame:
        """Read the matches of a model, of whatever stage has some that come of a mapping."""
        if self.has(roles.MATCHES, model):
            return self.needed(roles.MATCHES, MATCHES, model)
        for path in (self.root / name / f"{MATCHES.name}.parquet" for name in self.stages):
            if path.is_file():
                found = read_table(path, MATCHES).filter(pl.col("method") != "truth", model=model)
                if found.height:
                    return found
        raise UsageError(f"no stage of this run maps the images of {model}", where=str(self.root))

    def ranks(self, metric: str) -> pl.DataFrame | None:
        """Read the differences or the ranks of models by corrected diversity; None where there was no audit."""
        found = self.numbered(roles.RANKS)
        return None if found is None else with_comparison(found.filter(metric=metric))

    def comparison(self) -> pl.DataFrame | None:
        """Read the differences of models, with what was compared as columns; None where there is one model."""
        found = self.read(roles.COMPARISON, SCORES)
        return None if found is None else self.of_main_order(with_comparison(found), at="$.of")

    def space(self) -> pl.DataFrame:
        """Read the cultural space."""
        return self.needed(roles.CSPACE, CSPACE)


def with_named_kernel(scores: pl.DataFrame) -> pl.DataFrame:
    """Call a kernel that has no name by its weights."""
    weights = pl.col("weights").list.eval(pl.element().round(3).cast(pl.String)).list.join(", ")
    return scores.with_columns(pl.coalesce("kernel", pl.when(pl.col("weights").is_not_null()).then(weights))).drop(
        "weights"
    )


def with_comparison(scores: pl.DataFrame) -> pl.DataFrame:
    """Put what was compared beside each difference of models, as columns."""
    params = pl.Struct(
        [
            pl.Field("of", ABOUT),
            *(pl.Field(name, pl.String) for name in ("a", "b", "metric")),
            *(pl.Field(name, pl.Int64) for name in ("common", "left_out", "models")),
            pl.Field("p_corrected", pl.Float64),
            pl.Field("differ_in", pl.List(pl.String)),
        ]
    )
    numbered = (scores if "row" in scores.columns else scores.with_row_index("row")).drop("metric")
    found = numbered.with_columns(p=pl.col("params").str.json_decode(params)).unnest("p")
    of = pl.col("of").struct
    named = found.with_columns(kernel=of.field("kernel"), labels=of.field("labels"), weights=of.field("weights"))
    return with_named_kernel(named).rename({"metric": "of_metric", "kernel": "of_kernel", "labels": "of_labels"})
