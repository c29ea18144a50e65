"""Checking root configs: every mistake and everything odd, in one go; what a graph says of them, where it is given."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
import yaml
from numpy.typing import NDArray

from culturekit.core.atomic import raise_system_error
from culturekit.core.errors import ConfigError, IntegrityError, Problem, UsageError
from culturekit.core.yaml_source import KeyPath, YamlSource, YamlValue, dotted, parse_yaml, read_yaml, validate
from culturekit.kg.concepts import EDGE_PROPERTIES, Concept, concept_path, mask_of
from culturekit.kg.countries import QID, Country, by_qid, countries, countries_text, whole_world
from culturekit.kg.dump.ingest import final_target
from culturekit.kg.store import Graph, load_graph

Severity: TypeAlias = Literal["error", "warning"]
"""An error reaches nothing or cannot be run; a warning is worth a look, and the walk copes with it."""

CLASSES = mask_of(["P279"], EDGE_PROPERTIES)
BOTH = mask_of(EDGE_PROPERTIES, EDGE_PROPERTIES)

IN_VAIN = {"root": "reaches nothing", "class": "cuts nothing", "item": "leaves out nothing"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found, with its place."""

    severity: Severity
    kind: str
    problem: Problem
    qid: str = ""

    def __str__(self) -> str:
        """Write `file:line: key: severity: message`."""
        problem = self.problem
        return str(Problem(f"{self.severity}: {problem.message}", problem.where, problem.line, problem.key))

    def as_data(self) -> dict[str, object]:
        """Give the finding for machines."""
        place = asdict(self.problem)
        file = place.pop("where")
        return {"file": file, **place, "severity": self.severity, "kind": self.kind, "qid": self.qid}


@dataclass(frozen=True, slots=True)
class Named:
    """An item that a config names: as a root, as a class that cuts the walk, or as an item left out."""

    role: Literal["root", "class", "item"]
    qid: str
    source: YamlSource
    path: KeyPath
    label: str | None = None
    hops: int = 1

    @property
    def number(self) -> int:
        """The number in the QID."""
        return int(self.qid[1:])

    @property
    def line(self) -> int:
        """The line it stands in."""
        return self.source.place(self.path).line


def finding(severity: Severity, kind: str, named: Named, message: str) -> Finding:
    """Say something about an item that a config names."""
    place = named.source.place(named.path)
    return Finding(severity, kind, Problem(message, place.where, place.line, dotted(named.path)), named.qid)


def named_classes(source: YamlSource) -> list[Named]:
    """List the items that a config names, also where other parts of the config are wrong."""
    document = source.value if isinstance(source.value, dict) else {}
    hops = hops_in(document.get("hops"), 1)
    named = []
    for index, root in enumerate(entries(document.get("roots"))):
        if isinstance(root, dict) and is_qid(root.get("qid")):
            label = root.get("label")
            path = ("roots", index, "qid")
            said = label if isinstance(label, str) else None
            named.append(Named("root", str(root["qid"]), source, path, said, hops_in(root.get("hops"), hops)))
    exclude = document.get("exclude")
    for key, role in (("classes", "class"), ("items", "item")):
        for index, qid in enumerate(entries(exclude.get(key) if isinstance(exclude, dict) else None)):
            if is_qid(qid):
                named.append(Named("class" if role == "class" else "item", str(qid), source, ("exclude", key, index)))
    return named


def entries(value: YamlValue) -> Sequence[YamlValue]:
    """Take a list, or nothing where something else stands."""
    return value if isinstance(value, list) else []


def is_qid(value: YamlValue) -> bool:
    """Tell whether a value is a QID of the store's range."""
    return isinstance(value, str) and QID.match(value) is not None and int(value[1:]) < 2**32


def hops_in(value: YamlValue, otherwise: int) -> int:
    """Read a number of hops, where it is one."""
    return min(40, int(value)) if isinstance(value, str) and value.isdecimal() and int(value) else otherwise


