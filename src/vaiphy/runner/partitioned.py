"""Which parts a run has: those of a partition file, or those that the alignment itself consists of."""

from pathlib import Path

from vaiphy.alignment import Alignment
from vaiphy.formats.partitions import own_partition, read_partition
from vaiphy.methods.parts import with_models


def partition_lines(data: Alignment, partition: str | Path | None, model: str | None) -> tuple[str, ...]:
    """The parts as settings record them, each with its model; none where one model is for all sites.

    `partition` is a file, or a name in the alignment's own NEXUS file (see `formats.partitions`).
    """
    if partition is None and not data.blocks:
        return ()
    subsets = own_partition(data) if partition is None else read_partition(partition, data, data.nexus)
    return tuple(str(subset) for subset in with_models(subsets, data, model))
