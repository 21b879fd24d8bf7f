"""The page in a real browser: no errors, no network, the tree drawn to scale, everything clickable does what it says."""

import os
import re
import shutil
from pathlib import Path, PurePath

import pytest
from reference.standin import NAMES, NASTY, fasta, use_standin

from vaiphy.alignment import Alignment
from vaiphy.formats import newick, parse_alignment
from vaiphy.formats.names import visible
from vaiphy.output.page import page
from vaiphy.runner import run as runner

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")


def start(javascript=True):
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1400"):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if not javascript:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    return webdriver.Chrome(options=options, service=Service(DRIVER))


@pytest.fixture(scope="module")
def browser():
    driver = start()
    yield driver
    driver.quit()


def visit(browser, path):
    """Open the page and wait until it says that its tree is drawn: under load the driver may return before the scripts ran."""
    browser.get(path.as_uri())
    wait_until_drawn(browser, path.as_uri())


def wait_until_drawn(browser, address):
    from selenium.webdriver.support.ui import WebDriverWait

    drawn = "return location.href === arguments[0] && document.querySelector('#viewer[data-drawn] svg') !== null"
    WebDriverWait(browser, 60, 0.1).until(lambda b: script(b, drawn, address), "the page did not draw its tree in 60 seconds")


def make(names, folder, n_sites=60, source="<i>file</i> & 'more'"):
    """The page of a made-up run on these taxa."""
    data = parse_alignment(fasta([f"t{i}" for i in range(len(names))], n_sites))
    with pytest.MonkeyPatch.context() as patch:
        use_standin(patch)
        result = runner.run(Alignment(tuple(names), data.sites, source=source), seed=1)
    path = folder / "page.html"
    path.write_text(page(result), encoding="utf-8")
    return path, result


@pytest.fixture(scope="module", params=[8, 500])
def opened(request, browser, tmp_path_factory):
    """A page of 8 and one of 500 taxa, open in the browser, and its result."""
    names = NAMES if request.param == 8 else [f"Genus_species_{k}" for k in range(500)]
    path, result = make(names, tmp_path_factory.mktemp("page"))
    visit(browser, path)
    return browser, result


@pytest.fixture
def reset(opened):
    opened[0].find_element("id", "reset").click()
    return opened


def script(browser, text, *arguments):
    return browser.execute_script(text, *arguments)


def test_loads_without_errors_and_without_network(opened):
    browser, result = opened
    assert browser.get_log("browser") == []
    assert script(browser, "return performance.getEntriesByType('resource').length") == 0
    assert browser.find_element("tag name", "h1").text == PurePath(result.provenance.file).name
    assert str(result.provenance.file) in browser.find_element("id", "alignment").text
    assert "The computation converged" in browser.find_element("id", "verdict").text


def test_the_tree_is_drawn(reset):
    browser, result = reset
    names = script(browser, "return [...document.querySelectorAll('#viewer g[data-taxon] text')].map(t => t.textContent)")
    assert sorted(names) == sorted(result.patterns.taxa)
    assert script(browser, "return document.querySelectorAll('#viewer path.branch').length") == result.consensus.n_vertices - 1
    supports = script(browser, "return [...document.querySelectorAll('#viewer text.support')].map(t => t.textContent)")
    expected = [f"{100 * s:.0f}" for s in result.consensus.support if s == s]
    assert sorted(supports) == sorted(expected)
    boxes = script(
        browser, "return [...document.querySelectorAll('#viewer g[data-taxon] text')].map(t => t.getBoundingClientRect().top)"
    )
    gaps = [b - a for a, b in zip(sorted(boxes), sorted(boxes)[1:])]
    assert min(gaps) > 9  # names do not overlap


def test_branches_and_the_scale_bar_agree(reset):
    browser, _ = reset
    rows = script(
        browser,
        """return [...document.querySelectorAll('#viewer path.branch')].map(p => {
             const d = p.__data__; return [parseFloat(d.target.data.attribute), d.target.screen_x - d.source.screen_x]; })""",
    )
    ratios = [pixels / length for length, pixels in rows if length > 1e-4]
    assert max(ratios) == pytest.approx(min(ratios), rel=1e-3)
    label = browser.find_element("css selector", "#viewer text.scale").text
    unit = float(re.match(r"[0-9.e-]+", label)[0])
    bar = script(browser, "return document.querySelector('#viewer text.scale').previousSibling.getBBox().width")
    assert bar / unit == pytest.approx(ratios[0], rel=1e-3)


