"""What a check of root configs can say, and the parts of a config as its author wrote them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal, TypeAlias

from culturekit.errors import Problem
from culturekit.kg.qids import QID
from culturekit.storage.yaml_source import KeyPath, YamlSource, YamlValue, dotted

__all__ = ["Finding", "Named", "Severity", "finding", "named_classes"]

Severity: TypeAlias = Literal["error", "warning"]
"""An error reaches nothing or cannot be run; a warning is worth a look, and the walk copes with it."""


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
