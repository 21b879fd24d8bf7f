"""Job arrays: shards of a run, put together, are the run, to the last bit; shards that do not belong together are named."""

import json
import shutil
from dataclasses import replace

import pytest

from vaiphy.errors import InputError
from vaiphy.runner import checkpoint, shards
from vaiphy.runner.run import run
from vaiphy.runner.saved import load_saved
from vaiphy.runner.shards import Reading, Shard, merge, parse_shard, run_shard

ALIGNMENT = ">a\nACGTACGTAC\n>b\nACGTACGAAC\n>c\nACGAACGAAC\n>d\nTCGAACGATC\n>e\nTCGAACCATC\n"
OPTIONS = {"accuracy": 1.0, "particles": 16, "model": "JC", "n_trees": 10}
N = 3


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """All shards of a run, finished, and the prefix they have."""
    folder = tmp_path_factory.mktemp("shards")
    file = folder / "five.fasta"
    file.write_text(ALIGNMENT)
    for phase in (shards.LEARN, shards.DRAW):
        for i in range(1, N + 1):
            one(folder / "r", file, i, phase)
    return folder


def one(prefix, file, index, phase, **options):
    return run_shard(Reading(str(file)), Shard(index, N), phase, prefix=prefix, **{"seed": 4, "bridges": 4, **OPTIONS, **options})


@pytest.fixture
def copy(made, tmp_path):
    """The shards once more, to be spoiled."""
    for path in made.iterdir():
        shutil.copy(path, tmp_path)
    return tmp_path


def edited(path, **changes):
    header, arrays = checkpoint.load(path)
    header.pop("format")
    checkpoint.save(path, header | changes, arrays)


def problems(folder):
    with pytest.raises(InputError) as found:
        merge(folder / "r")
    return found.value.problems


def test_merged_shards_are_the_run(made, tmp_path):
    """Also the shard that draws two of the four bridges, in its order."""
    whole = run(made / "five.fasta", prefix=tmp_path / "whole", seed=4, replicates=N, bridges=4, **OPTIONS)
    together = merge(made / "r")
    assert (together.log_evidence, together.std_error) == (whole.log_evidence, whole.std_error)
    assert len(whole.estimate.runs) == 4
    assert together.estimate.runs == whole.estimate.runs
    for name in ("lengths", "log_weights", "children", "topology", "replicate", "z"):
        assert getattr(together.outcome.sample, name).tobytes() == getattr(whole.outcome.sample, name).tobytes()
    assert together.outcome.trace == whole.outcome.trace
    for suffix in (".trees.nwk", ".run2.t", ".run3.p", ".splits.tsv", ".con.tre", ".beast.trees"):
        assert (made / f"r{suffix}").read_bytes() == (tmp_path / f"whole{suffix}").read_bytes()
    one_json, other = (json.loads(path.read_text()) for path in (made / "r.json", tmp_path / "whole.json"))
    assert one_json["estimates"] == other["estimates"]
    assert one_json["settings"] == other["settings"]


def test_a_finished_shard_is_left_alone_and_an_unfinished_one_goes_on(copy):
    path = copy / "r.shard2of3.learn.ckpt"
    before = load_saved(copy / "r.shard2of3.learn")
    assert one(copy / "r", copy / "five.fasta", 2, "learn") == path
    assert load_saved(copy / "r.shard2of3.learn").header == before.header
    edited(path, status="running")
    assert "shard 2 of 3 is not finished" in problems(copy)[0]
    one(copy / "r", copy / "five.fasta", 2, "learn")
    after = load_saved(copy / "r.shard2of3.learn")
    assert after.finished
    assert after.group("run/").keys() == before.group("run/").keys()


def test_missing_shards_are_named(copy):
    (copy / "r.shard1of3.draw.ckpt").unlink()
    (copy / "r.shard3of3.draw.ckpt").unlink()
    found = problems(copy)
    assert len(found) == 2
    assert "r.shard1of3.draw.ckpt: shard 1 of 3 is missing; run it with --shard 1/3 --phase draw" in found[0]
    assert "shard 3 of 3 is missing" in found[1]
    (copy / "r.shard2of3.learn.ckpt").unlink()
    with pytest.raises(InputError, match=r"shard 2 of 3 is missing; run it with --shard 2/3 --phase learn"):
        one(copy / "r", copy / "five.fasta", 1, "draw")