def test_hovering_shows_support_and_length(reset):
    browser, result = reset
    vertex = next(v for v in range(result.patterns.n_taxa, result.consensus.n_vertices) if v != result.consensus.root)
    path = browser.find_element("css selector", f'#viewer path[data-branch="{vertex}"]')
    script(browser, "arguments[0].dispatchEvent(new MouseEvent('mousemove', {clientX: 50, clientY: 50, bubbles: true}))", path)
    text = browser.find_element("id", "tip").text
    assert f"support {result.consensus.support[vertex]:.4f}" in text
    assert "length " in text
    assert "95 % interval" in text


def test_clicking_a_branch_selects_it_and_its_row(reset):
    browser, result = reset
    table = result.posterior.splits
    vertex = next(
        v
        for v in range(result.patterns.n_taxa, result.consensus.n_vertices)
        if result.consensus.splits[v] in table.splits[table.n_trivial : table.n_trivial + 200]
    )
    path = browser.find_element("css selector", f'#viewer path[data-branch="{vertex}"]')
    script(browser, "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", path)
    assert "selected" in path.get_attribute("class")
    row = browser.find_element("css selector", "tr.chosen")
    assert int(row.get_attribute("data-split")) == table.row[result.consensus.splits[vertex]]
    assert f"support {result.consensus.support[vertex]:.4f}" in browser.find_element("id", "selection").text
    assert browser.find_element("id", "reroot").is_enabled()


def test_rerooting_keeps_every_branch_and_its_support(reset):
    browser, result = reset
    vertex = result.consensus.n_vertices - 1
    vertex = vertex - 1 if vertex == result.consensus.root else vertex
    get = """return [...document.querySelectorAll('#viewer path.branch')].map(p => {
      const leaves = p.__data__.target.leaves().map(l => Number(l.data.name.split('_')[1])).sort((a, b) => a - b);
      return [Number(p.dataset.branch), leaves]; })"""
    n = result.patterns.n_taxa

    def splits(rows):
        sides = {}
        for branch, leaves in rows:
            side = frozenset(leaves)
            sides[branch] = side if 0 not in side else frozenset(range(n)) - side
        return sides

    before = splits(script(browser, get))
    path = browser.find_element("css selector", f'#viewer path[data-branch="{vertex}"]')
    script(browser, "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", path)
    browser.find_element("id", "reroot").click()
    rows = script(browser, get)
    assert splits(rows) == before
    assert [branch for branch, _ in rows].count(vertex) == 2  # the root is in the middle of the branch
    assert script(browser, "return document.querySelectorAll('#viewer g[data-taxon] text').length") == n
    browser.find_element("id", "reset").click()
    assert splits(script(browser, get)) == before
    assert browser.get_log("browser") == []


def test_the_tree_fills_its_frame_and_supports_are_not_over_each_other(reset):
    browser, _ = reset
    width, frame = script(
        browser,
        """const v = document.getElementById('viewer');
           return [v.querySelector('.phylotree-container').getBoundingClientRect().width, v.clientWidth];""",
    )
    assert 0.93 * frame < width <= frame
    boxes = script(
        browser,
        """return [...document.querySelectorAll('#viewer text.support:not(.crowded)')].map(t => {
             const b = t.getBoundingClientRect(); return [b.left, b.right, b.top, b.bottom]; })""",
    )
    assert len(boxes) > 3
    boxes.sort()
    for k, (_, right, top, bottom) in enumerate(boxes):
        later = (b for b in boxes[k + 1 :] if b[0] < right - 2)
        assert not any(min(bottom, b[3]) - max(top, b[2]) > 3 for b in later)


def test_search_marks_and_shows_a_taxon(reset):
    browser, result = reset
    name = result.patterns.taxa[5]
    box = browser.find_element("id", "search")
    box.send_keys(name.upper())
    found = browser.find_elements("css selector", "#viewer text.match")
    assert name in [element.text for element in found]
    assert browser.find_element("id", "found").text.startswith(str(len(found)))
    where = script(
        browser,
        """const t = document.querySelector('#viewer text.match').getBoundingClientRect();
           const v = document.getElementById('viewer').getBoundingClientRect(); return [t.top >= v.top, t.bottom <= v.bottom]""",
    )
    assert where == [True, True]
    box.clear()
    box.send_keys("nothing like it")
    assert browser.find_element("id", "found").text == "0 taxa"