def validate_roots(
    names: Sequence[str], *, graph: Path | None = None, redirects: Mapping[str, str] | None = None
) -> list[Finding]:
    """Check concepts, by shipped name or path, alone and, where given, against a redirect map and a graph.

    Returns all findings in file order: errors reach nothing or cannot be run, warnings the walk copes with.
    """
    findings: list[Finding] = []
    named: list[list[Named]] = []
    for name in names:
        source, problems = read_source(concept_path(name))
        findings += problems
        if source is not None:
            named.append(named_classes(source))
            findings += [*check_form(source), *check_alone(named[-1]), *check_redirected(named[-1], redirects or {})]
    if graph is not None:
        described = look_up(graph, [each.number for items in named for each in items])
        moved = set(redirects or {})
        for items in named:
            findings += check_against(described, [each for each in items if each.qid not in moved])
    return sorted(findings, key=lambda each: (each.problem.where, each.problem.line, each.problem.key, each.kind))


def read_source(path: Path) -> tuple[YamlSource | None, list[Finding]]:
    """Read a file; one that is not there, or not YAML, is a finding, and the other files are still checked."""
    try:
        return read_yaml(path), []
    except ConfigError as error:
        return None, [Finding("error", "form", problem) for problem in error.problems]
    except UsageError as error:
        return None, [Finding("error", "file", Problem(error.problem, str(path)))]


def check_form(source: YamlSource) -> list[Finding]:
    """Hold a file against the form of a root config, its countries included."""
    try:
        validate(source, Concept)
    except ConfigError as error:
        return [Finding("error", "form", problem) for problem in error.problems]
    return []


def check_alone(named: Sequence[Named]) -> Iterator[Finding]:
    """Say what is named twice, and what is a root and left out as well."""
    first: dict[tuple[str, str], Named] = {}
    for each in named:
        before = first.setdefault((each.role, each.qid), each)
        if before is not each:
            yield finding("warning", "duplicate", each, f"{each.qid} is there twice, first in line {before.line}")
        root = first.get(("root", each.qid))
        if each.role != "root" and root is not None:
            yield finding("warning", "excluded-root", each, f"{each.qid} is also a root, in line {root.line}")


def check_redirected(named: Sequence[Named], redirects: Mapping[str, str]) -> Iterator[Finding]:
    """Say which items are called by a QID that has been merged into another."""
    for each in named:
        if each.qid in redirects:
            target = final_target(each.qid, redirects)
            yield finding("error", "redirected", each, f"{each.qid} was merged into {target}: write {target}")


@dataclass(frozen=True, slots=True)
class Described:
    """What a graph says of the items that configs name."""

    graph: Graph
    labels: dict[int, str | None]
    stating: dict[str, set[int]]

    def has_subclasses(self, node: int) -> bool:
        """Tell whether anything is stated to be a subclass of a node."""
        span = slice(int(self.graph.children_offsets[node]), int(self.graph.children_offsets[node + 1]))
        return bool(np.any((self.graph.edge_flags[span] & CLASSES) != 0))

    def is_instance(self, number: int, node: int) -> bool:
        """Tell whether an item is an instance of something, and a class of nothing and for nobody."""
        return number in self.stating["P31"] and number not in self.stating["P279"] and not self.has_subclasses(node)


def look_up(folder: Path, numbers: Sequence[int]) -> Described:
    """Read what a graph says of some items, and nothing else of its tables."""
    graph = load_graph(folder)
    these = pl.col("number").is_in(sorted(set(numbers)))
    try:
        labels = pl.scan_parquet(folder / "items.parquet").filter(these).select("number", "label").collect()
        stated = (
            pl.scan_parquet(folder / "statements.parquet")
            .filter(these, pl.col("value").is_not_null(), pl.col("rank") != "deprecated")
            .select("number", "property")
            .collect()
        )
    except (OSError, pl.exceptions.PolarsError) as error:
        raise_system_error(error, folder)
        raise IntegrityError("not a graph store", where=str(folder), found=str(error)) from error
    stating = {name: set(stated.filter(pl.col("property") == name)["number"].to_list()) for name in EDGE_PROPERTIES}
    return Described(graph, dict(labels.iter_rows()), stating)


