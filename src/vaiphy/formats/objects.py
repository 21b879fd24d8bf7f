"""Alignments from objects of other libraries: Biopython, scikit-bio and cogent3.

An object is recognised by the module its class comes from, so none of these libraries is imported here, or needed.
"""

from collections.abc import Callable, Iterable
from typing import Any

from vaiphy.alignment import Alignment, AlignmentError
from vaiphy.formats.matrix import Matrix, Record
from vaiphy.formats.validation import assemble

Rows = Iterable[tuple[Any, Any]]


def from_object(thing: object, missing: str = "", matchchar: str = "", seqtype: str = "") -> Alignment:
    """The alignment in an object of another library; `AlignmentError` with everything that is wrong with it.

    `seqtype` names the alphabet ("": guessed, as for a file).
    """
    found = _reader(thing)
    if found is None:
        kind = f"{type(thing).__module__}.{type(thing).__qualname__}"
        raise AlignmentError(
            f"{kind} is not an alignment; give a file, the name of an embedded data set, or an alignment of Biopython, "
            "scikit-bio or cogent3"
        )
    source, rows, gaps = found
    records = [Record(_name(name), 0, [(0, "".join(str(sequence).split()))]) for name, sequence in rows(thing)]
    return assemble(Matrix(records, missing=gaps + missing, matchchar=matchchar, seqtype=seqtype), source)


def _reader(thing: object) -> tuple[str, Callable[[Any], Rows], str] | None:
    """What messages call an object, how its rows are read, and which symbols besides - and ? are gaps in its library."""
    classes = {f"{kind.__module__.split('.')[0]}.{kind.__name__}" for kind in type(thing).__mro__}
    if "Bio.MultipleSeqAlignment" in classes:
        return "Biopython alignment", _records, ""
    if "Bio.Alignment" in classes:
        return "Biopython alignment", _pairs, ""
    if "skbio.TabularMSA" in classes:
        return "scikit-bio alignment", _labelled, "."
    if any(kind.startswith("cogent3.") for kind in classes) and hasattr(thing, "names") and hasattr(thing, "to_dict"):
        return "cogent3 alignment", _named, ""
    if isinstance(thing, list | tuple) and thing and all(_is_record(item) for item in thing):
        return "Biopython records", _records, ""
    return None


def _is_record(thing: object) -> bool:
    return any(kind.__name__ == "SeqRecord" and kind.__module__.startswith("Bio.") for kind in type(thing).__mro__)


def _records(alignment: Any) -> Rows:
    return ((record.id, record.seq) for record in alignment)


def _pairs(alignment: Any) -> Rows:
    # A row of Bio.Align.Alignment is its sequence with the gaps put in; names are those of the records it was made of.
    return ((getattr(sequence, "id", ""), alignment[i]) for i, sequence in enumerate(alignment.sequences))


def _labelled(alignment: Any) -> Rows:
    """Names are the labels of the rows; rows that are merely numbered from 0 go by the id of their sequence."""
    labels = list(alignment.index)
    if labels == list(range(len(labels))):
        labels = [sequence.metadata.get("id", "") for sequence in alignment]
    return zip(labels, alignment)


def _named(alignment: Any) -> Rows:
    rows = alignment.to_dict()
    return ((name, rows[name]) for name in alignment.names)


def _name(name: Any) -> str:
    return "" if name in (None, "<unknown id>") else str(name).strip()
