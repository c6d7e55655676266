"""The register of text: where memory's words may stand, and how each place is emptied when a row is erased (DESIGN 3).

Every column that could hold words is listed here, as memory text with its way of erasing or as something else with the
reason. A test compares the register with the models and with PostgreSQL's catalogue, and another erases a row and looks
for its words in every table. To add a column, decide which it is: may a sentence somebody said end up in it, or a
number from which a short sentence could be guessed? Then it is memory text, and erasing must reach it.

Names are "Model.column" of the apps observations and consolidation.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class Erasing(StrEnum):
    """How a column loses its words."""

    OBSERVATION = "palimpsest_erase_observations empties it, and the update trigger refuses an erased row that kept it"
    BESIDE = "palimpsest_erase_observations empties it in the rows that belong to the observation"
    TOMBSTONE = "a trigger on the tombstone empties it in every operation that took the observation in or wrote it"
    NAME = "a trigger on the tombstone empties it once no record holds that name any more"
    EPISODE = "emptied with a tombstone, the one change the update trigger of an episode allows; only a forget asks"
    INTAKE = "a trigger on the tombstone empties it for the observation, what it was compared with and its turns"
    CORE = "palimpsest_erase_core empties the core memory and each of its revisions; only a forget asks"
    PROBE = (
        "a trigger on the tombstone empties it where the probe names the record or one that was merged with it, and"
        " where it names none once its scope holds no words any more"
    )
    RESIDUE = "the row is deleted three days after it was first held, or at once"


# Plain hashes and vectors are listed with the words: a short text can be guessed from either.
MEMORY_TEXT: Final[Mapping[str, Erasing]] = MappingProxyType(
    {
        "Episode.text": Erasing.EPISODE,
        "Episode.content_hash": Erasing.EPISODE,
        "Observation.text": Erasing.OBSERVATION,
        "Observation.content_hash": Erasing.OBSERVATION,
        "Observation.subject": Erasing.OBSERVATION,
        "Observation.predicate": Erasing.OBSERVATION,
        "Observation.object": Erasing.OBSERVATION,
        "Observation.words": Erasing.OBSERVATION,  # hashes, that tell whoever guesses a word
        "Observation.words_head": Erasing.OBSERVATION,
        "Observation.text_key": Erasing.OBSERVATION,
        "Observation.subject_key": Erasing.OBSERVATION,
        "Observation.sp_key": Erasing.OBSERVATION,
        "Observation.spo_key": Erasing.OBSERVATION,
        "Evidence.quote": Erasing.BESIDE,
        "Embedding.vector": Erasing.BESIDE,
        "Embedding.bands": Erasing.BESIDE,
        "GivenKey.subject": Erasing.BESIDE,
        "GivenKey.predicate": Erasing.BESIDE,
        "GivenKey.object": Erasing.BESIDE,
        "GivenKey.subject_key": Erasing.BESIDE,
        "GivenKey.sp_key": Erasing.BESIDE,
        "GivenKey.spo_key": Erasing.BESIDE,
        "Operation.text": Erasing.TOMBSTONE,
        "Operation.claim_subject": Erasing.TOMBSTONE,
        "Operation.claim_predicate": Erasing.TOMBSTONE,
        "Operation.claim_object": Erasing.TOMBSTONE,
        "Draft.reply": Erasing.EPISODE,
        "Cardinality.predicate": Erasing.NAME,
        "Alias.subject": Erasing.NAME,
        "Alias.name": Erasing.NAME,
        "Alias.subject_key": Erasing.NAME,
        "Alias.name_key": Erasing.NAME,
        "Operation.decision_text": Erasing.TOMBSTONE,
        "Operation.decision_object": Erasing.TOMBSTONE,
        "Operation.decision_reason": Erasing.TOMBSTONE,
        "OperationSource.planned_hash": Erasing.TOMBSTONE,
        "Comment.text": Erasing.TOMBSTONE,
        "BulkDecision.reason": Erasing.TOMBSTONE,
        "UnusableAnswer.reply": Erasing.INTAKE,
        "IntakeItem.text": Erasing.INTAKE,
        "IntakeItem.said": Erasing.INTAKE,
        "CoreMemory.value": Erasing.CORE,
        "CoreMemory.description": Erasing.CORE,
        "CoreRevision.value": Erasing.CORE,
        "Probe.query": Erasing.PROBE,
        "Probe.category": Erasing.PROBE,
        "Residue.text": Erasing.RESIDUE,
        "Residue.text_key": Erasing.RESIDUE,
    }
)

OF_THE_DATABASE: Final = frozenset(
    {"Observation.words", "Observation.words_head"}
)  # those that it keeps for itself: no model has them

_WHO = "a user's name or the name of a part of the system"
_WORD = "one word of a closed list"
_ID = "an id of ours"
_DIGEST = (
    "what was approved, as one hash over all sources' ids, versions and content hashes and the policy; it is audit"
)
_SHELL = "where the row came from, kept in its shell so that lineage holds after an erase"

NOT_MEMORY_TEXT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Scope.name": "a path that names whose memory this is",
        "Scope.hold_reason": "an operator's reason for a hold on a whole scope, which no row is named in",
        "Scope.index_profile": "the name of an embedder",
        "ScopeAccess.pattern": "a pattern of scope names",
        "ScopeAccess.role": _WORD,
        "Episode.external_id": "the writer's own id, kept so that a retired id still resolves",
        "Episode.speaker": _SHELL,
        "Episode.role": _SHELL,
        "Episode.session": _SHELL,
        "Episode.source_uri": _SHELL,
        "Episode.root_source": _SHELL,
        "Episode.outcome": _WORD,
        "Episode.status": _WORD,
        "Observation.external_id": "the writer's own id, kept so that a retired id still resolves",
        "Observation.kind": _WORD,
        "Observation.stated_by": _WORD,
        "Observation.written_by": _WORD,
        "Observation.derivation": _WORD,
        "Observation.produced_by": _ID,
        "Observation.status": _WORD,
        "Evidence.source_uri": _SHELL,
        "Evidence.root_source": _SHELL,
        "Embedding.profile": "the name of an embedder",
        "Lineage.derivation": _WORD,
        "Lineage.operation": _ID,
        "Transition.from_status": _WORD,
        "Transition.to_status": _WORD,
        "Transition.cause": "the operation's id or the doorway's name",
        "Use.call_site": _WORD,
        "GivenAnswer.call_site": _WORD,
        "GivenAnswer.shown": "ids",
        "GivenAnswer.left_out": "ids",
        "GivenAnswer.outdated": "ids",
        "GivenAnswer.failed": "names of sections",
        "GivenAnswer.chosen_by": "the name of a model",
        "Tombstone.erased_by": _WHO,
        "Tombstone.reason": "why something was erased, written by whoever asked; it outlives what it is about",
        "Tombstone.request": _ID,
        "Tombstone.fingerprint": "keyed: without the key nothing can be guessed from it",
        "Event.action": _WORD,
        "Event.actor": _WHO,
        "Event.subject": _ID,
        "Event.detail": "ids and figures, old and new state",
        "GivenKey.state": _WORD,
        "GivenKey.model": "the name of a model",
        "GivenKey.prompt_version": _WORD,
        "GivenKey.withdrawn_by": _WHO,
        "ModelCall.purpose": _WORD,
        "ModelCall.model": "the name of a model",
        "ModelCall.prompt_version": _WORD,
        "ModelCall.answer": _WORD,
        "Intake.updated_by": _WHO,
        "IntakeRun.trigger": _WORD,
        "IntakeRun.state": _WORD,
        "IntakeRun.error": "one sentence of ours, without the words of any turn",
        "IntakeRun.by": _WHO,
        "IntakeRun.figures": "figures",
        "Extraction.state": _WORD,
        "UnusableAnswer.purpose": _WORD,
        "UnusableAnswer.episode_ids": "ids",
        "UnusableAnswer.reason": "one sentence of ours, without the words of the answer",
        "UnusableAnswer.model": "the name of a model",
        "UnusableAnswer.prompt_version": _WORD,
        "IntakeItem.verdict": _WORD,
        "IntakeItem.reason": "a word of a closed list, with ids and labels",
        "IntakeItem.offered": "ids",
        "CoreMemory.label": "the name of a place in the prompt",
        "CoreRevision.action": _WORD,
        "CoreRevision.by": _WHO,
        "Residue.session": _SHELL,
        "Residue.by": _WHO,
        "Token.name": "what a program is called by whoever made its token",
        "Token.key_id": _ID,
        "Token.secret_hash": "a hash of random bits",
        "Token.scope_pattern": "a pattern of scope names",
        "Token.created_by": _WHO,
        "Token.revoked_by": _WHO,
        "Receipt.key": "the caller's own id of a request",
        "Receipt.request_hash": "keyed: without the key nothing can be guessed from it",
        "Receipt.answer": "ids, figures and words of closed lists",
        "Outbox.task": _WORD,
        "Outbox.key": "ids",
        "Outbox.payload": "ids",
        "Outbox.last_error": "the kind of an error and where it was raised, never its message",
        "Policy.pattern": "a pattern of scope names",
        "Policy.body": "thresholds, retention rules and names of predicates",
        "Policy.updated_by": _WHO,
        "PolicyRevision.pattern": "a pattern of scope names",
        "PolicyRevision.body": "thresholds, retention rules and names of predicates",
        "PolicyRevision.by": _WHO,
        "Calibration.profile": "the name of an embedder",
        "Calibration.space": "the name and the hash of a model",
        "Calibration.figures": "figures",
        "Calibration.by": _WHO,
        "Calibration.enabled_by": _WHO,
        "Pause.by": _WHO,
        "Pause.reason": "an operator's reason for a pause of a whole scope",
        "Operation.edited_by": _WHO,
        "Operation.seconded_by": _WHO,
        "Planning.by": _WHO,
        "Planning.pattern": "a pattern of scope names",
        "Planning.scopes": "ids",
        "Planning.doing": "the name of a scope or of a step, with figures",
        "Planning.error": "one sentence of ours",
        "Plan.asked_by": _WHO,
        "Plan.asked_digest": _DIGEST,
        "Comment.by": _WHO,
        "Deferral.by": _WHO,
        "Drill.by": _WHO,
        "Drill.answer": _WORD,
        "BulkDecision.verb": _WORD,
        "BulkDecision.by": _WHO,
        "BulkDecision.scopes": "ids",
        "BulkDecision.wide": "ids",
        "BulkItem.digest": _DIGEST,
        "BulkItem.outcome": _WORD,
        "BulkItem.sentence": "ids, names and states",
        "Plan.pattern": "a pattern of scope names",
        "Plan.requested_by": _WHO,
        "Plan.trigger": _WORD,
        "Plan.window": "a point in time",
        "Plan.state": _WORD,
        "Plan.figures": "figures",
        "Plan.failures": "scope names, each with the kind of an error",
        "Plan.policies": "scope ids, each with its policy's hash",
        "Plan.snapshots": "policies: thresholds, retention rules and names of predicates",
        "Operation.op_id": "a hash of ids",
        "Operation.input_key": "a hash of ids",
        "Operation.kind": _WORD,
        "Operation.approval": _WORD,
        "Operation.status": _WORD,
        "Operation.reason": "figures, ids and names of rules",
        "Operation.skipped_reason": "figures, ids and names of rules",
        "Operation.product": "ids and figures",
        "Operation.signals": "ids, figures, names of keys and of guards",
        "Operation.policy_hash": "a hash of thresholds",
        "Operation.decision": "ids and points in time; the reviewer's own words have columns of their own",
        "Operation.decided_by": _WHO,
        "Operation.approved_digest": _DIGEST,
        "Operation.applied_by": _WHO,
        "Operation.applied_digest": _DIGEST,
        "Operation.undone_by": _WHO,
        "Operation.requested_by": _WHO,
        "Operation.rule": _WORD,
        "Operation.band": _WORD,
        "Operation.outcome": "ids, figures, the database's error code",
        "OperationSource.prior_status": _WORD,
        "PlanItem.opened_by": _WHO,
        "Suite.name": "what a set of probes is called by whoever imported it",
        "Suite.units": "ids and numbers",
        "Suite.by": _WHO,
        "Probe.expected": "ids",
        "Probe.forbidden": "ids",
        "Probe.outdated": "ids",
        "ProbeRun.cause": _WORD,
        "ProbeRun.figures": "figures",
        "ProbeRun.by": _WHO,
        "Projection.digest": "a hash of ids and versions",
        "Projection.before": "figures",
        "Projection.after": "figures",
        "Projection.lost": "numbers of probes",
        "Projection.why_not": "figures and one clause of ours",
        "Projection.by": _WHO,
        "Projection.signed_off_by": _WHO,
        "Projection.sign_off_reason": "why a person lets a whole plan be applied; no row is named in it",
        "Sample.kind": _WORD,
        "Sample.rule": _WORD,
        "Sample.band": _WORD,
        "Sample.judged": _WORD,
        "Sample.judged_by": _WHO,
        "Demotion.kind": _WORD,
        "Demotion.rule": _WORD,
        "Demotion.band": _WORD,
        "Demotion.lifted_by": _WHO,
        "Demotion.lifted_reason": "why a person lets a rule decide again; no row is named in it",
        "Draft.kind": _WORD,
        "Draft.input_key": "a hash of ids",
        "Draft.answer": _WORD,
        "Draft.episode_ids": "ids",
        "Draft.model": "the name of a model",
        "Draft.prompt_version": _WORD,
        "Cardinality.holds": _WORD,
        "Cardinality.by": _WHO,
        "Cardinality.operation": _ID,
        "Alias.by": _WHO,
        "Alias.operation": _ID,
        "Verdict.by": _WHO,
        "Verdict.operation": _ID,
    }
)

# Tables of other packages in the same database, and why no memory text gets into them; a trailing * means a family.
OTHER_TABLES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "auth_*": "accounts, groups and permissions",
        "axes_*": "attempts to log in: names, addresses, times; passwords are masked",
        "django_admin_log": "the admin's own log: a row is named by its id, because __str__ of ours never holds text",
        "django_celery_beat_*": "the schedule: task names and ids",
        "django_content_type": "names of models",
        "django_migrations": "names of migrations",
        "django_session": "who is logged in, signed; and messages shown once, which name rows by id",
    }
)
