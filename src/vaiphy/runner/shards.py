"""Runs divided into shards, for job arrays: `vaiphy run --shard 3/16 --phase learn`, the same with `draw`, then `vaiphy merge`.

Each shard has a checkpoint of its own for each phase, PREFIX.shard3of16.learn.ckpt and PREFIX.shard3of16.draw.ckpt, from which a
job that was killed goes on. Shards that do not belong together are named, all in one pass.
"""

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import sha256
from math import nan
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vaiphy import __version__
from vaiphy.alignment import Alignment, SitePatterns, compress
from vaiphy.errors import InputError
from vaiphy.formats import read_alignment
from vaiphy.formats.names import safe_names as safe_names_of
from vaiphy.kernels.announce import announced
from vaiphy.methods.outcome import Progress
from vaiphy.methods.posterior import PosteriorMethod, tuning_for
from vaiphy.methods.settings import OUTPUT_ONLY, Settings, differences
from vaiphy.methods.shards import DrawingShard, LearningShard, ShardMethod, merged, n_bridges
from vaiphy.methods.target import resolved, target_for
from vaiphy.output.analysis import Analysis, Provenance
from vaiphy.parallel import available_threads
from vaiphy.posterior import states
from vaiphy.runner import checkpoint
from vaiphy.runner.inputs import check_data, content_of
from vaiphy.runner.log import RunLog, locked
from vaiphy.runner.partitioned import partition_lines
from vaiphy.runner.run import Listener, Session
from vaiphy.runner.saved import Saved, load_saved, with_suffix
from vaiphy.runner.steps import run_steps, with_workers
from vaiphy.workers.cluster import pool_of
from vaiphy.workers.spread import Workers

LEARN, DRAW = "learn", "draw"


@dataclass(frozen=True)
class Shard:
    """Number `index` (from 1) of `n`."""

    index: int
    n: int

    def __str__(self) -> str:
        return f"{self.index} of {self.n}"

    def file(self, prefix: Path, phase: str) -> Path:
        """Its files of a phase, without the suffix."""
        return with_suffix(prefix, f".shard{self.index}of{self.n}.{phase}")


def parse_shard(text: str) -> Shard:
    """`3/16` as a shard."""
    found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not found or not 2 <= int(found[2]) <= 1000 or not 1 <= int(found[1]) <= int(found[2]):
        raise InputError(f"--shard {text}: a shard is written 3/16, the third of 16; there may be 2 to 1,000")
    return Shard(int(found[1]), int(found[2]))


@dataclass(frozen=True)
class Reading:
    """How the alignment is read, recorded so that `merge` reads it in the same way; `folder`: where its path starts."""

    alignment: str
    format: str | None = None
    matchchar: str | None = None
    missing: str | None = None
    seqtype: str | None = None
    safe_names: bool = False
    folder: str = ""

    def read(self) -> tuple[Alignment, tuple[str, ...]]:
        """The alignment, and its own names of the taxa if they were replaced."""
        path: str | Path = self.alignment
        if not Path(path).exists() and Path(self.folder, path).exists():
            path = Path(self.folder, path)
        data = replace(read_alignment(path, self.format, self.matchchar, self.missing, self.seqtype), source=self.alignment)
        if not self.safe_names:
            return data, ()
        return replace(data, taxa=safe_names_of(data.taxa)), data.taxa


