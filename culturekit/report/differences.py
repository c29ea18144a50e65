"""Which differences between models are more than chance."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import polars as pl

from culturekit.report.figures import Figure, larger_first
from culturekit.report.run_folders import RunFolders

__all__ = ["DifferenceLine", "difference_lines", "lines_of"]

COMPARED = ("vs", "qvs")


@dataclass(frozen=True, slots=True)
class DifferenceLine:
    """How far two models are apart on one score, and whether that is more than chance.

    Attributes:
        first: the model with the larger score.
        second: the other.
        labels: whether mapped or corrected labels were compared.
        difference: on the common prompts.
        p: corrected for the number of comparisons; None where nothing says how much values scatter.
        common: prompts that both answered.
        left_out: prompts that only one answered.
        mapped: where corrected labels are compared, the same by mapped ones; its first model may be the other.
        differ_in: what their images differ in besides the model.
    """

    first: str
    second: str
    concept: str | None
    metric: str
    labels: str
    difference: Figure
    p: float | None
    common: int
    left_out: int
    differ_in: tuple[str, ...] = ()
    mapped: "DifferenceLine | None" = None


def difference_lines(run: RunFolders, *, kernel: str) -> Iterator[DifferenceLine]:
    """Give the differences of every two models over all their prompts, the largest first; none for one model.

    Those of corrected scores come first, with the mapped ones beside them.
    """
    table, ranked = run.comparison(), run.ranks("model_difference")
    compared = () if table is None else lines_of(of_models(table, run), kernel=kernel)
    corrected = () if ranked is None else lines_of(of_models(ranked, run), kernel=kernel, labels="corrected")
    mapped = {pair_of(line): line for line in compared}
    for line in corrected:
        yield replace(line, mapped=mapped.pop(pair_of(line), None))
    yield from mapped.values()


def of_models(table: pl.DataFrame, run: RunFolders) -> pl.DataFrame:
    """Keep the differences of the models of a run."""
    return table.filter(pl.col("a").is_in(run.models), pl.col("b").is_in(run.models))


def pair_of(line: DifferenceLine) -> tuple[str, frozenset[str]]:
    """Name what is compared, whichever scores more."""
    return line.metric, frozenset((line.first, line.second))


def lines_of(table: pl.DataFrame, *, kernel: str, labels: str = "mapped") -> Iterator[DifferenceLine]:
    """Give the differences of a table, from the larger to the smaller score, the largest first."""
    over_all = table.filter(pl.col("concept").is_null())
    about = (over_all if over_all.height else table).filter(
        pl.col("of_metric").is_in(COMPARED), pl.col("of_kernel") == kernel, pl.col("of_labels") == labels
    )
    ordered = about.sort(
        pl.col("of_metric").replace_strict({name: place for place, name in enumerate(COMPARED)}),
        -pl.col("value").abs(),
        "model",
    )
    for row in ordered.to_dicts():
        first, second, difference = larger_first(row)
        yield DifferenceLine(
            first=first,
            second=second,
            concept=row["concept"],
            metric=row["of_metric"],
            labels=row["of_labels"],
            difference=difference,
            p=row["p_corrected"],
            common=row["common"] or 0,
            left_out=row["left_out"] or 0,
            differ_in=tuple(row["differ_in"] or ()),
        )
