"""How far the sampler is, in figures and in a few words."""

from dataclasses import dataclass

import numpy as np

from vaiphy.posterior import drawing as drawings
from vaiphy.posterior.agreement import split_deviation, split_error
from vaiphy.posterior.learning import Replicate
from vaiphy.posterior.settings import Settings
from vaiphy.posterior.states import State

#: Share of the whole that learning is reckoned to take, and all pilots; of learning that drawing its first trees does; and of the
#: pilots' share that each pilot leaves to those after it.
LEARNING, PILOTS, DRAWN, LEFT = 0.3, 0.35, 0.04, 0.65


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
    tried = LEARNING + PILOTS * (1.0 - LEFT ** (len(drawing.pilots) + (along if drawing.ladder is None else 0.0)))
    if drawing.ladder is None:
        return Info("ladder", tried, value, error, f"pilot {len(drawing.pilots) + 1}, at {along:.2f} of the way")
    wanted = float(settings.bridges or settings.replicates)
    if not settings.bridges and drawing.drawn and np.isfinite(error):
        wanted = max(wanted, len(drawing.drawn) * (error / settings.accuracy) ** 2)
        trees = drawings.effective_trees(drawing)
        wanted = max(wanted, len(drawing.drawn) * settings.min_effective / trees)
        if len(drawing.drawn) > 1:
            found = drawings.agreement(drawing)
            wrong = split_error(found, settings.reach.known)
            wanted = max(wanted, len(drawing.drawn) * (wrong / settings.max_split_error) ** 2)
            if wrong > settings.fine_split_error:
                share = drawings.cost_drawn(drawing, settings) / (settings.balance * drawing.spent)
                wanted = max(
                    wanted, min(len(drawing.drawn) / share, len(drawing.drawn) * (wrong / settings.fine_split_error) ** 2)
                )
            if split_deviation(found) > settings.max_deviation:
                wanted = max(wanted, len(drawing.drawn) + 1.0)
        wanted = min(wanted, settings.max_bridges)
    done = min((len(drawing.drawn) + along) / wanted, 1.0)
    share = 1.0 if state.done else tried + (1.0 - tried) * done
    bridges = int(np.ceil(wanted))
    about = "" if settings.bridges else "about "
    message = f"run {min(len(drawing.drawn) + 1, bridges)} of {about}{bridges}, {drawing.n_particles} particles"
    return Info("sample", share, value, error, message)


def _learning(state: State) -> Info:
    shares = [learned(replicate, state.settings) for replicate in state.replicates]
    cold = [r.bridge.beta for r in state.replicates if r.bridge is not None and not r.arrived]
    settling = [len(r.levels) for r in state.replicates if r.arrived and not r.ready]
    message = "searching for trees"
    if cold and max(cold) == 0.0:
        message += f", the first {sum(len(r.bridge.particles) for r in state.replicates if r.bridge is not None)} are drawn"
    elif cold:
        message += f", slowest replicate at {min(cold):.3f} of the way to the posterior"
    elif settling:
        message += f", {len(settling)} of {len(shares)} replicates settling, {max(settling)} sweeps so far"
    return Info("learn", LEARNING * float(np.mean(shares)), float("nan"), float("nan"), message)


def learned(replicate: Replicate, settings: Settings) -> float:
    """About what share of a replicate's work is done."""
    if replicate.ready or replicate.bridge is None:
        return float(replicate.ready)
    return DRAWN + (0.7 - DRAWN) * replicate.bridge.beta**0.25 + 0.3 * min(len(replicate.levels) / settings.most_settling, 0.9)
