"""The methods behind `vaiphy run --method`, each as the same sequence of bounded steps.

A method turns settings and data into a state, moves it on one step at a time, says when it is done, writes its state as
plain arrays, and hands over an `Outcome`. All chance comes from the seed in the settings and from counters in the state,
so a state that was written and read again goes on exactly as it would have.
"""

from importlib import import_module

from vaiphy.errors import InputError
from vaiphy.methods.method import Method, NotYet
from vaiphy.methods.settings import Settings

__all__ = ["METHODS", "Method", "NotYet", "method_of"]

#: Name -> module and class; what `--method` offers.
METHODS = {
    "posterior": ("vaiphy.methods.posterior", "PosteriorMethod"),
    "vaiphy": ("vaiphy.methods.variational", "VariationalMethod"),
    "phi-csmc": ("vaiphy.methods.combinatorial", "CombinatorialMethod"),
    "csmc": ("vaiphy.methods.combinatorial", "CombinatorialMethod"),
    "vbpi": ("vaiphy.methods.vbpi", "VbpiMethod"),
}


def method_of(settings: Settings) -> Method:
    """The method the settings ask for."""
    if settings.method not in METHODS:
        raise InputError(f"there is no method {settings.method!r}; there are {', '.join(METHODS)}")
    module, name = METHODS[settings.method]
    found: Method = getattr(import_module(module), name)()
    return found
