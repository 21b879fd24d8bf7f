"""Runs: what is resumed is what would have been; what is finished stays; what is wrong is said in one line."""

import errno
import json
import multiprocessing
import os
import resource
import signal
import time
from hashlib import sha256
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from reference import fake_posterior
from reference.standin import NAMES, NASTY, fasta, use_standin

import vaiphy
from vaiphy.alignment import compress
from vaiphy.errors import InputError
from vaiphy.formats import parse_alignment
from vaiphy.methods import METHODS, outcome
from vaiphy.methods.settings import Settings
from vaiphy.output import words
from vaiphy.runner import run as runner
from vaiphy.runner import saved as saved_module
from vaiphy.runner import steps as steps_module
from vaiphy.runner.checkpoint import DamagedCheckpoint
from vaiphy.runner.steps import Interrupted, run_steps

REAL = METHODS["posterior"]
FILES = {
    ".vaiphy", ".html", ".json", ".contree", ".con.tre", ".mcc.tre", ".trees.nwk", ".trprobs", ".splits.tsv", ".state.gz",
    ".parts", ".tstat", ".vstat", ".beast.trees", ".beast.log", ".log", ".ckpt",
    *(f".run{r}.{k}" for r in range(1, 5) for k in "tp"),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _standin(monkeypatch):
    use_standin(monkeypatch)


@pytest.fixture
def data(tmp_path):
    path = tmp_path / "apes.fasta"
    path.write_text(fasta(NAMES))
    return path


def contents(folder, prefix="apes.fasta"):
    """All result files, without what may differ between two runs of the same analysis: times and the log."""
    found = {}
    for path in sorted(folder.iterdir()):
        suffix = path.name.removeprefix(prefix)
        if path.name.startswith(prefix) and suffix in FILES - {".log", ".ckpt"}:
            found[suffix] = path.read_bytes()
    record = json.loads(found[".json"])
    del record["timings"]
    found[".json"] = json.dumps(record).encode()
    return found


def run(data, **options):
    return runner.run(data, prefix=options.pop("prefix", data), seed=options.pop("seed", 1), command="vaiphy run x", **options)


def test_all_files_are_written(data, tmp_path):
    result = run(data)
    found = {path.name.removeprefix("apes.fasta") for path in tmp_path.iterdir()} - {""}
    assert found == FILES
    assert result.complete
    assert result.trust_ok
    record = json.loads((tmp_path / "apes.fasta.json").read_text())
    for key in ("version", "command", "seed", "threads", "input", "estimates", "trust", "asdsf", "splits", "timings", "warnings"):
        assert key in record
    assert record["input"] | {"file": ""} == {
        "file": "", "sha256": sha256(data.read_bytes()).hexdigest(), "n_taxa": 8,
        "n_sites": 60, "n_patterns": result.patterns.n_patterns,
    }  # fmt: skip
    assert set(record["estimates"]["posterior"]) == {
        "log_evidence", "std_error", "target", "n_samples", "ess", "pareto_k", "runs", "run_errors",
    }  # fmt: skip


def test_without_a_prefix_nothing_is_written(data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = vaiphy.run(data, seed=3)
    assert sorted(os.listdir(tmp_path)) == ["apes.fasta"]
    assert result.posterior.majority.n_taxa == 8
    assert "cannot" not in result._repr_html_()


def test_any_saved_state_leads_to_the_same_outcome():
    patterns = compress(parse_alignment(fasta(NAMES)))
    settings = Settings(seed=5)
    saved = []
    ticks = (3.0**k for k in count())  # later and later, so that a checkpoint is due after each step
    whole = run_steps(patterns, settings, save=lambda state, times: saved.append(state), clock=ticks.__next__)
    assert len(saved) == fake_posterior.STEPS
    _, expected = outcome.to_arrays(whole.outcome)
    for state in saved:
        _, found = outcome.to_arrays(run_steps(patterns, settings, state=state).outcome)
        assert found.keys() == expected.keys()
        assert all(found[name].tobytes() == expected[name].tobytes() for name in expected)


def _child(path, prefix, seconds):
    fake_posterior.SECONDS = seconds
    runner.run(path, prefix=prefix, seed=7, command="vaiphy run x")


def _kill_again_and_again(data, tmp_path, seconds, duration):
    """Kill twenty runs at random moments; each that got to its end, and the last, must have the expected result."""
    expected = contents(tmp_path / "whole")
    fork = multiprocessing.get_context("fork")
    rng = np.random.default_rng(3)
    kills = 0
    while kills < 20:
        child = fork.Process(target=_child, args=(data, tmp_path / "killed" / "apes.fasta", seconds))
        child.start()
        child.join(float(rng.uniform(0, duration)))
        if child.is_alive():
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        child.join()
        saved = saved_module.load_saved(tmp_path / "killed" / "apes.fasta")
        if saved is not None and saved.finished:  # perhaps killed just behind the finish
            assert contents(tmp_path / "killed") == expected
            for path in (tmp_path / "killed").iterdir():
                path.unlink()
    _child(data, tmp_path / "killed" / "apes.fasta", 0.0)
    assert contents(tmp_path / "killed") == expected
    assert not [path for path in (tmp_path / "killed").iterdir() if path.name.endswith(".tmp")]


def _measure(data, tmp_path, seconds):
    """How long an uninterrupted run takes, whose files go to `whole`."""
    (tmp_path / "whole").mkdir()
    (tmp_path / "killed").mkdir()
    _child(data, tmp_path / "whole" / "first", seconds)  # compiles
    began = time.monotonic()
    _child(data, tmp_path / "whole" / "apes.fasta", seconds)
    return time.monotonic() - began


def test_killed_at_twenty_random_moments_the_result_is_the_same(data, tmp_path, monkeypatch):
    monkeypatch.setattr(steps_module, "SAVE_EVERY", 0.0)
    monkeypatch.setattr(fake_posterior, "SECONDS", 0.01)
    _kill_again_and_again(data, tmp_path, 0.01, _measure(data, tmp_path, 0.01))


@pytest.mark.slow
def test_killed_at_twenty_random_moments_with_the_real_sampler(data, tmp_path, monkeypatch):
    monkeypatch.setitem(METHODS, "posterior", REAL)
    monkeypatch.setattr(steps_module, "SAVE_EVERY", 0.0)
    data.write_text(fasta(NAMES, n_sites=100))
    _kill_again_and_again(data, tmp_path, 0.0, _measure(data, tmp_path, 0.0))


@pytest.mark.parametrize("compiled", [False, True])
def test_ctrl_c_leaves_a_checkpoint_and_goes_on(data, tmp_path, monkeypatch, compiled):
    steps = count(1)
    original = fake_posterior.step

    def interrupted(state, threads=1):
        if next(steps) == 4:
            if compiled:  # a signal that falls into a call of compiled code
                raise SystemError("returned a result with an exception set") from KeyboardInterrupt()
            raise KeyboardInterrupt
        return original(state, threads)

    monkeypatch.setattr(fake_posterior, "step", interrupted)
    with pytest.raises(Interrupted) as stop:
        run(data)
    assert stop.value.saved
    header, arrays = runner.checkpoint.load(tmp_path / "apes.fasta.ckpt")
    assert header["status"] == "running"
    assert arrays["run/count"] == 3
    lines = []
    run(data, listener=runner.Listener(lines.append))
    assert any("continuing from the checkpoint" in line for line in lines)
    first = contents(tmp_path)
    run(data, redo=True)
    assert contents(tmp_path) == first


def test_threads_do_not_matter(data, tmp_path):
    run(data, threads=1)
    first = contents(tmp_path)
    run(data, threads=2, redo=True)
    second = contents(tmp_path)
    record = json.loads(first.pop(".json")), json.loads(second.pop(".json"))
    assert first == second
    assert record[0] | {"threads": 2} == record[1]


def test_a_drawn_seed_is_recorded_and_kept(data, tmp_path, monkeypatch):
    monkeypatch.setattr(fake_posterior, "STEPS", 10**9)
    with monkeypatch.context() as patch:
        patch.setattr(runner.secrets, "randbelow", lambda n: 4711)
        patch.setattr(steps_module, "SAVE_EVERY", 0.0)
        patch.setattr(fake_posterior, "result", lambda state: 1 / 0)
        calls = count()
        original = fake_posterior.step
        patch.setattr(fake_posterior, "step", lambda s, threads=1: original(s) if next(calls) < 3 else 1 / 0)
        with pytest.raises(ZeroDivisionError):
            runner.run(data, prefix=data)
    monkeypatch.setattr(fake_posterior, "STEPS", 10)
    result = runner.run(data, prefix=data, command="vaiphy run apes.fasta")
    assert result.settings.seed == 4711
    assert result.provenance.command == "vaiphy run apes.fasta --seed 4711"


def test_a_finished_run_is_not_overwritten(data, tmp_path):
    run(data)
    before = contents(tmp_path)
    with pytest.raises(InputError, match=r"apes\.fasta: a run with this prefix is finished; --redo"):
        run(data)
    with pytest.raises(InputError, match=r"finished, with seed 1, now 2; replicates 4, now 5; --redo"):
        run(data, seed=2, replicates=5)
    assert contents(tmp_path) == before
    run(data, seed=2, redo=True)
    assert contents(tmp_path) != before


def _interrupt(data, monkeypatch, **options):
    with monkeypatch.context() as patch:
        calls = count()
        original = fake_posterior.step

        def step(state, threads=1):
            if next(calls) == 4:
                raise KeyboardInterrupt
            return original(state, threads)

        patch.setattr(fake_posterior, "step", step)
        with pytest.raises(Interrupted):
            run(data, **options)


def test_other_settings_or_another_input_are_explained(data, tmp_path, monkeypatch):
    _interrupt(data, monkeypatch)
    with pytest.raises(InputError, match=r"unfinished run with this prefix had accuracy 0.1, now 0.2; --redo"):
        run(data, accuracy=0.2)
    data.write_text(fasta(NAMES, seed=9))
    with pytest.raises(InputError, match=r"another input \(then .*apes.fasta, now .*apes.fasta, with other content\)"):
        run(data)
    data.write_text(fasta(NAMES))
    run(data, n_trees=50, outgroup=("Lemur",))  # settings that only change the files may change
    assert len((tmp_path / "apes.fasta.trees.nwk").read_text().splitlines()) == 50


def test_another_version_is_refused(data, monkeypatch):
    _interrupt(data, monkeypatch)
    monkeypatch.setattr(saved_module, "__version__", "99.0")
    with pytest.raises(InputError, match=r"was made by VaiPhy 0\.1\.0"):
        run(data)


def test_a_truncated_checkpoint_is_one_clear_line(data, tmp_path):
    run(data)
    before = contents(tmp_path)
    path = tmp_path / "apes.fasta.ckpt"
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(DamagedCheckpoint, match="damaged"):
        run(data)
    assert contents(tmp_path) == before
    run(data, redo=True)
    assert contents(tmp_path) == before


def test_fewer_replicates_remove_the_files_of_the_others(data, tmp_path):
    run(data)
    run(data, replicates=2, redo=True)
    assert not (tmp_path / "apes.fasta.run3.t").exists()
    assert (tmp_path / "apes.fasta.run2.t").exists()


def test_a_full_disk_leaves_the_earlier_files(data, tmp_path):
    run(data)
    before = contents(tmp_path)
    fork = multiprocessing.get_context("fork")

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, 60_000))  # as if the disk were full after 60 kB of a file
        try:
            run(data, seed=2, redo=True)
        except OSError as error:
            os._exit(40 if error.errno == errno.EFBIG and "apes.fasta" in str(error.filename) else 41)
        os._exit(42)

    child = fork.Process(target=limited)
    child.start()
    child.join()
    assert child.exitcode == 40
    assert contents(tmp_path) == before
    assert not [path for path in tmp_path.iterdir() if path.name.endswith(".tmp")]


