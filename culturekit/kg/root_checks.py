"""Check root configs: every mistake and everything odd, in one go; and draft new ones, and countries."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import polars as pl
import yaml

from culturekit.core.atomic import decoding
from culturekit.core.errors import ConfigError, IntegrityError, Problem, UsageError
from culturekit.core.yaml_source import KeyPath, YamlSource, YamlValue, dotted, parse_yaml, read_yaml, validate
from culturekit.kg.concepts import EDGE_PROPERTIES, Concept, concept_path, final_target, mask_of, shipped_concepts
from culturekit.kg.countries import QID, Country, by_qid, countries, countries_text, whole_world
from culturekit.kg.store import Graph, load_graph
from culturekit.kg.walk import walk_levels

# An error reaches nothing or cannot be run; a warning is worth a look, and the walk copes with it.
_Severity: TypeAlias = Literal["error", "warning"]

_CLASSES = mask_of(["P279"], EDGE_PROPERTIES)
_BOTH = mask_of(EDGE_PROPERTIES, EDGE_PROPERTIES)
_MOST_OVERLAPS = 5
_IN_VAIN = {"root": "reaches nothing", "class": "cuts nothing", "item": "leaves out nothing"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a check found, with its place."""

    severity: _Severity
    kind: str
    problem: Problem
    qid: str = ""

    def __str__(self) -> str:
        """Write `file:line: key: severity: message`."""
        problem = self.problem
        return str(Problem(f"{self.severity}: {problem.message}", problem.where, problem.line, problem.key))

    def as_data(self) -> dict[str, object]:
        """Give the finding for machines."""
        problem = asdict(self.problem)
        file = problem.pop("where")
        return {"file": file, **problem, "severity": self.severity, "kind": self.kind, "qid": self.qid}


@dataclass(frozen=True, slots=True)
class _Named:
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
        return self.source.position(self.path).line

    def finding(self, severity: _Severity, kind: str, message: str) -> Finding:
        """Say something about it."""
        position = self.source.position(self.path)
        return Finding(severity, kind, Problem(message, position.where, position.line, dotted(self.path)), self.qid)


def _named_in(source: YamlSource) -> list[_Named]:
    """List the items that a config names, also where other parts of the config are wrong."""
    document = source.value if isinstance(source.value, dict) else {}
    named = []
    roots = document.get("roots")
    for index, root in enumerate(roots if isinstance(roots, list) else ()):
        if isinstance(root, dict) and _is_qid(root.get("qid")):
            label, hops = root.get("label"), _hops_in(root.get("hops"), _hops_in(document.get("hops"), 1))
            path = ("roots", index, "qid")
            named.append(
                _Named("root", str(root["qid"]), source, path, label if isinstance(label, str) else None, hops)
            )
    exclude = document.get("exclude")
    roles: tuple[tuple[str, Literal["class", "item"]], ...] = (("classes", "class"), ("items", "item"))
    for key, role in roles:
        listed = exclude.get(key) if isinstance(exclude, dict) else None
        for index, qid in enumerate(listed if isinstance(listed, list) else ()):
            if _is_qid(qid):
                named.append(_Named(role, str(qid), source, ("exclude", key, index)))
    return named


def _is_qid(value: YamlValue) -> bool:
    return isinstance(value, str) and QID.match(value) is not None and int(value[1:]) < 2**32


def _hops_in(value: YamlValue, otherwise: int) -> int:
    return min(40, int(value)) if isinstance(value, str) and value.isdecimal() and int(value) else otherwise