def run_shard(
    reading: Reading,
    shard: Shard,
    phase: str,
    *,
    prefix: str | Path,
    seed: int,
    threads: int | None = None,
    executor: Any = None,
    partition: str | Path | None = None,
    model: str | None = None,
    outgroup: Sequence[str] = (),
    redo: bool = False,
    listener: Listener | None = None,
    **options: Any,
) -> Path:
    """One phase of one shard; returns its checkpoint. `options` are further `Settings`; each shard is a replicate."""
    listener = listener or Listener()
    if (model or "").lower() == "auto":
        raise InputError("--shard needs one model; `vaiphy models` compares them first, -m names the winner")
    data, names = reading.read()
    outgroup = [dict(zip(names, data.taxa)).get(name, name) for name in outgroup]
    check_data(data, outgroup)
    patterns, content = compress(data), content_of(data)
    parts = partition_lines(data, partition, model)
    settings = Settings(
        seed=seed, replicates=shard.n, model=None if parts else model, partition=parts, outgroup=tuple(outgroup), **options
    )
    settings = resolved(settings, patterns, data.source)
    base = shard.file(Path(prefix), phase)
    with ExitStack() as stack:
        base.parent.mkdir(parents=True, exist_ok=True)
        stack.enter_context(locked(base))
        saved = None if redo else load_saved(base)
        head: dict[str, Any] = {"version": __version__, "settings": settings.to_json()}
        head |= {
            "input": {"file": data.source, "content": content},
            "shard": [shard.index, shard.n],
            "phase": phase,
            "reading": reading.__dict__,
        }
        method: ShardMethod = LearningShard(shard.index - 1)
        if phase == DRAW:
            learned = _collected(Path(prefix), shard.n, LEARN, settings, content)
            head["learned"] = _fingerprint(learned)
            everyone = _states(learned, patterns, settings)
            method = DrawingShard(shard.index - 1, tuple(state.replicates[0] for state in everyone))
        if saved is not None and (wrong := _foreign(saved, settings, content, head.get("learned"))):
            raise InputError(f"{saved.path}: {'; '.join(wrong)}; --redo starts this shard over")
        if saved is not None and saved.finished:
            listener.say(f"{saved.path}: this shard is finished")
            return saved.path
        log = stack.enter_context(RunLog(with_suffix(base, ".log"), saved is not None))
        say = log.tee(listener.say)
        say(f"shard    {shard}, {phase}; {data.source}: {patterns.n_taxa} taxa, {patterns.n_sites} sites; seed {seed}")
        workers: Workers = threads or available_threads() if executor is None else pool_of(executor, say)
        stack.enter_context(announced(say, lambda now: listener.progress(Progress("compiling", nan, message=str(now)))))
        path = with_suffix(base, ".ckpt")

        def save(state: dict[str, NDArray], timings: dict[str, float], status: str = "running") -> None:
            arrays = {f"run/{name}": array for name, array in state.items()}
            checkpoint.save(path, head | {"status": status, "timings": timings}, arrays)

        stopped = run_steps(
            patterns, settings, threads=workers, state=None if saved is None else saved.group("run/"),
            timings={} if saved is None else saved.header["timings"], save=save,
            tell=log.progress(with_workers(listener.progress, workers)), method=method,
        )  # fmt: skip
        save(stopped.state, stopped.timings, "finished")
        say(f"finished in {log.elapsed:.1f} s: {path}")
    return path


def merge(prefix: str | Path, alignment: str | None = None, listener: Listener | None = None) -> Analysis:
    """The analysis that all shards make together, with its files; `alignment` says where that is now, if it was moved."""
    listener, base = listener or Listener(), Path(prefix)
    n = _division(base)
    one = next((found for i in range(1, n + 1) if (found := load_saved(Shard(i, n).file(base, DRAW)))), None)
    if one is None:
        raise InputError(f"{base}: no shard has drawn yet; --phase draw comes before merging")
    settings, content = one.settings, one.header["input"]["content"]
    learned = _collected(base, n, LEARN, settings, content)
    drawn = _collected(base, n, DRAW, settings, content, _fingerprint(learned))
    reading = Reading(**one.header["reading"])
    try:
        data, names = replace(reading, alignment=alignment or reading.alignment).read()
    except (InputError, OSError):
        if alignment is None and not Path(reading.folder, reading.alignment).exists():
            raise InputError(f"{reading.alignment}: the alignment is not there any more; --alignment says where it is") from None
        raise
    if content_of(data) != content:
        raise InputError(f"{data.source}: this is not the alignment that the shards were made from")
    patterns = compress(data)
    with ExitStack() as stack:
        stack.enter_context(locked(base))
        log = stack.enter_context(RunLog(with_suffix(base, ".log")))
        say = log.tee(listener.say)
        stack.enter_context(announced(say))
        say(f"merging  {n} shards; {data.source}: {patterns.n_taxa} taxa, {patterns.n_sites} sites; seed {settings.seed}")
        state = merged(_states(learned, patterns, settings), _states(drawn, patterns, settings), settings)
        settings = replace(settings, bridges=n_bridges(settings))  # those of the run that this is
        timings: dict[str, float] = {}
        for shard in (*learned, *drawn):
            for stage, seconds in shard.header["timings"].items():
                timings[stage] = timings.get(stage, 0.0) + seconds
        provenance = Provenance(__version__, f"vaiphy merge {prefix}", data.source, data.sha256 or content, available_threads())
        session = Session(base, settings, provenance, patterns, tuple(data.warnings), content, names)
        analysis = session.analysis(PosteriorMethod().outcome(state), True, timings)
        session.finish(analysis, {})
        say(f"finished in {log.elapsed:.1f} s")
    return analysis


