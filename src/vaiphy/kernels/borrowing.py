"""Arrays that compiled code only borrows.

Compiled code counts who holds an array, at every call of a helper and for every array in every tuple that it is handed: among
moves that call many helpers this took a fifth of the time. A kernel's arguments are held by its caller as long as it runs, so it
can go on with copies of them (not of what is in them) that nobody counts.
"""

from typing import Any

from numba.core import types
from numba.extending import lower_builtin, type_callable


def borrowed(value):
    """The same array, or tuple of arrays and numbers. For arguments of kernels that return neither them nor views of them."""
    return value


def uncounted(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    """LLVM value of an array or a tuple without an owner."""
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        for owner in ("meminfo", "parent"):
            setattr(array, owner, getattr(array, owner).type(None))
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        kinds: Any = kind
        parts = [uncounted(context, builder, part, builder.extract_value(value, i)) for i, part in enumerate(kinds)]
        return context.make_tuple(builder, kind, parts)
    return value


@type_callable(borrowed)
def _typed(context: Any) -> Any:
    return lambda value: value


@lower_builtin(borrowed, types.Any)
def _lend(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    return uncounted(context, builder, signature.args[0], args[0])
