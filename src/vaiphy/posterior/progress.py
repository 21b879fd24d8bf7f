"""How far the sampler is, in figures and in a few words."""

from dataclasses import dataclass

import numpy as np

from vaiphy.posterior import drawing as drawings
from vaiphy.posterior.agreement import split_deviation, split_error
from vaiphy.posterior.states import State

#: Share of the whole that learning is reckoned to take.
LEARNING = 0.5


@dataclass(frozen=True)
class Info:
    """The stage, the share of the whole that is done, the estimate so far (NaN if none), and a line to show."""

    stage: str
    share: float
    log_evidence: float
    std_error: float
    message: str


def describe(state: State) -> Info:
    """What a state has to tell."""
    if state.drawing is None:
        return _learning(state)
    drawing, settings = state.drawing, state.settings
    value, error = (float("nan"), float("nan"))
    if drawing.drawn:
        value, error = drawings.evidence(drawing)
    along = 0.0
    if drawing.bridge is not None:
        stages = len(drawing.ladder.betas) if drawing.ladder else 0
        sweeps = drawings.n_sweeps(drawing, settings)
        steps = len(drawing.bridge.stages) + max(len(drawing.swept) - 1, 0)
        along = steps / (stages + sweeps) if stages else drawing.bridge.beta
    if drawing.ladder is None:
        return Info(
            "ladder", LEARNING + 0.05 * along, value, error, f"pilot {len(drawing.pilots) + 1}, at {along:.2f} of the way"
        )
    wanted = float(settings.bridges or settings.replicates)
    if not settings.bridges and drawing.drawn and np.isfinite(error):
        wanted = max(wanted, len(drawing.drawn) * (error / settings.accuracy) ** 2)
        trees = drawings.effective_trees(drawing)
        wanted = max(wanted, len(drawing.drawn) * settings.min_effective / trees)
        if len(drawing.drawn) > 1:
            found = drawings.agreement(drawing)
            wanted = max(wanted, len(drawing.drawn) * (split_error(found) / settings.max_split_error) ** 2)
            if split_deviation(found) > settings.max_deviation:
                wanted = max(wanted, len(drawing.drawn) + 1.0)
        wanted = min(wanted, settings.max_bridges)
    done = min((len(drawing.drawn) + along) / wanted, 1.0)
    share = 1.0 if state.done else LEARNING + 0.05 + (0.95 - LEARNING) * done
    bridges = int(np.ceil(wanted))
    about = "" if settings.bridges else "about "
    message = f"run {min(len(drawing.drawn) + 1, bridges)} of {about}{bridges}, {drawing.n_particles} particles"
    return Info("sample", share, value, error, message)


def _learning(state: State) -> Info:
    """Each replicate is reckoned to need as many rounds as it must make at least, the first counting for most of the work."""
    shares = []
    for replicate in state.replicates:
        beta = 0.0 if replicate.bridge is None else replicate.bridge.beta**0.25
        k = len(replicate.rounds)
        shares.append(1.0 if replicate.ready else 0.7 * beta if k == 0 else min(0.7 + 0.15 * (k - 1 + beta), 0.95))
    rounds = min(len(r.rounds) for r in state.replicates) + 1
    cold = [r.bridge.beta for r in state.replicates if r.bridge is not None and not r.ready]
    message = f"round {rounds} of learning"
    if cold:
        message += f", slowest replicate at {min(cold):.3f} of the way to the posterior"
    return Info("learn", LEARNING * float(np.mean(shares)), float("nan"), float("nan"), message)
