"""`vaiphy.run`: from an alignment to an Analysis, with files, checkpoints and a log if a prefix is given.

A run that was killed goes on from its last checkpoint when it is started again in the same way, and ends with the same
result; a finished one is not overwritten unless asked; settings or input that differ from the checkpoint's are explained.
"""

import secrets
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from math import nan
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vaiphy import __version__
from vaiphy.alignment import Alignment, SitePatterns, compress
from vaiphy.errors import InputError
from vaiphy.formats import read_alignment
from vaiphy.formats.constraints import lines_of
from vaiphy.formats.names import safe_names as safe_names_of
from vaiphy.kernels.announce import announced
from vaiphy.methods import METHODS, outcome
from vaiphy.methods.outcome import Progress
from vaiphy.methods.settings import Settings
from vaiphy.methods.target import resolved, target_for
from vaiphy.output.analysis import Analysis, Provenance
from vaiphy.output.files import SUFFIXES, contents
from vaiphy.output.page import page
from vaiphy.parallel import available_threads
from vaiphy.runner import checkpoint
from vaiphy.runner.ahead import compiled_ahead
from vaiphy.runner.constrained import Clades, ConstraintTree, arranged, wanted_of
from vaiphy.runner.inputs import check_data, content_of, introduce
from vaiphy.runner.log import RunLog, locked
from vaiphy.runner.mrbayes import from_block, note
from vaiphy.runner.partitioned import partition_lines
from vaiphy.runner.saved import Saved, check_saved, load_saved, with_suffix
from vaiphy.runner.steps import run_steps, with_workers
from vaiphy.workers.cluster import pool_of
from vaiphy.workers.spread import Workers


@dataclass(frozen=True)
class Listener:
    """Where a run says what it does: lines for the log, and progress."""

    say: Callable[[str], None] = lambda line: None
    progress: Callable[[Progress], None] = lambda progress: None


