/* The tree as a graph of branches, so that rooting elsewhere is a walk through the graph. In the Newick text that the drawing
   library reads, a vertex is called b<branch above it>_<its own number>. */
window.vaiphyGraph = function (data) {
  "use strict";
  const nTaxa = data.taxa.length;
  const branches = new Map(data.branches.map((b) => [b.id, b]));
  const around = new Map();
  for (const b of data.branches) {
    for (const [from, to] of [[b.id, b.to], [b.to, b.id]]) {
      if (!around.has(from)) around.set(from, []);
      around.get(from).push([to, b.id]);
    }
  }

  function newick(vertex, from, length, collapsed) {
    const below = collapsed.has(from.branch) ? [] : around.get(vertex).filter(([to]) => to !== from.vertex);
    const text = below.map(([to, branch]) => newick(to, { vertex: vertex, branch: branch }, branches.get(branch).length, collapsed));
    const inside = vertex < nTaxa || !text.length ? "" : "(" + text.join(",") + ")";
    return inside + "b" + from.branch + "_" + vertex + ":" + Math.max(length || 0, 0).toFixed(9);
  }

  function drawn(root, collapsed) {
    if (root.vertex !== undefined) {
      const parts = around.get(root.vertex).map(([to, b]) => newick(to, { vertex: root.vertex, branch: b }, branches.get(b).length, collapsed));
      return "(" + parts.join(",") + ");";
    }
    const b = branches.get(root.branch), half = (b.length || 0) / 2;
    return "(" + newick(b.id, { vertex: b.to, branch: b.id }, half, collapsed) + "," + newick(b.to, { vertex: b.id, branch: b.id }, half, collapsed) + ");";
  }

  /* Taxa behind a branch, seen from the root as it is now. */
  function behind(vertex, branch) {
    const found = [], stack = [[vertex, branch]];
    while (stack.length) {
      const [here, from] = stack.pop();
      if (here < nTaxa) found.push(here);
      for (const [to, b] of around.get(here)) if (b !== from) stack.push([to, b]);
    }
    return found.sort((a, b) => a - b);
  }

  function quoted(name) {
    return /^[A-Za-z0-9_.|-]+$/.test(name) ? name : "'" + name.replace(/'/g, "''") + "'";
  }

  /* The tree as it is rooted now, with all taxa, lengths and supports. */
  function exported(root) {
    const text = (vertex, from, length) => {
      const below = around.get(vertex).filter(([to]) => to !== from.vertex).map(([to, b]) => text(to, { vertex: vertex, branch: b }, branches.get(b).length));
      const support = branches.get(from.branch).support;
      const own = vertex < nTaxa ? quoted(data.taxa[vertex]) : support === null ? "" : support.toFixed(4);
      return (below.length ? "(" + below.join(",") + ")" : "") + own + (length === null ? "" : ":" + length.toExponential(6));
    };
    if (root.vertex !== undefined) {
      return "(" + around.get(root.vertex).map(([to, b]) => text(to, { vertex: root.vertex, branch: b }, branches.get(b).length)).join(",") + ");";
    }
    const b = branches.get(root.branch), half = b.length === null ? null : b.length / 2;
    return "(" + text(b.id, { vertex: b.to, branch: b.id }, half) + "," + text(b.to, { vertex: b.id, branch: b.id }, half) + ");";
  }

  return { branches: branches, drawn: drawn, exported: exported, behind: behind };
};
