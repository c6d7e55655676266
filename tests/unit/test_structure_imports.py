"""The import contracts of pyproject.toml hold, and a contract that is broken is noticed (DESIGN 2)."""

from __future__ import annotations

from pathlib import Path

import pytest
from importlinter.application.use_cases import lint_imports
from importlinter.configuration import configure

ROOT = Path(__file__).resolve().parents[2]
REVERSED = """
[tool.importlinter]
root_packages = ["memory_site", "consolidation", "observations"]

[[tool.importlinter.contracts]]
id = "reversed"
name = "The other way round"
type = "layers"
layers = ["observations", "consolidation"]
"""
HOW_TO_FIX = (
    "An import goes against a contract of pyproject.toml (above). Move the code to the layer that may do this, or hand "
    "the value down from above; a new module needs its place in the list of layers."
)


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    configure()
    monkeypatch.chdir(ROOT)


def test_the_import_contracts_hold(capsys: pytest.CaptureFixture[str]) -> None:
    kept = lint_imports(str(ROOT / "pyproject.toml"), cache_dir=None, no_logo=True)
    assert kept, f"{capsys.readouterr().out}\n{HOW_TO_FIX}"


def test_a_broken_contract_is_noticed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The positive control: with the apps' order reversed the same check fails and names the import."""
    (tmp_path / "contracts.toml").write_text(REVERSED)
    assert not lint_imports(str(tmp_path / "contracts.toml"), cache_dir=None, no_logo=True)
    assert "consolidation is not allowed to import observations" in capsys.readouterr().out
