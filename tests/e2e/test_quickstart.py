"""docs/quickstart.md does what it says: its commands are read from it and run as they stand there, from the checkout,
with the data of the servers in a folder of their own.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
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
SECONDS = 240  # for a start with the demo's data, on a machine that does other things as well


def blocks(language: str) -> list[str]:
    """The fenced blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.DOTALL | re.MULTILINE)


@contextlib.contextmanager
def first_terminal(command: str, env: Mapping[str, str], log: Path) -> Iterator[str]:
    """The first command in a terminal of its own, until Ctrl-C: the address that it prints."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            cwd=ROOT,
            env=dict(env),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_for(lambda: "Ready: " in log.read_text() or process.poll() is not None, "the servers run", seconds=SECONDS)
        assert process.poll() is None, log.read_text()
        yield log.read_text().partition("Ready: ")[2].split()[0].rstrip("/")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGINT)
        process.wait(60)


def as_printed(block: str, address: str) -> str:
    """A block with the address that the first command printed, which is the document's own unless its port is taken."""
    assert ADDRESS in block or PYTHON in block
    return block.replace(ADDRESS, address)


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
@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.skipif(not (ROOT / PYTHON).exists(), reason="the checkout has no .venv, and making one needs the network")
def test_five_commands_lead_from_nothing_to_a_prompt_that_holds_what_was_remembered(home: Path) -> None:
    """R121. The first with the demo's data, as a newcomer starts it; nothing but the place of the data is ours."""
    first, *commands = blocks("sh")
    assert (first, len(commands)) == ("make demo\n", 4)
    env = environment(PALIMPSEST_HOME=str(home / "data"))
    with first_terminal(first, env, home / "run.log") as address:
        kept, observed, prompt, token = shell([as_printed(command, address) for command in commands], env)
        assert (kept["action"], kept["text"]) == ("added", "Ana drinks oat milk")
        assert (observed["added"], observed["extraction"]) == (1, "off")
        assert "Ana drinks oat milk" in prompt["text"]
        assert "I moved to Lima in May" in prompt["text"]
        the_python_of_the_document_works(address, {**env, "PALIMPSEST_TOKEN": token})
        the_snippet_for_a_host_works(env, token)


def the_python_of_the_document_works(address: str, env: Mapping[str, str]) -> None:
    [code] = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", as_printed(code, address)], env=dict(env), capture_output=True, text=True, timeout=60
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
