"""`culturekit kg explain`, `preview`, `diff` and `stats`: looking into a graph."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import Also, AsJson, GoOn, Prices, Wait
from culturekit.cli.showing import foreign, show
from culturekit.cli.stage_command import run_one
from culturekit.core.errors import UsageError
from culturekit.core.registry import needing
from culturekit.kg.concepts import RootChoice
from culturekit.kg.inspection.preview import PreviewOptions

Graph = Annotated[Path, typer.Option(help="Graph store that `kg ingest` wrote.")]
Price = Annotated[float | None, typer.Option(min=0, help="Price of a million tokens; without it no cost is estimated.")]


def explain(
    qid: Annotated[str, typer.Argument(help="Item to explain, such as Q2065278.")],
    graph: Graph,
    chosen: RootChoice,
    paths: Annotated[int, typer.Option(min=0, help="Paths to show; all are counted, up to 10,000.")] = 20,
    kept: Annotated[
        list[Path] | None,
        typer.Option(help="Filter or completion whose verdict is told as well. Repeatable. [those beside the graph]"),
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(help="Picture of the shown paths to write as well, .svg or .png; of one concept.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say why an item is an artifact of a concept, or why not.

    It shows paths, lines of the dump, verdicts and replies.
    """
    from culturekit.kg.inspection.explain import explain as explained
    from culturekit.kg.inspection.explain import explain_lines
    from culturekit.trail.evidence import stages_beside, verdict_lines, verdicts_on

    if qid.startswith("LLM:"):
        raise UsageError(
            "no graph knows this artifact: a model named it", found=qid,
            hint=f"`culturekit trace RUN#{qid}` leads to its proposal.",
        )  # fmt: skip
    became, concepts = chosen.heirs(), chosen.concepts()
    if draw is not None and len(concepts) > 1:
        raise UsageError("a picture shows one concept", expected="--roots once", found=f"{len(concepts)} times")
    explanations = [explained(graph, qid, concept, successors=became, show=paths) for concept in concepts]
    stages = stages_beside(graph) if kept is None else kept
    verdicts = [verdicts_on(stages, qid, each.concept) for each in explanations]
    both = list(zip(explanations, verdicts, strict=True))
    judged = [{**asdict(each), "judged": verdict} for each, verdict in both]
    lines = (line for each, verdict in both for line in (*explain_lines(each), *verdict_lines(verdict)))
    show(judged, foreign(lines), as_json=as_json)
    if draw is not None:
        with needing("kg", "--draw"):
            from culturekit.kg.exchange.path_drawing import draw_paths
        draw_paths(explanations[0], draw)


def preview(
    graph: Graph,
    chosen: RootChoice,
    options: PreviewOptions,
    price_per_million_input: Price = None,
    price_per_million_output: Price = None,
    llm: Annotated[
        str | None, typer.Option("--llm", help="Judge, as a SPEC, whose prices the cost is said in; it is not asked.")
    ] = None,
    go_on: GoOn = False,
    prices: Prices = None,
    as_json: AsJson = False,
) -> None:
    """Count what the roots reach by hop and country.

    It shows samples, explosions and the cost of filtering.
    """
    from culturekit.builders.asking import wording
    from culturekit.kg.inspection.preview import preview as previewed
    from culturekit.kg.inspection.preview import preview_lines

    price_in, price_out = price_per_million_input, price_per_million_output
    if (price_in is None) != (price_out is None):
        expected = "--price-per-million-input and --price-per-million-output"
        raise UsageError("give both prices or none", expected=expected)
    if price_in is not None and llm is not None:
        raise UsageError("prices are stated, or those of a judge", expected="--llm, or both prices", found="all")
    if llm is None and (go_on or prices is not None):
        raise UsageError("--go-on and --prices have no effect alone", expected="--llm")
    tokens = prices_of_judge(llm, go_on=go_on) if price_in is None or price_out is None else (price_in, price_out)
    became, words = chosen.heirs(), wording("cspace_filter")
    found = [
        previewed(graph, each, wording=words, options=options, prices=tokens, successors=became)
        for each in chosen.concepts()
    ]
    show(found, foreign(line for each in found for line in preview_lines(each)), as_json=as_json)


def prices_of_judge(spec: str | None, *, go_on: bool) -> tuple[float, float] | None:
    """Give what the tokens of a judge cost; nothing where it is free, or nobody knows."""
    from culturekit.llm.client import FreeClient
    from culturekit.llm.clients.clients import CLIENTS
    from culturekit.llm.prices import check_alive

    if spec is None:
        return None
    client = CLIENTS.make(spec)
    if isinstance(client, FreeClient):
        return 0.0, 0.0
    check_alive(client.identity, go_on=go_on)
    return None if client.rate is None else (client.rate.input, client.rate.output)


def diff(
    before: Annotated[Path, typer.Argument(help="Graph store, or candidates: a folder or a table.")],
    after: Annotated[Path, typer.Argument(help="What to compare it with, of the same kind.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the table of all differences. [only totals are printed]")
    ] = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Compare two graphs or two extractions, item by item.

    Leave with 1 when there are differences.
    """
    if out is not None:
        from culturekit.kg.inspection.graph_stats import compare_stage

        run = run_one(compare_stage(before, after), out, also=also, wait=wait, as_json=as_json)
        differences = run.manifest.counts["differences"]
    elif also is not None or wait:
        raise UsageError("--also and --wait are about a folder", expected="--out as well")
    else:
        from culturekit.kg.inspection.graph_stats import compare, diff_totals

        rows = compare(before, after)
        differences = rows.height
        totals = {"differences": differences, **diff_totals(rows)}
        lines = (f"{count:>12,}  {name}" for name, count in totals.items())
        show({"before": before, "after": after, "counts": totals}, foreign(lines), as_json=as_json)
    if differences:  # as of `cspace diff`, so that a script can tell
        raise typer.Exit(1)


def stats(graph: Graph, as_json: AsJson = False) -> None:
    """Count statements, labels, extremes and cycles of a graph.

    Also targets that dangle.
    """
    from culturekit.kg.inspection.graph_stats import graph_stats, stats_lines

    numbers = graph_stats(graph)
    show(numbers, foreign(stats_lines(numbers)), as_json=as_json)
