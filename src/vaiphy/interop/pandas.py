"""Tables for pandas."""

from collections.abc import Mapping
from typing import Any

from vaiphy.interop.building import library


def convert(columns: Mapping[str, Any]) -> Any:
    """A `pandas.DataFrame` of named columns."""
    return library("pandas", "pandas").DataFrame(dict(columns))
