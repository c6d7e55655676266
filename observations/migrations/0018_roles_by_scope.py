"""Somebody may be given less in one scope than their groups allow: a role per pattern of scopes."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q

ROLES = ("Viewer", "Reviewer", "Operator", "Steward")


class Migration(migrations.Migration):
    """Forward on any data: what was given stays whole. Backward drops the roles, and everybody has what their groups
    allow again.
    """

    dependencies = [("observations", "0016_faster_writes")]

    operations = [
        migrations.AddField(
            model_name="scopeaccess",
            name="role",
            field=models.CharField(
                blank=True,
                choices=[(role, role) for role in ROLES],
                default="",
                max_length=10,
            ),
        ),
        migrations.AddConstraint(
            model_name="scopeaccess",
            constraint=models.CheckConstraint(name="scope_access_role", condition=Q(role__in=["", *ROLES])),
        ),
    ]
