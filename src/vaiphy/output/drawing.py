"""A tree drawn with characters, as in IQ-TREE's reports."""

import numpy as np

from vaiphy.trees.tree import Tree

#: Characters of a drawing; a tree that needs more is not drawn.
MAX_CELLS = 4_000_000


def draw(tree: Tree, width: int = 78) -> str:
    """The tree as text, branches to scale (at least one character each), supports in per cent, two lines a taxon.

    A tree too large for anybody to look at is described in a sentence instead.
    """
    across, down = positions(tree)
    names = [tree.taxa[v] for v in range(tree.n_taxa)]
    room = max(20, width - max(map(len, names)) - 2)
    deepest = max(across) or 1.0
    column = [round(x / deepest * room) for x in across]
    for vertex in tree.postorder[::-1].tolist():  # parents first: every branch is at least two characters long
        above = int(tree.parent[vertex])
        if above >= 0:
            column[vertex] = max(column[vertex], column[above] + 2)
    across_cells, down_cells = max(column) + 1, 2 * tree.n_taxa - 1
    if across_cells * down_cells > MAX_CELLS:
        return f"The tree of {tree.n_taxa:,} taxa is too large to be drawn with characters; a tree viewer draws it from its file."
    grid = [[" "] * across_cells for _ in range(down_cells)]
    row = [round(2 * y) for y in down]
    for vertex in range(tree.n_vertices):
        if tree.parent[vertex] >= 0:
            left = column[int(tree.parent[vertex])]
            for x in range(left, column[vertex]):
                grid[row[vertex]][x] = "-"
            grid[row[vertex]][left] = "+"
        below = tree.children[vertex]
        if below:
            for y in range(min(row[v] for v in below), max(row[v] for v in below) + 1):
                if grid[y][column[vertex]] in " -":
                    grid[y][column[vertex]] = "|"
    # Corners are set again, since a vertical bar may have crossed the start of a branch.
    for vertex in range(tree.n_vertices):
        if tree.parent[vertex] >= 0:
            grid[row[vertex]][column[int(tree.parent[vertex])]] = "+"
    _write_supports(tree, grid, row, column)
    lines = ["".join(cells).rstrip() for cells in grid]
    for taxon in range(tree.n_taxa):
        lines[row[taxon]] += f" {names[taxon]}"
    return "\n".join(lines)


def positions(tree: Tree) -> tuple[list[float], list[float]]:
    """Distance from the root, and place among the taxa (0 to n-1; a vertex between its outermost children)."""
    across, down = [0.0] * tree.n_vertices, [0.0] * tree.n_vertices
    place = 0
    stack = [tree.root]
    order = []
    while stack:
        vertex = stack.pop()
        order.append(vertex)
        length = float(tree.length[vertex])
        if tree.parent[vertex] >= 0:
            across[vertex] = across[int(tree.parent[vertex])] + (length if np.isfinite(length) else 0.0)
        if vertex < tree.n_taxa:
            down[vertex] = float(place)
            place += 1
        stack.extend(reversed(tree.children[vertex]))
    if np.isnan(np.delete(tree.length, tree.root)).all():  # no lengths: one step a branch
        for vertex in order[1:]:
            across[vertex] = across[int(tree.parent[vertex])] + 1.0
    for vertex in reversed(order):
        if tree.children[vertex]:
            inside = [down[v] for v in tree.children[vertex]]
            down[vertex] = (min(inside) + max(inside)) / 2
    return across, down


def _write_supports(tree: Tree, grid: list[list[str]], row: list[int], column: list[int]) -> None:
    """Supports stand to the right of their vertex where there is nothing else."""
    if tree.support is None:
        return
    for vertex in range(tree.n_taxa, tree.n_vertices):
        value = tree.support[vertex]
        if not np.isfinite(value):
            continue
        text = f"{100 * value:.0f}"
        x, y = column[vertex] + 1, row[vertex]
        cells = grid[y][x : x + len(text)]
        if x + len(text) <= len(grid[y]) and all(cell == " " for cell in cells):
            grid[y][x : x + len(text)] = text
        elif column[vertex] - column[int(tree.parent[vertex])] > len(text) + 1:  # or on their branch
            start = column[vertex] - len(text)
            grid[y][start : start + len(text)] = text
