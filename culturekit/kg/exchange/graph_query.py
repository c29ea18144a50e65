"""SPARQL over a neighbourhood, answered by rdflib on this machine: nothing is asked or fetched elsewhere."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeAlias

from rdflib import Graph, URIRef
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.evaluate import evalQuery
from rdflib.plugins.sparql.operators import _CUSTOM_FUNCTIONS as FUNCTIONS
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query
from rdflib.term import Node

from culturekit.core.errors import UsageError
from culturekit.core.foreign_text import without_halves
from culturekit.kg.exchange.graph_files import PREFIXES

QueryKind: TypeAlias = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query finds.

    Attributes:
        kind: the form of the query.
        columns: the variables of SELECT; subject, predicate, object of CONSTRUCT and DESCRIBE; none for ASK.
        rows: a text or None per column.
        more: whether there were more rows than wanted.
        yes: the answer to ASK.
    """

    kind: QueryKind
    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    more: bool = False
    yes: bool | None = None


def ask_graph(graph: Graph, query: str, *, most: int) -> Answer:
    """Answer a query with the first `most` rows; `wd:`, `wdt:`, `rdfs:` and those of a file need no PREFIX."""
    prepared = _checked(graph, query)
    try:
        found = evalQuery(graph, prepared)  # a Result of rdflib leaves out the rows in which nothing is bound
        kind: QueryKind = found["type_"]
        if kind == "ASK":
            return Answer(kind, (), (), yes=bool(found["askAnswer"]))
        columns = tuple(map(str, found["vars_"])) if kind == "SELECT" else ("subject", "predicate", "object")
        rows = list(islice(_rows_of(found), most + 1))
    except RecursionError as error:
        raise UsageError("the query is nested too deeply") from error
    except Exception as error:  # rdflib has errors of every kind for what a query does wrong while it runs
        raise UsageError("the query failed", found=f"{type(error).__name__} {error}"[:300]) from error
    texts = tuple(tuple(None if term is None else _text_of(graph, term) for term in row) for row in rows[:most])
    return Answer(kind, columns, texts, len(rows) > most)


def _rows_of(found: Mapping[str, Any]) -> Iterator[tuple[Node | None, ...]]:
    """Keep the order of SELECT; triples have none, and come by value."""
    if found["type_"] == "SELECT":
        return (tuple(bound.get(name) for name in found["vars_"]) for bound in found["bindings"])
    return iter(sorted(found["graph"], key=lambda row: tuple(map(str, row))))


def _checked(graph: Graph, query: str) -> Query:
    """Parse a query, and refuse what would leave this machine: SERVICE, FROM; updates such as LOAD are no queries."""
    try:
        prepared = prepareQuery(query, initNs={**dict(graph.namespaces()), **PREFIXES})
    except RecursionError as error:
        raise UsageError("the query is nested too deeply") from error
    except Exception as error:  # a parser of its own, and of rdflib several more
        raise UsageError(
            "not a SPARQL query", expected="SELECT, ASK, CONSTRUCT or DESCRIBE",
            found=" ".join(str(error).split())[:300], hint="wd:, wdt: and rdfs: are known; other prefixes need PREFIX.",
        ) from error  # fmt: skip
    parts = list(_parts_in(prepared.algebra))
    for name in ("ServiceGraphPattern", "DatasetClause"):
        if name in {part.name for part in parts}:
            raise UsageError(
                "the query asks for something elsewhere, and nothing is fetched",
                expected="neither SERVICE nor FROM", found="SERVICE" if name.startswith("Service") else "FROM",
            )  # fmt: skip
    unknown = {str(part.iri) for part in parts if part.name == "Function"} - {str(iri) for iri in FUNCTIONS}
    if unknown:  # rdflib would leave what they give unbound
        raise UsageError(
            "the query calls a function that is not known here", found=", ".join(sorted(unknown))[:300],
            expected="the functions of SPARQL 1.1, or a cast: " + ", ".join(sorted(map(str, FUNCTIONS))),
        )  # fmt: skip
    return prepared


def _parts_in(part: object) -> Iterator[CompValue]:
    """List all operations in a query, at any depth."""
    if isinstance(part, CompValue):
        yield part
        for each in vars(part).values():  # rdflib sets the translated group of EXISTS as an attribute
            yield from _parts_in(each)
    inner = part.values() if isinstance(part, Mapping) else part if isinstance(part, list | tuple | set) else ()
    for each in inner:
        yield from _parts_in(each)


def _text_of(graph: Graph, term: Node) -> str:
    """Write a term as people know it: `wd:Q42`, or a literal's text."""
    return without_halves(term.n3(graph.namespace_manager) if isinstance(term, URIRef) else str(term))