def run(
    alignment: str | Path | Alignment | Any,
    *,
    prefix: str | Path | None = None,
    method: str = "posterior",
    seed: int | None = None,
    threads: int | None = None,
    replicates: int = 4,
    accuracy: float = Settings.accuracy,
    model: str | None = None,
    length_prior: str | None = None,
    prior_rate: float | None = None,
    tree_law: str | None = None,
    iterations: int | None = None,
    particles: int | None = None,
    proposal: str | None = None,
    flow: str | None = None,
    base: str | None = None,
    bridges: int | None = None,
    prior_only: bool = False,
    outgroup: Sequence[str] = (),
    format: str | None = None,
    matchchar: str | None = None,
    missing: str | None = None,
    seqtype: str | None = None,
    n_trees: int = 1000,
    safe_names: bool = False,
    partition: str | Path | None = None,
    part_rates: str = "free",
    constraint: ConstraintTree = None,
    monophyletic: Clades = (),
    not_monophyletic: Clades = (),
    mrbayes_block: bool = False,
    time_limit: float | None = None,
    redo: bool = False,
    command: str = "",
    listener: Listener | None = None,
    executor: Any = None,
) -> Analysis:
    """Infer the posterior of trees and the marginal likelihood of an alignment: a file, "DS1" to "DS8", an `Alignment`, or an
    alignment of Biopython, scikit-bio or cogent3.

    With a `prefix` all result files are written and the run can be interrupted and continued; without, nothing is. `threads`
    of None means all cores; results do not depend on it. `model` is a model string as IQ-TREE writes them ("GTR+I+G4",
    "HKY{2.0}+F", "LG+G4") or "auto": models are compared first (`compare_models`), and the one with the highest evidence is
    taken. `length_prior` is "exp(RATE)" or "gammadir(aT,bT,a,c)"; `prior_rate` is short for the former. `partition` is a
    partition file (RAxML or NEXUS) or the name of a charpartition in the alignment's own file; each part has its own model
    (`model` where it names none) and, with `part_rates` "free", its own rate. `constraint` is a constraint tree, a file or a
    Newick string, of all taxa or some; `monophyletic` and `not_monophyletic` are clades (lists of names) that all trees must or
    must not have. `mrbayes_block` takes model, priors, partition, outgroup and constraints from the mrbayes block of the
    alignment's file, where they are not given here. `prior_only` leaves the data out and samples the prior. `bridges` is a fixed
    number of final bridges, whatever their accuracy. `proposal` is that of the
    method phi-csmc ("guided", "pairwise", "paper", "authors"), `flow` ("none", "planar", "realnvp") and `base` ("lognormal",
    "jc") are those of the method vbpi. `time_limit` is in seconds. A seed is drawn if none is given. `safe_names`
    gives the taxa names that every program reads; PREFIX.names.tsv is the table. `executor` does the heavy work elsewhere: a Dask
    `Client`, or any executor as in `concurrent.futures` (processes, MPI); the result is the same to the last bit.

    >>> analysis = run("DS1", seed=1)                                               # doctest: +SKIP
    >>> analysis.log_evidence, analysis.std_error                                   # doctest: +SKIP
    """
    # In one piece: the steps of a run, one after the other, from input to files.
    if method not in METHODS:
        raise InputError(f"there is no method {method!r}; there are {', '.join(METHODS)}")
    if time_limit is not None and not 0 < time_limit < float("inf"):
        raise InputError(f"the time limit must be a positive number of seconds, not {time_limit}")
    if executor is not None and method != "posterior":
        raise InputError(f"the method {method} works on this machine alone; --cluster (executor) is for --method posterior")
    listener = listener or Listener()
    stem = None if prefix is None else Path(prefix)
    data = alignment if isinstance(alignment, Alignment) else read_alignment(alignment, format, matchchar, missing, seqtype)
    block = from_block(data) if mrbayes_block else None
    if block is not None:
        data = replace(data, warnings=(*data.warnings, *block.warnings))
        length_prior = length_prior or (block.length_prior if prior_rate is None else None)
        outgroup, part_rates = outgroup or block.outgroup, block.part_rates if partition is None else part_rates
        given = constraint is not None or len(monophyletic) + len(not_monophyletic) > 0
        constraint = constraint if given else block.constraint
    data, want = arranged(data, wanted_of(data, constraint, monophyletic, not_monophyletic))
    names: tuple[str, ...] = ()
    if safe_names:
        names, data = data.taxa, replace(data, taxa=safe_names_of(data.taxa))
        outgroup = [dict(zip(names, data.taxa)).get(name, name) for name in outgroup]
    content = content_of(data)
    check_data(data, outgroup)
    if method == "posterior" and (model or "").lower() == "auto":
        from vaiphy.runner.auto import winner  # it compares models by means of this module

        model, partition = winner(
            data, prefix=prefix, partition=partition, part_rates=part_rates, seed=seed, threads=threads, redo=redo,
            length_prior=length_prior or f"exp({10.0 if prior_rate is None else prior_rate:.15g})", listener=listener,
            executor=executor,
            constraint=want,
        )  # fmt: skip
    if block is not None and model is None and partition is None:
        model, parts = block.model, block.parts
    else:
        parts = partition_lines(data, partition, model) if method == "posterior" or partition is not None else ()
    patterns = compress(data)
    with ExitStack() as stack:
        if stem is not None:
            stem.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(stem))
        saved = None if stem is None or redo else load_saved(stem)
        settings = Settings(
            seed=_choose_seed(seed, saved),
            method=method,
            replicates=replicates,
            accuracy=accuracy,
            model=None if parts else model,
            length_prior=length_prior or f"exp({10.0 if prior_rate is None else prior_rate:.15g})",
            tree_law=tree_law,
            iterations=iterations,
            particles=particles,
            proposal=proposal,
            flow=flow,
            base=base,
            bridges=bridges,
            prior_only=prior_only,
            outgroup=tuple(outgroup),
            n_trees=n_trees,
            partition=parts,
            part_rates=part_rates,
            constraints=lines_of(want, data.taxa),
        )
        settings = resolved(settings, patterns, data.source)
        if saved is not None:
            check_saved(saved, settings, data.source, content)
        log = stack.enter_context(RunLog(None if stem is None else with_suffix(stem, ".log"), saved is not None))
        say = log.tee(listener.say)
        command = command or f"vaiphy.run({data.source!r}, seed={settings.seed})"
        if seed is None and "seed" not in command:
            command += f" --seed {settings.seed}"
        provenance = Provenance(__version__, command, data.source, data.sha256 or content, threads or available_threads())
        workers: Workers = provenance.threads if executor is None else pool_of(executor, say)
        introduce(say, settings, provenance, patterns, data, saved)
        session = Session(stem, settings, provenance, patterns, tuple(data.warnings), content, names)
        if remark := block.sentence if block else note(data):
            say(f"note: {remark}")
        watch = stack.enter_context(announced(say, lambda now: listener.progress(Progress("compiling", nan, message=str(now)))))
        if executor is None and method == "posterior":
            stack.enter_context(compiled_ahead(target_for(patterns, settings), provenance.threads))
        stopped = run_steps(
            patterns,
            settings,
            threads=workers,
            state=None if saved is None else saved.group("run/"),
            timings={} if saved is None else saved.header["timings"],
            time_limit=time_limit,
            save=None if stem is None else session.save,
            tell=log.progress(with_workers(listener.progress, workers)),
        )
        analysis = session.analysis(stopped.outcome, stopped.complete, stopped.timings)
        if stem is not None:
            main = analysis.estimate
            listener.progress(Progress("files", 1.0, main.log_evidence, main.std_error, "summaries and files"))
            try:
                session.finish(analysis, {} if stopped.complete else stopped.state)
            except OSError as problem:
                advice = "the results could not be written; make room and run the same command again (without --redo)"
                raise OSError(problem.errno, f"{problem.strerror}; {advice}", problem.filename) from None
        if watch.seconds:
            say(f"compiling took {watch.seconds:.1f} s; the next start on this machine needs none")
        say(f"finished in {log.elapsed:.1f} s")
    return analysis


@dataclass(frozen=True)
class Session:
    """Writes checkpoints and, in the end, files."""

    prefix: Path | None
    settings: Settings
    provenance: Provenance
    patterns: SitePatterns
    warnings: tuple[str, ...]
    content: str
    names: tuple[str, ...]

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
        return Analysis(self.settings, self.provenance, self.patterns, found, complete, timings, self.warnings, self.names)

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
                "input_names": list(self.names),
                "alphabet": [patterns.alphabet.name, patterns.alphabet.n_states],
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


def _choose_seed(seed: int | None, saved: Saved | None) -> int:
    if seed is not None:
        return seed
    return saved.settings.seed if saved is not None and not saved.finished else secrets.randbelow(2**31)
