"""`vaiphy.compare_models`: the evidence of one model after another, each started from the trees of the best one so far.

Every model has a checkpoint of its own, PREFIX.models.NAME.ckpt, so that a comparison that was killed goes on where it was,
and models can be added later.
"""

import secrets
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vaiphy import __version__
from vaiphy.alignment import Alignment, SitePatterns, compress, too_few_taxa
from vaiphy.errors import InputError
from vaiphy.formats import read_alignment
from vaiphy.formats.constraints import constraint_of, lines_of
from vaiphy.formats.partitions import Subset, read_partition
from vaiphy.kernels.announce import announced
from vaiphy.methods import outcome
from vaiphy.methods.evidence import EvidenceMethod, given_trees
from vaiphy.methods.outcome import Outcome, Progress
from vaiphy.methods.settings import Settings, differences
from vaiphy.methods.target import target_for
from vaiphy.models.defaults import default_model
from vaiphy.models.grammar import parse
from vaiphy.models.ladders import ladder, with_invariable
from vaiphy.output.model_table import contents
from vaiphy.parallel import available_threads
from vaiphy.runner import checkpoint
from vaiphy.runner.constrained import Clades, ConstraintTree, arranged, wanted_of
from vaiphy.runner.inputs import content_of
from vaiphy.runner.log import RunLog, locked
from vaiphy.runner.run import Listener
from vaiphy.runner.saved import load_saved, with_suffix
from vaiphy.runner.steps import run_steps, with_workers
from vaiphy.summary.model_comparison import ModelComparison, ModelEvidence, compared
from vaiphy.workers.cluster import pool_of
from vaiphy.workers.spread import Workers

#: Ends the label of a model that each part has for itself.
EACH_PART = " each part"


def compare_models(
    alignment: str | Path | Alignment,
    *,
    models: Sequence[str] = (),
    prefix: str | Path | None = None,
    partition: str | Path | None = None,
    part_rates: str = "free",
    seed: int | None = None,
    threads: int | None = None,
    accuracy: float = 0.1,
    length_prior: str = "exp(10)",
    format: str | None = None,
    matchchar: str | None = None,
    missing: str | None = None,
    seqtype: str | None = None,
    constraint: ConstraintTree = None,
    monophyletic: Clades = (),
    not_monophyletic: Clades = (),
    redo: bool = False,
    listener: Listener | None = None,
    executor: Any = None,
) -> ModelComparison:
    """Evidences of several models of one alignment, with Bayes factors and posterior probabilities.

    `models` are model strings; without any, a ladder of about a dozen for the kind of data. With a `partition` each model is
    tried once for all sites and once for each part separately. Constraints are those of `vaiphy.run`. With a `prefix` there are
    checkpoints and result files. `executor` does the heavy work elsewhere, as in `run`.
    """
    listener = listener or Listener()
    data = alignment if isinstance(alignment, Alignment) else read_alignment(alignment, format, matchchar, missing, seqtype)
    if message := too_few_taxa(data):
        raise InputError(message)
    data, want = arranged(data, wanted_of(data, constraint, monophyletic, not_monophyletic))
    subsets = () if partition is None else read_partition(partition, data, data.nexus)
    names = _names(models, data, subsets)
    base = None if prefix is None else with_suffix(Path(prefix), ".models")
    with ExitStack() as stack:
        if base is not None:
            base.parent.mkdir(parents=True, exist_ok=True)
            stack.enter_context(locked(base))
        used = _seed(seed, base, names[0], redo)
        log = stack.enter_context(RunLog(None if base is None else with_suffix(base, ".log")))
        stack.enter_context(announced(log.tee(listener.say)))
        common = Settings(
            seed=used, accuracy=accuracy, length_prior=length_prior, part_rates=part_rates, constraints=lines_of(want, data.taxa)
        )
        workers = threads or available_threads() if executor is None else pool_of(executor, log.tee(listener.say))
        run = _Ladder(base, compress(data), content_of(data), workers, redo, log.tee(listener.say), listener)
        run.say(f"input    {data.source}: {data.n_taxa} taxa, {data.n_sites} sites; seed {used}")
        if allowed := constraint_of(common.constraints, data.taxa):
            run.say(f"         {allowed.words(data.taxa)}")
        found = run.all([_candidate(name, (), common) for name in names])
        if not models:
            richer = with_invariable({row.model: row.log_evidence for row in found}, data.alphabet)
            found += run.all([_candidate(name, (), common) for name in richer])
        if len(subsets) > 1:
            every = names if models else (*names, *richer)
            found += run.all([_candidate(name, subsets, common) for name in every])
        result = compared(found)
        if base is not None:
            with checkpoint.batch() as files:
                for suffix, content in contents(result, used, data.source):
                    files.write(with_suffix(base, suffix), content)
        run.say(result.verdict())
    return result


@dataclass(frozen=True)
class _Candidate:
    label: str
    settings: Settings