def test_two_runs_do_not_share_a_prefix(data):
    with runner.locked(data), pytest.raises(InputError, match="another run with this prefix is in progress"):
        run(data)


def test_a_time_limit_gives_the_best_answer_so_far(data, tmp_path, monkeypatch):
    monkeypatch.setattr(fake_posterior, "SECONDS", 0.05)
    monkeypatch.setattr(steps_module, "RESERVE", 0.0)
    early = run(data, time_limit=0.1)
    assert not early.complete
    assert not early.trust_ok
    assert early.outcome.sample.n_samples == 600  # the first sample there was; earlier there was nothing honest to say
    text = (tmp_path / "apes.fasta.vaiphy").read_text()
    assert "time limit ended the run before the computation converged" in " ".join(text.split())
    assert " ".join(text.split("\nMODEL\n")[0].split()).count("time limit") == 1
    for suffix in (".con.tre", ".mcc.tre", ".run1.t", ".trprobs", ".contree", ".trees.nwk", ".splits.tsv", ".html"):
        assert "time limit" in (tmp_path / f"apes.fasta{suffix}").read_text()
    assert json.loads((tmp_path / "apes.fasta.json").read_text())["complete"] is False
    late = run(data)  # without the limit it goes on from there
    assert late.complete
    assert late.outcome.sample.n_samples == 1000
    first = contents(tmp_path)
    run(data, redo=True)
    assert contents(tmp_path) == first


