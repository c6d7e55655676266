"""When two people have to agree, and who counts as another one. The policy says when; nothing here decides."""

from __future__ import annotations

from typing import Final

from consolidation.models import Operation
from consolidation.operations import Kind, State
from consolidation.policy import Policy as Rules
from observations.models import Observation

OF_A_COMMAND: Final = "cli:"  # before the name of a machine's user: the same person as the one who signs in by it
WANTED_THEN: Final = "the policy wanted a second person when it was approved, for itself or for all approved with it"


def same_person(one: str, other: str) -> bool:
    """Whether two names are one person's: "cli:ana" and "ana" are; no name is nobody."""
    return bool(one) and one.removeprefix(OF_A_COMMAND) == other.removeprefix(OF_A_COMMAND)


def names_of(person: str) -> tuple[str, str]:
    """Both names that one person decides under: as they sign in, and as a command's."""
    plain = person.removeprefix(OF_A_COMMAND)
    return plain, f"{OF_A_COMMAND}{plain}"


def needs_second(*, operation: Operation, policy: Rules, agreed: bool = False) -> str:
    """Why a second person has to agree to an operation under a policy, a clause that names the rule; empty: nobody has.

    `agreed`: two people agreed on the whole plan, so how much it touches was seen by both. One query at most.
    """
    if operation.kind in policy.two_person_kinds:
        return f"a second person agrees to every {Kind(operation.kind)} (two_person_kinds in the policy)"
    if agreed or not policy.two_person_wide or operation.n_sources <= policy.blast_floor:
        return ""
    size = Observation.objects.active().filter(scope_id=operation.scope_id).count()
    limit = policy.blast_limit(size=size)
    if operation.n_sources <= limit:
        return ""
    touched = f"it touches {operation.n_sources} of {size} records, over the limit of {limit}"
    return f"{touched}, so a second person agrees (two_person_wide in the policy)"


def unseconded(*, operation: Operation, policy: Rules, agreed: bool = False) -> str:
    """Why an operation is not applied before somebody else agreed, as a sentence; empty: nobody has to. One query at
    most.

    What holds is the policy of this moment: one that has come to want two people stops what one approved before.
    """
    if operation.seconded_by:
        return ""
    why = needs_second(operation=operation, policy=policy, agreed=agreed)
    name, who = operation.op_id, operation.decided_by
    if operation.status != State.APPROVED:
        return f"{name} waits for two people: {why}. Approve it, and have another person agree." if why else ""
    if why or operation.needs_second:
        rule = why or WANTED_THEN
        return (
            f"{name} waits for a second person: {who} approved it, and {rule}. Another reviewer agrees on its page or "
            f"with `manage.py consolidate agree {name}`."
        )
    return ""