def validate_roots(
    names: Sequence[str], *, graph: Path | None = None, redirects: Mapping[str, str] | None = None
) -> list[Finding]:
    """Check concepts, by shipped name or path, alone and, where given, against a redirect map and a graph.

    Returns all findings in file order: errors reach nothing or cannot be run, warnings the walk copes with.
    """
    moved = redirects or {}
    findings: list[Finding] = []
    configs: list[list[_Named]] = []
    for path in map(concept_path, names):
        # A file that is not there, or not YAML, is a finding, and the other files are still checked.
        try:
            source = read_yaml(path)
        except ConfigError as error:
            findings += [Finding("error", "form", problem) for problem in error.problems]
            continue
        except UsageError as error:
            findings.append(Finding("error", "file", Problem(error.problem, str(path))))
            continue
        try:
            if not validate(source, Concept).description:
                message = "a judge is told no more than the concept's name: say in a sentence what belongs to it"
                findings.append(Finding("warning", "description", Problem(message, str(path), 1, "description")))
        except ConfigError as error:
            findings += [Finding("error", "form", problem) for problem in error.problems]
        configs.append(_named_in(source))
        findings += _check_alone(configs[-1])
        for each in configs[-1]:
            if each.qid in moved:
                target = final_target(each.qid, moved)
                message = f"{each.qid} was merged into {target}: write {target}"
                findings.append(each.finding("error", "redirected", message))
    if graph is not None:
        described = _look_up(graph, [each.number for named in configs for each in named])
        for config in configs:
            named = [each for each in config if each.qid not in moved]
            findings += [finding for each in named for finding in _check_item(described, each)]
            roots = list({each.qid: each for each in reversed(named) if each.role == "root"}.values())[::-1]
            cut = {each.number for each in named if each.role == "class"}
            findings += _check_overlaps(described.graph, roots, cut)
    # Roots of a published list lie below each other there, and nobody here can change that.
    as_published = {str(concept_path(name)) for name in shipped_concepts()}
    findings = [each for each in findings if each.kind != "overlap" or each.problem.where not in as_published]
    return sorted(findings, key=lambda each: (each.problem.where, each.problem.line, each.problem.key, each.kind))


def _check_alone(named: Sequence[_Named]) -> Iterator[Finding]:
    """Say what is named twice, and what is a root and left out as well."""
    first: dict[tuple[str, str], _Named] = {}
    for each in named:
        before = first.setdefault((each.role, each.qid), each)
        if before is not each:
            yield each.finding("warning", "duplicate", f"{each.qid} is there twice, first in line {before.line}")
        root = first.get(("root", each.qid))
        if each.role != "root" and root is not None:
            yield each.finding("warning", "excluded-root", f"{each.qid} is also a root, in line {root.line}")


@dataclass(frozen=True, slots=True)
class _Described:
    """What a graph says of the items that configs name."""

    graph: Graph
    labels: dict[int, str | None]
    stating: dict[str, set[int]]


def _look_up(folder: Path, numbers: Sequence[int]) -> _Described:
    """Read what a graph says of some items, and nothing else of its tables."""
    graph = load_graph(folder)
    these = pl.col("number").is_in(sorted(set(numbers)))
    with decoding(folder, "not a graph store", error=IntegrityError):
        labels = pl.scan_parquet(folder / "items.parquet").filter(these).select("number", "label").collect()
        statements = pl.scan_parquet(folder / "statements.parquet").filter(
            these, pl.col("value").is_not_null(), pl.col("rank") != "deprecated"
        )
        stated = statements.select("number", "property").collect()
    stating = {name: set(stated.filter(property=name)["number"].to_list()) for name in EDGE_PROPERTIES}
    return _Described(graph, dict(labels.iter_rows()), stating)


def _check_item(described: _Described, each: _Named) -> Iterator[Finding]:
    """Check one item."""
    graph, label = described.graph, described.labels.get(each.number)
    node = graph.find(each.number)
    if node is None:
        message = f"the graph never mentions {each.qid}: it {_IN_VAIN[each.role]}"
        yield each.finding("warning" if each.role == "item" else "error", "unknown", message)
        return
    edges = graph.edge_flags[int(graph.children_offsets[node]) : int(graph.children_offsets[node + 1])]
    an_instance = each.number in described.stating["P31"] - described.stating["P279"]
    if each.role != "item" and an_instance and not np.any(edges & _CLASSES):
        called = f"{each.qid} ({label})" if label else each.qid
        message = f"{called} is an instance, no class, and has no subclasses"
        alone = len(edges) == 0
        yield each.finding(
            "error" if alone else "warning", "instance", message + (" and no instances" if alone else "")
        )
    if each.number not in described.labels:
        yield each.finding("warning", "undescribed", f"the graph mentions {each.qid} and does not describe it")
    if label is not None and each.label is not None and label.casefold() != each.label.strip().casefold():
        yield each.finding("warning", "label", f"{each.qid} is called {label!r}, not {each.label!r}")


