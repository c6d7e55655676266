"""Who may do what. Viewer, Reviewer and Operator each have all that the one before has; a Steward sets the rules that
the others work by, and decides nothing. In which scopes, ScopeAccess says.
"""

from __future__ import annotations

from typing import Any, Final

from django.apps import AppConfig, apps

VIEWS: Final = (
    *(f"observations.view_{model}" for model in ("scope", "episode", "observation", "event", "outbox", "tombstone")),
    *(f"observations.view_{model}" for model in ("modelcall", "intake", "intakerun", "corememory", "residue", "token")),
    *(f"consolidation.view_{model}" for model in ("plan", "operation", "pause", "policy", "verdict", "calibration")),
    *(f"consolidation.view_{model}" for model in ("alias", "cardinality", "suite", "probe", "proberun")),
    *(f"consolidation.view_{model}" for model in ("projection", "sample", "demotion", "comment", "drill")),
    "consolidation.view_bulkdecision",
    *("observations.view_intakeitem", "observations.view_givenanswer"),
)
REVIEWS: Final = (
    *("consolidation.review_operation", "observations.edit_core", "observations.decide_held"),
    *("consolidation.run_suite", "consolidation.comment"),
)
OPERATES: Final = (
    *("consolidation.apply_operation", "consolidation.make_plan", "consolidation.pause", "observations.run_intake"),
    *("django_celery_beat.view_periodictask", "django_celery_beat.change_periodictask"),
    *(
        f"django_celery_beat.{what}_{model}"
        for model in ("intervalschedule", "crontabschedule")
        for what in ("view", "add")
    ),
)
STEERS: Final = (
    *("consolidation.add_policy", "consolidation.change_policy", "consolidation.enable_calibration"),
    "consolidation.comment",
    *("consolidation.make_suite", "consolidation.run_suite", "consolidation.sign_off", "consolidation.lift_demotion"),
    *("observations.set_intake", "observations.make_token", "observations.set_core", "observations.edit_core"),
)
GROUPS: Final = {
    "Viewer": VIEWS,
    "Reviewer": (*VIEWS, *REVIEWS),
    "Operator": (*VIEWS, *REVIEWS, *OPERATES),
    "Steward": (*VIEWS, *STEERS),
}


def declare_groups(*, using: str = "default", sender: AppConfig | None = None, **_: Any) -> None:
    """Make the groups and give them what they lack; what an administrator added stays. Connected to post_migrate."""
    group, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    stored = permission.objects.using(using).values_list("content_type__app_label", "codename", "pk")
    known = {f"{app}.{codename}": pk for app, codename, pk in stored}
    for name, wanted in GROUPS.items():
        row, _created = group.objects.using(using).get_or_create(name=name)
        row.permissions.add(*(known[permission] for permission in wanted if permission in known))