def test_a_doubled_shard_is_named(copy):
    shutil.copy(copy / "r.shard1of3.draw.ckpt", copy / "r.shard2of3.draw.ckpt")
    (line,) = problems(copy)
    assert "r.shard2of3.draw.ckpt: this is a copy of shard 1 of 3 (draw), not shard 2 of 3" in line
    shutil.copy(copy / "r.shard1of3.draw.ckpt", copy / "r.shard1of8.draw.ckpt")
    assert "there are shards of 3 and of 8" in problems(copy)[0]


def test_shards_of_another_seed_version_data_or_start_are_named(copy):
    one(copy / "r", copy / "five.fasta", 2, "learn", seed=5, redo=True)
    (line,) = problems(copy)
    assert "r.shard2of3.learn.ckpt: shard 2 of 3 does not belong to the others: it has seed 5, now 4" in line
    shutil.copy(copy / "r.shard3of3.learn.ckpt", copy / "keep")
    one(copy / "r", copy / "five.fasta", 2, "learn", redo=True)
    edited(copy / "r.shard3of3.learn.ckpt", version="0.0.9")
    (line,) = problems(copy)
    assert "it was made by VaiPhy 0.0.9, now" in line
    shutil.copy(copy / "keep", copy / "r.shard3of3.learn.ckpt")
    other = copy / "other.fasta"
    other.write_text(ALIGNMENT.replace("TCGAACCATC", "TCGAACCATG"))
    one(copy / "r", other, 3, "learn", redo=True)
    (line,) = problems(copy)
    assert "it is for other data (" in line
    shutil.copy(copy / "keep", copy / "r.shard3of3.learn.ckpt")
    header, arrays = checkpoint.load(copy / "keep")
    header.pop("format")
    arrays["run/state.replicates.0.levels"] = arrays["run/state.replicates.0.levels"] + 1e-9
    checkpoint.save(copy / "r.shard3of3.learn.ckpt", header, arrays)
    found = problems(copy)
    assert len(found) == N
    assert "it was drawn from what other shards have learned" in found[0]


def test_a_start_that_differs_in_its_last_bits_is_named(copy):
    header, arrays = checkpoint.load(copy / "r.shard3of3.draw.ckpt")
    header.pop("format")
    name = "run/state.drawing.ladder.betas.0"
    arrays[name] = arrays[name] * (1 + 1e-15)
    checkpoint.save(copy / "r.shard3of3.draw.ckpt", header, arrays)
    (line,) = problems(copy)
    assert "shard 3 of 3 was drawn from a start that differs in its last bits" in line


def test_a_moved_alignment_is_asked_for(copy):
    for path in copy.glob("r.shard*.ckpt"):
        reading = {**Reading(str(copy / "gone.fasta")).__dict__}
        edited(path, reading=reading)
    assert "gone.fasta: the alignment is not there any more; --alignment says where it is" in problems(copy)[0]
    assert merge(copy / "r", str(copy / "five.fasta")).complete
    (copy / "new.fasta").write_text(ALIGNMENT.replace("A", "C"))
    with pytest.raises(InputError, match="not the alignment that the shards were made from"):
        merge(copy / "r", str(copy / "new.fasta"))


def test_what_is_no_shard_is_refused(tmp_path):
    assert parse_shard("3/16") == Shard(3, 16)
    for text in ("0/4", "5/4", "1/1", "x", "1/1001", "-1/4"):
        with pytest.raises(InputError, match="a shard is written 3/16"):
            parse_shard(text)
    with pytest.raises(InputError, match="there are no shards with this prefix"):
        merge(tmp_path / "none")
    with pytest.raises(InputError, match="needs one model"):
        one(tmp_path / "r", "x", 1, "learn", model="auto")
    assert replace(Reading("a"), safe_names=True).safe_names
