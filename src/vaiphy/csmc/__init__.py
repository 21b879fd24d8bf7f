"""Combinatorial sequential Monte Carlo: the evidence of binary trees, without bias, and weighted trees.

`run` and `estimate` are what users call; `engine` is the algorithm, `targets` what is estimated, and one file each: `vanilla`,
`support` and `jc_mixture` (the paper's phi-CSMC), `authors` (as its authors ran it), `pairwise`, `guided` (what is
recommended, made by `pilots` and `guide`).
"""

from vaiphy.csmc.authors import AuthorsParticles, JoinThree
from vaiphy.csmc.authors import bias as authors_bias
from vaiphy.csmc.effort import Effort
from vaiphy.csmc.engine import Particles
from vaiphy.csmc.guide import Reference
from vaiphy.csmc.pilots import guided_proposal, prepare, starting_topologies
from vaiphy.csmc.runs import Estimate, Name, estimate, make_proposal, run
from vaiphy.csmc.targets import Target

__all__ = [
    "AuthorsParticles",
    "Effort",
    "Estimate",
    "JoinThree",
    "Name",
    "Particles",
    "Reference",
    "Target",
    "authors_bias",
    "estimate",
    "guided_proposal",
    "make_proposal",
    "prepare",
    "run",
    "starting_topologies",
]
