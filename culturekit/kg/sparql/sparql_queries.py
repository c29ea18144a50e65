"""The queries, in plain SPARQL 1.1 over Wikidata's RDF: no label service, no hints, no server's own functions.

Each is one flat group that begins with one table of the values it asks about, so that a server starts there and not at
all triples, and each orders its rows fully, so that pages neither overlap nor leave a gap.
"""

from collections.abc import Sequence

PAGE_ROWS = 5_000
"""Rows of a page; below the caps that public servers put on a result."""

NAMESPACES = {
    "wd": "http://www.wikidata.org/entity/",
    "p": "http://www.wikidata.org/prop/",
    "ps": "http://www.wikidata.org/prop/statement/",
    "pq": "http://www.wikidata.org/prop/qualifier/",
    "wdno": "http://www.wikidata.org/prop/novalue/",
    "wikibase": "http://wikiba.se/ontology#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "schema": "http://schema.org/",
}

KINDS = ("rdfs:label", "schema:description", "skos:altLabel")


def children(parents: Sequence[int], properties: Sequence[str], offset: int) -> str:
    """Ask which items state one of these properties with one of these values, whatever the rank."""
    return f"""{prefixes("wd", "p", "ps")}
SELECT DISTINCT ?child WHERE {{
  {statements_of("parent", parents, properties)}
  ?statement ?main ?parent .
  ?child ?claim ?statement .
}}
{page("?child", offset)}"""


def statements(numbers: Sequence[int], properties: Sequence[str], offset: int) -> str:
    """Ask for the statements of items: a row for the rank, the value and each qualifier of each statement.

    Somevalue is a node without a name. Novalue is a type of the statement, of its own property or of a qualifier's.
    There is no OPTIONAL: servers differ in what it means beside a table of values.
    """
    return f"""{prefixes("wd", "p", "ps", "rdf", "wikibase")}
SELECT DISTINCT ?item ?claim ?statement ?predicate ?object WHERE {{
  {statements_of("item", numbers, properties)}
  ?item ?claim ?statement .
  ?statement ?predicate ?object .
  FILTER(?predicate = ?main || ?predicate = wikibase:rank || STRSTARTS(STR(?predicate), "{NAMESPACES["pq"]}P")
    || (?predicate = rdf:type && STRSTARTS(STR(?object), "{NAMESPACES["wdno"]}P")))
}}
{page("?statement ?predicate ?object", offset)}"""


def terms(numbers: Sequence[int], languages: Sequence[str], offset: int) -> str:
    """Ask for labels, descriptions and aliases in some languages."""
    wanted = ", ".join(quoted(language.lower()) for language in languages)
    return f"""{prefixes("wd", "rdfs", "schema", "skos")}
SELECT ?item ?kind ?text WHERE {{
  VALUES (?item ?kind) {{ {" ".join(f"(wd:Q{number} {kind})" for number in numbers for kind in KINDS)} }}
  ?item ?kind ?text .
  FILTER(LCASE(LANG(?text)) IN ({wanted}))
}}
{page("?item ?kind LANG(?text) STR(?text)", offset)}"""


def counts(numbers: Sequence[int], offset: int) -> str:
    """Ask how many sitelinks items have; servers keep the number at the item or at the page about it."""
    return f"""{prefixes("wd", "wikibase", "schema")}
SELECT DISTINCT ?item ?count WHERE {{
  {{ {items("item", numbers)} ?item wikibase:sitelinks ?count . }}
  UNION
  {{ {items("item", numbers)} ?page schema:about ?item . ?page wikibase:sitelinks ?count . }}
}}
{page("?item ?count", offset)}"""


def titles(numbers: Sequence[int], language: str, offset: int) -> str:
    """Ask for the titles of the articles about items on one Wikipedia."""
    return f"""{prefixes("wd", "schema")}
SELECT ?item ?title WHERE {{
  {items("item", numbers)}
  ?page schema:about ?item .
  ?page schema:isPartOf <https://{language}.wikipedia.org/> .
  ?page schema:name ?title .
}}
{page("?item ?title", offset)}"""


def prefixes(*names: str) -> str:
    """Declare prefixes; not every server knows Wikidata's by itself."""
    return "\n".join(f"PREFIX {name}: <{NAMESPACES[name]}>" for name in names)


def items(variable: str, numbers: Sequence[int]) -> str:
    """List the items that a query is about."""
    return f"VALUES ?{variable} {{ {' '.join(f'wd:Q{number}' for number in numbers)} }}"


def statements_of(variable: str, numbers: Sequence[int], properties: Sequence[str]) -> str:
    """List items, each with the properties as they lead from an item to a statement, and from there to its value."""
    rows = " ".join(f"(wd:Q{number} p:{name} ps:{name})" for number in numbers for name in properties)
    return f"VALUES (?{variable} ?claim ?main) {{ {rows} }}"


def page(order: str, offset: int) -> str:
    """Take one page of the rows in a full order."""
    words = " ".join(word if word.startswith("?") else f"({word})" for word in order.split())
    return f"ORDER BY {words}\nLIMIT {PAGE_ROWS}\nOFFSET {offset}"


def quoted(text: str) -> str:
    """Write a string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
