"""Fetch the libraries that the HTML report embeds, at the versions below, from npm.

Run after changing a version: `python tools/refresh_report_assets.py`, then the tests in tests/report. Needs npm. The
archives' checksums are pinned; a new version's is printed when it does not match.
"""

import hashlib
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src" / "vaiphy" / "output" / "assets" / "vendor"

#: package, version, SHA-256 of the npm archive, {file in the archive: file here}
LIBRARIES = [
    (
        "lodash",
        "4.18.1",
        "696942c2a488c9d7428e9ca5f12ccf03b52de01dcdbfe4d4751d392f0491ae16",
        {"lodash.min.js": "lodash.min.js", "LICENSE": "lodash.LICENSE.txt"},
    ),
    (
        "underscore",
        "1.13.8",
        "6547214df2878ae60cc552422ef14af38b8d4e3aa613be5bfe9c52b775d96f7a",
        {"underscore-umd-min.js": "underscore.min.js", "LICENSE": "underscore.LICENSE.txt"},
    ),
    (
        "phylotree",
        "2.6.0",
        "45f86ba5b9461beadfdf008ef9806de78ed8e4b8e83848b1b72e6ea3c1155741",
        {"dist/phylotree.min.js": "phylotree.min.js", "LICENSE": "phylotree.LICENSE.txt"},
    ),
    # phylotree.min.js has D3 built in: only its licence is needed.
    ("d3", "7.9.2", "f0c1d2c2479907a6e3265370d0fd715f7aef0f561cdd2b415df385ba7df9d1aa", {"LICENSE": "d3.LICENSE.txt"}),
]


def main() -> int:
    TARGET.mkdir(parents=True, exist_ok=True)
    lines = ["# Libraries embedded in the HTML report", "", "Made by `tools/refresh_report_assets.py`; do not edit.", ""]
    for package, version, checksum, names in LIBRARIES:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["npm", "pack", "--silent", f"{package}@{version}"], cwd=folder, check=True, capture_output=True)
            archive = next(Path(folder).glob("*.tgz"))
            found = hashlib.sha256(archive.read_bytes()).hexdigest()
            if checksum != found:
                print(f"{package} {version}: SHA-256 {found} is not the one pinned ({checksum or 'none'})", file=sys.stderr)
                return 1
            with tarfile.open(archive) as tar:
                for inside, here in names.items():
                    stream = tar.extractfile(f"package/{inside}")
                    assert stream is not None
                    text = stream.read().decode()
                    # A page that opens from disk has no source maps to offer.
                    kept = [line for line in text.splitlines() if not line.startswith("//# sourceMappingURL=")]
                    (TARGET / here).write_text("\n".join(kept).rstrip() + "\n")
        files = ", ".join(f"`{here}`" for here in names.values())
        lines.append(f"- {package} {version} ({files}), npm archive SHA-256 `{found}`")
    (TARGET / "README.md").write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
