"""`vaiphy.run`: from an alignment to an Analysis, with files, checkpoints and a log if a prefix is given.

A run that was killed goes on from its last checkpoint when it is started again in the same way, and ends with the same
result; a finished one is not overwritten unless asked; settings or input that differ from the checkpoint's are explained.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vaiphy import __version__, checkpoint, outcome
from vaiphy.alignment import Alignment, SitePatterns, compress
from vaiphy.analysis import Analysis, Provenance, run_steps
from vaiphy.datasets import DATASETS
from vaiphy.errors import InputError
from vaiphy.formats import read_alignment
from vaiphy.kernels.announce import announced
from vaiphy.methods import METHODS
from vaiphy.outcome import Progress
from vaiphy.parallel import available_threads
from vaiphy.report.files import SUFFIXES, contents
from vaiphy.report.page import page
from vaiphy.runlog import RunLog, locked
from vaiphy.settings import OUTPUT_ONLY, Settings, differences

MIN_TAXA = 4


@dataclass(frozen=True)
class Listener:
    """Where a run says what it does: lines for the log, and progress."""

    say: Callable[[str], None] = lambda line: None
    progress: Callable[[Progress], None] = lambda progress: None


@dataclass(frozen=True)
class Saved:
    """A checkpoint of an earlier run with the same prefix."""

    path: Path
    header: dict[str, Any]
    arrays: dict[str, NDArray]

    @property
    def settings(self) -> Settings:
        return Settings.from_json(self.header["settings"])

    @property
    def finished(self) -> bool:
        return bool(self.header["status"] == "finished")

    def group(self, name: str) -> dict[str, NDArray]:
        return {key.removeprefix(name): value for key, value in self.arrays.items() if key.startswith(name)}


def run(
    alignment: str | Path | Alignment,
    *,
    prefix: str | Path | None = None,
    method: str = "posterior",
    seed: int | None = None,
    threads: int | None = None,
    replicates: int = 4,
    accuracy: float = 0.05,
    prior_rate: float = 10.0,
    tree_law: str | None = None,
    iterations: int | None = None,
    particles: int | None = None,
    outgroup: Sequence[str] = (),
    format: str | None = None,
    matchchar: str | None = None,
    missing: str | None = None,
    n_trees: int = 1000,
    time_limit: float | None = None,
    redo: bool = False,
    command: str = "",
    listener: Listener | None = None,
) -> Analysis:
    """Infer the posterior of trees and the evidence of an alignment (a file, "DS1" to "DS8", or an `Alignment`).

    With a `prefix` all result files are written and the run can be interrupted and continued; without, nothing is. `threads`
    of None means all cores; results do not depend on it. `time_limit` is in seconds. A seed is drawn if none is given.

    >>> analysis = run("DS1", seed=1)                                               # doctest: +SKIP
    >>> analysis.log_evidence, analysis.std_error                                   # doctest: +SKIP
    """
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
    if time_limit is not None and not time_limit > 0:
        raise InputError(f"the time limit must be positive, not {time_limit}")
    listener = listener or Listener()
    base = None if prefix is None else Path(prefix)
    data, digest = _read(alignment, format, matchchar, missing)
    content = _content(data)
    _check(data, outgroup)
    patterns = compress(data)
    with ExitStack() as stack:
        if base is not None:
            base.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(base))
        saved = None if base is None or redo else load_saved(base)
        settings = Settings(
            seed=_choose_seed(seed, saved),
            method=method,
            replicates=replicates,
            accuracy=accuracy,
            prior_rate=prior_rate,
            tree_law=tree_law,
            iterations=iterations,
            particles=particles,
            outgroup=tuple(outgroup),
            n_trees=n_trees,
        )
        if saved is not None:
            _check_saved(saved, settings, data.source, content)
        log = stack.enter_context(RunLog(None if base is None else with_suffix(base, ".log"), saved is not None))
        say = log.tee(listener.say)
        command = command or f"vaiphy.run({data.source!r}, seed={settings.seed})"
        if seed is None and "seed" not in command:
            command += f" --seed {settings.seed}"
        provenance = Provenance(__version__, command, data.source, digest, threads or available_threads())
        _introduce(say, settings, provenance, patterns, data, saved)
        session = _Session(base, settings, provenance, patterns, tuple(data.warnings), content)
        watch = stack.enter_context(announced(say))
        stopped = run_steps(
            patterns,
            settings,
            threads=provenance.threads,
            state=None if saved is None else saved.group("run/"),
            timings={} if saved is None else saved.header["timings"],
            time_limit=time_limit,
            save=None if base is None else session.save,
            tell=log.progress(listener.progress),
        )
        analysis = session.analysis(stopped.outcome, stopped.complete, stopped.timings)
        if base is not None:
            main = analysis.estimate
            listener.progress(Progress("files", 1.0, main.log_evidence, main.std_error, "summaries and files"))
            try:
                session.finish(analysis, {} if stopped.complete else stopped.state)
            except OSError as problem:
                advice = "the results could not be written; when there is room, the same command (without --redo) goes on"
                raise OSError(problem.errno, f"{problem.strerror}; {advice}", problem.filename) from None
        if watch.seconds:
            say(f"compiling took {watch.seconds:.1f} s; the next start on this machine needs none")
        say(f"finished in {log.elapsed:.1f} s")
    return analysis


def load_analysis(prefix: str | Path) -> Analysis:
    """The Analysis of a finished run (or one that its time limit ended), from its checkpoint."""
    saved = load_saved(Path(prefix))
    if saved is None:
        raise InputError(f"{with_suffix(Path(prefix), '.ckpt')}: there is no such file; is {str(prefix)!r} the prefix of a run?")
    if saved.header["status"] == "running":
        raise InputError(f"{saved.path}: this run is not finished; start it again with the same command to go on")
    header, data = saved.header, saved.group("data/")
    patterns = SitePatterns(tuple(header["taxa"]), data["codes"], data["counts"], data["site_pattern"])
    return Analysis(
        saved.settings,
        Provenance(**header["provenance"]),
        patterns,
        outcome.from_arrays(patterns.taxa, header["outcome"], saved.group("outcome/")),
        header["status"] == "finished",
        header["timings"],
        tuple(header["warnings"]),
    )


def load_saved(prefix: Path) -> Saved | None:
    """The checkpoint of a prefix, None if there is none; raises `DamagedCheckpoint`."""
    path = with_suffix(prefix, ".ckpt")
    try:
        header, arrays = checkpoint.load(path)
    except FileNotFoundError:
        return None
    return Saved(path, header, arrays)


def with_suffix(prefix: Path, suffix: str) -> Path:
    """PREFIX.suffix, whatever dots the prefix has."""
    return prefix.with_name(prefix.name + suffix)


@dataclass(frozen=True)
class _Session:
    """Writes checkpoints and, in the end, files."""

    prefix: Path | None
    settings: Settings
    provenance: Provenance
    patterns: SitePatterns
    warnings: tuple[str, ...]
    content: str

    def _header(self, status: str, timings: dict[str, float]) -> dict[str, Any]:
        return {
            "version": __version__,
            "status": status,
            "settings": self.settings.to_json(),
            "input": {"file": self.provenance.file, "content": self.content},
            "timings": timings,
        }

    def save(self, state: dict[str, NDArray], timings: dict[str, float]) -> None:
        assert self.prefix is not None
        arrays = {f"run/{name}": array for name, array in state.items()}
        checkpoint.save(with_suffix(self.prefix, ".ckpt"), self._header("running", timings), arrays)

    def analysis(self, found: outcome.Outcome, complete: bool, timings: dict[str, float]) -> Analysis:
        return Analysis(self.settings, self.provenance, self.patterns, found, complete, timings, self.warnings)

    def finish(self, analysis: Analysis, state: dict[str, NDArray]) -> None:
        """All files at once, the finished checkpoint among them; files that this run has not made are removed."""
        assert self.prefix is not None
        began = time.monotonic()
        header, arrays = outcome.to_arrays(analysis.outcome)
        saved = {f"run/{name}": array for name, array in state.items()}
        saved |= {f"outcome/{name}": array for name, array in arrays.items()}
        patterns = self.patterns
        saved |= {"data/codes": patterns.codes, "data/counts": patterns.counts, "data/site_pattern": patterns.site_pattern}
        written = set()
        with checkpoint.batch() as batch:
            for suffix, content in contents(analysis, self.prefix.name):
                batch.write(with_suffix(self.prefix, suffix), content)
                written.add(suffix)
            batch.write(with_suffix(self.prefix, ".html"), page(analysis))
            analysis.timings["files"] = analysis.timings.get("files", 0.0) + time.monotonic() - began
            full = self._header("finished" if analysis.complete else "stopped", analysis.timings) | {
                "outcome": header,
                "taxa": list(patterns.taxa),
                "provenance": self.provenance.__dict__,
                "warnings": list(self.warnings),
            }
            checkpoint.write_checkpoint(batch, with_suffix(self.prefix, ".ckpt"), full, saved)
        for old in _old_files(self.prefix) - written:
            with_suffix(self.prefix, old).unlink(missing_ok=True)


def _old_files(prefix: Path) -> set[str]:
    """Suffixes of result files that are there."""
    own = {suffix for suffix in SUFFIXES if suffix not in (".html", ".log", ".ckpt")}
    runs = {
        path.name.removeprefix(prefix.name) for k in "tp" for path in prefix.parent.glob(f"{_literal(prefix.name)}.run[0-9]*.{k}")
    }
    return {suffix for suffix in own | runs if with_suffix(prefix, suffix).exists()}


def _literal(name: str) -> str:
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def _read(
    alignment: str | Path | Alignment, format: str | None, matchchar: str | None, missing: str | None
) -> tuple[Alignment, str]:
    """The alignment and the SHA-256 of its file (of its content, if there is no file)."""
    if isinstance(alignment, Alignment):
        return alignment, _content(alignment)
    data = read_alignment(alignment, format, matchchar, missing)
    path = Path(alignment)
    if path.is_file():
        return data, sha256(path.read_bytes()).hexdigest()
    if str(alignment).upper() in DATASETS:
        return data, sha256((files("vaiphy.datasets") / f"{data.source}.fasta.gz").read_bytes()).hexdigest()
    return data, _content(data)


def _content(data: Alignment) -> str:
    """What the analysis depends on: taxa and sites, however they were written."""
    return sha256("\n".join(data.taxa).encode() + b"\n" + data.sites.tobytes()).hexdigest()


def _check(data: Alignment, outgroup: Sequence[str]) -> None:
    problems = [f"{data.source}: the outgroup {name!r} is not among the taxa" for name in outgroup if name not in data.taxa]
    if data.n_taxa < MIN_TAXA:
        problems.append(f"{data.source}: {data.n_taxa} taxa; at least {MIN_TAXA} are needed for there to be a choice of trees")
    if len(set(outgroup)) > data.n_taxa - 2:
        problems.append(f"{data.source}: the outgroup leaves fewer than two taxa")
    if problems:
        raise InputError(*problems)


def _choose_seed(seed: int | None, saved: Saved | None) -> int:
    if seed is not None:
        return seed
    return saved.settings.seed if saved is not None and not saved.finished else secrets.randbelow(2**31)


def _check_saved(saved: Saved, settings: Settings, source: str, content: str) -> None:
    """Whether the run may go on from a checkpoint; explains why not."""
    ways = "--redo starts over and replaces its files; another --prefix leaves them alone"
    name = str(saved.path).removesuffix(".ckpt")
    reasons = [d for field, d in differences(saved.settings, settings) if field not in OUTPUT_ONLY]
    if saved.header["input"]["content"] != content:
        reasons.insert(0, f"another input (then {saved.header['input']['file']}, now {source}, with other content)")
    if saved.finished:
        other = f", with {'; '.join(reasons)}" if reasons else ""
        raise InputError(f"{name}: a run with this prefix is finished{other}; {ways}")
    if reasons:
        raise InputError(f"{name}: an unfinished run with this prefix had {'; '.join(reasons)}; {ways}")
    if saved.header["version"] != __version__:
        raise InputError(f"{name}: an unfinished run with this prefix was made by VaiPhy {saved.header['version']}; {ways}")


def _introduce(
    say: Callable[[str], None],
    settings: Settings,
    provenance: Provenance,
    patterns: SitePatterns,
    data: Alignment,
    saved: Saved | None,
) -> None:
    say(f"command  {provenance.command}")
    say(f"input    {data.source}: {patterns.n_taxa} taxa, {patterns.n_sites} sites, {patterns.n_patterns} patterns")
    say(f"seed     {settings.seed}; {provenance.threads} threads")
    for warning in data.warnings:
        say(f"warning: {warning}")
    if saved is not None:
        spent = sum(saved.header["timings"].values())
        say(f"going on from the checkpoint {saved.path} ({spent:.0f} s of work done)")
