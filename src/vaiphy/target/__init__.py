"""What is inferred: site patterns x substitution models x priors. The only thing that samplers know of data and models."""

from vaiphy.target.making import target_of
from vaiphy.target.parts import Part
from vaiphy.target.simple import SimpleTarget
from vaiphy.target.target import Target

__all__ = ["Part", "SimpleTarget", "Target", "target_of"]