def _states(shards: list[Saved], patterns: SitePatterns, settings: Settings) -> list[states.State]:
    target = target_for(patterns, settings)
    tuning = tuning_for(settings, target)
    return [states.from_arrays(shard.group("run/"), target, tuning) for shard in shards]


def _fingerprint(shards: list[Saved]) -> str:
    """A hash of what all shards have computed."""
    digest = sha256()
    for shard in shards:
        for name, array in sorted(shard.group("run/").items()):
            digest.update(name.encode() + b"\0" + array.tobytes())
    return digest.hexdigest()


def _division(prefix: Path) -> int:
    """Into how many shards a run is divided, by the names of the files."""
    pattern = re.compile(re.escape(prefix.name) + r"\.shard(\d+)of(\d+)\.(learn|draw)\.ckpt")
    folder = prefix.parent
    found = [match for path in sorted(folder.iterdir()) if (match := pattern.fullmatch(path.name))] if folder.is_dir() else []
    numbers = sorted({int(match[2]) for match in found})
    if not numbers:
        raise InputError(f"{prefix}: there are no shards with this prefix; `vaiphy run --shard 1/N --phase learn` makes them")
    if len(numbers) > 1:
        counts = " and of ".join(str(n) for n in numbers)
        raise InputError(f"{prefix}: there are shards of {counts}; remove those that are not wanted")
    return numbers[0]


def _collected(prefix: Path, n: int, phase: str, settings: Settings, content: str, learned: str | None = None) -> list[Saved]:
    """All shards of a phase; says which are missing, doubled or foreign."""
    problems, shards = [], []
    ladders: dict[str, str] = {}
    for shard in (Shard(i, n) for i in range(1, n + 1)):
        path = with_suffix(shard.file(prefix, phase), ".ckpt")
        saved = load_saved(shard.file(prefix, phase))
        again = f"run it with --shard {shard.index}/{n} --phase {phase}"
        if saved is None:
            problems.append(f"{path}: shard {shard} is missing; {again}")
            continue
        own = Shard(*saved.header.get("shard", (0, 0)))
        if own != shard or saved.header.get("phase") != phase:
            problems.append(f"{path}: this is a copy of shard {own} ({saved.header.get('phase')}), not shard {shard}; {again}")
        elif not saved.finished:
            problems.append(f"{path}: shard {shard} is not finished; {again}")
        elif wrong := _foreign(saved, settings, content, learned):
            problems.append(f"{path}: shard {shard} does not belong to the others: {'; '.join(wrong)}; {again} --redo")
        elif phase == DRAW and ladders.setdefault(_ladder(saved), str(path)) != next(iter(ladders.values())):
            first = next(iter(ladders.values()))
            problems.append(
                f"{path}: shard {shard} was drawn from a start that differs in its last bits from that of {first}: "
                f"another kind of processor or other versions; {again} --redo on machines of one kind"
            )
        shards.append(saved)
    if problems:
        raise InputError(*problems)
    return shards


def _ladder(saved: Saved) -> str:
    """A hash of what a shard's bridges start from."""
    digest = sha256()
    for name, array in sorted(saved.group("run/state.drawing.").items()):
        if name.split(".")[0] in ("proposal", "ladder", "n_particles"):
            digest.update(name.encode() + b"\0" + array.tobytes())
    return digest.hexdigest()


def _foreign(saved: Saved, settings: Settings, content: str, learned: str | None) -> list[str]:
    """Why a shard does not belong to a run; nothing if it does."""
    own = saved.settings
    # The number of bridges means nothing to what is learned.
    passing = OUTPUT_ONLY | ({"bridges"} if saved.header["phase"] == LEARN else set())
    reasons = [f"it has {text}" for field, text in differences(own, settings) if field not in passing]
    if saved.header["version"] != __version__:
        reasons.insert(0, f"it was made by VaiPhy {saved.header['version']}, now {__version__}")
    if saved.header["input"]["content"] != content:
        reasons.insert(0, f"it is for other data ({saved.header['input']['file']})")
    if learned is not None and saved.header.get("learned") not in (None, learned):
        reasons.append("it was drawn from what other shards have learned")
    return reasons
