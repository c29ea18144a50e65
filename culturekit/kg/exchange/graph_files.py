"""Neighbourhoods of items as graphs of networkx: cut out of a store, written for other tools, and read as stores.

A node is an item by its QID, with `label`, `label_language`, `description` and `hop` where they are known; one without
`hop` is only the value of a statement. An edge is a statement with an item as its value, whatever its rank, under the
key `PROPERTY-POSITION`; it is `truthy` when it is of the best rank for its item and property.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

import networkx
import numpy as np
import polars as pl
from rdflib import RDFS, Graph, Namespace, URIRef, term
from rdflib.namespace import NamespaceManager
from rdflib.plugins.sparql import prepareQuery
from rdflib.plugins.sparql.evaluate import evalQuery
from rdflib.plugins.sparql.operators import _CUSTOM_FUNCTIONS as FUNCTIONS
from rdflib.plugins.sparql.parserutils import CompValue
from rdflib.plugins.sparql.sparql import Query
from rdflib.term import Node

from culturekit.core.choices import TRIPLE_SUFFIXES, GraphDirection, GraphFormat
from culturekit.core.errors import UsageError, without_halves
from culturekit.core.schemas import ITEMS, STATEMENTS
from culturekit.core.stage import Outcome, Stage, Work
from culturekit.kg.concepts import EDGE_PROPERTIES, is_truthy, mask_of
from culturekit.kg.countries import QID, number_of_item
from culturekit.kg.dump.ingest import NO_DUMP, store_rows
from culturekit.kg.store import GraphTables, among, load_graph

_Read = TypeVar("_Read")
_Items: TypeAlias = "networkx.MultiDiGraph[str]"
_Item: TypeAlias = tuple[str | None, str | None, str | None]  # label, its language, description
_Statement: TypeAlias = tuple[int, str, int, int, str, str, bool, bool]  # a row of `statements`, at any position
# What is known of items by number, statements, and how many triples are about anything else.
_Contents: TypeAlias = tuple[dict[int, _Item], list[_Statement], int]

ENTITY = Namespace("http://www.wikidata.org/entity/")
DIRECT = Namespace("http://www.wikidata.org/prop/direct/")
PREFIXES = {"wd": ENTITY, "wdt": DIRECT, "rdfs": RDFS}
SUFFIXES: Mapping[GraphFormat, str] = {**TRIPLE_SUFFIXES, "graphml": ".graphml", "node-link": ".json"}

_MOST_BYTES = 500_000_000  # what is larger is a dump, and is read as one
_LANGUAGES = ("en", "mul")  # whose labels are taken first; then the others, by code
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")  # what XML 1.0 cannot hold, not even escaped
_TEXTS = ("label", "label_language", "description")
_NODE_KEYS = {**dict.fromkeys(_TEXTS, str), "hop": int}
_MOST_POSITIONS = 2**16
_PROPERTY = re.compile(r"^P[1-9][0-9]{0,9}\Z")
_RANKS = ("preferred", "normal", "deprecated")
_POSITION = re.compile(r"-([0-9]{1,5})\Z")


def neighbourhood(
    folder: Path, qid: str, *, hops: int, direction: GraphDirection = "both", most: int = 10_000
) -> tuple[_Items, int]:
    """Cut out the items within some hops of class edges, nearest first and at most `most`, and what they state.

    Class edges are P31 and P279 statements that are not deprecated. The number counts the items of the last hop looked
    at that had no room.
    """
    tables, start = GraphTables(folder), number_of_item(qid)
    hop_of, left_out = _nearby(folder, tables, start, hops=hops, direction=direction, most=most)
    columns = ("number", "property", "position", "value", "rank", "qualified", "ended")
    stated = among(tables.statements, hop_of).select(*columns, truthy=is_truthy()).filter(pl.col("value").is_not_null())
    rows = stated.sort(columns[:3]).collect()
    numbers = sorted({*hop_of, *rows["value"].to_list()})
    facts, labels = tables.facts(numbers), tables.labels(numbers)
    found: _Items = networkx.MultiDiGraph(around=qid)
    for number in numbers:
        fact, label = facts.get(number), labels[number]
        language = fact.label_language if fact and fact.label else ("en" if label else None)
        description, hop = fact.description if fact else None, hop_of.get(number)
        known = {"label": label, "label_language": language, "description": description, "hop": hop}
        found.add_node(f"Q{number}", **{name: value for name, value in known.items() if value is not None})
    for subject, name, position, value, *marks in rows.iter_rows():
        manner = dict(zip(("rank", "qualified", "ended", "truthy"), marks, strict=True))
        found.add_edge(f"Q{subject}", f"Q{value}", f"{name}-{position}", property=name, **manner)
    return found, left_out


def _nearby(
    folder: Path, tables: GraphTables, start: int, *, hops: int, direction: GraphDirection, most: int
) -> tuple[dict[int, int], int]:
    """Give the items within some hops with their hop, and how many of the last hop looked at had no room."""
    graph, mask = load_graph(folder), mask_of(EDGE_PROPERTIES, EDGE_PROPERTIES)
    if graph.find(start) is None:
        raise UsageError("the graph never mentions the item", where=str(folder), found=f"Q{start}")
    hop_of = {start: 0}
    frontier = [start]
    for hop in range(1, hops + 1):
        reached: set[int] = set()
        if direction in {"up", "both"}:
            stated = tables.stated(frontier, EDGE_PROPERTIES, mask)
            reached.update(s.value for s in stated if s.counts and s.value is not None)
        if direction in {"down", "both"}:
            _, edges = graph.edges_below(np.array(graph.find_all(frontier), np.int64))
            kept = edges[(graph.edge_flags[edges] & mask) != 0]
            reached.update(graph.nodes[graph.children[kept]].tolist())
        fresh = sorted(reached - hop_of.keys())
        room = most - len(hop_of)
        hop_of |= dict.fromkeys(fresh[:room], hop)
        if len(fresh) > room:
            return hop_of, len(fresh) - room
        frontier = fresh
        if not frontier:
            break
    return hop_of, 0


def form_of(path: Path) -> GraphFormat:
    """Tell a format by the suffix of a file."""
    for form, suffix in SUFFIXES.items():
        if path.suffix.lower() == suffix:
            return form
    known = ", ".join(f"{suffix} ({form})" for form, suffix in SUFFIXES.items())
    raise UsageError("no format has this suffix", where=str(path), expected=known, hint="Name one with --format.")


def graph_file(graph: _Items, form: GraphFormat) -> bytes:
    """Write a neighbourhood; node-link is read by `networkx.node_link_graph(data, edges="edges")`."""
    if form in TRIPLE_SUFFIXES:
        return written_rdf(rdf_graph(graph), form)
    if form == "node-link":
        data = networkx.node_link_data(graph, edges="edges")
        return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "replace")
    plain: _Items = networkx.MultiDiGraph()
    for node, known in graph.nodes(data=True):
        texts = {name: _NOT_XML.sub("\ufffd", text) for name, text in known.items() if isinstance(text, str)}
        plain.add_node(node, **{**known, **texts})
    for subject, value, key, stated in graph.edges(keys=True, data=True):
        plain.add_edge(subject, value, f"{subject}-{key}", **stated)  # GraphML wants ids that no other edge has
    written = io.BytesIO()
    networkx.write_graphml_xml(plain, written, prettyprint=True)
    return written.getvalue().replace(b"\r", b"&#13;")  # else a reader of XML makes a line feed of it


def read_graph_file(path: Path, form: GraphFormat) -> _Contents:
    """Read a file that another tool wrote, or `kg export`; nothing is ordered or stored yet."""

    def read(content: bytes) -> _Contents:
        if form in TRIPLE_SUFFIXES:
            return _of_rdf(_parsed_rdf(content, form))
        if form == "graphml":
            return _of_networkx(networkx.read_graphml(io.BytesIO(content), force_multigraph=True))
        data = json.loads(content)  # its statements stand under `edges`, or `links` as older versions wrote them
        return _of_networkx(networkx.node_link_graph(data, edges="edges" if "edges" in data else "links"))

    return _parsed(path, form, read)


def read_triples(path: Path) -> Graph:
    """Read a file of triples, by its suffix."""
    form = form_of(path)
    if form not in TRIPLE_SUFFIXES:
        raise UsageError("no triples", where=str(path), expected=" or ".join(TRIPLE_SUFFIXES.values()))
    return _parsed(path, form, lambda content: _parsed_rdf(content, form))


def _parsed(path: Path, form: GraphFormat, parse: Callable[[bytes], _Read]) -> _Read:
    """Parse a file, and say of one that cannot be parsed what and where."""
    if not path.is_file():
        raise UsageError("there is no such file", where=str(path))
    if path.stat().st_size > _MOST_BYTES:
        raise UsageError(
            "too large for this", where=str(path), expected=f"{_MOST_BYTES:,} bytes at most",
            hint="A whole dump is read with: culturekit kg ingest",
        )  # fmt: skip
    try:
        return parse(path.read_bytes())
    except UsageError as error:
        where = f"{path}: {error.where}" if error.where else str(path)
        raise UsageError(error.problem, where=where, expected=error.expected, found=error.found) from error
    except Exception as error:  # each parser has errors of its own
        found = " ".join(f"{type(error).__name__} {error}".split())[:300]
        raise UsageError(f"cannot be read as {form}", where=str(path), found=found) from error


def _of_networkx(graph: "networkx.Graph[str]") -> _Contents:
    """Read any directed graph of networkx whose nodes are QIDs and whose edges have a `property`.

    An edge without `rank` is of normal rank; one without `qualified` or `ended` is neither.
    """
    if not graph.is_directed():
        raise UsageError("the graph has no directions", expected="a directed graph")
    items: dict[int, _Item] = {}
    for node, known in graph.nodes(data=True):
        number = number_of_item(str(node))
        for name, kind in _NODE_KEYS.items():
            if known.get(name) is not None and not isinstance(known[name], kind):
                raise UsageError("not what a node can say", where=f"{node}: {name}", found=repr(known[name])[:60])
        if any(known.get(name) is not None for name in ("label", "description", "hop")):
            texts = [known.get(name) and without_halves(known[name]) for name in _TEXTS]
            items[number] = (texts[0], texts[1] if texts[0] else None, texts[2])
    rows = [
        _statement(subject, value, key, stated)
        for subject, value, key, stated in networkx.MultiDiGraph(graph).edges(keys=True, data=True)
    ]
    return items, rows, 0


def _position_in(key: object) -> int:
    """Read from the key of an edge which position it had among the statements of its item."""
    found = _POSITION.search(str(key))
    return int(found[1]) if found else 0


def _statement(subject: object, value: object, key: object, stated: Mapping[str, Any]) -> _Statement:
    """Read an edge."""
    where, name = f"{subject} -> {value}", stated.get("property")
    if not isinstance(name, str) or not _PROPERTY.match(name):
        raise UsageError("an edge needs a property", where=where, expected="property: P31", found=repr(name)[:60])
    rank, qualified, ended = stated.get("rank", "normal"), stated.get("qualified", False), stated.get("ended", False)
    if rank not in _RANKS:
        raise UsageError("not a rank", where=where, expected=" or ".join(_RANKS), found=repr(rank)[:60])
    if not isinstance(qualified, bool) or not isinstance(ended, bool):
        raise UsageError("qualified and ended are true or false", where=where)
    numbers = number_of_item(str(subject)), number_of_item(str(value))
    return numbers[0], name, _position_in(key), numbers[1], "value", rank, qualified, ended


def new_graph() -> Graph:
    """Make a graph that knows no prefixes but ours."""
    graph = Graph()
    graph.namespace_manager = NamespaceManager(graph, bind_namespaces="none")
    for prefix, namespace in PREFIXES.items():
        graph.bind(prefix, namespace)
    return graph


def rdf_graph(graph: _Items) -> Graph:
    """Give a neighbourhood to rdflib: labels, and the statements of best rank as `wdt:` triples."""
    triples = new_graph()
    for qid, known in graph.nodes(data=True):
        if "label" in known:
            triples.add((ENTITY[qid], RDFS.label, term.Literal(known["label"], lang=known.get("label_language"))))
    # In the order of statements: rdflib writes the values of JSON-LD as they were added.
    edges = sorted(
        (int(subject[1:]), stated["property"], _position_in(key), subject, value)
        for subject, value, key, stated in graph.edges(keys=True, data=True)
        if stated["truthy"]
    )
    for _, name, _, subject, value in edges:
        triples.add((ENTITY[subject], DIRECT[name], ENTITY[value]))
    return triples


def written_rdf(graph: Graph, form: str) -> bytes:
    """Write a graph; equal graphs without blank nodes give equal bytes."""
    if form == "json-ld":
        context = {prefix: str(namespace) for prefix, namespace in graph.namespaces()}
        data = json.loads(graph.serialize(format=form, context=context, sort_keys=True))
        if "@graph" in data:
            data["@graph"].sort(key=lambda node: node["@id"])
        return (json.dumps(data, ensure_ascii=False, indent=2) + "\n").encode()
    content = graph.serialize(format=form, encoding="utf-8")
    return b"".join(sorted(content.splitlines(keepends=True))) if form == "ntriples" else content


def _parsed_rdf(content: bytes, form: str) -> Graph:
    """Parse triples; JSON-LD may name no context elsewhere: nothing is fetched."""
    if form == "json-ld" and any(map(_leads_elsewhere, _contexts_in(json.loads(content)))):
        raise UsageError("a context elsewhere is not fetched", expected="a @context inside the file")
    return new_graph().parse(data=content, format=form)


def _contexts_in(node: object) -> Iterator[object]:
    """Find every context in a JSON-LD document."""
    listed = node if isinstance(node, list) else ()
    for name, inner in node.items() if isinstance(node, dict) else ((None, each) for each in listed):
        if name in {"@context", "@import"}:
            yield inner
        yield from _contexts_in(inner)


def _leads_elsewhere(context: object) -> bool:
    """Tell whether a context is an address, or has one among its parts."""
    return isinstance(context, str) or (isinstance(context, list) and any(map(_leads_elsewhere, context)))


def _of_rdf(triples: Graph) -> _Contents:
    """Read items, labels and `wdt:` triples."""
    labels: dict[int, list[tuple[int, str, str]]] = {}
    rows: list[_Statement] = []
    others = 0
    for subject, predicate, value in triples:
        number, target, name = _number_in(subject), _number_in(value), str(predicate).removeprefix(DIRECT)
        if number is not None and predicate == RDFS.label and isinstance(value, term.Literal):
            code = value.language or ""
            order = _LANGUAGES.index(code) if code in _LANGUAGES else len(_LANGUAGES)
            labels.setdefault(number, []).append((order, code, without_halves(value)))
        elif number is not None and target is not None and _PROPERTY.match(name):
            rows.append((number, name, 0, target, "value", "normal", False, False))
        else:
            others += 1
    chosen = {number: min(texts) for number, texts in labels.items()}
    return {number: (label or None, code or None, None) for number, (_, code, label) in chosen.items()}, rows, others


def _number_in(term: object) -> int | None:
    """Read an item's IRI as its number; None for anything else."""
    if not isinstance(term, URIRef) or not term.startswith(ENTITY):
        return None
    name = term.removeprefix(ENTITY)
    return number_of_item(name) if QID.match(name) and int(name[1:]) < 2**32 else None


