"""`culturekit roots`: checking and drafting root configs."""

import json
from pathlib import Path
from typing import Annotated

import typer

from culturekit.cli.options import AsJson
from culturekit.core.errors import UsageError, counted

MISTAKES = 2

app = typer.Typer(no_args_is_help=True, help="Roots: the classes a concept grows from, and countries.")


@app.command(epilog="Example: culturekit roots validate dishes.yaml --graph graph")
def validate(
    concepts: Annotated[list[str], typer.Argument(metavar="CONCEPT...", help="YAML files, or shipped concepts.")],
    graph: Annotated[
        Path | None, typer.Option(help="Graph store to hold them against; without it only their form is checked.")
    ] = None,
    redirects: Annotated[
        Path | None, typer.Option(help="Redirected items, qid,target on each line: roots among them are mistakes.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Say everything that is wrong or odd in root configs.

    Leave with 2 when something is wrong.
    """
    from culturekit.kg.concepts import read_redirects
    from culturekit.kg.root_checks import validate_roots

    known = None if redirects is None else read_redirects(redirects)
    findings = validate_roots(concepts, graph=graph, redirects=known)
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        print(json.dumps([finding.as_data() for finding in findings]))
    else:
        for finding in findings:
            print(finding)
        warnings = len(findings) - errors
        typer.echo(f"{len(concepts)} checked: {counted(errors, 'errors')}, {counted(warnings, 'warnings')}", err=True)
    if errors:
        raise typer.Exit(MISTAKES)


@app.command(epilog="Example: culturekit roots init --country Belgium")
def init(
    concept: Annotated[str | None, typer.Argument(help="Name of a new concept, to draft its root config.")] = None,
    root: Annotated[list[str] | None, typer.Option(help="QID of a root of the concept. Repeatable.")] = None,
    country: Annotated[
        list[str] | None, typer.Option(help="A country by QID, name or code, to draft its entry. Repeatable.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Whose QID that is. [as the table or the graph has it]")] = None,
    graph: Annotated[Path | None, typer.Option(help="Graph store that knows the labels.")] = None,
    hops: Annotated[int | None, typer.Option(min=1, max=40, help="Hops of the concept. [3]")] = None,
    as_json: AsJson = False,
) -> None:
    """Draft the YAML of a concept or of a country on stdout.

    A person finishes it.
    """
    from culturekit.builders.country_names import country_code, named_country
    from culturekit.kg.countries import QID
    from culturekit.kg.root_checks import draft_concept, draft_countries, draft_country, name_in_graph

    if (concept is None) == (not country):
        raise UsageError("one thing is drafted at a time", expected="the name of a concept, or --country NAME")
    if country and (root or hops is not None):
        raise UsageError("--root and --hops are a concept's, not a country's")
    if country and len(country) > 1:
        if name is not None or graph is not None:
            raise UsageError("--name and --graph are about one QID", found=f"{len(country)} countries")
        text = draft_countries([named_country(each) for each in country])
    elif country:
        stated = country[0]
        qid = checked(stated) if QID.match(stated) else ""
        if name is not None and not qid:
            raise UsageError("--name says whose QID --country is", found=f"--country {stated}")
        if graph is not None and not qid:
            raise UsageError("--graph knows what a QID is called", found=f"--country {stated}")
        if name is None:
            name = name_in_graph(qid, graph) if qid and graph and not country_code(qid) else stated
        text = draft_country(named_country(name), qid)
    else:
        if name is not None or not root or graph is None:
            raise UsageError("a concept is drafted from roots and a graph", expected="--root QID and --graph DIR")
        text = draft_concept(str(concept), [checked(qid) for qid in root], graph, hops=hops or 3)
    kind = "countries" if country else "concept"
    print(json.dumps({"kind": kind, "yaml": text}) if as_json else text.removesuffix("\n"))


def checked(qid: str) -> str:
    """Accept a QID from the command line."""
    from culturekit.kg.countries import check_qid

    try:
        return check_qid(qid)
    except ValueError as error:
        raise UsageError(str(error)) from error
