"""Phrases that readers stumbled over stay out of all that is printed; `test_commands` looks for the examples of each help."""

import ast
import re
from pathlib import Path

import vaiphy

SOURCES = Path(vaiphy.__file__).parent
#: Each was said once; what is said now is behind it.
STUMBLED = (
    r"[Ss]eed of all chance",  # seed of the random numbers
    r"\bis no (FASTA|PHYLIP|NEXUS|Newick|time|number|file)\b",  # is not ...
    r"equal-weight",  # resampled to equal weights
    r"\b1 taxa\b",  # 1 taxon
    r"\bresult can(not)? be trusted",  # the computation converged, or did not
)


def said(path):
    """The strings of a module that are no docstrings, and the text of a page's template."""
    if path.suffix == ".j2":
        return [path.read_text(encoding="utf-8")]
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {id(node.body[0].value) for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node)}
    if "cli" in path.parts:
        docstrings = set()  # there they are the help
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    ]


def test_phrases_that_readers_stumbled_over():
    files = [path for ending in ("py", "j2") for path in SOURCES.rglob(f"*.{ending}")]
    assert len(files) > 200
    found = [(path.name, text.strip()[:80]) for path in files for text in said(path) for bad in STUMBLED if re.search(bad, text)]
    assert found == []
