"""The machinery of the benchmarks: cells that are not measured twice, absent programs, regressions, tables, the C kernel."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks import __main__ as command
from benchmarks import cells, claims, page, plan, ratios, records, tables, worker
from benchmarks.cells import Cell

SMALL = "simulated-8x200"


def fake_measure(monkeypatch, measured, interrupt_at=None):
    """Replace the measurement by one that keeps a list of its calls and can be interrupted."""

    def measure(cell, results, timeout=0.0):
        if len(measured) == interrupt_at:
            raise KeyboardInterrupt
        measured.append(cell.name)
        record = {
            **vars(cell),
            "status": "done",
            "cpu_seconds": 1.0,
            "wall_seconds": 1.0,
            "peak_megabytes": 1.0,
            "result": {"log_evidence": -7.0},
            "code": cells.code_fingerprint(),
            "when": "2026-01-01T00:00:00",
            "machine": cells.machine(),
            "versions": cells.versions(),
        }
        cells.save(cell, record, results)
        return record

    monkeypatch.setattr(cells, "measure", measure)
    monkeypatch.setattr(cells, "warm_up", lambda cell, warm: None)


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, monkeypatch):
    todo = [Cell("table", f"DS{k}", "posterior") for k in range(1, 5)]
    measured = []
    fake_measure(monkeypatch, measured, interrupt_at=2)
    with pytest.raises(KeyboardInterrupt):
        cells.run_all(todo, tmp_path)
    fake_measure(monkeypatch, measured)
    records = cells.run_all(todo, tmp_path)
    assert measured == [cell.name for cell in todo]
    assert [r["data"] for r in records] == ["DS1", "DS2", "DS3", "DS4"]
    cells.run_all(todo, tmp_path, redo=True)
    assert len(measured) == 8


def test_other_settings_or_a_failure_or_other_code_are_measured_again(tmp_path):
    cell = Cell("table", "DS1", "posterior", settings={"threads": 2})
    record = {**vars(cell), "status": "done", "code": "old"}
    assert cells.wanted(cell, None)
    assert not cells.wanted(cell, record)
    assert cells.wanted(cell, record, redo=True)
    assert cells.wanted(cell, record, stale=True)
    assert cells.wanted(Cell("table", "DS1", "posterior", settings={"threads": 1}), record)
    assert cells.wanted(cell, {**record, "status": "absent"})
    assert cells.wanted(cell, {**record, "status": "failed"})


def test_a_line_cut_short_by_a_crash_counts_as_never_measured(tmp_path):
    first, second = Cell("table", "DS1", "posterior"), Cell("table", "DS2", "posterior")
    first.path(tmp_path).write_text('{"experiment": "table", "data": "DS1", "meth')
    assert cells.load(first, tmp_path) is None
    assert cells.load_all(tmp_path) == []
    cells.save(second, {**vars(second), "status": "done"}, tmp_path)
    assert [record["data"] for record in cells.load_all(tmp_path)] == ["DS2"]
    assert cells.load(second, tmp_path)["status"] == "done"


def test_the_last_line_of_a_cell_holds_and_is_what_remains(tmp_path):
    first, second = Cell("table", "DS2", "posterior"), Cell("table", "DS1", "posterior")
    for number in range(3):
        for cell in (first, second):
            cells.save(cell, {**vars(cell), "status": f"try {number}"}, tmp_path)
    assert cells.load(first, tmp_path)["status"] == "try 2"
    assert len(first.path(tmp_path).read_text().splitlines()) == 6
    before = cells.load_all(tmp_path)
    records.tidy(tmp_path)
    lines = [json.loads(line) for line in first.path(tmp_path).read_text().splitlines()]
    assert [line["data"] for line in lines] == ["DS1", "DS2"]
    assert lines == before == cells.load_all(tmp_path)
    cells.forget(second, tmp_path)
    assert cells.load(second, tmp_path) is None
    assert cells.load(first, tmp_path) is not None


def test_a_cell_is_measured_in_a_process_of_its_own(tmp_path):
    record = cells.measure(Cell("truth", SMALL, "bionj"), tmp_path)
    assert record["status"] == "done", record
    assert 0 < record["cpu_seconds"] < 60
    assert 30 < record["peak_megabytes"] < 1000
    assert record["result"]["n_splits"] == 5
    assert record["result"]["rf"] == record["result"]["false_splits"] + record["result"]["missing_splits"]
    assert {"machine", "versions", "seed", "settings", "code", "when", "wall_seconds"} <= set(record)
    assert cells.load(Cell("truth", SMALL, "bionj"), tmp_path) == json.loads(json.dumps(record))


def test_a_cell_that_fails_keeps_its_reason(tmp_path, capfd):
    record = cells.measure(Cell("truth", "no-such-data", "bionj"), tmp_path)
    assert record["status"] == "failed"
    assert "no-such-data" in record["reason"]
    assert "Traceback" in capfd.readouterr().err


def test_whatever_ends_a_worker_ends_its_programs_too(tmp_path):
    """A program that the worker started, and that ignores polite signals, does not outlive a time-out."""
    mark = tmp_path / "alive"
    stubborn = f"trap '' INT TERM; while true; do date +%s%N > {mark}; sleep 0.05; done"
    script = f"import subprocess; subprocess.run(['sh', '-c', {stubborn!r}])"
    assert cells._run([sys.executable, "-c", script], timeout=1.5) == (None, "")
    last = mark.read_text()
    time.sleep(0.3)
    assert mark.read_text() == last
    assert cells._run([sys.executable, "-c", "raise SystemExit('why')"], timeout=20) == (1, "why\n")


@pytest.mark.parametrize("method", ["mrbayes-ss", "mrbayes-mcmc", "mrbayes-generations", "iqtree", "iqtree-evaluations"])
def test_an_absent_program_is_a_reason_not_a_failure(method, monkeypatch):
    monkeypatch.setenv("PATH", "")
    answer = worker.answer(Cell("table", "DS1", method, settings={"ngen": 100}))
    assert answer["status"] == "absent"
    assert "is not installed" in answer["reason"]


def test_absent_long_runs_are_a_reason(monkeypatch, tmp_path):
    monkeypatch.delenv("BENCH_GOLDEN", raising=False)
    assert worker.answer(Cell("accuracy", "DS1", "long-runs"))["status"] == "absent"
    monkeypatch.setenv("BENCH_GOLDEN", str(tmp_path))
    from vaiphy import datasets

    taxa = sorted(datasets.load("DS1").taxa)
    first = taxa.index(datasets.load("DS1").taxa[0])
    golden = {"taxa": taxa, "replicates": 2, "splits": [{"taxa": [first, (first + 1) % 27], "frequency": 0.5}]}
    (tmp_path / "DS1.json").write_text(json.dumps(golden))
    answer = worker.answer(Cell("accuracy", "DS1", "long-runs"))
    ((split, frequency),) = answer["result"]["splits"].items()
    assert frequency == 0.5
    assert int(split, 16).bit_count() == 25  # the side without the first taxon of the alignment
    assert not int(split, 16) & 1


def test_the_absent_program_has_its_row(tmp_path):
    absent = Cell("kernels", "DS1", "mrbayes-generations")
    record = {**vars(absent), "status": "absent", "reason": "mb is not installed (Debian package mrbayes)", "when": "2026-01-01",
              "machine": cells.machine(), "versions": cells.versions(), "code": "", "wall_seconds": 0.1}  # fmt: skip
    cells.save(absent, record, tmp_path)
    text = page.render(tmp_path, tmp_path / "figures")
    row = next(line for line in text.splitlines() if line.startswith("| MrBayes |"))
    assert "mb is not installed" in row
    assert "not run" in text


def test_the_page_says_what_was_not_run_and_shows_what_was(tmp_path, monkeypatch):
    empty = page.render(tmp_path / "nothing", tmp_path / "figures")
    assert empty.count("not run") > 20
    measured = []
    fake_measure(monkeypatch, measured)
    for k, value in enumerate((-7108.0, -7109.0)):
        cell = Cell("table", "DS1", "mrbayes-ss", k, seed=k + 1)
        record = cells.measure(cell, tmp_path)
        record["result"]["log_evidence"] = value
        cells.save(cell, record, tmp_path)
    text = page.render(tmp_path, tmp_path / "figures")
    assert "−7,108.50 ± 0.71 (2)" in text
    # Results of the quick form are not mixed with the others.
    cells.save(Cell("table", "DS1", "mrbayes-ss", 7), {**record, "repeat": 7}, tmp_path / "quick")
    assert page.render(tmp_path, tmp_path / "figures") == text


def test_a_worsened_ratio_is_found():
    baseline = {"kernel / C": 1.0, "two threads": 1.8, "gone": 1.0}
    assert ratios.worse({"kernel / C": 1.29, "two threads": 1.4}, baseline) == []
    assert ratios.worse({"kernel / C": 0.1, "two threads": 9.0}, baseline) == []
    assert len(ratios.worse({"kernel / C": 1.31, "two threads": 1.8}, baseline)) == 1
    (said,) = ratios.worse({"kernel / C": 1.0, "two threads": 1.3}, baseline)
    assert "two threads" in said
    assert "38 % worse" in said
    assert ratios.merged({"kernel / C": 1.2, "two threads": 1.1}, {"kernel / C": 1.3, "two threads": 1.9}) == {
        "kernel / C": 1.2,
        "two threads": 1.9,
    }


@pytest.mark.parametrize(("now", "status"), [(1.0, 0), (1.2, 0), (2.0, 1)])
def test_the_quick_form_fails_when_a_ratio_worsens(now, status, tmp_path, monkeypatch, capsys):
    path = tmp_path / "baseline.json"
    ratios.write_baseline({"kernel / C": 1.0}, {}, path)
    monkeypatch.setattr(ratios, "read_baseline", lambda: json.loads(path.read_text())["ratios"])
    measured = []
    fake_measure(monkeypatch, measured)
    simple = cells.measure

    def measure(cell, results, timeout=0.0):
        record = simple(cell, results)
        record["result"] = {"ratios": {"kernel / C": now}}
        cells.save(cell, record, results)
        return record

    monkeypatch.setattr(cells, "measure", measure)
    asked = command.arguments(["--quick"])
    assert command.quick([plan.ratios(), Cell("truth", SMALL, "bionj")], tmp_path, asked) == status
    assert ("worse than the baseline" in capsys.readouterr().err) == (status == 1)
    # A worsened ratio is measured up to three times before it counts.
    assert measured.count(plan.ratios().name) == (3 if status else 1)


def test_tables_and_numbers():
    text = tables.table(["a", "b"], [["x|y", 1], ["z", "–"]])
    assert text.splitlines() == ["| a | b |", "| --- | ---: |", "| x\\|y | 1 |", "| z | – |"]
    assert tables.number(-1234.567, 1) == "−1,234.6"
    assert tables.number(float("nan")) == tables.number(None) == "–"
    assert tables.spread([]) == "not run"
    assert tables.spread([-1.0]) == "−1.00 (1)"
    assert tables.exponent([1, 10, 100], [2, 200, 20000]) == pytest.approx(2.0)
    assert tables.split_errors({"6": 0.9, "a": 0.04}, {"6": 0.8, "c": 0.1}) == pytest.approx((0.1, 0.1))
    assert tables.asdsf({"6": 0.9}, {"6": 0.7}) == pytest.approx(0.2 / 2**0.5)


def test_cost_of_an_error():
    least, guess, most = tables.cpu_to_error([10.0, 10.0, 10.0, 10.0], [0.0, 1.0, 0.0, 1.0], 0.1)
    deviation = (1 / 3) ** 0.5
    assert guess == pytest.approx(10.0 * (deviation / 0.1) ** 2)
    # The 95 % range of a standard deviation from 4 values is 0.566 to 3.73 times it.
    assert least == pytest.approx(guess * 0.566**2, rel=0.01)
    assert most == pytest.approx(guess * 3.73**2, rel=0.01)
    # A run is never taken for less than a whole one.
    assert tables.cpu_to_error([10.0, 10.0], [0.0, 0.01])[1] == 10.0


def test_the_plans_name_every_cell_once_and_only_known_methods():
    from benchmarks.methods import METHODS

    for chosen in (plan.full(), plan.quick()):
        names = [cell.name for cell in chosen]
        assert len(names) == len(set(names))
        assert {cell.method for cell in chosen} <= set(METHODS)
        assert all(json.loads(json.dumps(cell.settings)) == cell.settings for cell in chosen)
    assert {cell.data for cell in plan.table() if cell.method == "posterior"} == set(plan.DATA)


@pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not installed")
@pytest.mark.parametrize("data", [SMALL, "simulated-150x300"])
def test_the_c_kernel_computes_the_same(data, tmp_path):
    from benchmarks import kernel

    patterns, tree = kernel.problem(data)
    values = {name: call() for name, call in kernel.both_sides(patterns, tree, tmp_path).items()}
    assert len(values) == 3
    assert list(values.values()) == pytest.approx([values["vaiphy"]] * 3, rel=1e-12)


@pytest.mark.skipif(shutil.which("mb") is None, reason="mb is not installed")
def test_mrbayes_is_read():
    settings = {"ngen": 2000, "samplefreq": 4, "nchains": 1}
    answer = worker.answer(Cell("accuracy", "simulated-5x50", "mrbayes-ss", settings=settings))
    assert answer["status"] == "done"
    assert answer["program"].startswith("MrBayes 3")
    assert -600 < answer["result"]["log_evidence"] < -50
    answer = worker.answer(Cell("truth", "simulated-5x50", "mrbayes-mcmc", settings={"ngen": 2000, "samplefreq": 10}))
    assert len(answer["result"]["trace"]) == 8
    assert sum(answer["result"]["splits"].values()) == pytest.approx(2.0, abs=0.1)  # two inner branches in every tree


def test_every_marked_figure_in_readme_and_docs_is_what_the_results_say():
    """A figure that was edited by hand, or results that came without renewing the pages, are found here."""
    found = tables.Cells(cells.load_all())
    marked = 0
    for path in claims.files():
        text = path.read_text()
        assert claims.fill(text, found) == text, f"{path.name} is out of date: python -m benchmarks --page-only"
        assert text.count("<!-- bench ") == text.count("<!-- end -->") == len(claims.MARKED.findall(text)), path.name
        marked += text.count("<!-- bench ")
    assert marked > 20


def test_marked_figures_are_renewed():
    text = "a <!-- bench seeds -->99<!-- end --> b <!-- bench evidence-table -->\n\nold\n\n<!-- end --> c"
    filled = claims.fill(text, tables.Cells([]))
    assert filled.startswith("a <!-- bench seeds -->0<!-- end --> b <!-- bench evidence-table -->\n\n| ")
    assert filled.endswith("|\n\n<!-- end --> c")
    assert "old" not in filled
    assert claims.fill(filled, tables.Cells([])) == filled
    with pytest.raises(KeyError):
        claims.fill("<!-- bench nothing-like-it -->1<!-- end -->", tables.Cells([]))


def test_programs_that_cannot_be_installed_are_named_and_nothing_fails(tmp_path):
    """Without apt-get, and as anybody but root."""
    (tmp_path / "id").write_text("#!/bin/sh\necho 1000\n")
    (tmp_path / "id").chmod(0o755)
    script = Path(__file__).parents[1] / "tools" / "peers.sh"
    done = subprocess.run(["/bin/sh", str(script), "mrbayes"], env={"PATH": str(tmp_path)}, capture_output=True, text=True)
    assert done.returncode == 0
    assert "install by other means: mrbayes" in done.stderr
