/* The tree of the report. The library lays out and draws; this file knows about splits, rooting, search and the table.
   Names of taxa are only ever set as text. */
(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  document.documentElement.classList.add("scripted");
  const $ = (id) => document.getElementById(id);
  const nTaxa = data.taxa.length;
  const graph = window.vaiphyGraph(data), branches = graph.branches;
  const start = { vertex: data.root };
  const collapsedSize = new Map();
  const view = { root: start, layout: "rectangular", scale: 1, selected: null, inside: new Set(), match: new Set(), collapsed: new Set(), width: 0, height: 0, frame: 0, zoomed: false };

  const branchOf = (node) => parseInt(node.data.name.slice(1).split("_")[0], 10);
  const vertexOf = (node) => parseInt(node.data.name.split("_")[1], 10);
  const isTaxon = (node) => !node.children && vertexOf(node) < nTaxa;
  const isClade = (node) => !node.children && vertexOf(node) >= nTaxa && view.collapsed.has(branchOf(node));
  const level = (support) => (support === null ? "" : support >= 0.95 ? "high" : support >= 0.75 ? "middle" : "low");

  /* Long names are cut in the middle where the screen is narrow; hovering shows them whole. */
  function shown(name) {
    const room = Math.max(16, Math.floor((0.45 * $("viewer").clientWidth) / 6.5));
    return view.layout !== "rectangular" || name.length <= room ? name : name.slice(0, Math.ceil(room / 2)) + "…" + name.slice(1 - Math.floor(room / 2));
  }

  function label(node) {
    if (isTaxon(node)) return shown(data.taxa[vertexOf(node)]);
    if (!isClade(node)) return "";
    const inside = graph.behind(vertexOf(node), branchOf(node));
    return "▸ " + inside.length + " taxa: " + shown(data.taxa[inside[0]]) + ", …";
  }

  function describe(id) {
    const b = branches.get(id);
    const lines = [];
    if (id < nTaxa) lines.push(data.taxa[id]);
    if (b.support !== null) lines.push("support " + b.support.toFixed(4) + (b.sd !== null ? " (sd between runs " + b.sd.toFixed(4) + ")" : ""));
    if (b.length !== null) {
      lines.push("length " + b.length.toPrecision(4) + (b.low !== null ? ", 95 % interval " + b.low.toPrecision(3) + " to " + b.high.toPrecision(3) : ""));
    }
    if (id >= nTaxa && data.names[id]) lines.push("vertices " + data.names[id] + " and " + data.names[b.to]);
    return lines.join("\n");
  }

  function showTip(event, text) {
    const tip = $("tip");
    tip.textContent = text;
    tip.hidden = false;
    tip.style.left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8) + "px";
    tip.style.top = Math.min(event.clientY + 14, window.innerHeight - tip.offsetHeight - 8) + "px";
  }

  function render(size, radius) {
    const radial = view.layout === "radial", mode = radial ? "fixed-step" : "fit-to-size";
    const tree = new phylotree.phylotree(graph.drawn(view.root, view.collapsed));
    tree.render({
      container: "#viewer", width: size[0], height: size[1],
      "is-radial": radial, "is-unrooted": view.layout === "unrooted",
      "left-right-spacing": mode, "top-bottom-spacing": mode,
      "max-radius": radius, "annular-limit": 0, "maximum-per-node-spacing": 1e6, "maximum-per-level-spacing": 1e9,
      "font-size": 12, "show-scale": false, "show-menu": false, selectable: false, collapsible: false,
      brush: false, zoom: false, reroot: false, hide: false, transitions: false,
      "edge-styler": styleEdge, "node-styler": styleNode
    });
    if (radial) {
      // The library subtracts half the first spacing from the second before it scales branches to the radius.
      const spacing = (2 * Math.PI * radius) / nTaxa;
      tree.display.spacing_x(spacing, true);
      tree.display.spacing_y(1000 * spacing, true);
    }
    tree.display.nodeLabel(label);
    return tree;
  }

  function place(size, radius) {
    $("viewer").textContent = "";
    const tree = render(size, radius);
    $("viewer").appendChild(tree.display.show());
    return tree;
  }

  /* `data-drawn` on the viewer says which layout is drawn, and stands only while the drawing is whole. */
  function draw() {
    const viewer = $("viewer");
    delete viewer.dataset.drawn;
    $("viewer").textContent = "";
    view.frame = viewer.clientWidth;
    if (view.frame === 0) return; // not laid out yet: nothing can be measured; drawn as soon as it is
    const radius = Math.max(240, (nTaxa * 13) / (2 * Math.PI)), side = Math.max(1000, 3 * radius);
    const rows = countLeaves();
    const size = view.layout === "unrooted" ? [side, side] : [Math.max(300, viewer.clientWidth - 20), Math.max(120, 17 * rows + 40)];
    let tree = place(size, radius);
    if (view.layout === "rectangular") {
      // The library leaves too much room, or too little, for names: what is left over is given to the branches.
      for (let k = 0; k < 3; k++) {
        const spare = viewer.clientWidth - 20 - viewer.querySelector(".phylotree-container").getBBox().width;
        if (Math.abs(spare) < 10) break;
        size[0] = Math.max(200, size[0] + spare);
        tree = place(size, radius);
      }
      drawScale(viewer.querySelector("svg"), tree);
    }
    hideCrowded();
    const svg = viewer.querySelector("svg");
    const box = svg.querySelector(".phylotree-container").getBBox();
    const shift = svg.querySelector(".phylotree-container").transform.baseVal.consolidate().matrix;
    const left = box.x + shift.e - 8, top = box.y + shift.f - 8;
    view.width = box.width + 16;
    view.height = box.height + 16;
    svg.setAttribute("viewBox", [left, top, view.width, view.height].join(" "));
    if (view.fit) view.scale = Math.min(1, (viewer.clientWidth - 4) / view.width);
    view.fit = false;
    rescale();
    mark();
    viewer.dataset.drawn = view.layout;
  }

  function countLeaves() {
    let hidden = 0;
    for (const id of view.collapsed) hidden += (collapsedSize.get(id) || 1) - 1;
    return Math.max(3, nTaxa - hidden);
  }

  function styleEdge(element, edge) {
    const id = branchOf(edge.target);
    element.selectAll("title").remove();
    element
      .attr("data-branch", id)
      .classed(level(branches.get(id).support) || "plain", true)
      .on("click", (event) => { event.stopPropagation(); select(id); })
      .on("mousemove", (event) => showTip(event, describe(id)))
      .on("mouseleave", () => { $("tip").hidden = true; });
  }

  function styleNode(element, node) {
    if (!node.parent) return;
    const id = branchOf(node), b = branches.get(id);
    if (isTaxon(node)) {
      element.attr("data-taxon", vertexOf(node)).attr("data-node-name", null);
      element.select("text")
        .on("click", (event) => { event.stopPropagation(); select(id); })
        .on("mouseenter", null)
        .on("mousemove", (event) => showTip(event, describe(id)))
        .on("mouseleave", () => { $("tip").hidden = true; });
    } else if (b.support !== null && element.select("text.support").empty()) {
      if (isClade(node)) element.select("text").on("click", (event) => { event.stopPropagation(); select(id); });
      const text = (100 * b.support).toFixed(0), beside = isClade(node) || roomBefore(node) >= 6 * text.length + 5;
      element.append("text").attr("class", "support " + level(b.support)).attr("x", beside ? -4 : 3).attr("y", beside ? -3 : 3)
        .attr("text-anchor", beside ? "end" : "start").style("font-size", "9px").text(text);
    }
  }

  /* A support stands above its branch; where the branch is too short for it, behind the vertex. */
  function roomBefore(node) {
    return view.layout === "rectangular" ? node.screen_x - node.parent.screen_x : Infinity;
  }

  /* Supports that would be written over names, or over other supports, are not: colour tells them, and hovering. */
  function hideCrowded() {
    const names = view.layout === "rectangular" ? $("viewer").querySelectorAll("g[data-taxon] text") : [];
    const kept = [...names].map((text) => text.getBoundingClientRect());
    const boxes = [...$("viewer").querySelectorAll("text.support")].map((text) => [text, text.getBoundingClientRect()]);
    for (const [text, a] of boxes) {
      const over = kept.some((b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 2 && b.top < a.bottom - 2);
      text.classList.toggle("crowded", over);
      if (!over) kept.push(a);
    }
  }

  /* The library's own scale bar does not match its branches; this one is measured on the longest drawn branch. */
  function drawScale(svg, tree) {
    let best = null;
    tree.nodes.links().forEach((link) => {
      const length = parseFloat(link.target.data.attribute);
      if (length > 0 && (best === null || length > best[0])) best = [length, link.target.screen_x - link.source.screen_x];
    });
    if (best === null || !(best[1] > 0)) return;
    const perUnit = best[1] / best[0];
    const power = Math.pow(10, Math.floor(Math.log10(150 / perUnit)));
    const unit = [5, 2, 1].map((k) => k * power).find((u) => u * perUnit <= 150) || power;
    const place = svg.querySelector(".phylotree-container");
    const box = place.getBBox(), ns = "http://www.w3.org/2000/svg", y = box.y + box.height + 14;
    const line = document.createElementNS(ns, "path"), label = document.createElementNS(ns, "text");
    line.setAttribute("d", "M0 " + y + "h" + unit * perUnit);
    line.setAttribute("stroke", "currentColor");
    line.setAttribute("fill", "none");
    label.setAttribute("x", 0);
    label.setAttribute("y", y + 14);
    label.setAttribute("class", "scale");
    label.style.fontSize = "11px";
    label.textContent = Number(unit.toPrecision(1)) + (unit === 1 ? " substitution per site" : " substitutions per site");
    place.appendChild(line);
    place.appendChild(label);
  }

  function rescale() {
    const svg = $("viewer").querySelector("svg");
    svg.setAttribute("width", view.width * view.scale);
    svg.setAttribute("height", view.height * view.scale);
  }

  function zoom(factor, at) {
    const viewer = $("viewer"), before = view.scale;
    view.zoomed = true;
    view.scale = Math.min(8, Math.max(0.05, view.scale * factor));
    const x = at ? at[0] : viewer.clientWidth / 2, y = at ? at[1] : viewer.clientHeight / 2, ratio = view.scale / before;
    const left = (viewer.scrollLeft + x) * ratio - x, top = (viewer.scrollTop + y) * ratio - y;
    rescale();
    viewer.scrollLeft = left;
    viewer.scrollTop = top;
  }

  function mark() {
    const viewer = $("viewer");
    viewer.querySelectorAll("path.branch").forEach((path) => {
      const id = Number(path.getAttribute("data-branch"));
      path.classList.toggle("selected", id === view.selected);
      path.classList.toggle("inside", id < nTaxa && view.inside.has(id));
    });
    viewer.querySelectorAll("g[data-taxon]").forEach((group) => {
      const taxon = Number(group.getAttribute("data-taxon")), text = group.querySelector("text");
      text.classList.toggle("inside", view.inside.has(taxon));
      text.classList.toggle("match", view.match.has(taxon));
    });
    viewer.querySelectorAll("text.support").forEach((text) => { text.style.display = $("show-support").checked ? "" : "none"; });
    document.querySelectorAll("tr.chosen").forEach((row) => row.classList.remove("chosen"));
    const split = view.split === undefined ? null : document.querySelector('tr[data-split="' + view.split + '"]');
    if (split) split.classList.add("chosen");
    $("reroot").disabled = view.selected === null;
    const inner = view.selected !== null && view.selected >= nTaxa && branches.get(view.selected).to >= nTaxa;
    $("collapse").disabled = !inner;
    $("collapse").textContent = inner && view.collapsed.has(view.selected) ? "Expand the clade" : "Collapse the clade";
  }

  function select(id) {
    view.selected = id;
    view.split = branches.get(id).split;
    view.inside = new Set(id < nTaxa ? [id] : data.splits[view.split] || []);
    $("selection").textContent = "Selected: " + describe(id).replace(/\n/g, "; ");
    mark();
    const row = document.querySelector("tr.chosen");
    if (row) row.parentElement.parentElement.parentElement.scrollTop = row.offsetTop - 60;
  }

  function selectSplit(split) {
    const found = data.branches.find((b) => b.split === split);
    if (found) { select(found.id); return; }
    view.selected = null;
    view.split = split;
    view.inside = new Set(data.splits[split]);
    $("selection").textContent = "This split is not in the consensus tree; its " + view.inside.size + " taxa are coloured.";
    mark();
  }

  function search(text) {
    const wanted = text.trim().toLowerCase();
    view.match = new Set();
    if (wanted) data.taxa.forEach((name, k) => { if (name.toLowerCase().includes(wanted)) view.match.add(k); });
    $("found").textContent = wanted ? view.match.size + (view.match.size === 1 ? " taxon" : " taxa") : "";
    mark();
    const first = $("viewer").querySelector("text.match");
    if (first) {
      const viewer = $("viewer"), inside = first.getBoundingClientRect(), outer = viewer.getBoundingClientRect();
      viewer.scrollTop += inside.top - outer.top - viewer.clientHeight / 2;
      viewer.scrollLeft += inside.left - outer.left - viewer.clientWidth / 2;
    }
  }

  /* The taxa behind the selected branch as it is drawn: its target is the vertex farther from the root. */
  function toggleClade() {
    const id = view.selected;
    if (id === null) return;
    if (view.collapsed.has(id)) view.collapsed.delete(id);
    else {
      const path = [...$("viewer").querySelectorAll("path.branch")].find((p) => Number(p.getAttribute("data-branch")) === id);
      collapsedSize.set(id, graph.behind(vertexOf(path.__data__.target), id).length);
      view.collapsed.add(id);
    }
    draw();
  }

  $("collapse").addEventListener("click", toggleClade);
  const drawing = () => [$("viewer").querySelector("svg"), view.width, view.height];
  $("save-svg").addEventListener("click", () => window.vaiphySave.svg(data.file, ...drawing()));
  $("save-png").addEventListener("click", () => window.vaiphySave.png(data.file, ...drawing()));
  $("save-newick").addEventListener("click", () => window.vaiphySave.text(data.file + ".nwk", graph.exported(view.root) + "\n"));
  $("layout").addEventListener("change", (event) => { view.layout = event.target.value; Object.assign(view, { scale: 1, fit: true, zoomed: false }); draw(); });
  $("zoom-in").addEventListener("click", () => zoom(1.25));
  $("zoom-out").addEventListener("click", () => zoom(0.8));
  $("zoom-full").addEventListener("click", () => zoom(1 / view.scale));
  $("zoom-fit").addEventListener("click", () => {
    zoom(Math.min(($("viewer").clientWidth - 4) / view.width, ($("viewer").clientHeight - 4) / view.height) / view.scale);
  });
  $("viewer").addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const outer = $("viewer").getBoundingClientRect();
    zoom(event.deltaY < 0 ? 1.15 : 1 / 1.15, [event.clientX - outer.left, event.clientY - outer.top]);
  }, { passive: false });
  $("search").addEventListener("input", (event) => search(event.target.value));
  $("show-support").addEventListener("change", mark);
  $("reroot").addEventListener("click", () => {
    if (view.selected === null) return;
    view.root = { branch: view.selected };
    draw();
  });
  $("reset").addEventListener("click", () => {
    Object.assign(view, { root: start, layout: "rectangular", scale: 1, fit: true, zoomed: false, selected: null, split: undefined, inside: new Set(), match: new Set(), collapsed: new Set() });
    $("layout").value = "rectangular";
    $("search").value = "";
    $("found").textContent = "";
    $("selection").textContent = "No branch selected.";
    draw();
  });
  const body = document.querySelector("#split-table tbody");
  const rowOf = (event) => event.target.closest("tr[data-split]");
  body.addEventListener("click", (event) => { const row = rowOf(event); if (row) selectSplit(Number(row.dataset.split)); });
  body.addEventListener("keydown", (event) => { const row = rowOf(event); if (row && event.key === "Enter") selectSplit(Number(row.dataset.split)); });
  $("filter").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    body.querySelectorAll("tr").forEach((row) => { row.hidden = wanted !== "" && !row.dataset.names.toLowerCase().includes(wanted); });
  });
  if ($("show-rare")) $("show-rare").addEventListener("change", (event) => { $("split-table").classList.toggle("all", event.target.checked); });
  const names = $("taxon-names");
  data.taxa.forEach((name) => { const option = document.createElement("option"); option.value = name; names.appendChild(option); });
  view.fit = true;
  draw();
  /* A page in a hidden frame or tab panel has no width until it is shown; a window may be resized, a telephone turned. The tree is
     fitted to the new width unless somebody has zoomed. */
  function fitAgain() {
    const width = $("viewer").clientWidth;
    if (width === 0 || ($("viewer").dataset.drawn && Math.abs(width - view.frame) < 20)) return;
    view.fit = !view.zoomed;
    draw();
  }
  new ResizeObserver(() => requestAnimationFrame(fitAgain)).observe($("viewer"));
})();
