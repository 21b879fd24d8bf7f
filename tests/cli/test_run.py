"""`vaiphy run`, `summarise`, `compare` and `report` as a user meets them."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from reference import fake_posterior
from reference.standin import NAMES, fasta, use_standin

from vaiphy import cli
from vaiphy.cli.grouped import Duration, Threads
from vaiphy.cli.progress import Pace

TESTS = Path(__file__).parents[1]
#: `vaiphy` with the stand-in, as a program of its own; each step takes some time and is saved.
PROGRAM = """
from reference import fake_posterior
from reference.standin import STANDIN
from vaiphy.methods import METHODS
from vaiphy.runner import steps
fake_posterior.SECONDS, steps.SAVE_EVERY = 0.2, 0.0
METHODS["posterior"] = STANDIN
from vaiphy.cli import main
main(prog_name="vaiphy")
"""


def vaiphy(*words, **options):
    return CliRunner().invoke(cli.main, [str(word) for word in words], catch_exceptions=False, **options)


@pytest.fixture
def data(tmp_path, monkeypatch):
    use_standin(monkeypatch)
    path = tmp_path / "apes.fasta"
    path.write_text(fasta(NAMES))
    return path


def start(*words):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(TESTS), *map(str, sys.path)])}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def wait_for_checkpoint(run, data):
    while not Path(f"{data}.ckpt").exists():
        assert run.poll() is None
        time.sleep(0.02)


def test_a_run_from_start_to_end(data, tmp_path):
    result = vaiphy("run", data, "--seed", 1)
    assert result.exit_code == 0
    assert result.stderr.startswith("VaiPhy ")
    assert "seed     1;" in result.stderr
    assert "sample  " in result.stderr
    assert "Log marginal likelihood -1000.50 ± 0.04 (unrooted binary trees" in result.stdout
    assert "The computation converged." in result.stdout
    for name in result.stdout.split("\n\n")[-1].splitlines():
        assert Path(name.split()[0]).exists()
    again = vaiphy("run", data, "--seed", 1)
    assert again.exit_code == 2
    assert "finished" in again.stderr
    assert "--redo" in again.stderr
    assert vaiphy("run", data, "--seed", 1, "--redo", "--quiet").output == ""


def test_a_computation_that_did_not_converge_says_so(data, monkeypatch):
    original = fake_posterior.result

    def doubtful(state):
        found = original(state)
        found.trust_ok, found.reasons = False, ("the replicates disagree",)
        return found

    monkeypatch.setattr(fake_posterior, "result", doubtful)
    result = vaiphy("run", data)
    assert result.exit_code == 0
    assert "The computation did not converge" in result.stdout
    assert "the replicates disagree" in result.stdout
    for suffix in (
        ".vaiphy",
        ".contree",
        ".con.tre",
        ".mcc.tre",
        ".trees.nwk",
        ".run1.t",
        ".trprobs",
        ".splits.tsv",
        ".html",
        ".json",
    ):
        assert "the replicates disagree" in Path(f"{data}{suffix}").read_text()


def test_ctrl_c_exits_with_130_and_the_same_command_goes_on(data):
    words = ("run", data, "--seed", 1)
    run = start(*words)
    wait_for_checkpoint(run, data)
    run.send_signal(signal.SIGINT)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "stopped; run the same command again (without --redo) to continue from the checkpoint" in said
    assert "Traceback" not in said
    second = start(*words)
    out, said = second.communicate(timeout=60)
    assert second.returncode == 0
    assert "continuing from the checkpoint" in said
    assert "The computation converged" in out


@pytest.mark.parametrize("loading", ["typing", "click"])
def test_ctrl_c_in_the_first_moment(tmp_path, loading):
    (tmp_path / f"{loading}.py").write_text("raise KeyboardInterrupt\n")
    code = f"import sys; sys.modules.pop({loading!r}, None); sys.path.insert(0, {str(tmp_path)!r}); from vaiphy.cli import main"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (130, "\nstopped\n")


def test_ctrl_c_while_the_command_is_looked_up(monkeypatch):
    def interrupted(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("click.Group.make_context", interrupted)
    result = vaiphy("check", "DS1")
    assert (result.exit_code, result.stderr) == (130, "\nstopped\n")


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_while_the_program_loads(data, kind):
    began = time.monotonic()
    run = start("run", data, "--seed", 1)
    assert run.stderr.readline().startswith("VaiPhy")
    took = time.monotonic() - began
    run.kill()
    run.communicate()
    for share in (1.0, 1.2, 1.5, 2.0):
        run = start("run", data, "--seed", 1)
        assert run.stderr.readline().startswith("VaiPhy")
        time.sleep((share - 1) * took)
        run.send_signal(kind)
        _, said = run.communicate(timeout=60)
        assert run.returncode == 130
        assert "stopped" in said
        assert "Aborted" not in said
        assert "Traceback" not in said


def test_ctrl_c_in_any_command_is_status_130(monkeypatch):
    from vaiphy import formats

    def interrupted(*words):
        raise KeyboardInterrupt

    monkeypatch.setattr(formats, "read_alignment", interrupted)
    result = vaiphy("check", "DS1")
    assert result.exit_code == 130
    assert result.stderr == "\nstopped\n"


def test_a_polite_kill_is_like_ctrl_c(data):
    run = start("run", data, "--seed", 1)
    wait_for_checkpoint(run, data)
    run.terminate()
    _, said = run.communicate(timeout=60)
    assert run.returncode == 130
    assert "continue from the checkpoint" in said


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to read another process's time")
def test_something_is_on_the_screen_at_once(data):
    run = start("run", data)
    assert run.stderr.readline().startswith("VaiPhy")
    # The processor's time, not the clock's: other work on the machine does not count.
    spent = Path(f"/proc/{run.pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    assert sum(map(int, spent)) / os.sysconf("SC_CLK_TCK") < 4
    run.kill()
    run.communicate()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "nothing.fasta"), "nothing.fasta: there is no such file"),
        (("run", "DS9"), "there is no such file, and no embedded data set of that name"),
        (("run", "apes.fasta", "--outgroup", "Yeti"), "the outgroup 'Yeti' is not among the taxa"),
        (("run", "apes.fasta", "--accuracy", "0"), "--accuracy: 0 is out of range; give a number from 0.0001 to 1,000"),
        (("run", "apes.fasta", "--threads", "none"), "'none' is neither a number of threads (1 to 9,999) nor 'auto'"),
        (("run", "apes.fasta", "--time-limit", "soon"), "is not a time"),
        (("run", "-"), "needs a --prefix"),
        (("run", "apes.fasta", "--seed", "-5"), "--seed: -5 is out of range; give a whole number from 0 to 2^63 - 1"),
        (("summarise", "nothing"), "there is no such file"),
        (("summarise", "apes.fasta"), "apes.fasta"),
        (("compare", "nothing", "nothing"), "there is no such file"),
        (("report", "nothing"), "is 'nothing' the prefix of a run?"),
    ],
)
def test_mistakes_are_one_clear_message_and_status_2(data, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    before = sorted(os.listdir(tmp_path))
    result = vaiphy(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_a_damaged_checkpoint_is_status_1(data):
    vaiphy("run", data, "--seed", 1)
    Path(f"{data}.ckpt").write_bytes(b"PK\x03\x04 nonsense")
    result = vaiphy("run", data, "--seed", 1)
    assert result.exit_code == 1
    assert "damaged" in result.stderr
    assert vaiphy("report", data).exit_code == 1


def test_an_unwritable_place_is_status_1(data):
    result = vaiphy("run", data, "--prefix", "/proc/vaiphy")
    assert result.exit_code == 1
    assert result.stderr.count("error:") == 1
    assert "/proc/vaiphy" in result.stderr


def test_summarise_and_compare_read_what_run_wrote(data, tmp_path):
    vaiphy("run", data, "--seed", 1, "--prefix", tmp_path / "a")
    vaiphy("run", data, "--seed", 1, "--prefix", tmp_path / "b", "--trees", 50)
    summary = vaiphy("summarise", tmp_path / "a", "--prefix", tmp_path / "s", "--outgroup", "Lemur")
    assert summary.exit_code == 0
    assert "4000 trees on 8 taxa from 4 files" in summary.stdout
    assert "Average standard deviation of split frequencies" in summary.stdout
    assert (tmp_path / "s.contree").read_text().count("Lemur") == 1
    refused = vaiphy("summarise", tmp_path / "a", "--prefix", tmp_path / "s")
    assert refused.exit_code == 2
    assert "--redo" in refused.stderr
    result = vaiphy(
        "compare", tmp_path / "a", tmp_path / "b.trees.nwk", "--plot", tmp_path / "p.svg", "--table", tmp_path / "t.tsv"
    )
    assert result.exit_code == 0
    assert "Robinson-Foulds distance of the consensus trees   0" in result.stdout
    assert (tmp_path / "p.svg").read_text().startswith("<?xml")
    assert (tmp_path / "t.tsv").read_text().splitlines()[0].split("\t") == [
        "split",
        "support_a",
        "support_b",
        "difference",
        "taxa",
    ]
    wrong = vaiphy("compare", tmp_path / "a", tmp_path / "b", "--plot", tmp_path / "p.doc")
    assert wrong.exit_code == 2


def test_burn_in_and_weights(tmp_path):
    first, second = "((a,b),(c,d),e);", "((a,c),(b,d),e);"
    (tmp_path / "x.nwk").write_text(f"{first}\n" * 3 + f"{second}\n")
    assert "0.7500" in vaiphy("summarise", tmp_path / "x.nwk").stdout
    assert "0.5000" in vaiphy("summarise", tmp_path / "x.nwk", "--burnin", 0.5).stdout
    assert vaiphy("summarise", tmp_path / "x.nwk", "--burnin", 4).exit_code == 2
    (tmp_path / "w.nex").write_text(f"#NEXUS\nbegin trees;\ntree 1 = [&W 1/5] {first}\ntree 2 = [&W 4/5] {second}\nend;\n")
    assert "probability 0.8000" in vaiphy("summarise", tmp_path / "w.nex").stdout
    assert "probability 0.5000" in vaiphy("summarise", tmp_path / "w.nex", "--ignore-weights").stdout


def test_compare_computes_what_it_says(tmp_path):
    (tmp_path / "a.nwk").write_text("((a,b),(c,d),e);\n" * 3 + "((a,c),(b,d),e);\n")
    (tmp_path / "b.nwk").write_text("((a,b),(c,d),e);\n" + "((a,c),(b,d),e);\n" * 3)
    out = vaiphy("compare", tmp_path / "a.nwk", tmp_path / "b.nwk").stdout
    assert "split frequencies   0.3536" in out  # sd of 0.75 and 0.25
    assert "split frequency           0.5000" in out
    assert "consensus trees   4" in out
    assert "tree of B      2.50   (within A 1.50, within B 1.50)" in out
    assert "share           0.500" in out
    cut = vaiphy("compare", tmp_path / "a.nwk", tmp_path / "b.nwk", "--burnin", "3,0.25")
    assert "A: " in cut.stdout
    assert "(1 tree)" in cut.stdout
    assert "(3 trees)" in cut.stdout
    assert "split frequency           0.0000" in cut.stdout
    assert vaiphy("compare", tmp_path / "a.nwk", tmp_path / "b.nwk", "--burnin", "x").exit_code == 2


def test_a_report_can_be_made_again(data, tmp_path):
    vaiphy("run", data, "--seed", 1)
    before = Path(f"{data}.html").read_bytes()
    Path(f"{data}.html").unlink()
    assert vaiphy("report", data).exit_code == 0
    assert Path(f"{data}.html").read_bytes() == before
    text = vaiphy("report", data, "--text")
    assert text.stdout.strip() == Path(f"{data}.vaiphy").read_text().strip()
    assert vaiphy("report", data, "-o", tmp_path / "new.html").exit_code == 0
    assert (tmp_path / "new.html").read_bytes() == before


def test_shell_completion_knows_the_commands():
    result = subprocess.run(
        [sys.executable, "-c", "from vaiphy.cli import main; main(prog_name='vaiphy')"],
        env=os.environ | {"_VAIPHY_COMPLETE": "bash_complete", "COMP_WORDS": "vaiphy ", "COMP_CWORD": "1"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "plain,run" in result.stdout
    assert "plain,summarise" in result.stdout


def test_values_people_write_in_several_ways():
    duration = Duration()
    assert [duration.convert(text, None, None) for text in ("90", "90s", "1.5m", "2h")] == [90, 90, 90, 7200]
    assert Threads().convert("3", None, None) == 3
    assert Threads().convert("AUTO", None, None) >= 1


def test_time_left_is_told_by_the_pace_since_the_first_report():
    pace = Pace()
    assert pace.remaining(0.1, 100) == ""
    assert pace.remaining(0.12, 101) == ""
    assert pace.remaining(0.5, 110) == "about 12 s left"
    assert pace.remaining(0.5, 1000) == "about 19 min left"
    assert pace.remaining(1.0, 2000) == ""


def test_json_is_documented(data):
    vaiphy("run", data, "--seed", 1)
    documented = (Path(__file__).parents[2] / "docs" / "formats-out.md").read_text()
    for key in json.loads(Path(f"{data}.json").read_text()):
        assert f"`{key}`" in documented
