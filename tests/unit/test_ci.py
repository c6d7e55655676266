"""What a skip does to a run: shown loudly, and under CI=true a failure when the test drives a browser."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SKIPS = {
    "is here": "import pytest\n\ndef test_it() -> None:\n    pytest.skip('no browser is here')\n",
    "for the file": "import pytest\n\npytest.skip('no browser for the file', allow_module_level=True)\n",
    "by mark": "import pytest\n\n@pytest.mark.skip(reason='no browser by mark')\ndef test_it() -> None: ...\n",
    "to lend": "import pytest\n\n@pytest.fixture\ndef page() -> None:\n    pytest.skip('no browser to lend')\n\n"
    "def test_it(page: None) -> None: ...\n",
}
# Stands for this project's own addopts: the plugin, told that the browser tests are in another folder.
PLUGIN = "from pathlib import Path\nfrom tests import ci\nfrom tests.ci import *\nci.BROWSER_TESTS = Path({!r})\n"


def run(folder: Path, *, ci: str, browser_tests: Path, workers: bool = False) -> subprocess.CompletedProcess[str]:
    """Four tests that skip themselves in four ways, in a run of their own without servers."""
    for number, text in enumerate(SKIPS.values()):
        (folder / f"test_{number}.py").write_text(text)
    (folder / "plugin_under_test.py").write_text(PLUGIN.format(str(browser_tests)))
    words = ["-p", "plugin_under_test", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(folder)]
    words += ["-p", "xdist", "-n", "1"] if workers else ["--continue-on-collection-errors"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "COV_"))}
    environ |= {
        "CI": ci,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [sys.executable, "-m", "pytest", *words, str(folder)]
    return subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("workers", [False, True])
def test_under_ci_a_skipped_browser_test_is_a_failure_that_says_what_to_install(tmp_path: Path, workers: bool) -> None:
    done = run(tmp_path, ci="true", browser_tests=tmp_path, workers=workers)
    assert done.returncode == 1, done.stdout
    assert "skipped" not in done.stdout.splitlines()[-1]
    for reason in SKIPS:
        assert f"no browser {reason}" in done.stdout
    assert done.stdout.count("a browser test may not be skipped: install Chromium") >= len(SKIPS)


@pytest.mark.parametrize(("ci", "browser_tests"), [("", "."), ("false", "."), ("true", "elsewhere")])
def test_elsewhere_a_skip_passes_and_its_reason_is_shouted(tmp_path: Path, ci: str, browser_tests: str) -> None:
    """Without CI every skip may stand, and under CI one that drives no browser (a missing `docker compose`)."""
    done = run(tmp_path, ci=ci, browser_tests=tmp_path / browser_tests)
    assert done.returncode == 0, done.stdout
    shouted = done.stdout.partition(f"{len(SKIPS)} NOT TESTED")[2]
    for reason in SKIPS:
        assert f"1 x no browser {reason}" in shouted
