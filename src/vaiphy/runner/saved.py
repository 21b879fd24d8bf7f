"""What an earlier run with the same prefix has left: its checkpoint, and the Analysis it holds if the run has ended."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from vaiphy import __version__
from vaiphy.alignment import SitePatterns
from vaiphy.alphabets import MORPH, alphabet_named, mixed
from vaiphy.errors import InputError
from vaiphy.methods import outcome
from vaiphy.methods.settings import OUTPUT_ONLY, Settings, differences
from vaiphy.output.analysis import Analysis, Provenance
from vaiphy.runner import checkpoint


@dataclass(frozen=True)
class Saved:
    """A checkpoint of an earlier run with the same prefix."""

    path: Path
    header: dict[str, Any]
    arrays: dict[str, NDArray]

    @property
    def settings(self) -> Settings:
        return Settings.from_json(self.header["settings"])

    @property
    def finished(self) -> bool:
        return bool(self.header["status"] == "finished")

    def group(self, name: str) -> dict[str, NDArray]:
        return {key.removeprefix(name): value for key, value in self.arrays.items() if key.startswith(name)}


def load_analysis(prefix: str | Path) -> Analysis:
    """The Analysis of a finished run (or one that its time limit ended), from its checkpoint."""
    saved = load_saved(Path(prefix))
    if saved is None:
        raise InputError(f"{with_suffix(Path(prefix), '.ckpt')}: there is no such file; is {str(prefix)!r} the prefix of a run?")
    if saved.header["status"] == "running":
        raise InputError(f"{saved.path}: this run is not finished; run the same command again to continue it")
    header, data = saved.header, saved.group("data/")
    name, n_states = header.get("alphabet", ("DNA", 4))
    alphabet = mixed((MORPH(n_states),)) if name == "MIXED" else alphabet_named(name, n_states)
    patterns = SitePatterns(tuple(header["taxa"]), data["codes"], data["counts"], data["site_pattern"], alphabet)
    return Analysis(
        saved.settings,
        Provenance(**header["provenance"]),
        patterns,
        outcome.from_arrays(patterns.taxa, header["outcome"], saved.group("outcome/")),
        header["status"] == "finished",
        header["timings"],
        tuple(header["warnings"]),
        tuple(header["input_names"]),
    )


def load_saved(prefix: Path) -> Saved | None:
    """The checkpoint of a prefix, None if there is none; raises `DamagedCheckpoint`."""
    path = with_suffix(prefix, ".ckpt")
    try:
        header, arrays = checkpoint.load(path)
    except FileNotFoundError:
        return None
    return Saved(path, header, arrays)


def with_suffix(prefix: Path, suffix: str) -> Path:
    """PREFIX.suffix, whatever dots the prefix has."""
    return prefix.with_name(prefix.name + suffix)


def check_saved(saved: Saved, settings: Settings, source: str, content: str) -> None:
    """Whether the run may go on from a checkpoint; explains why not."""
    ways = "--redo starts over and replaces its files; another --prefix leaves them alone"
    name = str(saved.path).removesuffix(".ckpt")
    reasons = [d for field, d in differences(saved.settings, settings) if field not in OUTPUT_ONLY]
    if saved.header["input"]["content"] != content:
        reasons.insert(0, f"another input (then {saved.header['input']['file']}, now {source}, with other content)")
    if saved.finished:
        other = f", with {'; '.join(reasons)}" if reasons else ""
        raise InputError(f"{name}: a run with this prefix is finished{other}; {ways}")
    if reasons:
        raise InputError(f"{name}: an unfinished run with this prefix had {'; '.join(reasons)}; {ways}")
    if saved.header["version"] != __version__:
        raise InputError(f"{name}: an unfinished run with this prefix was made by VaiPhy {saved.header['version']}; {ways}")