@pytest.mark.parametrize("layout", ["radial", "unrooted", "rectangular"])
def test_layouts(reset, layout):
    from selenium.webdriver.support.ui import Select

    browser, result = reset
    Select(browser.find_element("id", "layout")).select_by_value(layout)
    assert script(browser, "return document.querySelectorAll('#viewer path.branch').length") == result.consensus.n_vertices - 1
    svg = browser.find_element("css selector", "#viewer svg")
    assert svg.size["width"] > 300
    assert svg.size["height"] > 100
    inside = script(
        browser,
        """const s = document.querySelector('#viewer svg').getBoundingClientRect();
           return [...document.querySelectorAll('#viewer g[data-taxon] text')].every(t => { const b = t.getBoundingClientRect();
             return b.left >= s.left - 1 && b.right <= s.right + 1 && b.top >= s.top - 1 && b.bottom <= s.bottom + 1; })""",
    )
    assert inside
    assert browser.get_log("browser") == []


def test_zoom(reset):
    browser, _ = reset
    width = browser.find_element("css selector", "#viewer svg").size["width"]
    browser.find_element("id", "zoom-in").click()
    assert browser.find_element("css selector", "#viewer svg").size["width"] == pytest.approx(1.25 * width, rel=0.01)
    browser.find_element("id", "zoom-fit").click()
    svg, viewer = (browser.find_element("css selector", s).size for s in ("#viewer svg", "#viewer"))
    assert svg["width"] <= viewer["width"]
    assert svg["height"] <= viewer["height"] + 1
    browser.find_element("id", "zoom-full").click()
    assert browser.find_element("css selector", "#viewer svg").size["width"] == pytest.approx(width, rel=0.01)


def test_a_row_of_the_table_colours_its_taxa(reset):
    browser, result = reset
    table = result.posterior.splits
    outside = [k for k in range(table.n_trivial, len(table)) if table.splits[k] not in result.consensus.topology]
    shown = {int(row.get_attribute("data-split")) for row in browser.find_elements("css selector", "tr[data-split]")}
    for k in [table.n_trivial, *[k for k in outside if k in shown][:1]]:
        row = browser.find_element("css selector", f'tr[data-split="{k}"]')
        script(browser, "arguments[0].click()", row)
        coloured = {element.text for element in browser.find_elements("css selector", "#viewer text.inside")}
        members = set(table.members(k))
        assert coloured in (members, set(table.taxa) - members)
        assert len(coloured) <= len(table.taxa) / 2
        assert "chosen" in row.get_attribute("class")


def test_the_parameters_are_drawn_with_their_figures(reset):
    browser, result = reset
    figures = browser.find_elements("css selector", "#parameters figure")
    rows = [*result.parameters, *(row for row in result.tree_parameters if row.name == "TL")]
    assert [figure.find_element("tag name", "strong").text for figure in figures] == [row.name for row in rows]
    assert len(rows) > 10
    for figure, row in zip(figures, rows):
        assert float(re.search(r"mean ([0-9.]+),", figure.text)[1]) == pytest.approx(row.mean, abs=0.006 * row.sd)
        drawing = figure.find_element("tag name", "svg")
        label = drawing.get_attribute("aria-label")
        assert label.startswith(f"Posterior density of {row.name}")
        assert "95 % interval" in label
        assert drawing.size["width"] > 150


def test_the_table_can_be_filtered(reset):
    browser, result = reset
    box = browser.find_element("id", "filter")
    box.send_keys(result.patterns.taxa[2])
    rows = browser.find_elements("css selector", "tr[data-split]")
    shown = [row for row in rows if row.is_displayed()]
    assert 0 < len(shown) < len(rows)
    assert all(result.patterns.taxa[2].lower() in row.get_attribute("data-names").lower() for row in shown)
    script(browser, "arguments[0].value = ''; arguments[0].dispatchEvent(new Event('input'))", box)


def test_supports_have_colours_as_well(reset):
    browser, result = reset
    rows = script(
        browser,
        """return [...document.querySelectorAll('#viewer path.branch')].map(p =>
             [Number(p.dataset.branch), [...p.classList].find(c => ['high', 'middle', 'low'].includes(c)) || '',
              getComputedStyle(p).stroke])""",
    )
    n = result.patterns.n_taxa
    for branch, level, _ in rows:
        support = result.consensus.support[branch]
        assert level == (
            "" if branch < n or support != support else "high" if support >= 0.95 else "middle" if support >= 0.75 else "low"
        )
    assert len({(level, colour) for _, level, colour in rows}) == len({level for _, level, _ in rows})


