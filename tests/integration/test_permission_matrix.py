"""The whole matrix, generated: every role at every address and in every action, in the scope where it is whole, in one
where it is lower, in another's, and with no scope at all.

Views are called as the resolver finds them and their pages are not drawn: who is let through is decided before that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import pytest
from django.apps import apps
from django.contrib.auth.models import User
from django.contrib.messages.storage.fallback import FallbackStorage
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.http import Http404, HttpRequest
from django.test import RequestFactory
from django.urls import NoReverseMatch, get_resolver, resolve, reverse

from consolidation import review
from consolidation.admin.item.deciding import Verb
from consolidation.admin.plan.reading import undo_token
from consolidation.admin.reading import rows_of, shown_token
from consolidation.calibration import measure
from consolidation.models import (
    BulkDecision,
    Calibration,
    Demotion,
    Pause,
    Planning,
    Policy,
    Projection,
    Sample,
    Suite,
    Verdict,
)
from observations import access, ingest, store
from observations.models import GivenAnswer, IntakeRun, Outbox, Scope, ScopeAccess, Tombstone
from tests.building import observe, tell
from tests.desk import World, person, world
from tests.integration.test_admin_permissions import (
    _OF_SEVERAL,
    EVERYBODY,
    MATRIX,
    OPERATOR,
    OPERATORS,
    REVIEWER,
    REVIEWERS,
    SUPERUSER,
    VIEWER,
    _names,
)

pytestmark = pytest.mark.django_db

NOBODY, STEWARD = "nobody", "Steward"
ROLES: Final = (NOBODY, VIEWER, REVIEWER, OPERATOR, STEWARD, SUPERUSER)
# What a steward may do beyond looking; everything else that is not everybody's is not a steward's.
STEWARDS: Final = frozenset(
    {
        *("consolidation_policy_new", "consolidation_policy_questions", "consolidation_policy_edit"),
        *("consolidation_suite_new", "consolidation_suite_run", "consolidation_plan_signoff"),
        *("consolidation_operation_comment", "observations_intake_settings"),
        *("observations_corememory_new", "observations_corememory_settings"),
        *("observations_corememory_edit", "observations_corememory_undo"),
        *("observations_token_new", "observations_token_revoke"),
    }
)
# Rows that belong to no scope, or to whoever asked: one address for everybody.
WHOLE_STORE: Final = ("calibration", "demotion", "scopeaccess", "periodictask", "intervalschedule", "crontabschedule")
OWN, LOWER, OTHER, NONE = "own", "lower", "other", "none"
DENIED: Final = (403, 404)


SCOPES: Final = {OWN: "team-a/u1", LOWER: "team-a/u2", OTHER: "team-b/u1"}


@dataclass(frozen=True, slots=True)
class Rows:
    """A scope with a row of every model that has an address."""

    world: World
    keys: Mapping[str, object]

    def address(self, name: str, *, by: str = "") -> str:
        """The address of a page about this scope, and of what belongs to one person."""
        if name == "observations_givenanswer_of":
            return reverse(f"admin:{name}", args=[self.keys["givenanswer.of"]])
        if name in _OF_SEVERAL:
            return reverse(f"admin:{name}", args=_OF_SEVERAL[name](self.world))
        try:
            return reverse(f"admin:{name}")
        except NoReverseMatch:
            _, model, page = name.removeprefix("django_").removeprefix("celery_").split("_", 2)
            keys = (f"{model}.{page}.{by}", f"{model}.{page}", model)
            return reverse(f"admin:{name}", args=[next((self.keys[key] for key in keys if key in self.keys), 1)])

    def body(self, name: str) -> dict[str, object]:
        """What has to stand in a form for its address to be about a row at all."""
        return {"projection": self.keys["projection"], "reason": "seen"} if name == SIGN_OFF else {}


def built(name: str) -> Rows:
    """The rows of one scope."""
    policy = Policy.objects.create(pattern=name, body={})
    mine = world(name)
    scope, applied = mine.scope, mine.applied
    low, high, gone = (observe(text, within=scope) for text in ("Left", "Right", "Gone"))
    with transaction.atomic():
        store.erase(scope_id=scope.pk, ids=[gone.pk], by="seed", reason="asked", request="forget:1")
    ingest.create_core(scope=scope, label="house", value="Quiet.", by="seed", limit=100)
    projected = {"records_before": 1, "records_after": 1, "fell": True, "operations": 1, "digest": "a" * 64}
    keys = {
        "operation": mine.merge.pk,
        "operation.undo": applied.pk,
        "operation.named": mine.merge.op_id,
        **dict.fromkeys(("operation.bulk", "operation.bulkprogress"), _bulk(scope, by="seed")),
        # A decision over many is confirmed by who asked for it: each person has one of their own.
        **{f"operation.bulkconfirm.{who}": _bulk(scope, by=who) for who in WHO.values()},
        "plan": mine.plan.pk,
        **dict.fromkeys(
            ("plan.coming", "plan.progress"),
            Planning.objects.create(by="seed", pattern=name, scopes=[scope.pk]).pk,
        ),
        "pause": Pause.objects.create(scope=scope, by="seed").pk,
        "policy": policy.pk,
        "policy.holds": scope.pk,
        "sample": Sample.objects.create(scope=scope, operation=applied, kind="merge", rule="merge", band="b").pk,
        "suite": Suite.objects.create(scope=scope, name="s", by="seed").pk,
        "verdict": Verdict.objects.create(scope=scope, low=low, high=high, by="seed", operation="").pk,
        "observation": mine.derived.pk,
        "episode": tell("Hello", within=scope).pk,
        "givenanswer": GivenAnswer.objects.create(scope=scope, answer=ANSWERS[name], call_site="context").pk,
        "givenanswer.of": ANSWERS[name],
        "intake": scope.pk,
        "intakerun": IntakeRun.objects.create(scope=scope, trigger=IntakeRun.Trigger.values[0]).pk,
        "corememory": scope.core_memory.get().pk,
        "token": access.create_token(name="t", scope_pattern=name, by="seed", may_read=True).token.pk,
        "scope": scope.pk,
        "outbox": Outbox.objects.create(scope=scope, task="t", key=name).pk,
        "tombstone": Tombstone.objects.get(scope=scope).pk,
        "projection": Projection.objects.create(scope=scope, plan=mine.plan, by="seed", **projected).pk,
        **WHOLE,
    }
    return Rows(mine, keys)


def _bulk(scope: Scope, *, by: str) -> int:
    return BulkDecision.objects.create(verb="reject", by=by, scopes=[scope.pk], total=0).pk


SIGN_OFF: Final = "consolidation_plan_signoff"
WHO: Final = {(role, given): f"{role}-{given}" for role in ROLES for given in (True, False)}
ANSWERS: Final = {name: f"00000000-0000-4000-8000-{number:012d}" for number, name in enumerate(SCOPES.values())}
WHOLE: Final[dict[str, object]] = {}


@pytest.fixture
def places() -> dict[str, Rows]:
    """Three scopes, and what belongs to none."""
    WHOLE["calibration"] = Calibration.objects.create(
        profile="p", space="s", t_candidate=0.9, t_merge=0.95, figures=_FIGURES.to_dict(), by="seed"
    ).pk
    WHOLE["demotion"] = Demotion.objects.create(
        kind="merge", rule="merge", band="b", judged=20, wrong=9, lower=0.2, limit=0.005
    ).pk
    WHOLE["scopeaccess"] = ScopeAccess.objects.create(user=person("seen"), pattern="x/*").pk
    built_there = {place: built(name) for place, name in SCOPES.items()}
    Pause.objects.create(scope=None, by="seed")  # planning would ask for a transaction of its own
    return built_there


_FIGURES: Final = measure(
    duplicates=[True] * 10 + [False] * 10, cosines=[0.9] * 20, objected=[False] * 20, identical=[False] * 20
)


@pytest.fixture
def people() -> dict[tuple[str, bool], User]:
    """One person per role who has all of it in team-a but in u2, where they only read; and one without any scope."""
    found = {}
    for role in ROLES:
        for given in (True, False):
            group = "" if role in (NOBODY, SUPERUSER) else role
            user = person(WHO[role, given], group, *(["team-a/*"] if given else []), superuser=role == SUPERUSER)
            if given:
                ScopeAccess.objects.create(user=user, pattern=SCOPES[LOWER], role=VIEWER)
            found[role, given] = user
    return found


# --- asking -----------------------------------------------------------------------------------------------------------


def answer(user: User, method: str, address: str, data: Mapping[str, object] | None = None) -> int:
    """The status that the view at an address answers with, as the site would give it."""
    request: HttpRequest = getattr(RequestFactory(), method.lower())(address, data or {})
    path, _, _ = address.partition("?")
    request.user, request.resolver_match = user, resolve(path)
    request.session = {}  # type: ignore[assignment]
    request._messages = FallbackStorage(request)  # type: ignore[attr-defined]
    request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
    found = request.resolver_match
    assert found is not None
    try:
        return int(found.func(request, *found.args, **found.kwargs).status_code)
    except PermissionDenied:
        return 403
    except Http404:
        return 404


def tried(user: User, method: str, address: str, data: Mapping[str, object] | None = None) -> int:
    """The same, taken back afterwards."""
    with transaction.atomic():
        status = answer(user, method, address, data)
        transaction.set_rollback(True)
    return status


def standing() -> dict[str, tuple[object, ...]]:
    """Every row of every table of ours and of beat, as a count and a digest. One query."""
    ours = [model for model in apps.get_models() if model._meta.app_label in ("observations", "consolidation")]
    tables = sorted({model._meta.db_table for model in ours} | {"django_celery_beat_periodictask", "auth_user"})
    each = "SELECT {0!r}, count(*), md5(coalesce(string_agg(md5(t::text), '' ORDER BY md5(t::text)), '')) FROM {0} t"
    with connection.cursor() as cursor:
        cursor.execute(" UNION ALL ".join(each.format(table) for table in tables))
        return {name: tuple(rest) for name, *rest in cursor.fetchall()}


def test_the_naive_control_sees_one_changed_column(places: dict[str, Rows]) -> None:
    """A comparison that could not see a change would prove nothing: one opened item is one table that differs."""
    before = standing()
    review.opened(operation=places[OTHER].world.merge, by="x")
    assert [name for name, now in standing().items() if now != before[name]] == ["consolidation_planitem"]


# --- every address ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """Somebody asks for something somewhere."""

    role: str
    place: str
    method: str
    name: str
    allowed: bool

    def __str__(self) -> str:
        return f"{self.method} {self.name} as {self.role} ({self.place})"


def allowed(role: str, place: str, method: str, name: str, *, about_a_row: bool) -> bool:
    """What the declared table says of one cell."""
    listed = MATRIX[name][method == "POST"]
    everybodys = listed == EVERYBODY
    may = role in listed or (role == STEWARD and (everybodys or name in STEWARDS))
    if role == SUPERUSER or not may:
        return may
    if not about_a_row:
        return True
    return place == OWN or (place == LOWER and everybodys)


def cells(places: Mapping[str, Rows]) -> Iterator[tuple[Cell, str, dict[str, object]]]:
    """All of them, each with its address and what is posted to it."""
    for name in sorted(set(_names(get_resolver().url_patterns))):
        about_a_row = len({rows.address(name) for rows in places.values()}) > 1 or name.endswith("_bulkconfirm")
        everywhere = {**places, NONE: places[OWN]} if about_a_row else {OWN: places[OWN], NONE: places[OWN]}
        for role in ROLES:
            for place, rows in everywhere.items():
                address = rows.address(name, by=WHO[role, place != NONE])
                for method in ("GET", "POST"):
                    may = allowed(role, place, method, name, about_a_row=about_a_row)
                    yield Cell(role, place, method, name, may), address, rows.body(name)


def test_every_role_at_every_address_in_every_scope(
    places: dict[str, Rows], people: dict[tuple[str, bool], User]
) -> None:
    """E, must hold: who is let through, cell by cell and without an exception, as the one table says; and who is not
    changes no row of any table.
    """
    every = list(cells(places))
    before, wrong = standing(), []
    for cell, address, data in every:
        if not cell.allowed:
            status = answer(people[cell.role, cell.place != NONE], cell.method, address, data)
            wrong += [] if status in (*DENIED, 405) else [f"{cell} was let through: {status}"]
    assert not wrong, "\n".join(wrong)
    assert standing() == before
    for cell, address, data in every:
        if cell.allowed:
            status = tried(people[cell.role, cell.place != NONE], cell.method, address, data)
            wrong += [f"{cell} was refused: {status}"] if status in DENIED else []
    assert not wrong, "\n".join(wrong)
    assert len(every) == len({str(cell) for cell, _, _ in every}) > 2_000


# --- every action -----------------------------------------------------------------------------------------------------

Action = Callable[[Rows, User], tuple[str, dict[str, object]]]
STEERING: Final = (STEWARD, SUPERUSER)


def _verb(verb: Verb) -> Action:
    def posted(rows: Rows, user: User) -> tuple[str, dict[str, object]]:
        operation = rows.world.applied if verb is Verb.UNDO else rows.world.merge
        data: dict[str, object] = {
            "verb": str(verb),
            "reason": "because",
            "digest": review.shown_digest(operation=operation),
        }
        return reverse("admin:consolidation_operation_decide_one", args=[operation.pk]), data

    return posted


def _body(name: str, data: Callable[[Rows], dict[str, object]]) -> Action:
    return lambda rows, user: (rows.address(name), data(rows))


def _selection(rows: Rows, user: User) -> tuple[str, dict[str, object]]:
    token = shown_token(rows=rows_of([rows.world.merge]), user_id=user.pk)
    return rows.address("consolidation_operation_decide"), {
        "shown": token,
        "all": "1",
        "verb": "reject",
        "reason": "no",
    }


def _agreeing_to_several(rows: Rows, user: User) -> tuple[str, dict[str, object]]:
    address, data = _selection(rows, user)
    return address, {**data, "verb": "second"}


def _selection_of_a_plan(rows: Rows, user: User) -> tuple[str, dict[str, object]]:
    return rows.address("consolidation_plan_decide"), _selection(rows, user)[1]


def _undoing(rows: Rows, user: User) -> tuple[str, dict[str, object]]:
    token = undo_token(plan=rows.world.plan.pk, operations=[rows.world.applied], user_id=user.pk)
    return rows.address("consolidation_plan_undo"), {"shown": token}


# What is named in the body, not in the address: who may do it, and what is posted.
ACTIONS: Final[dict[str, tuple[tuple[str, ...], Action]]] = {
    **{f"verb {verb}": (REVIEWERS, _verb(verb)) for verb in Verb if verb not in (Verb.APPLY, Verb.UNDO)},
    **{f"verb {verb}": (OPERATORS, _verb(verb)) for verb in (Verb.APPLY, Verb.UNDO, Verb.APPROVE_APPLY)},
    "select": (REVIEWERS, _selection),
    "agree to several": (REVIEWERS, _agreeing_to_several),
    "pause": (OPERATORS, _body("consolidation_pause_set", lambda rows: {"target": rows.world.scope.pk})),
    "plan now": (OPERATORS, _body("consolidation_plan_new", lambda rows: {"target": f"scope:{rows.world.scope.pk}"})),
    "sign off": (
        STEERING,
        _body("consolidation_plan_signoff", lambda rows: {"projection": rows.keys["projection"], "reason": "seen"}),
    ),
    "new alias": (
        REVIEWERS,
        _body(
            "consolidation_alias_new",
            lambda rows: {"scope": rows.world.scope.pk, "subject": "ann", "name": "bo", "observation": ""},
        ),
    ),
    "new core memory": (
        STEERING,
        _body(
            "observations_corememory_new",
            lambda rows: {"scope": rows.world.scope.pk, "label": "new", "value": "x", "limit": "100"},
        ),
    ),
    "remark": ((*REVIEWERS, STEWARD), _body("consolidation_operation_comment", lambda rows: {"comment": "x"})),
    "intake on": (STEERING, _body("observations_intake_settings", lambda rows: {"on": "1", "every": "5"})),
    "revoke": (STEERING, _body("observations_token_revoke", lambda rows: {})),
    "resume": (OPERATORS, _body("consolidation_pause_lift", lambda rows: {})),
    "judge": (REVIEWERS, _body("consolidation_sample_judge", lambda rows: {"word": "right"})),
    "reject a plan": (
        REVIEWERS,
        _body("consolidation_plan_decide", lambda rows: {"verb": "reject_all", "reason": "no"}),
    ),
    "undo a plan": (OPERATORS, _undoing),
    "select in a plan": (REVIEWERS, _selection_of_a_plan),
}


def test_every_action_of_every_role_in_every_scope_changes_rows_or_none(
    places: dict[str, Rows], people: dict[tuple[str, bool], User]
) -> None:
    """E, must hold: posted as its page would, an action that is not allowed there changes nothing at all."""
    before, refused, done = standing(), [], []
    for name, (roles, action) in ACTIONS.items():
        for (role, given), user in people.items():
            for place in SCOPES if given else [OWN]:
                may = role in roles and (role == SUPERUSER or (given and place == OWN))
                address, data = action(places[place], user)
                if not may:
                    refused.append(answer(user, "POST", address, data))
                elif tried(user, "POST", address, data) in DENIED:
                    done.append(f"{name} as {role} ({place}) was refused")
    after = standing()
    assert [table for table, now in after.items() if now != before[table]] == []
    assert done == []
    assert len(refused) > 300
