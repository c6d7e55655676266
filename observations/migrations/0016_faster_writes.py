"""Four indexes of a scope alone go: every write kept them up, and an index that leads with the scope stands beside each.

They did harm, too. Where a table has no statistics yet, an index of the scope looks to PostgreSQL as good as the one of
the id and the scope, and it took the first to check foreign keys: every piece of evidence read its whole scope.
"""

from __future__ import annotations

import django.db.models.deletion
from django.db import migrations, models

INDEXES = {  # as Django named them: table -> index
    "observations_observation": "observations_observation_scope_id_8ff82812",
    "observations_episode": "observations_episode_scope_id_c0c44938",
    "observations_evidence": "observations_evidence_scope_id_5b4ecb23",
    "observations_event": "observations_event_scope_id_df02a174",
}
FIELDS = {"observation": "observations", "episode": "episodes", "evidence": "+", "event": "+"}


def scope_of(model: str, related_name: str) -> migrations.AlterField:
    """The foreign key to the scope, without an index of its own."""
    return migrations.AlterField(
        model_name=model,
        name="scope",
        field=models.ForeignKey(
            db_index=False,
            null=model == "event",
            on_delete=django.db.models.deletion.PROTECT,
            related_name=related_name,
            to="observations.scope",
        ),
    )


class Migration(migrations.Migration):
    """Forward on any data, at once; backward makes the indexes again."""

    dependencies = [("observations", "0015_index_of_large_scopes")]

    operations = [
        migrations.SeparateDatabaseAndState(  # by itself Django would check every row's foreign key anew
            database_operations=[
                migrations.RunSQL(f"DROP INDEX {index}", f"CREATE INDEX {index} ON {table} (scope_id)")
                for table, index in INDEXES.items()
            ],
            state_operations=[scope_of(*each) for each in FIELDS.items()],
        )
    ]