def test_a_clade_can_be_collapsed_and_expanded(reset):
    browser, result = reset
    tree = result.consensus
    vertex = max((v for v in range(tree.n_taxa, tree.n_vertices) if v != tree.root), key=lambda v: tree.clades[v].bit_count())
    inside = {tree.taxa[i] for i in range(tree.n_taxa) if tree.clades[vertex] >> i & 1}
    path = browser.find_element("css selector", f'#viewer path[data-branch="{vertex}"]')
    script(browser, "arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", path)
    browser.find_element("id", "collapse").click()
    get = "return [...document.querySelectorAll('#viewer g[data-taxon] text')].map(t => t.textContent)"
    assert set(script(browser, get)) == set(tree.taxa) - inside
    labels = script(browser, "return [...document.querySelectorAll('#viewer text')].map(t => t.textContent)")
    assert any(text.startswith(f"▸ {len(inside)} taxa: ") for text in labels)
    assert browser.find_element("id", "collapse").text == "Expand the clade"
    browser.find_element("id", "collapse").click()
    assert set(script(browser, get)) == set(tree.taxa)
    assert browser.get_log("browser") == []


def test_the_tree_can_be_saved(reset):
    browser, result = reset
    script(
        browser,
        """window.kept = []; window.named = [];
           URL.createObjectURL = (blob) => { window.kept.push(blob); return 'data:,'; };
           HTMLAnchorElement.prototype.click = function () { window.named.push(this.download); };""",
    )
    for button in ("save-newick", "save-svg", "save-png"):
        browser.find_element("id", button).click()
    found = browser.execute_async_script(
        """const done = arguments[0], wait = () => window.kept.length < 3 ? setTimeout(wait, 50)
             : Promise.all(window.kept.map(b => b.type === 'image/png' ? b.size : b.text())).then(done); wait();"""
    )
    tree = newick.read(found[0], result.patterns.taxa)
    assert tree.topology == result.consensus.topology
    assert tree.length[:5] == pytest.approx(result.consensus.length[:5], rel=1e-5)
    assert found[1].startswith("<svg")
    assert result.patterns.taxa[0] in found[1]
    assert found[2] > 1000
    assert [name.rsplit(".", 1)[1] for name in script(browser, "return window.named")] == ["nwk", "svg", "png"]
    address = browser.current_url
    browser.refresh()
    wait_until_drawn(browser, address)


