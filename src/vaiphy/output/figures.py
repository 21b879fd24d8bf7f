"""Figures of the method: the JC sampler's densities (the paper's Figure 1) and a trace of SLANTIS (its Figures 2 and 4 to 7)."""

from collections.abc import Sequence
from math import ceil, exp
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vaiphy.branches import jc_sampler
from vaiphy.topology.slantis import SlantisLaw, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Pair = tuple[int, int]
GREEN, BLUE, ORANGE, GRAY = "#339e33", "#2079b2", "#fe7d21", "#7f7f7f"


def jc_sampler_figure(
    n_sites: int = 2000,
    changes: Sequence[float] = (25, 100, 200, 400, 600, 800, 1000),
    n_samples: int = 5000,
    *,
    rng: np.random.Generator,
) -> "Figure":
    """Branch lengths drawn by the JC sampler for several expected numbers of changed sites, with their exact densities."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 3.6), layout="constrained")
    axes = figure.subplots()
    colours = colormaps["viridis"](np.linspace(0.0, 0.9, len(changes)))
    for changed, colour in zip(changes, colours):
        lengths, _ = jc_sampler.sample(np.full(n_samples, n_sites - changed), changed, rng)
        axes.hist(lengths, bins=40, density=True, color=colour, alpha=0.45)
        grid = np.linspace(max(1e-9, 0.9 * lengths.min()), 1.1 * lengths.max(), 400)
        density = np.exp(jc_sampler.log_density(grid, n_sites - changed, changed))
        axes.plot(grid, density, color=colour, label=f"{changed:g}")
    axes.set_xlabel("branch length b (expected substitutions per site)")
    axes.set_ylabel("density (logarithmic)")
    axes.set_yscale("log")
    axes.set_ylim(0.1, None)
    axes.set_title(f"JC sampler, M = {n_sites} sites")
    axes.legend(title="changed sites", frameon=False)
    return figure


def slantis_figure(log_weights: NDArray[np.float64] | None = None, *, rng: np.random.Generator) -> "Figure":
    """One draw of SLANTIS on a small graph, a panel for each trial.

    Solid lines are the current tree tau, bold green ones its accepted edges; blue is the edge under trial, orange the
    alternative it is weighed against. After a rejection of an edge of tau, the next panel shows its replacement in
    its place.
    """
    from matplotlib.figure import Figure

    if log_weights is None:
        log_weights = example_weights(rng)
    law = SlantisLaw(log_weights)
    parents, trials = law.trace(rng)
    tree = {_pair(v, p) for v, p in enumerate(parents.tolist()) if p >= 0}
    columns = 4
    rows = ceil((len(trials) + 1) / columns)
    figure = Figure(figsize=(2.6 * columns, 2.7 * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False).ravel()
    angles = np.pi / 2 + 2 * np.pi * np.arange(law.n_vertices) / law.n_vertices
    places = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    tau, accepted = first_tree(law), set[Pair]()
    for axes, trial in zip(panels, trials):
        _draw(axes, places, tau, accepted, trial)
        axes.set_title(_caption(trial, log_weights), fontsize=8)
        if trial.accepted:
            accepted.add(trial.edge)
        if trial.other is not None and trial.accepted != trial.in_tree:
            old, new = (trial.edge, trial.other) if trial.in_tree else (trial.other, trial.edge)
            tau = (tau - {old}) | {new}
    _draw(panels[len(trials)], places, tree, tree, None)
    panels[len(trials)].set_title(f"the tree\nlog-density {law.log_density(parents[None])[0]:.3f}", fontsize=8)
    for axes in panels[len(trials) + 1 :]:
        axes.set_axis_off()
    return figure


def example_weights(rng: np.random.Generator, n_vertices: int = 5) -> NDArray[np.float64]:
    """Log-weights of a small complete graph, close enough to each other for every kind of trial to occur."""
    weights = np.triu(rng.normal(0.0, 1.0, size=(n_vertices, n_vertices)), 1)
    return weights + weights.T


def first_tree(law: SlantisLaw) -> set[Pair]:
    """The maximum spanning tree that tau starts from, by Kruskal's algorithm."""
    n = law.n_vertices
    pairs = sorted(((i, j) for i in range(n) for j in range(i + 1, n)), key=lambda e: -law.log_weights[e])
    group = list(range(n))
    tree = set()
    for i, j in pairs:
        if group[i] != group[j]:
            tree.add((i, j))
            group = [group[i] if g == group[j] else g for g in group]
    return tree


def _draw(axes: "Axes", places: NDArray[np.float64], tau: set[Pair], accepted: set[Pair], trial: Trial | None) -> None:
    n = len(places)
    for i in range(n):
        for j in range(i + 1, n):
            edge = (i, j)
            style: dict[str, Any] = {"color": GRAY, "linewidth": 0.6, "linestyle": ":"}
            if edge in tau:
                style = {"color": "black", "linewidth": 1.4, "linestyle": "-"}
            if edge in accepted:
                style = {"color": GREEN, "linewidth": 3.0, "linestyle": "-"}
            if trial is not None and edge in (trial.edge, trial.other):
                colour = BLUE if edge == trial.edge else ORANGE
                style = {"color": colour, "linewidth": 2.2, "linestyle": "-" if edge in tau else "--"}
            axes.plot(places[[i, j], 0], places[[i, j], 1], zorder=1, **style)
    axes.scatter(places[:, 0], places[:, 1], s=150, color="white", edgecolor="black", zorder=2)
    for vertex, (x, y) in enumerate(places.tolist()):
        axes.text(x, y, str(vertex + 1), ha="center", va="center", fontsize=8, zorder=3)
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.margins(0.15)


def _caption(trial: Trial, log_weights: NDArray[np.float64]) -> str:
    name = "{}–{}".format(*(v + 1 for v in trial.edge))
    where = "in τ" if trial.in_tree else "not in τ"
    outcome = "accepted" if trial.accepted else "rejected"
    if trial.other is None:
        return f"e = {name} ({where})\nforced: {outcome}"
    other = "{}–{}".format(*(v + 1 for v in trial.other))
    r = 1.0 / (1.0 + exp(log_weights[trial.other] - log_weights[trial.edge]))
    symbol = "e*" if trial.in_tree else "c"
    return f"e = {name} ({where}), {symbol} = {other}\nr = {r:.2f}: {outcome}"


def _pair(i: int, j: int) -> Pair:
    return (i, j) if i < j else (j, i)