def _check_overlaps(graph: Graph, roots: Sequence[_Named], cut: set[int]) -> Iterator[Finding]:
    """Say which roots lie below others within their hops, and which lie below each other."""
    nodes = {each.qid: node for each in roots if (node := graph.find(each.number)) is not None}
    blocked = graph.marked(cut)
    here, wanted = [each for each in roots if each.qid in nodes], np.array(list(nodes.values()))
    below: dict[str, dict[str, int]] = {}
    for upper in here:
        levels = walk_levels(graph, nodes[upper.qid], upper.hops, edge_mask=_BOTH, blocked=blocked)
        reached = [set(wanted[np.isin(wanted, level.walked)].tolist()) for level in levels]
        below[upper.qid] = {
            qid: hop for hop, found in enumerate(reached) if hop for qid, node in nodes.items() if node in found
        }
    overlaps = []
    for lower in here:
        above = [upper for upper in here if upper is not lower and lower.qid in below[upper.qid]]
        mutual = [upper for upper in above if upper.qid in below[lower.qid]]
        if over := [f"{upper.qid} (line {upper.line}, hop {below[upper.qid][lower.qid]})" for upper in above]:
            overlaps.append((lower, f"{lower.qid} is below other roots already: {', '.join(over)}"))
        if same := [f"{upper.qid} (line {upper.line})" for upper in mutual if upper.line < lower.line]:
            yield lower.finding("warning", "cycle", f"{lower.qid} is below and above these roots: {', '.join(same)}")
    if overlaps:
        more = len(overlaps) - _MOST_OVERLAPS
        text = "; ".join(message for _, message in overlaps[:_MOST_OVERLAPS])
        yield overlaps[0][0].finding("warning", "overlap", text + (f"; and {more} more roots" if more > 0 else ""))


# Drafts of YAML for a person to finish: a country, or a concept.


def draft_countries(isos: Sequence[str]) -> str:
    """Draft the entries of countries, from the table of the world, in one file."""
    return countries_text([_drafted(iso)[0] for iso in dict.fromkeys(isos)])


def draft_country(iso: str, qid: str = "") -> str:
    """Draft the entry of a country, from the table of the world, with one more item of it where one is named."""
    entry, added = _drafted(iso, qid)
    doubt = (
        f"# The table has {', '.join(whole_world()[iso].qids)}; {qid} belongs here where it is one more, as of a "
        "historic state.\n"
    )
    return (doubt if added else "") + countries_text([entry])


def _drafted(iso: str, qid: str = "") -> tuple[Country, bool]:
    """Give the entry of a country that is not there already, and whether the item was added to it."""
    for known in filter(None, (by_qid().get(qid), countries().get(iso))):
        message = f"{qid or iso} is there already, as {known.name} with {', '.join(known.qids)}"
        raise UsageError(message, hint=f"To change it, such as to add {qid or 'an item'}, give its whole entry anew.")
    entry = whole_world()[iso]
    added = [qid] if qid and qid not in entry.qids else []
    return entry.model_copy(update={"qids": (*entry.qids, *added)}), bool(added)


def name_in_graph(qid: str, graph: Path) -> str:
    """Look up what a graph calls an item."""
    label = _look_up(graph, [int(qid[1:])]).labels.get(int(qid[1:]))
    if label is None:
        raise UsageError(f"the graph has no label for {qid}", where=str(graph), hint="Give its name with --name.")
    return label


def draft_concept(concept: str, roots: Sequence[str], graph: Path, *, hops: int = 3) -> str:
    """Draft a root config with the labels that a graph has; a root that it does not mention is an error."""
    numbers = {qid: int(qid[1:]) for qid in dict.fromkeys(roots)}
    described = _look_up(graph, list(numbers.values()))
    missing = [qid for qid, number in numbers.items() if described.graph.find(number) is None]
    if missing:
        raise UsageError(
            f"the graph never mentions {', '.join(missing)}", where=str(graph), hint="Check the QIDs, or ingest a dump."
        )
    lines = [
        "# Say here where its roots come from.",
        f"concept: {_scalar(concept)}",
        "# description: what belongs to it, in a sentence or two, for the judge",
        f"hops: {hops}",
        "roots:",
    ]
    for qid, number in numbers.items():
        label = described.labels.get(number)
        note = "" if label is not None else "  # the graph has no label for it: write its name"
        lines.append(f"  - {{qid: {qid}, label: {qid if label is None else _scalar(label, flow=True)}}}{note}")
    lines += ["countries: all  # or ISO codes in brackets, such as [BR, IN]", "languages: [en]"]
    text = "\n".join(lines) + "\n"
    validate(parse_yaml(text, name="the draft"), Concept)
    return text


def _scalar(text: str, *, flow: bool = False) -> str:
    """Write text as a YAML scalar, in quotes where a reader could take it for something else."""
    written = yaml.safe_dump([text] if flow else text, default_flow_style=flow, allow_unicode=True, width=10_000)
    return written.strip()[1:-1] if flow else written.removesuffix("...\n").strip()
