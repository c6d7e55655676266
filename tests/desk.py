"""What the admin's tests stand on: people of every role, a small memory with one operation of each sort, and forms."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.urls import reverse

from consolidation import review, runner
from consolidation.models import Operation, Plan
from consolidation.operations import Approval, Kind
from observations.models import Observation, Scope, ScopeAccess
from tests.building import observe, propose, scope

PASSWORD = "a-long-enough-pass-phrase"
ROLES = ("Viewer", "Reviewer", "Operator")


def person(name: str, group: str = "", *patterns: str, superuser: bool = False, password: str | None = None) -> User:
    """Somebody of one group who may see the scopes of some patterns; without a password nobody hashes one."""
    user = User.objects.create_user(name, password=password, is_staff=True, is_superuser=superuser)
    if group:
        user.groups.add(Group.objects.get(name=group))
    for pattern in patterns:
        ScopeAccess.objects.create(user=user, pattern=pattern)
    return user


def client_of(user: User) -> Client:
    """A browser in which somebody is signed in."""
    client = Client()
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def item_url(operation: Operation, page: str = "change") -> str:
    """The address of an operation's page."""
    return reverse(f"admin:consolidation_operation_{page}", args=[operation.pk])


def settle() -> None:
    """Let the deferred constraints look now, as a commit would between two requests of a real browser."""
    if not connection.in_atomic_block:
        return
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("SET CONSTRAINTS ALL DEFERRED")


def status_of(operation: Operation) -> str:
    """An operation's state as it is stored."""
    return Operation.objects.get(pk=operation.pk).status


def decide(client: Client, operation: Operation, verb: str, *, digest: str = "", **fields: str) -> tuple[int, str]:
    """Post one decision as the item page does; the status and the text of the page that comes of it."""
    if not digest and verb == "apply":
        digest = Operation.objects.values_list("approved_digest", flat=True).get(pk=operation.pk)
    digest = digest or review.shown_digest(operation=operation)
    data = {"verb": verb, "digest": digest, **fields}
    answer = client.post(item_url(operation, "decide_one"), data, follow=True)
    settle()
    return answer.status_code, answer.content.decode()


@dataclass(frozen=True, slots=True)
class World:
    """One scope with an operation of each sort, all in one plan."""

    scope: Scope
    plan: Plan
    merge: Operation  # for a person
    automatic: Operation
    supersede: Operation
    prune: Operation
    skipped: Operation  # for a person all the same
    never: Operation
    applied: Operation  # a merge
    derived: Observation

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All of them."""
        return (self.merge, self.automatic, self.supersede, self.prune, self.skipped, self.never, self.applied)


def world(name: str = "team-a/u1", *, mark: str = "") -> World:
    """A small memory; `mark` stands in every text of it, so that a page that shows it gives itself away."""
    within = scope(name)
    plan = Plan.objects.create(scope=within, pattern=name, requested_by="test", trigger="command")

    def pair(one: str, other: str) -> list[Observation]:
        return [observe(f"{text} {mark}".strip(), within=within) for text in (one, other)]

    old, new = (
        observe(f"Lives in {city} {mark}".strip(), within=within, key=("ann", "lives in", city))
        for city in ("Ghent", "Lyon")
    )
    applied = propose(Kind.MERGE, pair("The relay restarts at 3", "The relay restarts at three"), plan=plan)
    done = runner.apply(operation=applied, by="seed")
    assert done.outcome == runner.Outcome.APPLIED, done
    settle()
    applied.refresh_from_db()
    assert applied.derived_id is not None
    return World(
        scope=within,
        plan=plan,
        merge=propose(
            Kind.MERGE, pair("Tea, no sugar", "Prefers tea, no sugar"), approval=Approval.NEEDS_HUMAN, plan=plan
        ),
        automatic=propose(Kind.MERGE, pair("Ships on Friday", "ships on Friday."), plan=plan),
        supersede=propose(Kind.SUPERSEDE, [old, new], approval=Approval.NEEDS_HUMAN, keeper=new, plan=plan),
        prune=propose(Kind.PRUNE, pair("Queue was long", "x")[:1], approval=Approval.NEEDS_HUMAN, plan=plan),
        skipped=propose(
            Kind.MERGE,
            pair("Six retries", "Eight retries"),
            approval=Approval.NEEDS_HUMAN,
            skipped_reason="possible contradiction: guard number",
            plan=plan,
        ),
        never=propose(
            Kind.MERGE,
            pair("North is open", "South is open"),
            approval=Approval.NEVER,
            skipped_reason="contradiction: same subject and predicate, different object",
            plan=plan,
        ),
        applied=applied,
        derived=Observation.objects.get(pk=applied.derived_id),
    )
