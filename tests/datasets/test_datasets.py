"""The embedded alignments: sizes, sources, and the counts that IQ-TREE gives for them."""

import gzip
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

from vaiphy import datasets
from vaiphy.errors import InputError
from vaiphy.formats import read_alignment
from vaiphy.summary.description import describe

# patterns, parsimony-informative, singleton and constant sites, as printed by
# `iqtree2 -s DS1.fa -m JC -n 0` (IQ-TREE 2.0.7), DS1.fa being the embedded file.
IQTREE = {
    "DS1": (934, 206, 167, 1576),
    "DS2": (1246, 875, 401, 1244),
    "DS3": (1020, 932, 129, 751),
    "DS4": (768, 456, 221, 460),
    "DS5": (256, 193, 55, 130),
    "DS6": (489, 244, 124, 765),
    "DS7": (1037, 953, 124, 747),
    "DS8": (406, 229, 95, 684),
}
PACKAGE = Path("/usr/share/doc/beast2-mcmc/examples/benchmark/mrbayes")


@pytest.mark.parametrize("name", datasets.DATASETS)
def test_sizes_and_counts(name):
    record, data = datasets.DATASETS[name], datasets.load(name)
    assert (data.n_taxa, data.n_sites) == (record.n_taxa, record.n_sites)
    assert (data.sites > 0).all()
    found = describe(data)
    assert (found.n_patterns, found.n_informative, found.n_singleton, found.n_constant) == IQTREE[name]


@pytest.mark.parametrize("name", datasets.DATASETS)
def test_the_reader_of_files_agrees(name, tmp_path):
    path = tmp_path / "x"
    path.write_bytes((files(datasets) / f"{name}.fasta.gz").read_bytes())
    data, again = datasets.load(name), read_alignment(path)
    assert again.taxa == data.taxa
    assert np.array_equal(again.sites, data.sites)


@pytest.mark.skipif(not PACKAGE.exists(), reason="needs Debian's package beast2-mcmc-examples")
@pytest.mark.parametrize("name", datasets.DATASETS)
def test_same_as_the_source(name):
    data = datasets.load(name)
    source = read_alignment(PACKAGE / f"testHKY{datasets.DATASETS[name].legacy_id[1:]}.nex.gz")
    assert source.taxa == data.taxa
    assert np.array_equal(source.sites, data.sites)


def test_small_and_untouched():
    packed = [(files(datasets) / f"{name}.fasta.gz").read_bytes() for name in datasets.DATASETS]
    assert sum(map(len, packed)) < 300_000
    assert b"UACCUGGUUGAUCC" in gzip.decompress(packed[0])  # RNA letters and small ones stay as they were
    assert b"ctgcac" in gzip.decompress(packed[4])


def test_names():
    assert datasets.load("ds5").source == "DS5"
    with pytest.raises(InputError, match="DS1, DS2"):
        datasets.load("DS12")