def test_rare_splits_are_shown_on_request(browser, tmp_path):
    path, result = make([f"t{k}" for k in range(12)], tmp_path)
    table = result.posterior.splits
    few = table.support[table.n_trivial :] < 0.012
    assert few.any()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vaiphy.output.words.MIN_SUPPORT", 0.012)
        path.write_text(page(result), encoding="utf-8")
    visit(browser, path)
    shown = [row.is_displayed() for row in browser.find_elements("css selector", "tr[data-split]")]
    assert shown == [not rare for rare in few]
    browser.find_element("id", "show-rare").click()
    assert all(row.is_displayed() for row in browser.find_elements("css selector", "tr[data-split]"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("n_taxa", [5, 129])
def test_a_narrow_screen_shows_the_whole_width(browser, tmp_path, n_taxa, scheme):
    path, _ = make([f"Genus_species_with_a_name_of_about_sixty_characters_in_all_{k}" for k in range(n_taxa)], tmp_path)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    try:
        visit(browser, path)
        assert script(browser, "return document.documentElement.scrollWidth") <= 400
        assert script(browser, "return document.querySelector('#viewer svg').getBoundingClientRect().width") <= 400
        assert script(
            browser,
            """const v = document.getElementById('viewer'), c = v.querySelector('.phylotree-container');
               return c.getBoundingClientRect().width / v.clientWidth""",
        ) == pytest.approx(0.95, abs=0.06)
        heights = script(
            browser, "return [...document.querySelectorAll('tr[data-split]')].map(r => r.offsetHeight).filter(h => h)"
        )
        assert max(heights) < 70
        paper = script(browser, "return getComputedStyle(document.body).backgroundColor")
        assert (paper == "rgb(255, 255, 255)") == (scheme == "light")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_tree_follows_the_width_of_the_window(browser, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    path, _ = make([f"Genus_species_with_a_name_of_about_sixty_characters_in_all_{k}" for k in range(27)], tmp_path)
    visit(browser, path)
    inside = """const v = document.getElementById('viewer').getBoundingClientRect();
      return [...document.querySelectorAll('#viewer g[data-taxon] text')].every(t => t.getBoundingClientRect().right <= v.right)
        && document.querySelector('#viewer .phylotree-container').getBoundingClientRect().width > 0.85 * v.width"""
    get_width = "return document.querySelector('#viewer svg').getBoundingClientRect().width"
    assert script(browser, inside)
    try:
        for width in (400, 1000):
            browser.execute_cdp_cmd(
                "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            )
            WebDriverWait(browser, 20, 0.1).until(lambda b: script(b, inside), f"the tree does not fit {width} pixels")
        browser.find_element("id", "zoom-in").click()
        zoomed = script(browser, get_width)
        assert zoomed > 1000
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride", {"width": 900, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        )
        WebDriverWait(browser, 20, 0.1).until(lambda b: script(b, get_width) != zoomed)
        assert script(browser, get_width) > 1000  # still larger than the frame
        assert browser.get_log("browser") == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_narrow_screen_shows_estimates_without_scrolling(browser, tmp_path):
    path, _ = make(NAMES, tmp_path)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 400, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    )
    try:
        visit(browser, path)
        box = "const s = document.querySelector('#evidence .scroll'); return [s.scrollWidth - s.clientWidth, s.offsetHeight]"
        spill, height = script(browser, box)
        assert spill <= 0
        assert height < 220
        assert "uniform topology prior" in browser.find_element("css selector", "#evidence table").text
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


AXE = os.environ.get("AXE")


@pytest.mark.skipif(not AXE, reason="AXE does not say where axe.min.js is (`make axe` gets it)")
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1300, 400])
@pytest.mark.parametrize("n_taxa", [5, 27, 129])
def test_axe_finds_no_serious_fault(browser, tmp_path, n_taxa, width, scheme):
    path, _ = make([f"Genus_species_with_a_name_of_about_sixty_characters_in_all_{k}" for k in range(n_taxa)], tmp_path)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 700}
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
    try:
        visit(browser, path)
        assert browser.get_log("browser") == []
        browser.execute_cdp_cmd("Runtime.evaluate", {"expression": Path(AXE).read_text(encoding="utf-8")})
        found = browser.execute_async_script(
            "const done = arguments[0]; axe.run(document).then(done, e => done({error: String(e)}))"
        )
        assert len(found["passes"]) > 30
        serious = [fault for fault in found["violations"] if fault["impact"] in ("serious", "critical")]
        assert [(fault["id"], fault["nodes"][0]["html"]) for fault in serious] == []
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_untrusted_names_stay_text(browser, tmp_path):
    from selenium.common.exceptions import NoAlertPresentException

    nasty = (*NASTY[:-1], "abc\u202efed")
    path, _ = make(nasty, tmp_path)
    assert "<script>alert" not in path.read_text()
    assert "\u202e" not in path.read_text()
    visit(browser, path)
    with pytest.raises(NoAlertPresentException):
        browser.switch_to.alert.text  # noqa: B018
    names = script(browser, "return [...document.querySelectorAll('#viewer g[data-taxon] text')].map(t => t.textContent)")
    assert sorted(names) == sorted(visible(name) for name in nasty)
    assert NASTY[0] in browser.find_element("id", "split-table").text
    assert script(browser, "return document.querySelectorAll('script').length") == 8
    assert script(browser, "return document.querySelectorAll('h1 i').length") == 0
    assert browser.get_log("browser") == []


def test_the_policy_stops_foreign_scripts(browser, tmp_path):
    path, _ = make(NAMES, tmp_path)
    text = path.read_text().replace(
        "</main>", "<script>window.intruder = 1</script><img src=x onerror='window.intruder = 2'></main>"
    )
    path.write_text(text)
    visit(browser, path)
    assert script(browser, "return window.intruder === undefined")
    assert "Content Security Policy" in " ".join(entry["message"] for entry in browser.get_log("browser"))


def test_without_scripts_there_is_a_drawing(tmp_path):
    path, _ = make(NAMES, tmp_path)
    driver = start(javascript=False)
    try:
        driver.get(path.as_uri())
        drawing = driver.find_element("css selector", "noscript svg")
        assert drawing.is_displayed()
        assert set(NAMES) <= {element.text for element in drawing.find_elements("tag name", "text")}
        assert not driver.find_element("id", "viewer").is_displayed()
    finally:
        driver.quit()


def test_a_page_in_a_hidden_frame_is_drawn_when_it_is_shown(browser, tmp_path):
    path, result = make(NAMES, tmp_path)
    frame = tmp_path / "frame.html"
    frame.write_text(f'<div id="panel" style="display: none"><iframe src="{path.name}" width="900" height="900"></iframe></div>')
    browser.get(frame.as_uri())
    script(browser, "document.getElementById('panel').style.display = ''")
    browser.switch_to.frame(0)
    try:
        wait_until_drawn(browser, path.as_uri())
        assert script(browser, "return document.querySelectorAll('#viewer g[data-taxon] text').length") == result.patterns.n_taxa
        assert script(browser, "return document.querySelector('#viewer svg').getBoundingClientRect().width") > 300
    finally:
        browser.switch_to.default_content()
