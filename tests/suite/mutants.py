"""Mutants of the package: one small change in one line of a module that the tests should notice.

A mutant replaces one expression or one statement: another comparison, another operator, a condition turned
around, a number one higher, a result left out, a call or an assignment left out. Texts, types and docstrings
stay, since a change of words in a message is no change of what the program does.
"""

from __future__ import annotations

import ast
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent.parent
#: The parts of the program whose tests are tried, by name: folders and modules.
AREAS = {
    "rules": ["rules"],
    "notation": ["notation"],
    "transform": ["transform"],
    "checker": ["validation"],
    "planning": ["launch/planning"],
    "job state": ["launch/supervise/job_state.py"],
    "verdict": ["launch/cluster/verdict.py"],
    "protocol": ["launch/protocol/states.py", "launch/protocol/session.py"],
    "inference": [
        "explain/inference.py",
        "explain/candidates.py",
        "explain/verdicts.py",
        "explain/states.py",
    ],
    "doctor": ["doctor"],
}
_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
_OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}


@dataclass(frozen=True)
class Mutant:
    """A change of a module: ``new`` stands for the text from ``start`` to ``end`` (offsets in bytes)."""

    area: str
    #: Path from the root of the repository.
    path: str
    line: int
    start: int
    end: int
    new: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def described(self, source: bytes) -> str:
        old = " ".join(source[self.start : self.end].decode().split())
        return f"{self.path}:{self.line}: {old} -> {' '.join(self.new.split())}"


def chosen(seed: int, number: int) -> list[Mutant]:
    """Return ``number`` mutants, the same number of each area, on lines chosen at random."""
    order = random.Random(seed)  # noqa: S311
    found: list[Mutant] = []
    for area in AREAS:
        every = [mutant for path in _modules(area) for mutant in mutants(area, path)]
        found += order.sample(every, min(number // len(AREAS), len(every)))
    return found


def _modules(area: str) -> list[Path]:
    places = [ROOT / "hccl_tools" / place for place in AREAS[area]]
    return sorted(path for place in places for path in ([place] if place.suffix else place.rglob("*.py")))


def mutants(area: str, path: Path) -> Iterator[Mutant]:
    """Yield all mutants of a module."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node, new in _changes(ast.parse(source)):
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
        yield Mutant(area, str(path.relative_to(ROOT)), node.lineno, start, end, new)


def _changes(tree: ast.Module) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield a node of a function's body and the text that replaces it."""
    for function in _functions(tree):
        for statement in function.body:
            for node in _walked(statement):
                if isinstance(node, ast.expr):
                    for changed in _other_expressions(node):
                        yield node, f"({ast.unparse(ast.fix_missing_locations(changed))})"
                elif isinstance(node, ast.stmt) and (text := _other_statement(node)):
                    yield node, text


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            yield from _functions(node)


def _walked(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and what is in it, but for texts, types and what only type checkers read."""
    if isinstance(node, (ast.JoinedStr, ast.Constant)) and not _is_number(node):
        return
    if isinstance(node, ast.Raise) or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walked(child)


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, float))


def _other_expressions(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.Compare):
        for place, operator in enumerate(node.ops):
            changed = [*node.ops[:place], _COMPARISONS[type(operator)](), *node.ops[place + 1 :]]
            yield ast.Compare(node.left, changed, node.comparators)
    elif isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
        yield node.values[0]
        yield node.values[-1]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        yield ast.BinOp(node.left, _OPERATORS[type(node.op)](), node.right)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield ast.Constant(not node.value)
        elif isinstance(node.value, (int, float)):
            yield ast.Constant(node.value + 1)


def _other_statement(node: ast.stmt) -> str:
    """Return the text that replaces a statement, or an empty text for one that stays."""
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        return "return None"
    if isinstance(node, (ast.AugAssign, ast.Expr)) and not isinstance(
        getattr(node, "value", None), (ast.Constant, ast.Yield, ast.YieldFrom)
    ):
        return "pass"
    if isinstance(node, ast.Expr) and isinstance(node.value, (ast.Yield, ast.YieldFrom)):
        return "yield from ()"
    if isinstance(node, ast.Continue):
        return "break"
    if isinstance(node, ast.Break):
        return "continue"
    return ""


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None
