"""Drafts of YAML for a person to finish: a country, or a concept."""

from collections.abc import Sequence
from pathlib import Path

import yaml

from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import Country, by_qid, countries, countries_text, whole_world
from culturekit.kg.rootcheck.validate import Described, look_up
from culturekit.storage.yaml_model import validate
from culturekit.storage.yaml_source import parse_yaml

__all__ = ["draft_concept", "draft_countries", "draft_country", "name_in_graph"]


def draft_countries(isos: Sequence[str]) -> str:
    """Draft the entries of countries, from the table of the world, in one file."""
    return countries_text([drafted(iso)[0] for iso in dict.fromkeys(isos)])


def draft_country(iso: str, qid: str = "") -> str:
    """Draft the entry of a country, from the table of the world, with one more item of it where one is named."""
    entry, added = drafted(iso, qid)
    doubt = (
        f"# The table has {', '.join(whole_world()[iso].qids)}; {qid} belongs here where it is one more, as of a "
        "historic state.\n"
    )
    return (doubt if added else "") + countries_text([entry])


def drafted(iso: str, qid: str = "") -> tuple[Country, bool]:
    """Give the entry of a country that is not there already, and whether the item was added to it."""
    for known in filter(None, (by_qid().get(qid), countries().get(iso))):
        message = f"{qid or iso} is there already, as {known.name} with {', '.join(known.qids)}"
        raise UsageError(message, hint=f"To change it, such as to add {qid or 'an item'}, give its whole entry anew.")
    entry = whole_world()[iso]
    added = [qid] if qid and qid not in entry.qids else []
    return entry.model_copy(update={"qids": (*entry.qids, *added)}), bool(added)


def name_in_graph(qid: str, graph: Path) -> str:
    """Look up what a graph calls an item."""
    label = look_up(graph, [int(qid[1:])]).labels.get(int(qid[1:]))
    if label is None:
        raise UsageError(f"the graph has no label for {qid}", where=str(graph), hint="Give its name with --name.")
    return label


def draft_concept(concept: str, roots: Sequence[str], graph: Path, *, hops: int = 3) -> str:
    """Draft a root config with the labels that a graph has; a root that it does not mention is an error."""
    numbers = {qid: int(qid[1:]) for qid in dict.fromkeys(roots)}
    described = look_up(graph, list(numbers.values()))
    missing = [qid for qid, number in numbers.items() if described.graph.find(number) is None]
    if missing:
        raise UsageError(
            f"the graph never mentions {', '.join(missing)}", where=str(graph), hint="Check the QIDs, or ingest a dump."
        )
    lines = [
        "# Say here what belongs to the concept and where its roots come from.",
        f"concept: {scalar(concept)}",
        f"hops: {hops}",
        "roots:",
        *(root_line(qid, number, described) for qid, number in numbers.items()),
        "countries: all  # or ISO codes in brackets, such as [BR, IN]",
        "languages: [en]",
    ]
    text = "\n".join(lines) + "\n"
    validate(parse_yaml(text, name="the draft"), Concept)
    return text


def root_line(qid: str, number: int, described: Described) -> str:
    """Write a root."""
    label = described.labels.get(number)
    if label is None:
        return f"  - {{qid: {qid}, label: {qid}}}  # the graph has no label for it: write its name"
    return f"  - {{qid: {qid}, label: {scalar(label, flow=True)}}}"


def scalar(text: str, *, flow: bool = False) -> str:
    """Write text as a YAML scalar, in quotes where a reader could take it for something else."""
    written = yaml.safe_dump([text] if flow else text, default_flow_style=flow, allow_unicode=True, width=10_000)
    return written.strip()[1:-1] if flow else written.removesuffix("...\n").strip()
