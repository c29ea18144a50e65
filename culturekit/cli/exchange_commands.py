"""`culturekit kg export`, `import`, `query` and `entity`: graphs of other tools, and single items of Wikidata."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from culturekit.cli.options import Also, AsJson, Out, Wait
from culturekit.cli.showing import aligned, foreign, show
from culturekit.cli.stage_command import run_one
from culturekit.core.atomic import decoding
from culturekit.core.choices import GraphDirection, GraphFormat
from culturekit.core.errors import JOINERS, UsageError, printable
from culturekit.core.registry import needing

if TYPE_CHECKING:
    from culturekit.kg.exchange.graph_files import Answer
    from culturekit.kg.live_entity import LiveEntity


Around = Annotated[str, typer.Option(help="Item in the middle, such as Q746549.")]
Hops = Annotated[int, typer.Option(min=0, max=40, help="How far to go along P31 and P279.")]
Direction = Annotated[
    GraphDirection, typer.Option(help="To classes, to instances and subclasses, or both ways at every hop.")
]
Most = Annotated[int, typer.Option(min=1, help="Items at most, nearest first.")]

DIRECTION: GraphDirection = "both"
HOPS, MOST = 1, 10_000  # What is asked of a neighbourhood where nothing is said


def export(
    graph: Annotated[Path, typer.Option(help="Graph store that `kg ingest` wrote.")],
    around: Around,
    out: Annotated[Path, typer.Option(help="File to write; one that is there is replaced.")],
    hops: Hops = HOPS,
    form: Annotated[GraphFormat, typer.Option("--format", help="What to write.")] = "ntriples",
    direction: Direction = DIRECTION,
    most: Most = MOST,
    as_json: AsJson = False,
) -> None:
    """Write the neighbourhood of an item for other tools.

    As triples, GraphML or node-link JSON.
    """
    from culturekit.core.atomic import write_atomically

    with needing("kg", "culturekit kg export"):
        from culturekit.kg.exchange.graph_files import graph_file, neighbourhood
    found, left_out = neighbourhood(graph, around, hops=hops, direction=direction, most=most)
    if not out.parent.is_dir():
        raise UsageError("there is no such folder", where=str(out.parent), hint="Make it first.")
    write_atomically(out, graph_file(found, form))
    counts = {"items": len(found), "statements": found.number_of_edges(), "left_out": left_out}
    rest = f"; {left_out:,} items left out, more with --most" if left_out else ""
    line = f"{out}: {len(found):,} items, {found.number_of_edges():,} statements{rest}"
    show({"file": out, "format": form, **counts}, [line], as_json=as_json)


def import_command(
    file: Annotated[Path, typer.Argument(help="What `kg export` wrote, or another tool in the same format.")],
    out: Out,
    form: Annotated[
        GraphFormat | None, typer.Option("--format", help="What the file is. [by its suffix: .nt, .ttl, .jsonld, ...]")
    ] = None,
    also: Also = None,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Make a graph store of a graph of another tool.

    It reads triples, GraphML or node-link JSON of networkx.
    """
    with needing("kg", "culturekit kg import"):
        from culturekit.kg.exchange.graph_files import form_of, import_graph_stage

    run_one(import_graph_stage(file, form or form_of(file)), out, also=also, wait=wait, as_json=as_json)


def query(
    sparql: Annotated[str, typer.Argument(help="SELECT, ASK, CONSTRUCT or DESCRIBE; or @FILE that holds one.")],
    graph: Annotated[Path | None, typer.Option(help="Graph store, with --around.")] = None,
    around: Annotated[str | None, typer.Option(help="Item whose neighbourhood is asked, such as Q746549.")] = None,
    hops: Hops = HOPS,
    direction: Direction = DIRECTION,
    most: Most = MOST,
    file: Annotated[
        Path | None,
        typer.Option(help="Triples to ask in place of a graph: .nt, .ttl or .jsonld of an export or a release."),
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Rows to show at most.")] = 1000,
    as_json: AsJson = False,
) -> None:
    """Ask the neighbourhood of an item, or a file, in SPARQL.

    A file is one of triples; nothing leaves this machine.
    """
    with needing("kg", "culturekit kg query"):
        from culturekit.kg.exchange.graph_files import ask_graph, neighbourhood, rdf_graph, read_triples

    if (file is None) == (graph is None) or (graph is None) != (around is None):
        raise UsageError("nothing to ask, or two things", expected="--graph and --around, or --file")
    if file is not None and (hops, direction, most) != (HOPS, DIRECTION, MOST):
        raise UsageError("a file of triples is asked whole", expected="--hops, --direction and --most with --graph")
    if file is not None:
        triples, left_out = read_triples(file), 0
    else:
        assert graph is not None
        assert around is not None
        found, left_out = neighbourhood(graph, around, hops=hops, direction=direction, most=most)
        triples = rdf_graph(found)
    text = sparql
    if sparql.startswith("@"):
        with decoding(Path(sparql[1:]), "the query cannot be read"):
            text = Path(sparql[1:]).read_text(encoding="utf-8")
    try:
        answer = ask_graph(triples, text, most=rows)
    except UsageError as error:
        error.where = error.where or sparql.removeprefix("@") * sparql.startswith("@")
        raise
    show({**asdict(answer), "left_out": left_out}, foreign(answer_lines(answer, left_out)), as_json=as_json)


def answer_lines(answer: "Answer", left_out: int) -> Iterator[str]:
    """Write an answer as a table whose columns are as wide as their widest cell, and say what it does not show."""
    table: Sequence[Sequence[str]] = [answer.columns, *([cell or "" for cell in row] for row in answer.rows)]
    shown = [[printable(" ".join(cell.split()), keep=JOINERS) for cell in row] for row in table]
    yield from aligned(shown) if answer.yes is None else ["yes" if answer.yes else "no"]
    if answer.more:
        yield f"... and more than these {len(answer.rows):,} rows; see them with --rows"
    if left_out:
        yield f"{left_out:,} items had no room and were not asked; more with --most"


def entity(
    qid: Annotated[str, typer.Argument(help="Item to look up, such as Q746549.")],
    contact: Annotated[str, typer.Option(help="Mail address or URL that Wikidata is told, in the User-Agent.")],
    cache: Annotated[
        Path | None, typer.Option(help="Folder that keeps replies; what is there is not asked for.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="Where entities are. [https://www.wikidata.org/wiki/Special:EntityData]")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show one item as Wikidata has it now.

    Label, description and the statements that culturekit keeps.
    """
    with needing("kg", "culturekit kg entity"):
        from culturekit.kg.live_entity import WIKIDATA, live_entity

    found = live_entity(qid, contact, url=url or WIKIDATA, cache=cache)
    show(found, foreign(entity_lines(found)), as_json=as_json)


def entity_lines(found: "LiveEntity") -> Iterator[str]:
    """Tell an item to people."""
    yield f"{found.qid} ({found.label})" if found.label else found.qid
    if found.asked != found.qid:
        yield f"  {found.asked} was merged into it"
    if found.description:
        yield f"  {found.description}"
    yield f"  revision {found.revision} of {found.modified}"
    for each in found.statements:
        marks = [each.rank, *["qualified"] * each.qualified, *["ended"] * each.ended]
        yield f"{each.property:<6} {each.value or each.snak} ({', '.join(marks)})"
