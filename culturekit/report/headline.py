"""The headline scores of a run, for a terminal."""

from collections.abc import Callable, Iterator, Sequence

import polars as pl

from culturekit.report.figures import Figure, figure, ordinal_span, span, text_of
from culturekit.report.missing import missing_lines
from culturekit.report.model_lines import ModelLine, in_order, model_lines, overall_of
from culturekit.report.provenance import withheld
from culturekit.report.run_folders import RunFolders
from culturekit.report.verdict import Floor, verdict_on
from culturekit.stages import roles

__all__ = ["apart_in", "floor_in", "headline_lines"]


def floor_in(run: RunFolders, scores: pl.DataFrame) -> Floor | None:
    """Read what pictures of nothing score, where that was tried."""
    similarity = run.floor()
    if similarity is None:
        return None
    own = overall_of(scores.filter(pl.col("model") == roles.CULTURE_FREE))
    diversity = figure(own.filter(pl.col("metric") == "vs"), kernel=run.kernel)
    encoder = str(run.manifest(roles.INDEX).notes.get("encoder", "of this run"))
    return Floor(encoder, diversity, similarity["median"], similarity["highest 5 %"])


def apart_in(run: RunFolders) -> frozenset[tuple[str, str]]:
    """List pairs of models of which the first is surely more diverse, corrected."""
    table = run.ranks("model_difference")
    if table is None:
        return frozenset()
    about = overall_of(table.filter(of_metric="vs", of_kernel=run.kernel))
    sure = about.filter(pl.col("p_corrected") < 1 - pl.col("params").str.json_path_match("$.of.confidence").cast(float))
    return frozenset((row["a"], row["b"]) if row["value"] > 0 else (row["b"], row["a"]) for row in sure.to_dicts())


def headline_lines(run: RunFolders) -> Iterator[str]:
    """Tell the headline scores of a run, the most diverse first, and the answer last."""
    scores = run.scores()
    models = in_order(model_lines(run, scores))
    yield f"diversity VS/{run.size}, {run.kernel} kernel, over all prompts, with {run.confidence()} intervals"
    columns = columns_of(models)
    yield "".join(f"{title:<{width}} " for title, width, _ in columns).rstrip()
    for line in models:
        yield "".join(f"{tell(line):<{width}} " for _, width, tell in columns).rstrip()
    for lacking in missing_lines(run, scores):
        if lacking.prompts < lacking.prompts_asked:
            yield f"{lacking.model} rests on {lacking.prompts} of {lacking.prompts_asked} prompts: no fair match."
    verdict = verdict_on(models, floor=floor_in(run, scores), apart=apart_in(run), withheld=[*withheld(run)])
    if verdict.headline:
        yield verdict.headline
    yield from verdict.sentences


Column = tuple[str, int, Callable[[ModelLine], str]]


def columns_of(models: Sequence[ModelLine]) -> list[Column]:
    """Say what stands of each model: title, width, and how to tell it; of what nobody knows there is no column."""

    def limits(title: str, of: Callable[[ModelLine], Figure | None]) -> Column:
        return title, 24, lambda line: text_of(of(line))

    columns: list[Column] = [("model", 14, lambda line: line.model)]
    if any(line.corrected for line in models):
        columns.append(limits("corrected diversity", lambda line: line.corrected))
    if any(line.rank for line in models):
        columns.append(("rank", 11, lambda line: "" if line.rank is None else ordinal_span(line.rank.place)))
    columns.append(limits("mapped diversity", lambda line: line.mapped))
    if any(line.truth for line in models):
        columns.append(limits("true diversity", lambda line: line.truth))
    if any(line.seen for line in models):
        columns.append(
            ("no culture seen", 15, lambda line: "" if line.seen is None else span(line.seen.nothing, percent=True))
        )
    columns.append(("quality", 8, lambda line: f"{line.quality.value:.3f}" if line.quality else ""))
    columns.append(("images", 6, lambda line: f"{line.images:,}"))
    return columns
