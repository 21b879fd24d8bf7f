"""What the converters of trees share: a tree built from its leaves upwards, and libraries that may not be there."""

from collections.abc import Callable, Sequence
from importlib import import_module
from math import isnan
from typing import Any, TypeVar

from vaiphy.trees.tree import Tree

Node = TypeVar("Node")


def library(module: str, package: str) -> Any:
    """A library that is only needed here; the error says how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        if error.name is not None and error.name.split(".")[0] != module.split(".")[0]:
            raise  # it is there, but lacks something itself: its own message says what
        raise ImportError(f"this conversion needs {package}; install it with: pip install {package}", name=module) from None


def built(tree: Tree, node: Callable[[int, Sequence[Node]], Node]) -> Node:
    """The root of a copy of the tree; `node(vertex, children)` makes one vertex of it."""
    made: dict[int, Node] = {}
    for vertex in tree.postorder.tolist():
        made[vertex] = node(vertex, [made.pop(child) for child in tree.children[vertex]])
    return made[tree.root]


def length_of(tree: Tree, vertex: int) -> float | None:
    """The length of the branch above a vertex; None at the root and where it is unknown."""
    value = float(tree.length[vertex])
    return None if vertex == tree.root or isnan(value) else value


def support_of(tree: Tree, vertex: int) -> float | None:
    """The support of the branch above a vertex, None if it has none."""
    value = float("nan") if tree.support is None else float(tree.support[vertex])
    return None if isnan(value) else value
