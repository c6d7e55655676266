"""Who may reach which page and do what: every address of the review, for every role, in own and foreign scopes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils.html import escape

from consolidation import review
from consolidation.models import Operation, Pause, Plan
from consolidation.operations import State
from consolidation.review import Decision
from observations.models import Observation, ScopeAccess, Tombstone
from observations.normalise import key64
from tests.desk import ROLES, World, client_of, decide, item_url, person, world
from tests.engine import approve_and_apply, call, engine, unusable

pytestmark = pytest.mark.django_db

VIEWER, REVIEWER, OPERATOR, SUPERUSER = "Viewer", "Reviewer", "Operator", "superuser"
EVERYBODY = (VIEWER, REVIEWER, OPERATOR, SUPERUSER)
REVIEWERS = (REVIEWER, OPERATOR, SUPERUSER)
OPERATORS = (OPERATOR, SUPERUSER)

# Every address of the two apps and of beat: who may GET it, and who may POST to it. A new one without a row fails.
MATRIX: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "consolidation_operation_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_operation_change": (EVERYBODY, EVERYBODY),
    "consolidation_operation_named": (EVERYBODY, EVERYBODY),
    "consolidation_operation_decide": (REVIEWERS, REVIEWERS),
    "consolidation_operation_decide_one": (EVERYBODY, EVERYBODY),  # each verb asks for its own permission: see below
    "consolidation_operation_edit": (REVIEWERS, REVIEWERS),
    "consolidation_operation_preview": (REVIEWERS, REVIEWERS),
    "consolidation_operation_comment": (REVIEWERS, REVIEWERS),  # and stewards: test_permission_matrix.py
    "consolidation_operation_undo": (OPERATORS, OPERATORS),
    "consolidation_operation_trash": (EVERYBODY, EVERYBODY),
    "consolidation_operation_focus": (REVIEWERS, REVIEWERS),
    "consolidation_operation_focus_decide": (REVIEWERS, REVIEWERS),
    "consolidation_operation_focus_undo": (REVIEWERS, REVIEWERS),
    "consolidation_operation_focus_open": (REVIEWERS, REVIEWERS),
    "consolidation_operation_bulkask": (REVIEWERS, REVIEWERS),
    "consolidation_operation_bulk": (EVERYBODY, EVERYBODY),
    "consolidation_operation_bulkprogress": (EVERYBODY, EVERYBODY),
    "consolidation_operation_bulkconfirm": (REVIEWERS, REVIEWERS),
    "consolidation_operation_record": (EVERYBODY, EVERYBODY),
    "consolidation_operation_recordfile": (EVERYBODY, EVERYBODY),
    "consolidation_alias_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_alias_new": (REVIEWERS, REVIEWERS),
    "consolidation_cardinality_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_plan_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_plan_change": (EVERYBODY, EVERYBODY),
    "consolidation_plan_printed": (EVERYBODY, EVERYBODY),
    "consolidation_plan_coming": (EVERYBODY, EVERYBODY),
    "consolidation_plan_progress": (EVERYBODY, EVERYBODY),
    "consolidation_plan_json": (EVERYBODY, EVERYBODY),
    "consolidation_plan_new": (OPERATORS, OPERATORS),
    "consolidation_plan_apply": (OPERATORS, OPERATORS),
    "consolidation_plan_undo": (OPERATORS, OPERATORS),
    "consolidation_plan_decide": (REVIEWERS, REVIEWERS),
    "consolidation_plan_explained": (REVIEWERS, REVIEWERS),
    "consolidation_plan_impact": (REVIEWERS, REVIEWERS),
    "consolidation_plan_signoff": ((SUPERUSER,), (SUPERUSER,)),  # and stewards
    "consolidation_pause_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_pause_set": (OPERATORS, OPERATORS),
    "consolidation_pause_lift": (OPERATORS, OPERATORS),
    "consolidation_policy_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_policy_change": (EVERYBODY, EVERYBODY),
    "consolidation_policy_versions": (EVERYBODY, EVERYBODY),
    "consolidation_policy_holds": (EVERYBODY, EVERYBODY),
    "consolidation_policy_new": ((SUPERUSER,), (SUPERUSER,)),  # and stewards: tests/integration/test_admin_policies.py
    "consolidation_policy_questions": ((SUPERUSER,), (SUPERUSER,)),
    "consolidation_policy_edit": ((SUPERUSER,), (SUPERUSER,)),
    "consolidation_policy_remove": ((SUPERUSER,), (SUPERUSER,)),
    "consolidation_calibration_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_calibration_change": (EVERYBODY, EVERYBODY),
    "consolidation_calibration_enable": ((SUPERUSER,), (SUPERUSER,)),
    "consolidation_sample_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_sample_change": (EVERYBODY, EVERYBODY),
    "consolidation_sample_judge": (REVIEWERS, REVIEWERS),
    "consolidation_demotion_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_demotion_lift": ((SUPERUSER,), (SUPERUSER,)),  # and stewards: test_admin_accuracy.py
    "consolidation_suite_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_suite_change": (EVERYBODY, EVERYBODY),
    "consolidation_suite_new": ((SUPERUSER,), (SUPERUSER,)),  # and stewards: tests/integration/test_admin_suites.py
    "consolidation_suite_run": (REVIEWERS, REVIEWERS),
    "consolidation_verdict_changelist": (EVERYBODY, EVERYBODY),
    "consolidation_verdict_change": (EVERYBODY, ()),
    "observations_observation_changelist": (EVERYBODY, EVERYBODY),
    "observations_observation_search": (EVERYBODY, EVERYBODY),
    "observations_observation_change": (EVERYBODY, EVERYBODY),
    "observations_observation_key": (REVIEWERS, REVIEWERS),
    "observations_observation_take_back": (REVIEWERS, REVIEWERS),
    "observations_observation_asof": (EVERYBODY, EVERYBODY),
    "observations_observation_history": (EVERYBODY, EVERYBODY),
    "observations_observation_named": (EVERYBODY, EVERYBODY),
    "observations_observation_subject": (EVERYBODY, EVERYBODY),
    "observations_givenanswer_changelist": (EVERYBODY, EVERYBODY),
    "observations_givenanswer_change": (EVERYBODY, EVERYBODY),
    "observations_givenanswer_find": (EVERYBODY, EVERYBODY),
    "observations_givenanswer_of": (EVERYBODY, EVERYBODY),
    "observations_modelcall_changelist": (EVERYBODY, EVERYBODY),
    "observations_intake_changelist": (EVERYBODY, EVERYBODY),
    "observations_intake_change": (EVERYBODY, EVERYBODY),
    "observations_intake_settings": ((SUPERUSER,), (SUPERUSER,)),  # and stewards: test_admin_writing.py
    "observations_intake_run": (OPERATORS, OPERATORS),
    "observations_intake_ask_again": (OPERATORS, OPERATORS),
    "observations_intakerun_changelist": (EVERYBODY, EVERYBODY),
    "observations_intakerun_change": (EVERYBODY, EVERYBODY),
    "observations_intakeitem_changelist": (EVERYBODY, EVERYBODY),
    "observations_intakeitem_decide": (REVIEWERS, REVIEWERS),
    "observations_corememory_changelist": (EVERYBODY, EVERYBODY),
    "observations_corememory_change": (EVERYBODY, EVERYBODY),
    "observations_corememory_new": ((SUPERUSER,), (SUPERUSER,)),
    "observations_corememory_settings": ((SUPERUSER,), (SUPERUSER,)),
    "observations_corememory_edit": (REVIEWERS, REVIEWERS),
    "observations_corememory_undo": (REVIEWERS, REVIEWERS),
    "observations_residue_changelist": (EVERYBODY, EVERYBODY),
    "observations_token_changelist": (EVERYBODY, EVERYBODY),
    "observations_token_new": ((SUPERUSER,), (SUPERUSER,)),
    "observations_token_revoke": ((SUPERUSER,), (SUPERUSER,)),
    "observations_episode_changelist": (EVERYBODY, EVERYBODY),
    "observations_episode_change": (EVERYBODY, EVERYBODY),
    "observations_event_changelist": (EVERYBODY, EVERYBODY),
    "observations_scope_changelist": (EVERYBODY, EVERYBODY),
    "observations_scope_change": (EVERYBODY, ()),
    "observations_outbox_changelist": (EVERYBODY, EVERYBODY),
    "observations_outbox_change": (EVERYBODY, ()),
    "observations_tombstone_changelist": (EVERYBODY, EVERYBODY),
    "observations_tombstone_change": (EVERYBODY, ()),
    "observations_scopeaccess_changelist": ((SUPERUSER,), (SUPERUSER,)),
    "observations_scopeaccess_add": ((SUPERUSER,), (SUPERUSER,)),
    "observations_scopeaccess_change": ((SUPERUSER,), (SUPERUSER,)),
    "observations_scopeaccess_delete": ((SUPERUSER,), (SUPERUSER,)),
    "django_celery_beat_periodictask_changelist": (OPERATORS, OPERATORS),
    "django_celery_beat_periodictask_change": (OPERATORS, OPERATORS),
    "django_celery_beat_intervalschedule_changelist": (OPERATORS, OPERATORS),
    "django_celery_beat_intervalschedule_change": (OPERATORS, (SUPERUSER,)),
    "django_celery_beat_intervalschedule_add": (OPERATORS, OPERATORS),
    "django_celery_beat_crontabschedule_changelist": (OPERATORS, OPERATORS),
    "django_celery_beat_crontabschedule_change": (OPERATORS, (SUPERUSER,)),
    "django_celery_beat_crontabschedule_add": (OPERATORS, OPERATORS),
}
APPS = ("consolidation_", "observations_", "django_celery_beat_")


def _names(patterns: list[URLPattern | URLResolver]) -> Iterator[str]:
    for pattern in patterns:
        if isinstance(pattern, URLResolver):
            yield from _names(pattern.url_patterns)
        elif pattern.name and pattern.name.startswith(APPS):
            yield pattern.name


@pytest.fixture
def mine() -> World:
    """A memory of scope team-a/u1."""
    return world()


@pytest.fixture
def people(mine: World) -> dict[str, Client]:
    """One signed-in browser per role, each of whom may see team-a/*."""
    clients = {role: client_of(person(role.lower(), role, "team-a/*")) for role in ROLES}
    return {**clients, SUPERUSER: client_of(person("root", superuser=True))}


_OF_SEVERAL: dict[str, Callable[[World], list[object]]] = {
    "consolidation_operation_bulkask": lambda _: [],
    **{f"consolidation_operation_focus{page}": lambda _: [] for page in ("", "_decide", "_undo", "_open")},
    "consolidation_operation_recordfile": lambda mine: [mine.merge.pk, "txt"],
    "observations_observation_named": lambda mine: [f"obs_{mine.derived.pk}"],
    "observations_observation_subject": lambda mine: [mine.scope.pk, key64("ann")],
    "observations_observation_asof": lambda _: [],
    "observations_observation_history": lambda _: [],
    "observations_givenanswer_find": lambda _: [],
    "observations_givenanswer_of": lambda _: ["00000000-0000-4000-8000-000000000000"],
}


def _address(name: str, mine: World) -> str:
    """The address of a page, of a row that exists where it has one."""
    if name in _OF_SEVERAL:
        return reverse(f"admin:{name}", args=_OF_SEVERAL[name](mine))
    _, model, page = name.removeprefix("django_").rsplit("_", 2)
    if page in ("changelist", "add", "search", "set", "new", "questions", "trash") or name in (
        "consolidation_operation_decide",
        "observations_intakeitem_decide",
    ):
        return reverse(f"admin:{name}")
    if page == "named":
        return reverse(f"admin:{name}", args=[mine.merge.op_id])
    rows = {
        "operation": mine.applied.pk if page == "undo" else mine.merge.pk,
        "plan": mine.plan.pk,
        "observation": mine.derived.pk,
        "scope": mine.scope.pk,
    }
    return reverse(f"admin:{name}", args=[rows.get(model) or rows.get(name.split("_")[1]) or 1])


def test_every_address_of_the_review_has_a_row_in_the_matrix() -> None:
    """I1p: a page that nobody decided about cannot be added; say in MATRIX who may reach it."""
    assert set(_names(get_resolver().url_patterns)) == set(MATRIX)


def test_each_role_reaches_exactly_the_pages_of_its_row(mine: World, people: dict[str, Client]) -> None:
    """I1p, ASVS 8.2.1: GET and POST of every address; who is not in its row is refused and nothing changes."""
    Pause.objects.create(scope=mine.scope, by="seed")
    ScopeAccess.objects.create(user=person("other"), pattern="x/*")
    wrong = []
    for name, (readers, writers) in MATRIX.items():
        address = _address(name, mine)
        for role, client in people.items():
            read = client.get(address).status_code
            if (read == 403) != (role not in readers):
                wrong.append(f"GET {name} as {role}: {read}")
            if role not in writers and client.post(address, {}).status_code != 403:
                wrong.append(f"POST {name} as {role} was let through")
    assert wrong == []
    states = {operation.pk: operation.status for operation in mine.operations}
    assert dict(Operation.objects.values_list("pk", "status")) == states


def test_nobody_reaches_any_page_without_signing_in(mine: World) -> None:
    """ASVS 8.2.1: every address sends a stranger to the login."""
    for name in MATRIX:
        answer = Client().get(_address(name, mine))
        assert answer.status_code == 302, name
        assert "/login/" in answer["Location"], name


VERBS = {
    "approve": REVIEWERS,
    "reject": REVIEWERS,
    "distinct": REVIEWERS,
    "withdraw": REVIEWERS,
    "approve_apply": OPERATORS,
    "apply": OPERATORS,
    "undo": OPERATORS,
}


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_verb_is_refused_to_who_may_not_do_it(verb: str, mine: World, people: dict[str, Client]) -> None:
    """I1p, trap 1: the permission is asked for in the action, not only on the page that shows its button."""
    for role, client in people.items():
        if role in VERBS[verb]:
            continue
        status, _ = decide(client, mine.merge, verb, reason="because")
        assert status == 403, f"{verb} as {role}"
    mine.merge.refresh_from_db()
    assert mine.merge.status == State.NEEDS_HUMAN


def test_a_foreign_scope_is_not_there(mine: World) -> None:
    """I2p: another scope's rows answer exactly as rows that do not exist, for looking and for doing."""
    stranger = client_of(person("stan", "Operator", "team-b/*"))
    for operation in mine.operations:
        for page in ("change", "undo"):
            assert stranger.get(item_url(operation, page)).status_code == 404
        assert decide(stranger, operation, "reject", reason="no")[0] == 404
    for name, pk in (("plan_change", mine.plan.pk), ("plan_apply", mine.plan.pk), ("plan_printed", mine.plan.pk)):
        assert stranger.get(reverse(f"admin:consolidation_{name}", args=[pk])).status_code == 404
    for name, pk in (
        ("observation_change", mine.derived.pk),
        ("observation_key", mine.derived.pk),
        ("scope_change", mine.scope.pk),
    ):
        assert stranger.get(reverse(f"admin:observations_{name}", args=[pk])).status_code == 404
        assert stranger.get(reverse(f"admin:observations_{name}", args=[987654])).status_code == 404
    named = reverse("admin:consolidation_operation_named", args=[mine.merge.op_id])
    assert stranger.get(named).status_code == 404
    assert not Operation.objects.filter(status=State.REJECTED).exists()


def test_no_list_filter_or_count_shows_a_foreign_scope() -> None:
    """I2p, traps 7 and 8: a canary in another scope's name and texts is on no page of mine, filters included."""
    theirs = world("secret-canary/u9", mark="canary-text")
    hidden = engine("secret-canary/u9", mark="canary-text")
    approve_and_apply(hidden.alias)
    approve_and_apply(hidden.supersede, decision=Decision(many_valued=True))
    call(hidden.scope, purpose="canary-call")
    call(None, purpose="canary-call")
    unusable(hidden.scope)
    world("team-b/u1")
    stan = client_of(person("stan", "Operator", "team-b/*"))
    lists = [name for name in MATRIX if name.endswith("changelist") and "scopeaccess" not in name]
    lists += ["consolidation_operation_trash", "consolidation_alias_new"]
    queries = ["?show=decided", f"?scope={theirs.scope.pk}", "?status=all", "?state=applied", "?state=removed"]
    queries += [f"?about={hidden.given.pk}", "?show=90"]
    for name in lists:
        for query in ("", *queries):
            page = stan.get(reverse(f"admin:{name}") + query).content.decode()
            assert "canary" not in page, name + query
    asked = reverse("admin:consolidation_alias_new")
    assert stan.get(asked, {"observation": hidden.given.pk}).status_code == 404
    assert stan.post(asked, {"observation": hidden.given.pk, "name": "x"}).status_code == 404
    found = stan.post(reverse("admin:observations_observation_search"), {"q": "canary"})
    assert "canary-text" not in found.content.decode()
    assert "canary" not in stan.get(reverse("admin:index")).content.decode()


def test_a_selection_reaches_no_foreign_operation(mine: World) -> None:
    """I2p: a person who lost a scope between the page and the click decides nothing in it."""
    user = person("rita", "Reviewer", "team-a/*")
    client = client_of(user)
    page = client.get(reverse("admin:consolidation_operation_changelist"))
    user.scope_access.all().delete()
    data = {"shown": page.context["token"], "all": "1", "verb": "reject", "reason": "no"}
    answer = client.post(reverse("admin:consolidation_operation_decide"), data)
    assert answer.context["done"] == []
    assert not Operation.objects.filter(status=State.REJECTED).exists()


def test_a_person_without_access_sees_an_empty_desk(mine: World) -> None:
    """I2p: a group without a scope shows nothing."""
    nobody = client_of(person("nora", "Operator"))
    page = nobody.get(reverse("admin:index")).content.decode()
    assert mine.scope.name not in page
    assert nobody.get(reverse("admin:consolidation_operation_changelist")).context["rows"] == []


def test_whole_plans_need_every_scope_of_theirs(mine: World) -> None:
    """I2p: a plan over scopes one may not see is applied and undone item by item, never as a whole."""
    other = world("team-b/u1")
    plan = Plan.objects.create(pattern="*", requested_by="test", trigger="command")
    for number, operation in enumerate((mine.automatic, other.automatic)):
        plan.items.create(scope=operation.scope, operation=operation, position=number)
    client = client_of(person("olga", "Operator", "team-a/*"))
    page = client.post(reverse("admin:consolidation_plan_apply", args=[plan.pk]), {"confirmed": "1"})
    assert "scopes you may not see" in page.content.decode()
    assert "team-b" not in page.content.decode()
    assert Operation.objects.filter(status=State.APPLIED).count() == 2  # those of the two worlds, from before


def test_a_revoked_permission_bites_at_once(mine: World) -> None:
    """Trap 14: the next request after a demotion is refused."""
    user = person("rita", "Reviewer", "team-a/*")
    client = client_of(user)
    assert client.get(item_url(mine.merge)).status_code == 200
    user.groups.clear()
    assert decide(client, mine.merge, "approve")[0] == 403


def test_the_admin_offers_no_way_to_write_memory(mine: World, people: dict[str, Client]) -> None:
    """Traps 2, 3, 5: no model of ours takes Django's add, change, delete or actions, even from a superuser."""
    root = people[SUPERUSER]
    for model, screen in admin.site._registry.items():
        if model._meta.app_label not in ("observations", "consolidation") or model is ScopeAccess:
            continue
        assert not screen.actions, model
        assert not screen.list_editable, model
        base = reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
        for page in ("add/", "1/delete/", "1/history/"):
            assert root.get(base + page).status_code == 404, base + page
    posted = root.post(reverse("admin:observations_observation_change", args=[mine.derived.pk]), {"text": "changed"})
    assert posted.status_code in (200, 405)
    assert Observation.objects.get(pk=mine.derived.pk).text != "changed"
    assert LogEntry.objects.count() == 0


def test_a_hidden_column_cannot_be_read_through_the_address(people: dict[str, Client]) -> None:
    """Trap 10: look-ups that were not declared are refused, however they are spelled."""
    root = people[SUPERUSER]
    for name in ("observations_tombstone", "observations_outbox", "observations_scope", "consolidation_verdict"):
        base = reverse(f"admin:{name}_changelist")
        plain = root.get(base).status_code
        for query in ("observation__text__startswith=a", "scope__name__startswith=t", "reason__contains=a"):
            answer = root.get(f"{base}?{query}")
            assert (plain, answer.status_code) in {(200, 302), (200, 400)}, f"{base}?{query}"


def test_beat_entries_run_no_task_and_take_no_arguments(people: dict[str, Client]) -> None:
    """Trap 1 in beat's own admin: an operator sets when an entry runs, not what; a viewer sees none of it."""
    address = reverse("admin:django_celery_beat_periodictask_changelist")
    page = people[OPERATOR].get(address)
    offered = dict(page.context["action_form"].fields["action"].choices)
    assert set(offered) == {"", "enable", "disable"}
    assert people[VIEWER].get(address).status_code == 403
    entry = page.context["cl"].result_list[0]
    change = reverse("admin:django_celery_beat_periodictask_change", args=[entry.pk])
    fields = people[OPERATOR].get(change).context["adminform"].form.fields
    assert set(fields) == {"enabled", "interval", "crontab", "start_time_0", "start_time", "expire_seconds"} - {
        "start_time_0"
    }


def test_beat_entries_are_enabled_by_operators(people: dict[str, Client]) -> None:
    """Beat's schedule is editable in the admin: planning is switched on here, by a person."""
    address = reverse("admin:django_celery_beat_periodictask_changelist")
    entry = next(
        row for row in people[OPERATOR].get(address).context["cl"].result_list if row.task.endswith("plan_all")
    )
    assert not entry.enabled
    people[OPERATOR].post(address, {"action": "enable", "_selected_action": [entry.pk]})
    entry.refresh_from_db()
    assert entry.enabled


def test_the_schedule_says_of_every_entry_what_it_does(people: dict[str, Client]) -> None:
    """Who switches something on knows what it will do; asking for keys is off and can be switched on there."""
    address = reverse("admin:django_celery_beat_periodictask_changelist")
    page = people[OPERATOR].get(address)
    rows = {row.task: row for row in page.context["cl"].result_list}
    for row in rows.values():
        assert escape(row.description) in page.content.decode(), row.name
    entry = rows["consolidation.tasks.keys_due"]
    assert entry.description == (
        "Asks the language model for the keys that observations lack. Does nothing without a model."
    )
    assert not entry.enabled
    people[OPERATOR].post(address, {"action": "enable", "_selected_action": [entry.pk]})
    entry.refresh_from_db()
    assert entry.enabled


def test_tombstones_and_verdicts_are_scoped(mine: World, people: dict[str, Client]) -> None:
    """I2p: Django's own lists show rows of visible scopes only."""
    review.distinct(operation=mine.merge, by="seed")
    other = client_of(person("stan", "Viewer", "team-b/*"))
    address = reverse("admin:consolidation_verdict_changelist")
    assert people[VIEWER].get(address).context["cl"].result_count == 1
    assert other.get(address).context["cl"].result_count == 0
    assert not Tombstone.objects.exists()
