"""YAML as its author wrote it: every scalar stays text, every value knows its line.

PyYAML's own rules turn the country `NO` into false and leave `1e3` a string. Here nothing is guessed:
the model that reads the value decides what it is. Only an unquoted `null`, `~` or nothing is null, and
an unquoted `.inf` is `inf`, which every reader of numbers understands.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import yaml

from culturekit.errors import ConfigError, Problem, UsageError

__all__ = ["KeyPath", "Place", "YamlSource", "YamlValue", "dotted", "parse_yaml", "read_yaml"]

KeyPath: TypeAlias = tuple[str | int, ...]
YamlValue: TypeAlias = "str | list[YamlValue] | dict[str, YamlValue] | None"

NULLS = {"", "~", "null", "Null", "NULL"}
INFINITIES = {".inf": "inf", ".Inf": "inf", ".INF": "inf", "-.inf": "-inf", "-.Inf": "-inf", "-.INF": "-inf"}
PLAIN_TAGS = {"tag:yaml.org,2002:str", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"}
QUOTED = re.compile(r"\"[^\"]*\"|'[^']*'")
MEANT = tuple(map(re.compile, (r"([?@`%&*])", r"\S(\{)", r":\s+(\{)[^{}]*\}\s*[^\s,}\]#]", r":\s.*?(:)\s")))
"""What begins something of its own in YAML, and may be meant as it stands; the surest first."""

MAX_BYTES = 5_000_000
MAX_NODES = 200_000
"""Aliases make a few lines stand for billions of nodes; no honest config comes near this."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was written."""

    where: str
    line: int


@dataclass(frozen=True, slots=True)
class YamlSource:
    """A document: its value, the place of each key path, and the mistakes that reading it found."""

    name: str
    value: YamlValue
    places: Mapping[KeyPath, Place]
    problems: tuple[Problem, ...] = ()

    def place(self, path: KeyPath) -> Place:
        """Find the place of a key path, or of the nearest thing around it."""
        for end in range(len(path), -1, -1):
            if path[:end] in self.places:
                return self.places[path[:end]]
        return Place(self.name, 0)


def dotted(path: KeyPath) -> str:
    """Write a key path as people do: `models[0].name`."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def read_yaml(path: Path) -> YamlSource:
    """Read a YAML file that the user, or this package, wrote."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UsageError("too large for a config", where=str(path), expected=f"at most {MAX_BYTES:,} bytes")
        text = path.read_bytes().decode("utf-8")
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError) as error:
        raise UsageError("there is no such YAML file", where=str(path)) from error
    except UnicodeDecodeError as error:
        raise UsageError("not UTF-8 text", where=str(path), found=f"byte {error.start}") from error
    return parse_yaml(text, name=str(path))


def parse_yaml(text: str, *, name: str) -> YamlSource:
    """Read one YAML document from text; `name` stands in every message about it."""
    try:
        node = yaml.compose(text, Loader=yaml.BaseLoader)
        reader = NodeReader(name)
        value = reader.read(node, ()) if node is not None else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = error.problem or error.context or "not YAML"
        line = mark.line + 1 if mark else 0
        raise ConfigError([Problem(f"not YAML: {message}{unquoted(text, line)}", name, line)]) from error
    except yaml.YAMLError as error:
        raise ConfigError([Problem(f"not YAML: {error}", name)]) from error
    except RecursionError as error:
        raise ConfigError([Problem("nested too deeply", name)]) from error
    return YamlSource(name, value, reader.places, tuple(reader.problems))


def unquoted(text: str, line: int) -> str:
    """Say that a value wants quotes, where a line holds what YAML reads otherwise."""
    lines = text.splitlines()
    bare = QUOTED.sub("", lines[line - 1]) if 0 < line <= len(lines) else ""
    found = next(filter(None, (pattern.search(bare) for pattern in MEANT)), None)
    return f'; a value with {found[1]} in it wants quotes: "..."' if found else ""


class NodeReader:
    """Turns composed nodes into plain values and notes where each stood."""

    def __init__(self, name: str) -> None:
        """Start with nothing read."""
        self.name = name
        self.places: dict[KeyPath, Place] = {}
        self.problems: list[Problem] = []
        self.nodes = 0
        self.open: set[int] = set()

    def read(self, node: yaml.Node, path: KeyPath) -> YamlValue:
        """Read a node and everything below it."""
        line = node.start_mark.line + 1
        self.places.setdefault(path, Place(self.name, line))
        self.nodes += 1
        if self.nodes > MAX_NODES or id(node) in self.open:
            raise ConfigError([Problem("aliases make this document endless", self.name, line, dotted(path))])
        if node.tag not in PLAIN_TAGS:
            self.problems.append(Problem(f"tags are not read here, found {node.tag}", self.name, line, dotted(path)))
        self.open.add(id(node))
        value = self.read_content(node, path)
        self.open.discard(id(node))
        return value

    def read_content(self, node: yaml.Node, path: KeyPath) -> YamlValue:
        """Read by kind of node."""
        if isinstance(node, yaml.MappingNode):
            return self.read_mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, (*path, index)) for index, item in enumerate(node.value)]
        text = str(node.value)
        if getattr(node, "style", None) is not None:
            return text
        return None if text in NULLS else INFINITIES.get(text, text)

    def read_mapping(self, node: yaml.MappingNode, path: KeyPath) -> YamlValue:
        """Read a mapping; a key given twice is a mistake, and the first value stands."""
        values: dict[str, YamlValue] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self.problems.append(Problem("a key is a word, not a list or a mapping", self.name, line, dotted(path)))
                continue
            key = str(key_node.value)
            here = (*path, key)
            if key in values:
                first = self.places[here].line
                self.problems.append(Problem(f"given twice, first in line {first}", self.name, line, dotted(here)))
                continue
            self.places[here] = Place(self.name, line)
            values[key] = self.read(value_node, here)
        return values