def check_against(described: Described, named: Sequence[Named]) -> Iterator[Finding]:
    """Check the items that one config names against a graph."""
    for each in named:
        yield from check_item(described, each)
    roots = list({each.qid: each for each in reversed(named) if each.role == "root"}.values())[::-1]
    cut = {each.number for each in named if each.role == "class"}
    yield from check_overlaps(described.graph, roots, cut)


def check_item(described: Described, each: Named) -> Iterator[Finding]:
    """Check one item."""
    node = described.graph.find(each.number)
    if node is None:
        message = f"the graph never mentions {each.qid}: it {IN_VAIN[each.role]}"
        yield finding("warning" if each.role == "item" else "error", "unknown", each, message)
        return
    if each.role != "item" and described.is_instance(each.number, node):
        alone = described.graph.children_offsets[node] == described.graph.children_offsets[node + 1]
        message = f"{each.qid}{called(described, each)} is an instance, no class, and has no subclasses"
        yield finding(
            "error" if alone else "warning", "instance", each, message + (" and no instances" if alone else "")
        )
    if each.number not in described.labels:
        yield finding("warning", "undescribed", each, f"the graph mentions {each.qid} and does not describe it")
    label = described.labels.get(each.number)
    if label is not None and each.label is not None and label.casefold() != each.label.strip().casefold():
        yield finding("warning", "label", each, f"{each.qid} is called {label!r}, not {each.label!r}")


def called(described: Described, each: Named) -> str:
    """Add the label of an item, where there is one."""
    label = described.labels.get(each.number)
    return f" ({label})" if label else ""


def check_overlaps(graph: Graph, roots: Sequence[Named], cut: set[int]) -> Iterator[Finding]:
    """Say which roots lie below others within their hops, and which lie below each other."""
    nodes = {each.qid: node for each in roots if (node := graph.find(each.number)) is not None}
    blocked = np.zeros(len(graph.nodes), np.bool_)
    blocked[[node for number in cut if (node := graph.find(number)) is not None]] = True
    here = [each for each in roots if each.qid in nodes]
    below = {upper.qid: hops_to(graph, nodes[upper.qid], upper.hops, nodes, blocked) for upper in here}
    for lower in here:
        above = [upper for upper in here if upper is not lower and lower.qid in below[upper.qid]]
        mutual = [upper for upper in above if upper.qid in below[lower.qid]]
        if over := [f"{upper.qid} (line {upper.line}, hop {below[upper.qid][lower.qid]})" for upper in above]:
            yield finding("warning", "overlap", lower, f"{lower.qid} is below other roots already: {', '.join(over)}")
        if same := [f"{upper.qid} (line {upper.line})" for upper in mutual if upper.line < lower.line]:
            yield finding("warning", "cycle", lower, f"{lower.qid} is below and above these roots: {', '.join(same)}")


def hops_to(graph: Graph, start: int, hops: int, wanted: dict[str, int], blocked: NDArray[np.bool_]) -> dict[str, int]:
    """Find which wanted nodes lie below a node, and at which hop first."""
    seen = blocked.copy()
    seen[start] = True
    frontier = np.array([start], np.int64)
    found: dict[str, int] = {}
    for hop in range(1, hops + 1):
        _, edges = graph.edges_below(frontier)
        children = np.unique(graph.children[edges[(graph.edge_flags[edges] & BOTH) != 0]])
        frontier = children[~seen[children]].astype(np.int64)
        seen[frontier] = True
        found |= {qid: hop for qid, node in wanted.items() if qid not in found and node in frontier}
        if len(frontier) == 0:
            break
    return found


# Drafts of YAML for a person to finish: a country, or a concept.


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
