"""What `vaiphy --version` prints: our version, and those of what results and speed depend on."""

import platform
from importlib.metadata import PackageNotFoundError, version

from vaiphy import __version__
from vaiphy.parallel import available_threads

#: Named in this order.
PACKAGES = ("numpy", "numba", "llvmlite", "scipy")


def describe() -> str:
    """The first line is ours alone, for scripts; the second is for reports of problems."""
    found = ", ".join(f"{name} {_installed(name)}" for name in PACKAGES)
    system = f"{platform.system()} {platform.machine()}"
    return f"vaiphy {__version__}\nPython {platform.python_version()}, {found}; {available_threads()} threads; {system}"


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(not installed)"
