"""Drafts of YAML for a person to finish: a country, or a concept."""

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import pycountry
import yaml
from babel import Locale

from culturekit.errors import UsageError
from culturekit.kg.concepts import Concept
from culturekit.kg.countries import by_qid, countries
from culturekit.kg.rootcheck.validate import Described, look_up
from culturekit.kg.world import countries_text, whole_world
from culturekit.storage.yaml_model import validate
from culturekit.storage.yaml_source import parse_yaml

__all__ = ["draft_concept", "draft_country", "name_in_graph"]


def draft_country(qid: str, name: str) -> str:
    """Draft the entry of a country, from the table of the world.

    `name` is a country's name or ISO code.
    """
    known = by_qid().get(qid)
    if known is not None:
        raise UsageError(f"{qid} is there already, as {known.name}", hint="To change it, give its whole entry anew.")
    iso = code_of(name)
    if iso in countries():
        message = f"{iso} is there already, as {countries()[iso].name} with {', '.join(countries()[iso].qids)}"
        raise UsageError(
            message, hint=f"Another item of it, such as a historic state, joins the list: add {qid} there."
        )
    entry = whole_world().get(iso)
    if entry is None:
        raise UsageError("nobody lives there, and the UN's M49 has no sub-region for it", found=iso)
    return countries_text([entry.model_copy(update={"qids": (qid,)})])


def code_of(name: str) -> str:
    """Find the ISO code of a country by its name, or by a code of it."""
    names = {text.casefold(): code for code, text in Locale("en").territories.items() if len(code) == 2}
    found = pycountry.countries.get(alpha_2=names.get(name.casefold(), ""))
    try:
        found = found or pycountry.countries.lookup(name)
    except LookupError as error:
        near = get_close_matches(name.casefold(), names, n=3)
        raise UsageError(
            "no country of ISO 3166-1 is called this",
            found=repr(name),
            expected=f"such as {' or '.join(Locale('en').territories[names[each]] for each in near)}" if near else "",
            hint="Give its name or its code with --name.",
        ) from error
    return str(found.alpha_2)


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
