"""Kinds, half-lives, given keys, roles and archived episodes survive an export and its import."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from consolidation import invariants
from observations import ingest, store
from observations.models import Episode, GivenKey, Observation, Scope
from observations.records import Claim, Given, KeyState, MemoryKind, Status, Turn, WrittenBy
from tests.building import observe, scope
from tests.conftest import empty_the_store
from tests.giving import given_by, key_of, keyless, knowing
from tests.jsonl import exported, imported, observation


def round_trip() -> list[str]:
    """What an export of an import of an export says; asserts that it says the same."""
    before = exported()
    empty_the_store()
    report = ingest.import_lines(before)
    assert (report.added, report.refused) == (len(before), [])
    assert exported() == before
    assert not invariants.check()
    return before


def remember(*claims: Claim, within: Scope) -> None:
    """Write claims."""
    with transaction.atomic():
        store.add_observations(scope=within, claims=claims, written_by=WrittenBy.DELIBERATE)


# --- kinds and half-lives --------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_kinds_and_half_lives_come_back_and_are_written_where_they_say_something() -> None:
    """DESIGN 8, decay: the half-life was set at write."""
    here = scope()
    claims = [Claim(text=f"a {kind}", external_id=kind, kind=kind) for kind in MemoryKind]
    own = [
        Claim(text="slow", external_id="slow", half_life_days=365),
        Claim(text="fast", external_id="fast", kind=MemoryKind.PREFERENCE, half_life_days=1),
    ]
    remember(*claims, *own, within=here)
    before = list(Observation.objects.order_by("pk").values_list("external_id", "kind", "half_life_days"))
    rows = {row["id"]: row for row in map(json.loads, round_trip())}
    assert list(Observation.objects.order_by("pk").values_list("external_id", "kind", "half_life_days")) == before
    assert {name for name, row in rows.items() if "memory_kind" in row} == {*MemoryKind, "fast"} - {"fact"}
    assert {name: row["half_life_days"] for name, row in rows.items() if "half_life_days" in row} == {
        "slow": 365,
        "fast": 1,
    }


@pytest.mark.django_db
def test_an_imported_line_gets_the_half_life_of_its_kind() -> None:
    imported(
        {"id": "a", "text": "Loves tea", "memory_kind": "preference"},
        {"id": "b", "text": "In a meeting", "memory_kind": "state"},
        {"id": "c", "text": "In a long meeting", "memory_kind": "state", "half_life_days": 9},
    )
    assert [observation(name).half_life_days for name in "abc"] == [None, 7, 9]


@pytest.mark.django_db
def test_a_line_with_a_bad_kind_is_refused_and_its_neighbours_are_stored() -> None:
    """C1."""
    report = imported({"text": "a"}, {"text": "b", "memory_kind": "opinion"}, {"text": "c", "half_life_days": 0})
    assert report.added == 1
    assert [reason.partition(" must")[0] for _, reason in report.refused] == ["memory_kind", "half_life_days"]


# --- given keys ------------------------------------------------------------------------------------------------------


def said(name: str) -> GivenKey:
    """What a model said about the row of that external id."""
    return GivenKey.objects.get(observation__external_id=name)


@pytest.mark.django_db(transaction=True)
def test_a_given_key_of_every_state_comes_back_whole() -> None:
    """G3: an export and its import are lossless, hashes, quotes, attempts and times included."""
    here = scope()
    rows = [observe("Anna lives in Oslo.", within=here, key=("Anna", "", "") if n else ("", "", "")) for n in range(2)]
    rows += keyless(here, "The weather was lovely.", "Bo works at Relay.")
    assert given_by(knowing, here).asked == 4
    ingest.withdraw_key(observation=rows[3], by="rev")
    [bad] = keyless(here, "SPOIL")
    for _ in range(2):
        given_by("prose", here)
    fields = [field.attname for field in GivenKey._meta.fields if field.name not in ("id", "observation", "scope")]
    fields.append("observation__external_id")
    before = list(GivenKey.objects.order_by("observation_id").values(*fields))
    assert [row["state"] for row in before] == ["given", "given", "none", "withdrawn", "unusable"]
    assert said(bad.external_id).attempts == 2
    round_trip()
    assert list(GivenKey.objects.order_by("observation_id").values(*fields)) == before


@pytest.mark.django_db
def test_what_was_answered_elsewhere_is_not_asked_again_here() -> None:
    imported({"text": "Anna lives in Oslo.", "given_key": {"state": "withdrawn", "model": "m"}})
    assert ingest.lacking_keys(scope=Scope.objects.get()) == 0


@pytest.mark.django_db
def test_a_row_that_is_there_already_keeps_its_own_answer() -> None:
    line = {"id": "x", "text": "Anna lives in Oslo."}
    imported(line)
    given_by(knowing, Scope.objects.get())
    report = imported({**line, "given_key": {"state": "given", "model": "m", "object": "Rome"}})
    assert report.already_there == 1
    assert said("x").object == "Oslo"


@pytest.mark.django_db
def test_an_imported_key_is_hashed_with_the_writers_parts_as_it_is_here() -> None:
    key = {"model": "m", "predicate": "lives_in", "object": "Oslo"}
    imported({"id": "x", "text": "Anna lives in Oslo.", "subject": "ANNA", "given_key": key})
    twin = observe("Something else", within=Scope.objects.get(), key=("anna", "lives in", "oslo"))
    given = said("x")
    assert (given.subject_key, given.sp_key, given.spo_key) == (twin.subject_key, twin.sp_key, twin.spo_key)


@pytest.mark.django_db(transaction=True)
def test_an_erased_row_is_exported_without_its_key_and_comes_back_so() -> None:
    """Promise 7: a fresh export holds nothing of it."""
    here = scope()
    [row] = keyless(here, "Anna lives in Oslo.")
    given_by(knowing, here)
    with transaction.atomic():
        store.erase(scope_id=here.pk, ids=[row.pk], by="Ana", reason="asked", request="forget:1")
    [line] = round_trip()
    assert "given_key" not in line
    assert "Oslo" not in line
    assert not GivenKey.objects.exists()


@pytest.mark.django_db
def test_a_line_that_the_store_refuses_leaves_no_key_behind() -> None:
    key = {"model": "m", "object": "Oslo"}
    report = imported({"id": "x", "text": "t", "given_key": key, "status": "superseded", "superseded_by": "nobody"})
    assert len(report.refused) == 1
    assert observation("x").status == Status.QUARANTINED  # as every row whose past is not told whole
    assert key_of(observation("x")) is not None


WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=12)


@pytest.mark.django_db(transaction=True)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(WORDS, WORDS, WORDS, st.sampled_from(list(MemoryKind))), min_size=1, max_size=4))
def test_whatever_words_a_key_is_made_of_it_comes_back(rows: list[tuple[str, str, str, MemoryKind]]) -> None:
    empty_the_store()
    here = scope()
    remember(
        *(
            Claim(
                text=f"{n}: x",
                external_id=str(n),
                subject=row[0],
                kind=row[3],
                created_at=datetime(2024, 1, 1, tzinfo=UTC),
            )
            for n, row in enumerate(rows)
        ),
        within=here,
    )
    given_keys = {
        pk: Given(KeyState.GIVEN, model="m", prompt_version="1", predicate=row[1], object=row[2], quote=(0, 3))
        for pk, row in zip(Observation.objects.order_by("pk").values_list("pk", flat=True), rows, strict=True)
    }
    with transaction.atomic():
        assert store.put_keys(scope_id=here.pk, given=given_keys) == set(given_keys)
    round_trip()


# --- episodes --------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_roles_survive_and_archived_episodes_come_back_archived() -> None:
    """Whose word a turn is depends on its role; a compaction archives the turns it sums up."""
    here = scope()
    roles = ("user", "assistant", "tool", "")
    with transaction.atomic():
        store.add_episodes(
            scope=here, turns=[Turn(text=f"turn of {r}", external_id=r or "none", role=r) for r in roles]
        )
        store.move_episodes(scope_id=here.pk, ids=[Episode.objects.get(role="tool").pk], to=Status.ARCHIVED)
    before = list(Episode.objects.order_by("pk").values_list("external_id", "role", "status", "text", "content_hash"))
    round_trip()
    assert (
        list(Episode.objects.order_by("pk").values_list("external_id", "role", "status", "text", "content_hash"))
        == before
    )
    assert [turn.record().stated_by for turn in Episode.objects.order_by("pk")] == ["user", "agent", "tool", "agent"]


@pytest.mark.django_db
def test_an_episode_that_came_back_here_is_not_archived_by_an_older_file() -> None:
    line = {"id": "e", "text": "Hello", "speaker": "Ivy"}
    imported(line)
    assert imported({**line, "status": "archived"}).already_there == 1
    assert Episode.objects.get().status == Status.ACTIVE