def import_graph(work: Work, path: Path, form: GraphFormat) -> Outcome:
    """Write a graph store from a file; what the file only names, and says nothing of, counts as mentioned."""
    known, rows, others = read_graph_file(path, form)
    if not rows:
        raise UsageError("the file has no statement about items", where=str(path), expected="statements such as P31")
    order = ("number", "property", "position", "value", "rank", "qualified", "ended")
    position = pl.int_range(pl.len(), dtype=pl.UInt32).over("number", "property")
    wide = pl.Schema({**STATEMENTS.schema, "position": pl.UInt32()})
    stated = pl.DataFrame(rows, schema=wide, orient="row").sort(order).with_columns(position=position)
    last = stated.row(stated["position"].arg_max() or 0, named=True)
    if last["position"] >= _MOST_POSITIONS:
        raise UsageError(
            "too many statements of a property", where=f"{path}: Q{last['number']}: {last['property']}",
            expected=f"{_MOST_POSITIONS:,} at most", found=f"{last['position'] + 1:,}",
        )  # fmt: skip
    items = [
        {**NO_DUMP, "qid": f"Q{number}", "number": number, **dict(zip(_TEXTS, known.get(number, ()), strict=False))}
        for number in sorted(known.keys() | set(stated["number"]))
    ]
    stored = stated.cast({"position": STATEMENTS.schema["position"]})
    counts = store_rows(work.out, pl.DataFrame(items, schema=ITEMS.schema), stored)
    return Outcome(counts, {"not-about-items": others} if others else {})


