"""Every system check of ours: its fault is found under its id with a hint, and a sound set-up is silent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import CheckMessage, run_checks
from django.core.management import call_command
from django_celery_beat.models import PeriodicTask

from consolidation import calibrating
from consolidation import checks as review
from consolidation.calibration import NEVER, Band, Measured
from consolidation.models import Policy
from observations import checks as store
from observations import ingest
from observations.embedding import HASHING, MINILM, MiniLM, WeightsAltered
from observations.retrieval import current_embedder, large
from tests.building import observe, scope
from tests.conftest import superuser

DATABASE = ["default"]
ENOUGH = Measured((Band(0.9, different=1_000),))  # pairs for a calibration to hold


def ids(found: Sequence[CheckMessage]) -> list[str]:
    """The ids found; each comes with a hint that says what to do."""
    for message in found:
        assert message.hint
        assert message.hint.endswith(".")
    return [str(message.id) for message in found]


@pytest.mark.django_db
def test_the_suites_own_set_up_is_sound() -> None:
    assert ids([m for m in run_checks(databases=DATABASE) if str(m.id).startswith("palimpsest")]) == []


@pytest.mark.django_db
def test_role_is_the_lesser_one_e001(settings: Any) -> None:
    assert ids(store.role_is_the_lesser_one(databases=DATABASE)) == []
    with superuser() as admin:
        name = admin.execute("SELECT current_user").fetchone()
        owner = admin.execute(
            "SELECT tableowner FROM pg_tables WHERE tablename = 'observations_observation'"
        ).fetchone()
    assert name is not None
    assert owner is not None
    for role, words in ((name[0], "is a superuser"), (owner[0], "owns the tables of memory")):
        settings.APPLICATION_ROLE = role
        found = store.role_is_the_lesser_one(databases=DATABASE)
        assert ids(found) == ["palimpsest.E001"]
        assert words in found[0].msg
    assert store.role_is_the_lesser_one() == []


def test_secret_key_is_set_e002_w002(settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["memory.example.org"]
    settings.SECRET_KEY = "k" * 50
    assert ids(store.secret_key_is_set()) == []
    settings.SECRET_KEY = "short"
    assert ids(store.secret_key_is_set()) == ["palimpsest.W002"]
    settings.ALLOWED_HOSTS = ["localhost"]
    assert ids(store.secret_key_is_set()) == []
    settings.SECRET_KEY = "replace-me-with-50-random-characters-from-anywhere"
    assert ids(store.secret_key_is_set()) == ["palimpsest.E002"]
    settings.SECRET_KEY = ""
    assert ids(store.secret_key_is_set()) == ["palimpsest.E002"]


def test_debug_is_off_where_others_look_e003(settings: Any) -> None:
    settings.DEBUG, settings.ALLOWED_HOSTS = True, ["localhost", "127.0.0.1"]
    assert ids(store.debug_is_off_where_others_look()) == []
    settings.ALLOWED_HOSTS = ["localhost", "memory.example.org"]
    assert ids(store.debug_is_off_where_others_look()) == ["palimpsest.E003"]
    settings.DEBUG = False
    assert ids(store.debug_is_off_where_others_look()) == []
    settings.DEBUG, settings.ALLOWED_HOSTS, settings.SECURE_TLS = True, ["localhost"], True
    assert ids(store.debug_is_off_where_others_look()) == ["palimpsest.E003"]


def test_migrations_have_an_owner_w004(settings: Any) -> None:
    settings.ALLOWED_HOSTS, settings.MIGRATE_DATABASE_URL = ["memory.example.org"], ""
    assert ids(store.migrations_have_an_owner()) == ["palimpsest.W004"]
    settings.MIGRATE_DATABASE_URL = "postgresql://owner@db/memory"
    assert ids(store.migrations_have_an_owner()) == []


def test_embedder_is_the_measured_one_e005(settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings.PALIMPSEST_EMBEDDER = "minilm"
    assert ids(store.embedder_is_the_measured_one()) == []
    altered = tmp_path / "model.onnx"
    altered.write_bytes(b"other weights")
    with pytest.raises(WeightsAltered):
        MiniLM(weights=altered).verify()
    monkeypatch.setattr(store, "MiniLM", MiniLM)
    monkeypatch.setattr(store, "embedder", lambda *_, **__: MiniLM(weights=altered))
    found = store.embedder_is_the_measured_one()
    assert ids(found) == ["palimpsest.E005"]
    assert MINILM.file_hash not in found[0].msg


@pytest.mark.parametrize("name", ["word2vec", "http"])
def test_an_embedder_that_cannot_be_made_is_e005(settings: Any, name: str) -> None:
    """'http' without an address, a model and its dimensions."""
    settings.PALIMPSEST_EMBEDDER = name
    assert ids(store.embedder_is_the_measured_one()) == ["palimpsest.E005"]


def test_tasks_end_before_their_message_comes_back_e006(settings: Any) -> None:
    assert ids(store.tasks_end_before_their_message_comes_back()) == []
    settings.CELERY_TASK_TIME_LIMIT = 900
    assert ids(store.tasks_end_before_their_message_comes_back()) == ["palimpsest.E006"]


@pytest.mark.django_db
def test_policies_can_be_read_w007() -> None:
    Policy.objects.create(pattern="team/*", body={"block_cap": 100})
    assert ids(review.policies_can_be_read(databases=DATABASE)) == []
    Policy.objects.create(pattern="lab/*", body={"blokc_cap": 100})
    found = review.policies_can_be_read(databases=DATABASE)
    assert ids(found) == ["palimpsest.W007"]
    assert "lab/*" in found[0].msg


@pytest.mark.django_db
def test_embedder_may_merge_w010(settings: Any) -> None:
    assert ids(review.embedder_may_merge(databases=DATABASE)) == []
    calibrating.store(profile=HASHING, measured=ENOUGH, proposed=(0.8, NEVER), by="carl")
    found = review.embedder_may_merge(databases=DATABASE)
    assert ids(found) == ["palimpsest.W010"]
    assert "hashing" in found[0].msg
    assert review.embedder_may_merge() == []


@pytest.mark.django_db
def test_an_endpoint_that_nobody_measured_is_w010(settings: Any) -> None:
    settings.PALIMPSEST_EMBEDDER, settings.PALIMPSEST_EMBEDDINGS_URL = "http", "https://embed.example.org"
    settings.PALIMPSEST_EMBEDDINGS_MODEL, settings.PALIMPSEST_EMBEDDINGS_DIMENSIONS = "acme-1", 8
    current_embedder.cache_clear()
    try:
        assert ids(review.embedder_may_merge(databases=DATABASE)) == ["palimpsest.W010"]
        row = calibrating.store(
            profile=current_embedder().profile,
            measured=ENOUGH,
            proposed=(0.9, 0.96),
            by="carl",
        )
        assert ids(review.embedder_may_merge(databases=DATABASE)) == ["palimpsest.W010"]
        calibrating.enable(calibration=row, by="sven")
        assert ids(review.embedder_may_merge(databases=DATABASE)) == []
        settings.PALIMPSEST_EMBEDDINGS_MODEL = ""
        current_embedder.cache_clear()
        assert ids(review.embedder_may_merge(databases=DATABASE)) == []  # E005 says it
    finally:
        current_embedder.cache_clear()


@pytest.mark.django_db
def test_policies_ask_for_what_was_measured_w011() -> None:
    Policy.objects.create(pattern="team/*", body={"t_merge": 0.96})
    assert ids(review.policies_ask_for_what_was_measured(databases=DATABASE)) == []
    calibrating.store(profile=HASHING, measured=ENOUGH, proposed=(0.85, 0.98), by="carl")
    found = review.policies_ask_for_what_was_measured(databases=DATABASE)
    assert ids(found) == ["palimpsest.W011"]
    assert "The policy of team/* merges from 0.96 on; 0.98 was measured for hashing." in found[0].msg
    assert review.policies_ask_for_what_was_measured() == []


@pytest.mark.django_db
def test_large_scopes_have_their_index_w013(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "LARGE", 1)
    within = scope("big")
    observe("the relay hums", within=within)
    assert ids(store.large_scopes_have_their_index(databases=DATABASE)) == []
    observe("the relay sings", within=within)
    [found] = store.large_scopes_have_their_index(databases=DATABASE)
    assert ids([found]) == ["palimpsest.W013"]
    assert found.msg == "Scope big has 2 current rows and no index."
    ingest.note_index(scope=within, profile=current_embedder().profile.name)
    assert ids(store.large_scopes_have_their_index(databases=DATABASE)) == []


@pytest.mark.django_db
def test_the_schedule_writes_no_memory_w008() -> None:
    entry = PeriodicTask.objects.filter(interval__isnull=False).first()
    assert entry is not None
    PeriodicTask.objects.create(
        name="apply every night", task="consolidation.tasks.apply_plan", interval=entry.interval, enabled=True
    )
    assert ids(review.the_schedule_writes_no_memory(databases=DATABASE)) == ["palimpsest.W008"]


@pytest.mark.django_db
def test_housekeeping_is_scheduled_w009() -> None:
    PeriodicTask.objects.filter(task="observations.tasks.sweep").update(enabled=False)
    found = review.housekeeping_is_scheduled(databases=DATABASE)
    assert ids(found) == ["palimpsest.W009"]
    assert "sweep" in found[0].msg


@pytest.mark.django_db
def test_manage_py_check_runs_them(settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    PeriodicTask.objects.filter(task="observations.tasks.sweep").update(enabled=False)
    call_command("check", "--database", "default")
    assert "palimpsest.W009" in capsys.readouterr().err


@pytest.mark.django_db
def test_a_database_without_our_tables_is_no_fault_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first `migrate` runs the database checks before any table exists."""
    monkeypatch.setattr(PeriodicTask._meta, "db_table", "not_there_yet")
    from django.db import transaction

    with transaction.atomic():
        assert review.housekeeping_is_scheduled(databases=DATABASE) == []
        transaction.set_rollback(True)
