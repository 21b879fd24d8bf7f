"""Less time in Numba itself while it compiles, with the same code coming out.

Most of the first start on a machine is Numba's own Python. Four habits of it are cheap to spare: the collector of garbage walks
again and again over what is all in use; options of compilation are compared one by one at every look into a cache; variables are
searched for by trying what a part of an instruction might be; and for every + and every index all ways to add or to look up are
tried in turn, with an account of why each was not the right one. What is changed has no public name; where a name is gone, Numba
works as it does by itself.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


@contextmanager
def no_garbage() -> Iterator[None]:
    """Leave the collector of garbage off while this lasts."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def compare_options_at_once() -> None:
    """Options that were set in the same way are equal, without asking for each of them, set or not."""
    from numba.core import targetconfig

    TargetConfig: Any = targetconfig.TargetConfig
    one_by_one = TargetConfig.__eq__
    hashes: dict[type, int] = {}

    def same(self: Any, other: Any) -> Any:
        if isinstance(other, TargetConfig) and type(self) is type(other) and self._values == other._values:
            return True
        return one_by_one(self, other)

    def hashed(self: Any) -> int:
        kind = type(self)
        if kind not in hashes:
            hashes[kind] = hash(tuple(sorted(self.options)))
        return hashes[kind]

    if hasattr(TargetConfig(), "_values"):
        TargetConfig.__eq__, TargetConfig.__hash__ = same, hashed


def find_variables_by_type() -> None:
    """Look at the exact type of a part of an instruction first; what is none of the usual ones goes the long way."""
    from numba.core import ir as representation

    ir: Any = representation
    long_way, variable, leaves = ir.Inst._rec_list_vars, ir.Var, {str, int, bool, float, type(None), ir.Loc}

    def variables(self: Any, value: Any) -> list[Any]:
        kind = type(value)
        if kind is variable:
            return [value]
        if kind in leaves:
            return []
        if kind not in (dict, list, tuple):
            return list(long_way(self, value))
        found: list[Any] = []
        for part in value.values() if kind is dict else value:
            if type(part) is variable:
                found.append(part)
            elif type(part) not in leaves:
                found += variables(self, part)
        return found

    ir.Inst._rec_list_vars = variables


def remember_operators() -> None:
    """The way to type an operator that was right for operands of these types is right again, and needs no account of the others.

    What no way fits goes to Numba's own search, for what that says about it.
    """
    from numba.core.errors import NumbaError
    from numba.core.target_extension import get_local_target
    from numba.core.types import functions as types_of_functions
    from numba.core.utils import order_by_target_specificity

    functions: Any = types_of_functions
    in_turn, plain = functions.BaseFunction.get_call_type, functions._unlit_non_poison
    right: dict[Any, tuple[Any, bool]] = {}

    def remembered(self: Any, context: Any, args: Any, kws: Any) -> Any:
        if kws or type(self) is not functions.Function or getattr(self.typing_key, "__module__", "") != "_operator":
            return in_turn(self, context, args, kws)
        target = get_local_target(context)
        asked = (self.templates, target, tuple(args))
        ways = [right[asked]] if asked in right else []
        for template in () if ways else order_by_target_specificity(target, self.templates, fnkey=self.key[0]):
            ways += [(template, literally) for literally in ((True, False) if template.prefer_literal else (False, True))]
        for template, literally in ways:
            way = template(context)
            with suppress(NumbaError):
                signature = way.apply(args if literally else tuple(map(plain, args)), kws)
                if signature is not None:
                    self._impl_keys[signature.args] = way.get_impl_key(signature)
                    right[asked] = template, literally
                    return signature
        return in_turn(self, context, args, kws)

    functions.BaseFunction.get_call_type = remembered


def spare() -> None:
    """Do all of that, as far as this Numba has what it takes."""
    for change in (compare_options_at_once, find_variables_by_type, remember_operators):
        with suppress(ImportError, AttributeError, TypeError):
            change()