def test_a_finished_run_is_loaded_as_it_was(data):
    result = run(data, outgroup=("Lemur", "Tarsius"))
    again = saved_module.load_analysis(data)
    assert repr(again.estimate) == repr(result.estimate)  # NaN, where there is no Pareto k, differs from itself
    assert again.settings == result.settings
    assert again.posterior.splits.support == pytest.approx(result.posterior.splits.support)
    assert again.consensus.labels == result.consensus.labels
    with pytest.raises(InputError, match="is 'nothing' the prefix of a run"):
        saved_module.load_analysis("nothing")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"outgroup": ("Yeti",)}, "the outgroup 'Yeti' is not among the taxa"),
        ({"method": "magic"}, "there is no method 'magic'"),
        ({"accuracy": 0.0}, r"must be from 0\.0001 to 1,000, not 0\.0"),
        ({"replicates": 1}, "the number of replicates must be from 2 to 1,000, not 1"),
        ({"time_limit": -1.0}, "time limit must be a positive number of seconds"),
        ({"prior_rate": float("nan")}, "must be from .* not nan"),
    ],
)
def test_bad_settings(data, tmp_path, options, message):
    with pytest.raises(InputError, match=message):
        run(data, **options)
    assert {path.name for path in tmp_path.iterdir()} <= {"apes.fasta"}


