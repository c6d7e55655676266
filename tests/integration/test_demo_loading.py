"""The demo as `make demo` loads it: what waits, what was done before, and that loading it again changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from django.test import override_settings
from pytest_django.plugin import DjangoDbBlocker

from consolidation import asking, planner, rollout
from consolidation.models import Cardinality, Operation, Plan, Policy
from consolidation.operations import Approval, Kind, State
from memory_site import demo
from memory_site.demo import agents
from memory_site.demo.loading import PEOPLE, Loaded, load
from observations import ingest
from observations.models import (
    CoreRevision,
    Event,
    Intake,
    IntakeRun,
    Observation,
    Outbox,
    Residue,
    Scope,
    ScopeAccess,
    Token,
    Use,
)
from observations.records import MemoryKind, Status, is_program
from observations.retrieval import current_embedder
from tests.conftest import empty_the_store

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


EVERYTHING = demo.lines
NEWEST = "tidewater-025-07"  # a turn of the last session


def as_it_was(*, now: datetime) -> Iterator[dict[str, object]]:
    """The demo's lines as an older version had them: without one turn."""
    return (row for row in EVERYTHING(now=now) if row["id"] != NEWEST)


@pytest.fixture(scope="module")
def loaded(django_db_setup: None, django_db_blocker: DjangoDbBlocker, home: Path) -> Iterator[Loaded]:
    """Loaded once for all tests, which look at it inside transactions of their own."""
    with (
        django_db_blocker.unblock(),
        override_settings(PALIMPSEST_EMBEDDER="minilm", ANTHROPIC_API_KEY=""),
        pytest.MonkeyPatch.context() as patch,
    ):
        current_embedder.cache_clear()
        patch.setattr(demo, "lines", as_it_was)
        yield load(say=lambda _: None, home=home)
        empty_the_store()
    current_embedder.cache_clear()


def of_scope(name: str) -> Scope:
    return Scope.objects.get(name=name)


def rows_of(operation: Operation) -> list[str]:
    return sorted(
        Observation.objects.filter(operation_sources__operation=operation).values_list("external_id", flat=True)
    )


def test_the_plan_says_that_promotions_did_not_run_without_a_model(loaded: Loaded) -> None:
    """A step that cannot run is not "nothing to do"; for a kind that is on by default it is no failure either."""
    assert "did not run. No language model is configured" in planner.notes(loaded.plan)[Kind.PROMOTE]
    assert loaded.plan.state == Plan.State.COMPLETE
    assert loaded.plan.figures["asked"] == 0


def test_every_kind_that_needs_no_model_is_in_the_plan(loaded: Loaded) -> None:
    kinds = set(Operation.objects.filter(plan_items__plan=loaded.plan).values_list("kind", flat=True))
    assert kinds >= {Kind.MERGE, Kind.SUPERSEDE, Kind.ARCHIVE, Kind.PRUNE}


def test_four_questions_wait_for_the_scope_without_a_policy(loaded: Loaded) -> None:
    """R32, R33."""
    waiting = asking.unanswered(scopes=Scope.objects.filter(name__in=demo.SCOPES))
    assert [scope.name for scope in waiting] == ["research/tidewater-lab"]
    assert "research/tidewater-lab none: four questions wait for an answer" in loaded.policies


@pytest.mark.usefixtures("loaded")
def test_the_steward_set_the_policies_and_events_say_so() -> None:
    assert set(Policy.objects.values_list("updated_by", flat=True)) == {"dora"}
    saved = Event.objects.filter(action="policy_saved", actor="dora")
    assert {event.detail["pattern"] for event in saved} == {one.pattern for one in demo.POLICIES}


def test_a_scope_with_a_small_budget_asks_ten_questions_and_says_how_many_are_held_back(loaded: Loaded) -> None:
    asked = Operation.objects.filter(scope__name="team/relay-platform", approval=Approval.NEEDS_HUMAN, requested_by="")
    assert asked.count() == 10
    assert loaded.plan.figures["held_back"] > 0


@pytest.mark.usefixtures("loaded")
def test_what_two_reads_met_together_is_asked_before_what_none_met() -> None:
    """The question of the demo's first read is one of the ten."""
    relay = of_scope("team/relay-platform")
    asked = [rows_of(row) for row in Operation.objects.filter(scope=relay, approval=Approval.NEEDS_HUMAN)]
    assert ["relay-o020", "relay-o021"] in asked
    assert Use.objects.filter(scope=relay, observation__external_id__in=("relay-o020", "relay-o021")).count() >= 2


