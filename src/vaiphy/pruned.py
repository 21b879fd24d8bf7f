"""Trees of the augmented space made fit for people: vertices that carry no information about the taxa are removed."""

import numpy as np

from vaiphy.tree import Tree


def cleaned(tree: Tree) -> Tree:
    """Internal vertices with no taxa behind them pruned, those of degree two suppressed (their branches are added up).

    Distances between taxa do not change, nor do the names of the vertices that stay. The root is the internal vertex with
    the smallest number that stays, or the first taxon if none does.
    """
    n = tree.n_taxa
    beside: dict[int, dict[int, float]] = {v: {} for v in range(tree.n_vertices)}
    for vertex, above in tree.edges():
        beside[vertex][above] = beside[above][vertex] = float(tree.length[vertex])
    doubtful = list(range(n, tree.n_vertices))
    while doubtful:
        vertex = doubtful.pop()
        around = beside.get(vertex)
        if around is None or vertex < n or len(around) > 2:
            continue
        del beside[vertex]
        for other in around:
            del beside[other][vertex]
        if len(around) == 2:
            (first, one), (second, two) = around.items()
            beside[first][second] = beside[second][first] = one + two
        doubtful.extend(around)  # what stood beside it may dangle now
    stay = sorted(beside)
    number = {v: i for i, v in enumerate(stay)}
    root = stay[n] if len(stay) > n else 0
    parent, length = np.full(len(stay), -1), np.zeros(len(stay))
    reached = [root]
    for vertex in reached:
        for other, branch in sorted(beside[vertex].items()):
            if other != root and parent[number[other]] < 0:
                parent[number[other]], length[number[other]] = number[vertex], branch
                reached.append(other)
    labels = None if tree.labels is None else tuple(tree.labels[v] for v in stay)
    return Tree(tree.taxa, parent, length, labels)