# SPARQL over a neighbourhood, answered by rdflib on this machine: nothing is asked or fetched elsewhere.


QueryKind: TypeAlias = Literal["SELECT", "ASK", "CONSTRUCT", "DESCRIBE"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a query finds."""

    kind: QueryKind
    columns: tuple[str, ...]  # the variables of SELECT; subject, predicate, object of CONSTRUCT, DESCRIBE; none for ASK
    rows: tuple[tuple[str | None, ...], ...]
    more: bool = False  # whether there were more rows than wanted
    yes: bool | None = None  # the answer to ASK


def ask_graph(graph: Graph, query: str, *, most: int) -> Answer:
    """Answer a query with the first `most` rows; `wd:`, `wdt:`, `rdfs:` and those of a file need no PREFIX."""
    prepared = _checked(graph, query)
    try:
        found = evalQuery(graph, prepared)  # a Result of rdflib leaves out the rows in which nothing is bound
        kind: QueryKind = found["type_"]
        if kind == "ASK":
            return Answer(kind, (), (), yes=bool(found["askAnswer"]))
        columns: tuple[str, ...] = ("subject", "predicate", "object")
        every: Iterator[tuple[Node | None, ...]]
        if kind == "SELECT":
            columns = tuple(map(str, found["vars_"]))
            every = (tuple(bound.get(name) for name in found["vars_"]) for bound in found["bindings"])
        else:  # triples have no order, and come by value
            every = iter(sorted(found["graph"], key=lambda row: tuple(map(str, row))))
        rows = list(islice(every, most + 1))
    except RecursionError as error:
        raise UsageError("the query is nested too deeply") from error
    except Exception as error:  # rdflib has errors of every kind for what a query does wrong while it runs
        raise UsageError("the query failed", found=f"{type(error).__name__} {error}"[:300]) from error

    def text_of(node: Node) -> str:  # as people know it: `wd:Q42`, or a literal's text
        return without_halves(node.n3(graph.namespace_manager) if isinstance(node, URIRef) else str(node))

    texts = tuple(tuple(None if node is None else text_of(node) for node in row) for row in rows[:most])
    return Answer(kind, columns, texts, len(rows) > most)


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


def import_graph_stage(path: Path, form: GraphFormat) -> Stage:
    """Read a graph in one of the formats that `kg export` writes."""
    return Stage(
        "graph", "import-graph", 1, lambda work: import_graph(work, path, form), {"dump-0": path}, {"format": form},
        packages=("networkx", "polars", "rdflib"),
    )  # fmt: skip