@pytest.mark.usefixtures("loaded")
def test_an_alias_question_waits_in_no_plan_in_the_name_of_who_asked() -> None:
    """R46."""
    [alias] = Operation.objects.filter(kind=Kind.ALIAS)
    assert (alias.status, alias.requested_by) == (State.NEEDS_HUMAN, "bela")
    assert (alias.claim_subject, alias.claim_object) == ("calder", "calder foods")
    assert not alias.plan_items.exists()


def test_a_predicate_was_taught_to_hold_several_values_and_is_not_asked_about(loaded: Loaded) -> None:
    """Decision 0009."""
    [lesson] = Cardinality.objects.all()
    assert (lesson.scope.name, lesson.predicate, lesson.holds, lesson.by) == (demo.LESSON.scope, "plays", "many", "ana")
    about = Observation.objects.filter(scope__name=demo.LESSON.scope, external_id__in=demo.LESSON.sources)
    assert {row.status for row in about} == {Status.ACTIVE}
    assert not Operation.objects.filter(plan_items__plan=loaded.plan, sources__observation__in=about).exists()


@pytest.mark.usefixtures("loaded")
def test_one_prune_is_in_its_grace_period_and_others_wait() -> None:
    """R51: applied, not erased, and due in 30 days."""
    prunes = Operation.objects.filter(kind=Kind.PRUNE)
    [applied] = prunes.filter(status=State.APPLIED)
    assert rows_of(applied) == list(demo.PRUNED.sources)
    assert (applied.decided_by, applied.applied_by) == ("ana", "olga")
    [row] = Observation.objects.filter(operation_sources__operation=applied)
    assert (row.status, bool(row.text)) == (Status.ARCHIVED, True)
    [due] = Outbox.objects.filter(task="erase_pruned")
    assert applied.applied_at is not None
    assert (due.due_at - applied.applied_at).days in (29, 30)
    assert prunes.filter(status=State.NEEDS_HUMAN).count() >= 5


def test_faded_remarks_are_archived_when_somebody_applies_the_plan_and_a_users_stays(loaded: Loaded) -> None:
    """Decay proposes, a person applies; a user's own word never leaves by decay."""
    archives = Operation.objects.filter(plan_items__plan=loaded.plan, kind=Kind.ARCHIVE, status=State.PLANNED)
    faded = Observation.objects.filter(operation_sources__operation__in=archives)
    assert faded.filter(kind__in=(MemoryKind.NOTE, MemoryKind.STATE)).count() == 7
    assert {row.status for row in faded} == {Status.ACTIVE}
    assert not faded.filter(external_id="relay-o117").exists()


def test_applying_the_plan_asks_a_second_time_for_the_scope_that_it_touches_most(loaded: Loaded) -> None:
    """The blast radius, to be seen: merges and archives together are over it in one scope."""
    assert rollout.width(plan=loaded.plan).count("over the limit of") == 1


@pytest.mark.usefixtures("loaded")
def test_everybody_has_a_group_scopes_and_a_login_in_a_file_for_its_owner_alone(home: Path) -> None:
    patterns = {(row.user.username, row.pattern) for row in ScopeAccess.objects.select_related("user")}
    assert patterns == {(name, pattern) for name, _, _, wanted in PEOPLE for pattern in wanted}
    kept = home / "logins.txt"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert all(f"  {name:<6} " in kept.read_text(encoding="utf-8") for name, *_ in PEOPLE)


# --- what was written since ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("loaded")
def test_the_one_token_of_the_demo_was_used_and_is_revoked() -> None:
    """No secret of the demo opens anything; what its program wrote still names it."""
    [token] = Token.objects.all()
    assert (token.name, token.scope_pattern, token.revoked_by) == (agents.AGENT, agents.READ_IN, agents.STEWARD)
    assert token.last_used_at is not None
    assert token.revoked_at is not None


@pytest.mark.usefixtures("loaded")
def test_turns_of_one_scope_wait_for_a_model_and_nothing_claims_that_one_was_asked() -> None:
    """R121: off everywhere but where the steward enabled it."""
    [intake] = Intake.objects.select_related("scope")
    assert (intake.scope.name, intake.enabled, intake.residue, intake.updated_by) == (
        agents.READ_IN,
        True,
        True,
        agents.STEWARD,
    )
    assert ingest.intake_of(scope=intake.scope).waiting == 6
    assert not IntakeRun.objects.exists()
    assert not Outbox.objects.filter(task=ingest.EXTRACT).exists()


