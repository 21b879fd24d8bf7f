"""`-m auto`: models are compared first, and the winner is taken."""

from pathlib import Path
from typing import Any

from vaiphy.alignment import Alignment
from vaiphy.errors import InputError
from vaiphy.formats.partitions import read_partition
from vaiphy.runner.ladder import EACH_PART, compare_models


def winner(data: Alignment, *, partition: str | Path | None, **options: Any) -> tuple[str, str | Path | None]:
    """The model with the highest evidence, and the partition if each part should have it for itself, else None.

    `options` are those of `compare_models`, which says by how much it won.
    """
    if partition is not None:
        named = [subset.name for subset in read_partition(partition, data, data.nexus) if subset.model]
        if named:
            advice = "-m auto chooses one for all parts, so write DNA (or AA, BIN, MULTI)"
            raise InputError(f"{partition}: part '{named[0]}' names its model; {advice}")
    found = compare_models(data, partition=partition, **options)
    name = found.best.model
    return name.removesuffix(EACH_PART), partition if name.endswith(EACH_PART) else None
