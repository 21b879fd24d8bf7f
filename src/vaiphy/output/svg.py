"""Trees and charts as SVG text. Every word that comes from outside is escaped; there are no scripts in them."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from html import escape
from math import floor, isfinite, log10

import numpy as np
from numpy.typing import NDArray

from vaiphy.formats.names import visible
from vaiphy.output.drawing import positions
from vaiphy.trees.tree import Split, Tree

#: Colours: the page's own, which follow its light or dark scheme, and what they are in a drawing that stands alone.
INK, FAINT, STRONG = "var(--ink, #22313f)", "var(--muted, #5c6b77)", "var(--strong, #b3541e)"
SERIES = (INK, STRONG, *(f"var(--series-{k}, {c})" for k, c in enumerate(("#2b7a78", "#7a4e9d", "#8a6d1d", "#5c5c5c"), 3)))
#: Support from which a colour holds; the same colours and limits as in the page's own tree.
SUPPORT_COLOURS = ((0.95, "var(--high, #1b5e9e)"), (0.75, "var(--middle, #3f7d20)"), (0.0, "var(--low, #b3541e)"))


def support_colour(support: float) -> str:
    """The colour of a support."""
    return next((colour for limit, colour in SUPPORT_COLOURS if support >= limit), INK)


def phylogram(tree: Tree, width: int = 900, row: int = 16) -> str:
    """The tree drawn to scale with names and supports in per cent."""
    across, down = positions(tree)
    names = max(len(name) for name in tree.taxa)
    room = width - 30 - min(7 * names, width // 2)
    deepest = max(across) or 1.0
    x = [10 + value / deepest * room for value in across]
    y = [row * (value + 1) for value in down]
    height = row * (tree.n_taxa + 3)
    parts = _branches(tree, x, y, ())
    for v in range(tree.n_taxa):
        parts.append(_text(x[v] + 5, y[v] + 4, tree.taxa[v], 12))
    for v in range(tree.n_taxa, tree.n_vertices):
        if tree.support is not None and np.isfinite(tree.support[v]):
            label, colour = f"{100 * tree.support[v]:.0f}", support_colour(float(tree.support[v]))
            fits = x[v] - x[tree.parent[v]] >= 6 * len(label) + 4  # else behind the vertex and not above its branch
            parts.append(
                _text(x[v] - 3, y[v] - 3, label, 9, "end", colour) if fits else _text(x[v] + 3, y[v] + 3, label, 9, fill=colour)
            )
    unit = nice_step(deepest)
    bottom = row * (tree.n_taxa + 1.5)
    length = unit / deepest * room
    if not np.isnan(np.delete(tree.length, tree.root)).all():
        parts.append(
            f'<path d="M10 {bottom:.1f}h{length:.1f}" stroke="{INK}" fill="none"/>'
            + _text(10, bottom + 14, f"{unit:g} substitution{'' if unit == 1 else 's'} per site", 11)
        )
    return _svg(width, height, "consensus tree", parts)


def cladogram(tree: Tree, known: Collection[Split], width: int = 280, labels: bool = True) -> str:
    """A topology without lengths; branches that are not among `known` stand out."""
    row = 12 if labels else max(1.0, 300 / tree.n_taxa)
    _, down = positions(tree)
    height_above = [0] * tree.n_vertices
    for v in tree.postorder.tolist():
        height_above[v] = max((height_above[c] + 1 for c in tree.children[v]), default=0)
    deepest = height_above[tree.root]
    names = [name if len(name) <= 18 else name[:9] + "…" + name[-8:] for name in tree.taxa]
    room = width - (min(12 + 6 * max(map(len, names)), width // 2) if labels else 10)
    x = [5 + (deepest - h) / deepest * room for h in height_above]
    y = [row * (value + 1) for value in down]
    parts = _branches(
        tree, x, y, [v for v, s in enumerate(tree.splits) if s not in known and v >= tree.n_taxa and v != tree.root]
    )
    if labels:
        for v in range(tree.n_taxa):
            parts.append(_text(x[v] + 3, y[v] + 3, names[v], 9))
    return _svg(width, row * (tree.n_taxa + 1), "topology", parts)


def line_chart(series: Mapping[str, Sequence[tuple[float, float]]], across: str, up: str, width: int = 420) -> str:
    """Curves of points with finite values, one colour each."""
    points = [p for curve in series.values() for p in curve if isfinite(p[1])]
    if not points:
        return ""
    legend, room = _legend(series, width) if len(series) > 1 else ([], 0)
    frame = _Frame(
        [p[0] for p in points], [p[1] for p in points], width, across, up, room, all(p[0] == int(p[0]) for p in points)
    )
    parts = frame.axes() + legend
    for k, curve in enumerate(series.values()):
        colour = SERIES[k % len(SERIES)]
        good = [p for p in curve if isfinite(p[1])]
        path = "".join(f"{'L' if i else 'M'}{frame.x(a):.1f} {frame.y(b):.1f}" for i, (a, b) in enumerate(good))
        parts.append(f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        if len(good) == 1:
            parts.append(f'<circle cx="{frame.x(good[0][0]):.1f}" cy="{frame.y(good[0][1]):.1f}" r="3" fill="{colour}"/>')
    return _svg(width, frame.height, f"{up} by {across}", parts)


def scatter(points: Sequence[tuple[float, float]], across: str, up: str, diagonal: bool = False, width: int = 420) -> str:
    """Dots; both axes from 0 to 1 with the diagonal if they are probabilities."""
    if not points:
        return ""
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    frame = _Frame([0, 1] if diagonal else xs, [0, 1] if diagonal else ys, width, across, up)
    parts = frame.axes()
    if diagonal:
        parts.append(
            f'<path d="M{frame.x(0):.1f} {frame.y(0):.1f}L{frame.x(1):.1f} {frame.y(1):.1f}" stroke="{FAINT}" fill="none"/>'
        )
    parts += [
        f'<circle cx="{frame.x(a):.1f}" cy="{frame.y(b):.1f}" r="2.5" fill="{STRONG}" fill-opacity="0.6"/>' for a, b in points
    ]
    return _svg(width, frame.height, f"{up} by {across}", parts)


def estimates(values: Sequence[float], errors: Sequence[float], across: str, up: str, width: int = 420) -> str:
    """Numbered estimates as dots with bars of two standard errors to either side."""
    errors = [e if isfinite(e) else 0.0 for e in errors] or [0.0] * len(values)
    rows = [(k + 1, value, 2 * error) for k, (value, error) in enumerate(zip(values, errors)) if isfinite(value)]
    if not rows:
        return ""
    ends = [value + side * error for _, value, error in rows for side in (-1, 1)]
    frame = _Frame([0.5, len(values) + 0.5], ends, width, across, up, whole=True)
    parts = frame.axes()
    for k, value, error in rows:
        x, low, high = frame.x(k), frame.y(value - error), frame.y(value + error)
        if error > 0:
            bar = f"M{x:.1f} {low:.1f}V{high:.1f}M{x - 4:.1f} {low:.1f}h8M{x - 4:.1f} {high:.1f}h8"
            parts.append(f'<path d="{bar}" stroke="{STRONG}" fill="none"/>')
        parts.append(f'<circle cx="{x:.1f}" cy="{frame.y(value):.1f}" r="3.5" fill="{STRONG}"/>')
    return _svg(width, frame.height, f"{up} by {across}", parts)


def histogram(
    values: NDArray[np.float64],
    across: str,
    up: str,
    bins: int = 40,
    width: int = 420,
    around: tuple[float, float] | None = None,
) -> str:
    """Counts of values in equal bins, over the range of the values or `around`, whichever is wider."""
    values = values[np.isfinite(values)]
    if not len(values):
        return ""
    ends = (
        (float(values.min()), float(values.max()))
        if around is None
        else (min(float(values.min()), around[0]), max(float(values.max()), around[1]))
    )
    counts, edges = np.histogram(values, bins=bins, range=ends)
    frame = _Frame(edges.tolist(), [0.0, float(counts.max())], width, across, up)
    parts = [
        f'<rect x="{frame.x(a):.1f}" y="{frame.y(c):.1f}" width="{max(0.5, frame.x(b) - frame.x(a) - 0.5):.1f}" '
        f'height="{frame.y(0) - frame.y(c):.1f}" fill="{INK}" fill-opacity="0.75"/>'
        for a, b, c in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist())
        if c
    ]
    return _svg(width, frame.height, f"{up} by {across}", frame.axes() + parts)


def density(
    points: NDArray[np.float64],
    height: NDArray[np.float64],
    mean: float,
    interval: tuple[float, float],
    title: str,
    width: int = 240,
) -> str:
    """A small density without a vertical axis: the interval shaded, a line at the mean, three or four ticks."""
    tall, side, base = 104, 12, 84
    if len(points) < 2:  # all values are the same
        parts = [f'<path d="M{width / 2} 10V{base}" stroke="{STRONG}" stroke-width="2"/>']
        return _svg(width, tall, title, [*parts, _text(width / 2, base + 14, f"{mean:.4g}", 10, "middle")])
    low, high = float(points[0]), float(points[-1])
    x = side + (points - low) / (high - low) * (width - 2 * side)
    y = base - height / height.max() * (base - 10)
    inside = (points >= interval[0]) & (points <= interval[1])
    curve = "".join(f"{'L' if i else 'M'}{a:.1f} {b:.1f}" for i, (a, b) in enumerate(zip(x.tolist(), y.tolist())))
    middle = float(np.interp(mean, points, x))
    parts = []
    if inside.any():
        shaded = "".join(f"L{a:.1f} {b:.1f}" for a, b in zip(x[inside].tolist(), y[inside].tolist()))
        parts.append(f'<path d="M{x[inside][0]:.1f} {base}{shaded}V{base}Z" fill="{STRONG}" fill-opacity="0.25"/>')
    parts.append(f'<path d="{curve}" fill="none" stroke="{INK}" stroke-width="1.4"/>')
    parts.append(f'<path d="M{middle:.1f} {float(np.interp(mean, points, y)):.1f}V{base}" stroke="{STRONG}" stroke-width="1.6"/>')
    parts.append(f'<path d="M{side} {base}H{width - side}" stroke="{FAINT}" fill="none"/>')
    for value, label in _ticks(low, high, 3):
        place = side + (value - low) / (high - low) * (width - 2 * side)
        parts.append(f'<path d="M{place:.1f} {base}v3" stroke="{FAINT}"/>' + _text(place, base + 14, label, 10, "middle"))
    return _svg(width, tall, title, parts)


def nice_step(extent: float, n_steps: int = 5) -> float:
    """1, 2 or 5 times a power of ten, so that about `n_steps` of them, and no more, fit into `extent`."""
    if not extent > 0:
        return 1.0
    power = 10.0 ** floor(log10(extent / n_steps))
    return next((power * k for k in (1, 2, 5) if power * k * n_steps >= extent * 0.999), power * 10)


class _Frame:
    """Axes of a chart, from data to pixels."""

    def __init__(
        self, xs: Sequence[float], ys: Sequence[float], width: int, across: str, up: str, room: int = 0, whole: bool = False
    ) -> None:
        self.width, self.height, self.across, self.up, self.whole = width, round(width * 0.6) + room, across, up, whole
        self.left, self.right, self.top, self.bottom = 70, 10, 22 + room, 36
        self.x0, self.x1 = self._range(xs)
        self.y0, self.y1 = self._range(ys)

    @staticmethod
    def _range(values: Sequence[float]) -> tuple[float, float]:
        low, high = min(values), max(values)
        return (low, high) if high > low else (low - 0.5, high + 0.5)

    def x(self, value: float) -> float:
        return self.left + (value - self.x0) / (self.x1 - self.x0) * (self.width - self.left - self.right)

    def y(self, value: float) -> float:
        return self.height - self.bottom - (value - self.y0) / (self.y1 - self.y0) * (self.height - self.top - self.bottom)

    def axes(self) -> list[str]:
        base = self.height - self.bottom
        parts = [f'<path d="M{self.left} {self.top}V{base}H{self.width - self.right}" fill="none" stroke="{FAINT}"/>']
        for value, label in _ticks(self.x0, self.x1, whole=self.whole):
            parts.append(_text(self.x(value), base + 14, label, 10, "middle"))
        for value, label in _ticks(self.y0, self.y1):
            parts.append(_text(self.left - 4, self.y(value) + 3, label, 10, "end"))
        middle = (self.left + self.width - self.right) / 2
        parts.append(_text(middle, self.height - 6, self.across, 11, "middle"))
        parts.append(_text(4, self.top - 10, self.up, 11))
        return parts


def _ticks(low: float, high: float, n_steps: int = 5, whole: bool = False) -> list[tuple[float, str]]:
    """Places and words of the ticks of an axis, with as many decimals as it takes to tell them apart."""
    step = max(1.0, nice_step(high - low, n_steps)) if whole else nice_step(high - low, n_steps)
    decimals = max(0, -floor(log10(step) + 1e-9))
    first = np.ceil(low / step - 1e-9) * step
    places = [float(round(first + k * step, 12)) for k in range(int((high - first) / step + 1e-9) + 1)]
    return [
        (place, f"{place:.{decimals}f}".replace("-0.0", "0.0") if place == 0 else f"{place:.{decimals}f}") for place in places
    ]


def _legend(names: Iterable[str], width: int) -> tuple[list[str], int]:
    """Coloured names in rows above a chart, and the height of the rows."""
    parts, x, y = [], 8.0, 14.0
    for k, name in enumerate(names):
        wide = 24 + 6.2 * len(name)
        if x > 8 and x + wide > width:
            x, y = 8.0, y + 15
        colour = SERIES[k % len(SERIES)]
        parts.append(f'<path d="M{x:.1f} {y - 4:.1f}h14" stroke="{colour}" stroke-width="2.5"/>')
        parts.append(_text(x + 18, y, name, 11))
        x += wide
    return parts, round(y + 4)


def _branches(tree: Tree, x: Sequence[float], y: Sequence[float], strong: Collection[int]) -> list[str]:
    """Horizontal branches and vertical bars as two paths, and the branches that stand out."""
    marked = set(strong)
    plain: list[str] = []
    bold: list[str] = []
    for v in range(tree.n_vertices):
        above = int(tree.parent[v])
        if above >= 0:
            (bold if v in marked else plain).append(f"M{x[above]:.1f} {y[v]:.1f}H{x[v]:.1f}")
        if tree.children[v]:
            ends = [y[c] for c in tree.children[v]]
            plain.append(f"M{x[v]:.1f} {min(ends):.1f}V{max(ends):.1f}")
    parts = [f'<path d="{"".join(plain)}" fill="none" stroke="{INK}" stroke-width="1.2" stroke-linecap="square"/>']
    if bold:
        parts.append(f'<path d="{"".join(bold)}" fill="none" stroke="{STRONG}" stroke-width="2.4"/>')
    return parts


def _text(x: float, y: float, label: str, size: int, anchor: str = "start", fill: str = INK) -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}">{escape(visible(label))}</text>'
    )


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" aria-label="{escape(title)}" font-family="system-ui, sans-serif">'
        + "".join(parts)
        + "</svg>"
    )