@pytest.mark.usefixtures("loaded")
def test_residue_is_held_in_one_scope_and_not_remembered() -> None:
    """R134."""
    rows = Residue.objects.select_related("scope")
    assert {(row.scope.name, is_program(row.by)) for row in rows} == {(agents.READ_IN, True)}
    assert len(rows) == 3
    assert not Observation.objects.filter(text__in=[row.text for row in rows]).exists()


@pytest.mark.usefixtures("loaded")
def test_core_memory_of_two_scopes_was_edited_by_people_and_by_a_program_and_one_edit_was_taken_back() -> None:
    """R120."""
    rows = CoreRevision.objects.select_related("core", "scope").order_by("id")
    edits = [(row.scope.name, row.core.label, row.action, is_program(row.by)) for row in rows]
    assert edits == [
        (agents.READ_IN, "persona", "create", False),
        (agents.READ_IN, "open", "create", False),
        (agents.READ_IN, "open", "append", True),
        (agents.READ_IN, "open", "replace", True),
        (agents.READ_IN, "open", "replace", False),
        (agents.PRIVATE, "household", "create", False),
        (agents.PRIVATE, "household", "append", False),
        (agents.PRIVATE, "household", "undo", False),
    ]


def test_an_agent_and_a_person_asked_for_what_a_person_decides_and_no_plan_holds_it(loaded: Loaded) -> None:
    """R47, R64: a user's word stays in the reads until then, and forgetting reaches what was merged from it."""
    asked = Operation.objects.exclude(requested_by="").exclude(kind=Kind.ALIAS).order_by("id")
    [retire, forget] = asked
    assert (retire.kind, retire.status, is_program(retire.requested_by)) == (Kind.ARCHIVE, State.NEEDS_HUMAN, True)
    assert rows_of(retire) == [agents.RETIRE]
    assert Observation.objects.get(external_id=agents.RETIRE).status == Status.ACTIVE
    assert (forget.kind, forget.status, forget.requested_by) == (Kind.FORGET, State.NEEDS_HUMAN, agents.STEWARD)
    about = Observation.objects.filter(operation_sources__operation=forget)
    assert set(about.values_list("external_id", flat=True)) >= {"maya-o025", "maya-o026"}
    assert about.filter(derivation="merge", status=Status.ACTIVE).count() == 1
    planned = Operation.objects.filter(plan_items__plan=loaded.plan)
    assert not planned.filter(pk__in=asked).exists()
    taken = Observation.objects.filter(operation_sources__operation__in=asked)
    assert not planned.filter(sources__observation__in=taken).exists()


def test_loading_again_adds_nothing_plans_nothing_and_keeps_every_password(loaded: Loaded, home: Path) -> None:
    kinds = (Operation, Event, CoreRevision, Residue, Token, Outbox)
    before = [kind.objects.count() for kind in kinds]
    again = load(say=lambda _: None, home=home)
    assert (again.added, again.plan, again.logins) == (
        0,
        loaded.plan,
        (home / "logins.txt").read_text(encoding="utf-8"),
    )
    assert again.episodes == loaded.episodes
    assert [kind.objects.count() for kind in kinds] == before


def test_a_policy_that_somebody_set_since_is_left_alone(loaded: Loaded, home: Path) -> None:
    asking.answer(pattern="research/tidewater-lab", answers=asking.Answers(keep_days=30), by="somebody")
    asking.answer(pattern="people/maya-okafor", answers=asking.Answers(keep_days=30), by="somebody")
    again = load(say=lambda _: None, home=home)
    assert Policy.objects.get(pattern="research/tidewater-lab").updated_by == "somebody"
    assert "people/maya-okafor     version 2, changed by somebody" in again.policies
    assert "four questions" not in again.policies
    assert "four questions" in loaded.policies


@pytest.mark.django_db(transaction=True)
def test_a_demo_that_grew_since_is_planned_anew_and_its_earlier_week_is_not_told_twice(
    loaded: Loaded, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer version may bring rows: they are added and planned, and nothing is applied or asked again."""
    applied = Operation.objects.filter(status=State.APPLIED).count()
    monkeypatch.setattr(demo, "lines", EVERYTHING)
    again = load(say=lambda _: None, home=home)
    assert (again.added, again.plan.pk) == (1, loaded.plan.pk + 1)
    assert Operation.objects.filter(status=State.APPLIED).count() == applied == len(demo.EARLIER_MERGES) + 2
    assert Operation.objects.filter(kind=Kind.ALIAS).count() == 1
