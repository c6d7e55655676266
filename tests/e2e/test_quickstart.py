"""docs/quickstart.md does what it says: its commands are run as they stand there, on embedded servers of their own."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from memory_site.management.commands.mcp import PORT
from observations.mcp import over_http
from tests.agents import connected_over_stdio, text_of
from tests.brokers import ROOT
from tests.integration.embedded_stand import environment, wait_for
from tests.integration.embedded_stand import home as home

DOCUMENT = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8000"  # as it is written there
PYTHON = ".venv/bin/python"


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)


@contextlib.contextmanager
def servers(folder: Path) -> Iterator[str]:
    """What `make demo` starts, without its data and on any port: the address that it prints."""
    log = folder / "run.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "memory_site.embedded", "run", "--port", "0", "--data-dir", str(folder / "data")],
            cwd=ROOT,
            env=environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(lambda: "Ready: " in log.read_text() or process.poll() is not None, "the servers run", seconds=120)
        assert process.poll() is None, log.read_text()
        yield log.read_text().partition("Ready: ")[2].split()[0].rstrip("/")
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def as_here(block: str, address: str) -> str:
    """A block with this suite's Python and the address of its servers."""
    assert ADDRESS in block or PYTHON in block
    return block.replace(ADDRESS, address).replace(PYTHON, shlex.quote(sys.executable))


def shell(commands: list[str], env: Mapping[str, str]) -> list[Any]:
    """Run commands in one shell, as somebody types them; the JSON that each curl printed, and the token at the end."""
    script = "\n".join(["set -eu", *(f"{command}\necho" for command in commands), 'echo "\\"$PALIMPSEST_TOKEN\\""'])
    done = subprocess.run(
        ["/bin/sh", "-c", script], cwd=ROOT, env=dict(env), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "The token is shown this once" in done.stderr
    return [json.loads(line) for line in done.stdout.splitlines() if line]


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_five_commands_lead_from_nothing_to_a_prompt_that_holds_what_was_remembered(home: Path) -> None:
    first, *commands = blocks("sh")
    assert (first, len(commands)) == ("make demo\n", 4)
    with servers(home) as address:
        env = environment(PALIMPSEST_HOME=str(home / "data"))
        kept, observed, prompt, token = shell([as_here(command, address) for command in commands], env)
        assert (kept["action"], kept["text"]) == ("added", "Ana drinks oat milk")
        assert (observed["added"], observed["extraction"]) == (1, "off")
        assert "Ana drinks oat milk" in prompt["text"]
        assert "I moved to Lima in May" in prompt["text"]
        the_python_of_the_document_works(address, {**env, "PALIMPSEST_TOKEN": token})
        the_snippet_for_a_host_works(env, token)


def the_python_of_the_document_works(address: str, env: Mapping[str, str]) -> None:
    [code] = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", as_here(code, address)], env=dict(env), capture_output=True, text=True, timeout=60
    )
    assert re.search(r"Ana drinks oat milk.*obs_\d+ added\n\Z", done.stdout, re.DOTALL), done.stdout + done.stderr
    assert len([line for line in code.splitlines() if line]) <= 10


def the_snippet_for_a_host_works(env: Mapping[str, str], token: str) -> None:
    """Started from another folder, as a host does; the servers of the running stack are found by their folder."""
    server = json.loads(blocks("json")[0])["mcpServers"]["palimpsest"]
    assert server["command"] == f"/srv/palimpsest/{PYTHON}"
    words = [word.replace("/srv/palimpsest", str(ROOT)) for word in server["args"]]
    variables = {**env, **server["env"], "PALIMPSEST_TOKEN": token}
    with connected_over_stdio(words=words, env=variables, cwd=Path("/")) as agent:
        assert "oat milk" in text_of(agent.call("prompt", about="Which milk does Ana drink?"))


def test_the_snippet_for_http_names_the_address_that_is_served() -> None:
    server = json.loads(blocks("json")[1])["mcpServers"]["palimpsest"]
    assert server["url"] == f"http://127.0.0.1:{PORT}{over_http.PATH}"
    assert server["headers"] == {"Authorization": "Bearer pal_..."}
