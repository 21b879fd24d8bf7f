"""States as plain arrays and back: every dataclass of this room, by its fields' types.

What a state shares with the whole run (`Target`, settings) is not written: it is handed in when a state is read.
"""

from dataclasses import fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import NDArray


def to_arrays(value: Any, given: tuple[type, ...], name: str = "state") -> dict[str, NDArray]:
    """`value` as arrays with dotted names; values of the types `given` are left out."""
    if isinstance(value, given):
        return {}
    if value is None:
        return {f"{name}.none": np.array(1)}
    if is_dataclass(value) or hasattr(value, "_fields"):
        names = value._fields if hasattr(value, "_fields") else [f.name for f in fields(value)]
        return _merged(to_arrays(getattr(value, part), given, f"{name}.{part}") for part in names)
    if isinstance(value, tuple):
        items = _merged(to_arrays(item, given, f"{name}.{i}") for i, item in enumerate(value))
        return {f"{name}.size": np.array(len(value)), **items}
    return {name: np.asarray(value)}


def from_arrays(kind: Any, arrays: dict[str, NDArray], given: dict[type, Any], name: str = "state") -> Any:
    """The value of type `kind` that `to_arrays` wrote."""
    if kind in given:
        return given[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if f"{name}.none" in arrays:
            return None
        return from_arrays(next(option for option in inner if option is not NoneType), arrays, given, name)
    if origin is tuple:
        size = int(arrays[f"{name}.size"])
        kinds = [inner[0]] * size if inner[-1] is Ellipsis else inner
        return tuple(from_arrays(item, arrays, given, f"{name}.{i}") for i, item in enumerate(kinds))
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        names = kind._fields if hasattr(kind, "_fields") else [f.name for f in fields(kind)]
        return kind(**{part: from_arrays(hints[part], arrays, given, f"{name}.{part}") for part in names})
    value = arrays[name]
    if kind in (int, float, bool, str):
        return kind(value.item())
    # Arrays, and the scalars among the tables of the kernels.
    return value if value.ndim else value.item()


def _merged(parts: Any) -> dict[str, NDArray]:
    return {key: value for part in parts for key, value in part.items()}
