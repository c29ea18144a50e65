"""Mutants: small changes of a Python file that a test should notice.

Changed are comparisons, arithmetic, `and` and `or`, `not` and minus, bare conditions, numbers by one, True and False
(of default arguments too), `break` and `continue`; left out are whole statements: a return, a raise, a yield, a call.
Untouched are words (docstrings, names, the arguments of a raise and of a logger), annotations and unions of types,
decorators, `strict` of a zip, and what is imported for a type checker only.
"""

import ast
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Mutant", "mutants_of"]

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "/"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitOr: ("|", "&"),
    ast.BitAnd: ("&", "|"),
    ast.MatMult: ("@", "*"),
}
TYPES = {"int", "float", "str", "bytes", "bool", "dict", "list", "set", "tuple", "type", "object"}
LOGGERS = {"logger", "logging", "warnings"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change of one file: its line, the same line changed, and the whole text with the change in it."""

    path: str
    line: int
    within: str
    before: str
    after: str
    text: str

    @property
    def key(self) -> str:
        """Name the change by what stands there, so that lines added elsewhere leave the name as it is."""
        return f"{self.path} {self.within}: {self.before} => {self.after}"


Edit: TypeAlias = tuple[int, int, bytes]
"""First byte, byte after the last, what stands there instead."""


class Changes:
    """Collects the edits of a module, each with the function or class around it."""

    def __init__(self, source: bytes) -> None:
        """Note where each line begins."""
        self.starts = [0]
        for line in source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.source = source
        self.around: list[str] = []
        self.found: list[tuple[str, Edit]] = []

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        """Give the bytes of a node."""
        assert node.end_lineno is not None and node.end_col_offset is not None
        return self.starts[node.lineno - 1] + node.col_offset, self.starts[node.end_lineno - 1] + node.end_col_offset

    def edit(self, start: int, end: int, new: str) -> None:
        """Note an edit."""
        self.found.append((".".join(self.around) or "module", (start, end, new.encode())))

    def between(self, left: ast.expr, right: ast.expr, swap: tuple[str, str]) -> None:
        """Change the operator that stands between two expressions."""
        start, end = self.span(left)[1], self.span(right)[0]
        place = self.source.find(swap[0].encode(), start, end)
        if place >= 0:
            self.edit(place, place + len(swap[0]), swap[1])

    def visit(self, node: ast.AST) -> None:
        """Go on below a node, but not into words, types and declarations; keep account of where it stands."""
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.keyword) and node.arg == "strict"):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            return
        depth = len(self.around)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            self.around.append(node.name)
        if isinstance(node, ast.stmt):
            self.leave_out(node)
        self.change(node)
        if not isinstance(node, ast.Raise) and not is_logged(node):
            for name, value in ast.iter_fields(node):
                if name not in {"annotation", "returns", "decorator_list"}:
                    for below in value if isinstance(value, list) else [value]:
                        if isinstance(below, ast.AST):
                            self.visit(below)
        del self.around[depth:]

    def leave_out(self, node: ast.stmt) -> None:
        """Leave a statement out whose work could be missed."""
        works = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await | ast.Yield | ast.YieldFrom)
        if (works and not is_logged(node)) or isinstance(node, ast.Return | ast.Raise):
            self.edit(*self.span(node), "pass")

    def change(self, node: ast.AST) -> None:
        """Note what a node could be by mistake."""
        match node:
            case ast.Break():
                self.edit(*self.span(node), "continue")
            case ast.Continue():
                self.edit(*self.span(node), "break")
            case ast.Compare():
                for left, kind, right in zip([node.left, *node.comparators], node.ops, node.comparators, strict=False):
                    self.between(left, right, COMPARISONS[type(kind)])
            case ast.BinOp(op=op, left=left, right=right) | ast.AugAssign(op=op, target=left, value=right):
                if type(op) in ARITHMETIC and not is_union(node):
                    self.between(left, right, ARITHMETIC[type(op)])
            case ast.BoolOp():
                swap = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
                for left, right in itertools.pairwise(node.values):
                    self.between(left, right, swap)
            case ast.UnaryOp(op=ast.Not() | ast.USub() as op):
                start, _ = self.span(node)
                self.edit(start, start + (3 if isinstance(op, ast.Not) else 1), "")
            case ast.Constant(value=bool(value)):
                self.edit(*self.span(node), repr(not value))
            case ast.Constant(value=int(value) | float(value)):
                self.edit(*self.span(node), repr(value + 1))
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                if isinstance(test, ast.Name | ast.Attribute | ast.Call):
                    start, end = self.span(test)
                    self.edit(start, end, f"not {self.source[start:end].decode()}")


def is_logged(node: ast.AST) -> bool:
    """Say whether a node only writes into a log."""
    call = node.value if isinstance(node, ast.Expr) else node
    name = call.func.value if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) else None
    return isinstance(name, ast.Name) and name.id in LOGGERS


def is_union(node: ast.AST) -> bool:
    """Say whether a node is types with `|` between them."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
        return False
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return any(name in TYPES or (name[:1].isupper() and not name.isupper()) for name in names)


def mutants_of(path: str, source: bytes) -> Iterator[Mutant]:
    """Give all mutants of a file that Python can read, each once."""
    changes = Changes(source)
    changes.visit(ast.parse(source))
    times: dict[str, int] = {}
    for within, (start, end, new) in changes.found:
        first = source.rfind(b"\n", 0, start) + 1
        last = source.find(b"\n", end)
        before = " ".join(source[first:last].decode().split())
        after = " ".join((source[first:start] + new + source[end:last]).decode().split())
        text = (source[:start] + new + source[end:]).decode()
        try:
            compile(text, path, "exec")
        except SyntaxError:
            continue
        name = f"{within}: {before} => {after}"
        times[name] = times.get(name, 0) + 1
        again = f" ({times[name]})" if times[name] > 1 else ""
        yield Mutant(path, source.count(b"\n", 0, start) + 1, within + again, before, after, text)
