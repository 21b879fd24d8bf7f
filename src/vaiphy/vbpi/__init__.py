"""Variational Bayesian phylogenetic inference (Zhang and Matsen 2019; Zhang 2020): VBPI and VBPI-NF.

Trees have a subsplit network for their distribution (`network`, over the trees that `support` finds), branch lengths a base
distribution by split and subsplit pair (`bases`) with a flow on top (`flows`). `training` maximises the bound, `estimates`
turns the result into lower bounds and an evidence. PyTorch is needed for the lengths' derivatives and for nothing else.
"""

from importlib.util import find_spec

from vaiphy.errors import InputError

__all__ = ["require_torch"]


def require_torch() -> None:
    """Raise if PyTorch is not there."""
    if find_spec("torch") is None:
        raise InputError("the method vbpi needs PyTorch, which is not installed; get it with: pip install 'vaiphy[vbpi]'")
