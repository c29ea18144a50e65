"""Checking root configs: every mistake and everything odd, in one go."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from culturekit.errors import ConfigError, Problem, UsageError
from culturekit.kg.concepts import Concept, concept_path
from culturekit.kg.dump.redirects import final_target
from culturekit.kg.rootcheck.findings import Finding, Named, finding, named_classes
from culturekit.kg.rootcheck.graph_checks import check_against, look_up
from culturekit.storage.yaml_model import validate
from culturekit.storage.yaml_source import YamlSource, read_yaml

__all__ = ["validate_roots"]


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
