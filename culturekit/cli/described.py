"""What commands say of themselves, read from their modules without importing these: lists of commands stay quick."""

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path

__all__ = ["described_at"]


def described_at(place: str) -> str | None:
    """Give the docstring or the help of what `module:name` names; None where only importing it would tell."""
    module, _, name = place.partition(":")
    tree = parsed(module) if module else None
    return None if tree is None else described(tree, name)


@cache
def parsed(module: str) -> ast.Module | None:
    """Parse a module, once for all commands that it has; None where there is no such file."""
    found = find_spec(module)
    if found is None or found.origin is None:
        return None
    return ast.parse(Path(found.origin).read_text(encoding="utf-8"))


def described(tree: ast.Module, name: str) -> str | None:
    """Find a function, a Typer or a StageCommand by its name."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_docstring(node)
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == name for each in node.targets
        ):
            return described_by(tree, node.value)
    return None


def described_by(tree: ast.Module, value: ast.expr) -> str | None:
    """Give the help that a Typer is made with, or the docstring of the function that a StageCommand is made of."""
    if not isinstance(value, ast.Call):
        return None
    for given in value.keywords:
        if given.arg == "help" and isinstance(given.value, ast.Constant):
            return str(given.value.value)
    first = value.args[0] if value.args else None
    return described(tree, first.id) if isinstance(first, ast.Name) else None
