"""`python -m benchmarks [NAME ...]`: every benchmark, or the named ones, each in a process of its own.

A benchmark is a module of this folder that can be run. Exit status 1 when one of them failed, 2 for an unknown name.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

FOLDER = Path(__file__).resolve().parent


def names() -> list[str]:
    """The modules here that do something when run."""
    modules = (path for path in sorted(FOLDER.glob("[!_]*.py")))
    return [path.stem for path in modules if 'if __name__ == "__main__"' in path.read_text(encoding="utf-8")]


def main(wanted: Sequence[str]) -> int:
    """Run them one after another: side by side they would measure each other."""
    if strangers := set(wanted) - set(names()):
        sys.stderr.write(f"There is no benchmark {', '.join(sorted(strangers))}: choose from {', '.join(names())}.\n")
        return 2
    failed = []
    for name in wanted or names():
        print(f"== {name}", flush=True)
        began = time.monotonic()
        if subprocess.run([sys.executable, "-m", f"benchmarks.{name}"], cwd=FOLDER.parent, check=False).returncode != 0:
            failed.append(name)
        print(f"== {name}: {time.monotonic() - began:.1f} s\n", flush=True)
    if failed:
        sys.stderr.write(f"Failed: {', '.join(failed)}.\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