class _Ladder:
    """Models done so far, and the best of them, whose trees the next one starts from."""

    def __init__(
        self, base: Path | None, patterns: SitePatterns, content: str, workers: Workers, redo: bool, say: Callable[[str], None],
        listener: Listener,
    ) -> None:  # fmt: skip
        self.say = say
        self._base, self._patterns, self._content = base, patterns, content
        self._workers, self._redo, self._listener = workers, redo, listener
        self._best: tuple[str, Outcome] | None = None
        self._done = 0

    def all(self, candidates: list[_Candidate]) -> list[ModelEvidence]:
        """Evidences of some models, in the order given."""
        total = self._done + len(candidates)
        return [self._one(candidate, total) for candidate in candidates]

    def _one(self, candidate: _Candidate, total: int) -> ModelEvidence:
        path = None if self._base is None else with_suffix(self._base, "." + _file_name(candidate.label))
        settings = candidate.settings
        saved = None if path is None or self._redo else load_saved(path)
        header: dict[str, Any] = {} if saved is None else saved.header
        start = header.get("started_from", self._best[0] if self._best else "")
        if saved is not None:
            other = [text for _, text in differences(saved.settings, settings)]
            if saved.header["input"]["content"] != self._content:
                other.insert(0, "another input")
            if other or saved.header["version"] != __version__:
                reason = "; ".join(other) or f"VaiPhy {saved.header['version']}"
                raise InputError(
                    f"{saved.path}: an earlier comparison had {reason}; --redo starts over, another --prefix leaves it alone"
                )
        if saved is not None and saved.finished:
            result = outcome.from_arrays(self._patterns.taxa, header["outcome"], saved.group("outcome/"))
            timings = header["timings"]
        else:
            result, timings = self._run(candidate, path, start, saved, total)
        row = _row(candidate, result, self._patterns, start, timings)
        self._done += 1
        self.say(f"{row.model:<24} {row.log_evidence:12.2f} ± {row.std_error:.2f}   {row.seconds:.0f} s")
        if self._best is None or row.log_evidence > self._best[1].estimates["posterior"].log_evidence:
            self._best = (row.model, result)
        return row

    def _run(
        self, candidate: _Candidate, path: Path | None, start: str, saved: Any, total: int
    ) -> tuple[Outcome, dict[str, float]]:
        settings = candidate.settings
        sample = None if self._best is None or saved is not None else self._best[1].sample
        method = EvidenceMethod(None if sample is None else given_trees(sample), reused=bool(start))
        head = {"version": __version__, "settings": settings.to_json(), "started_from": start}
        head["input"] = {"content": self._content}

        def save(state: dict[str, Any], timings: dict[str, float]) -> None:
            assert path is not None
            arrays = {f"run/{name}": array for name, array in state.items()}
            checkpoint.save(with_suffix(path, ".ckpt"), head | {"status": "running", "timings": timings}, arrays)

        def tell(progress: Progress) -> None:
            share = (self._done + progress.progress) / total
            self._listener.progress(replace(progress, stage=candidate.label, progress=share))

        stopped = run_steps(
            self._patterns, settings, threads=self._workers, state=None if saved is None else saved.group("run/"),
            timings=None if saved is None else saved.header["timings"], save=None if path is None else save,
            tell=with_workers(tell, self._workers), method=method,
        )  # fmt: skip
        if path is not None:
            header, arrays = outcome.to_arrays(stopped.outcome)
            full = head | {"status": "finished", "timings": stopped.timings, "outcome": header}
            checkpoint.save(with_suffix(path, ".ckpt"), full, {f"outcome/{name}": array for name, array in arrays.items()})
        return stopped.outcome, stopped.timings


def _names(models: Sequence[str], data: Alignment, subsets: tuple[Subset, ...]) -> tuple[str, ...]:
    """Canonical model strings to compare; all data must be of one kind."""
    if data.blocks:
        raise InputError(f"{data.source}: models are compared for one kind of data at a time; here are {data.alphabet.kind}")
    if not models:
        return ladder(data.alphabet, default_model(compress(data)).endswith("+ASC"))
    names: list[str] = []
    problems: list[str] = []
    for text in models:
        try:
            names.append(str(parse(text, data.alphabet)))
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError(*problems)
    if len({name.endswith("+ASC") for name in names}) > 1:
        raise InputError(
            "marginal likelihoods with and without +ASC are of different data and cannot be compared; "
            "give +ASC to all models or none"
        )
    return tuple(dict.fromkeys(names))


def _candidate(name: str, subsets: tuple[Subset, ...], common: Settings) -> _Candidate:
    """A model for all sites, or, with `subsets`, for each of them separately."""
    if subsets:
        lines = tuple(str(Subset(subset.name, name, subset.ranges)) for subset in subsets)
        return _Candidate(f"{name}{EACH_PART}", replace(common, partition=lines))
    return _Candidate(name, replace(common, model=name))


def _row(candidate: _Candidate, found: Outcome, patterns: SitePatterns, start: str, timings: dict[str, float]) -> ModelEvidence:
    estimate = found.estimates["posterior"]
    n_parameters = target_for(patterns, candidate.settings).n_parameters
    return ModelEvidence(
        candidate.label, estimate.log_evidence, estimate.std_error, n_parameters, found.trust_ok, found.reasons, start,
        sum(timings.values()),
    )  # fmt: skip


def _seed(seed: int | None, base: Path | None, first: str, redo: bool) -> int:
    """The seed given, else that of the comparison that goes on, else a new one."""
    if seed is not None:
        return seed
    saved = None if base is None or redo else load_saved(with_suffix(base, "." + _file_name(first)))
    return secrets.randbelow(2**31) if saved is None else saved.settings.seed


def _file_name(label: str) -> str:
    return "".join(c if c.isalnum() or c in "+-._" else "_" for c in label)
