"""What pyproject.toml cannot say: the version, and where to build.

The version comes from git where a tag such as v1.2.0 is in reach: 1.2.0 at the tag,
1.2.0+5.g1a2b3c4 five commits later. Without tags, git or .git it is the plain one below; a source
archive keeps the one it was made with.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from setuptools import setup

PLAIN = "0.1.0.dev0"
HERE = Path(__file__).resolve().parent


def version() -> str:
    """Of what is being built."""
    made_with = HERE / "PKG-INFO"
    if made_with.exists():
        found = re.search(r"^Version: (\S+)$", made_with.read_text(encoding="utf-8"), re.MULTILINE)
        return found[1] if found else PLAIN
    if not (HERE / ".git").exists():
        return PLAIN  # git might find the repository of something around us
    command = ["git", "-C", str(HERE), "describe", "--tags", "--long", "--match", "v[0-9]*"]
    try:
        described = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=60
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return PLAIN
    found = re.fullmatch(
        r"v(\d+(?:\.\d+)*(?:(?:a|b|rc|\.dev)\d+)?)-(\d+)-(g[0-9a-f]+)", described.strip()
    )
    if found is None:
        return PLAIN
    return found[1] if found[2] == "0" else f"{found[1]}+{found[2]}.{found[3]}"


if __name__ == "__main__":
    # a folder build/ in the checkout would stay there, and what was removed since would be
    # installed from it
    with tempfile.TemporaryDirectory(prefix="brmdp-build-") as folder:
        setup(version=version(), options={"build": {"build_base": folder}})