def test_three_taxa_are_too_few(tmp_path):
    path = tmp_path / "few.fasta"
    path.write_text(fasta(NAMES[:3]))
    with pytest.raises(InputError, match="3 taxa; at least 4 are needed"):
        run(path)


def test_resampling_keeps_topology_probabilities(data):
    result = run(data)
    exact = np.bincount(result.outcome.sample.topology, weights=result.outcome.sample.weights)
    exact = np.sort(exact[exact > 0])[::-1]
    found = np.sort(np.bincount(result.trees.topology) / 1000)[::-1]
    assert found == pytest.approx(exact[: len(found)], abs=0.0011)
    assert result.trees.weights == pytest.approx(0.001)


def test_safe_names_come_with_a_table(tmp_path, monkeypatch):
    use_standin(monkeypatch)
    path = tmp_path / "nasty.fasta"
    path.write_text(fasta([name.replace(" ", "~").replace(">", "}") for name in NASTY]))
    result = run(path, safe_names=True, outgroup=("it's",))
    table = [line.split("\t") for line in Path(f"{path}.names.tsv").read_text().splitlines()]
    assert table[0] == ["name", "name_in_input"]
    assert [row[0] for row in table[1:]] == list(result.patterns.taxa)
    assert ["it_s", "it's"] in table
    assert result.settings.outgroup == ("it_s",)
    assert "'" not in Path(f"{path}.trees.nwk").read_text()
    assert saved_module.load_analysis(path).input_names == result.input_names
    plain = run(path, prefix=tmp_path / "plain")
    assert plain.input_names == ()
    assert not (tmp_path / "plain.names.tsv").exists()


def test_the_model_is_checked_apart_from_convergence(data):
    result = run(data)
    assert [found.name for found in result.predictive] == [
        "composition",
        "composition of taxa",
        "site rates",
        "pairwise distances",
    ]
    head, *details = words.model_sentences(result)
    assert len(details) == sum(not found.fits for found in result.predictive)
    text = " ".join(Path(f"{data}.vaiphy").read_text().split())
    assert "MODEL" in text
    assert head in text
    assert 'id="model"' in Path(f"{data}.html").read_text()
    record = json.loads(Path(f"{data}.json").read_text())["model_checks"]
    assert [row["p"] for row in record] == [found.p for found in result.predictive]
