import consolidation.operations
import django.db.models.deletion
import observations.models
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('observations', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Policy',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pattern', models.CharField(max_length=200, unique=True)),
                ('body', models.JSONField(default=dict)),
                ('version', models.IntegerField(default=1)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('updated_by', models.CharField(blank=True, default='', max_length=150)),
            ],
            options={
                'verbose_name_plural': 'policies',
            },
        ),
        migrations.CreateModel(
            name='Operation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('op_id', models.CharField(max_length=40)),
                ('generation', models.IntegerField(default=1)),
                ('input_key', models.CharField(max_length=20)),
                ('kind', models.CharField(choices=[('merge', 'merge'), ('promote', 'promote'), ('compact', 'compact'), ('supersede', 'supersede'), ('archive', 'archive'), ('prune', 'prune'), ('alias', 'alias'), ('forget', 'forget')], max_length=10)),
                ('approval', models.CharField(choices=[('AUTO', 'AUTO'), ('NEEDS_HUMAN', 'NEEDS HUMAN'), ('NEVER', 'NEVER')], max_length=11)),
                ('status', models.CharField(choices=[('planned', 'planned'), ('needs_human', 'needs human'), ('skipped', 'skipped'), ('approved', 'approved'), ('applied', 'applied'), ('rejected', 'rejected'), ('distinct', 'distinct'), ('undone', 'undone'), ('stale', 'stale'), ('failed', 'failed')], max_length=11)),
                ('reason', models.CharField(max_length=500)),
                ('skipped_reason', models.CharField(blank=True, default='', max_length=500)),
                ('score', models.FloatField(null=True)),
                ('product', models.JSONField(default=dict)),
                ('signals', models.JSONField(default=dict)),
                ('n_sources', models.IntegerField()),
                ('policy_hash', models.CharField(max_length=64)),
                ('created_at', models.DateTimeField(db_default=observations.models.ClockTimestamp(), editable=False)),
                ('decision', models.JSONField(default=dict)),
                ('decision_text', models.TextField(blank=True, default='')),
                ('decision_reason', models.CharField(blank=True, default='', max_length=500)),
                ('decided_by', models.CharField(blank=True, default='', max_length=150)),
                ('decided_at', models.DateTimeField(blank=True, null=True)),
                ('approved_digest', models.CharField(blank=True, default='', max_length=64)),
                ('approval_expires_at', models.DateTimeField(blank=True, null=True)),
                ('applied_at', models.DateTimeField(blank=True, null=True)),
                ('applied_by', models.CharField(blank=True, default='', max_length=150)),
                ('applied_digest', models.CharField(blank=True, default='', max_length=64)),
                ('undone_at', models.DateTimeField(blank=True, null=True)),
                ('undone_by', models.CharField(blank=True, default='', max_length=150)),
                ('outcome', models.CharField(blank=True, default='', max_length=500)),
                ('derived', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='observations.observation')),
                ('keeper', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='operations', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='Consumption',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('episode', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='consumptions', to='observations.episode')),
                ('observation', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='consumptions', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
                ('operation', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='consumptions', to='consolidation.operation')),
            ],
        ),
        migrations.CreateModel(
            name='OperationSource',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.IntegerField()),
                ('planned_version', models.IntegerField()),
                ('planned_hash', models.CharField(max_length=64)),
                ('prior_status', models.CharField(blank=True, default='', max_length=12)),
                ('prior_superseded_by_id', models.BigIntegerField(blank=True, null=True)),
                ('prior_valid_from', models.DateTimeField(blank=True, null=True)),
                ('prior_valid_to', models.DateTimeField(blank=True, null=True)),
                ('applied_version', models.IntegerField(blank=True, null=True)),
                ('episode', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='operation_sources', to='observations.episode')),
                ('observation', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='operation_sources', to='observations.observation')),
                ('operation', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='sources', to='consolidation.operation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='Pause',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=observations.models.ClockTimestamp())),
                ('by', models.CharField(max_length=150)),
                ('reason', models.CharField(blank=True, default='', max_length=200)),
                ('scope', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='pause', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='Plan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pattern', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(db_default=observations.models.ClockTimestamp(), editable=False)),
                ('requested_by', models.CharField(max_length=150)),
                ('trigger', models.CharField(max_length=20)),
                ('window', models.CharField(blank=True, default='', max_length=40)),
                ('state', models.CharField(choices=[('complete', 'Complete'), ('partial', 'Partial'), ('failed', 'Failed')], default='complete', max_length=10)),
                ('figures', models.JSONField(default=dict)),
                ('failures', models.JSONField(default=list)),
                ('policies', models.JSONField(default=dict)),
                ('explained_at', models.DateTimeField(blank=True, null=True)),
                ('scope', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='plans', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='PlanItem',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('position', models.IntegerField()),
                ('opened_at', models.DateTimeField(blank=True, null=True)),
                ('opened_by', models.CharField(blank=True, default='', max_length=150)),
                ('operation', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='plan_items', to='consolidation.operation')),
                ('plan', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='items', to='consolidation.plan')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='Verdict',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=observations.models.ClockTimestamp())),
                ('by', models.CharField(max_length=150)),
                ('operation', models.CharField(max_length=80)),
                ('high', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='observations.observation')),
                ('low', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['scope', 'status', 'kind', '-id'], name='operation_queue'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['op_id', '-generation'], name='operation_op_id'),
        ),
        migrations.AddIndex(
            model_name='operation',
            index=models.Index(fields=['scope', 'derived'], name='operation_derived'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.UniqueConstraint(fields=('scope', 'op_id', 'generation'), name='operation_once'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.UniqueConstraint(fields=('id', 'scope'), name='operation_scope_id'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', [consolidation.operations.Kind['MERGE'], consolidation.operations.Kind['PROMOTE'], consolidation.operations.Kind['COMPACT'], consolidation.operations.Kind['SUPERSEDE'], consolidation.operations.Kind['ARCHIVE'], consolidation.operations.Kind['PRUNE'], consolidation.operations.Kind['ALIAS'], consolidation.operations.Kind['FORGET']])), name='operation_kind'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('approval__in', [consolidation.operations.Approval['AUTO'], consolidation.operations.Approval['NEEDS_HUMAN'], consolidation.operations.Approval['NEVER']])), name='operation_approval'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', [consolidation.operations.State['PLANNED'], consolidation.operations.State['NEEDS_HUMAN'], consolidation.operations.State['SKIPPED'], consolidation.operations.State['APPROVED'], consolidation.operations.State['APPLIED'], consolidation.operations.State['REJECTED'], consolidation.operations.State['DISTINCT'], consolidation.operations.State['UNDONE'], consolidation.operations.State['STALE'], consolidation.operations.State['FAILED']])), name='operation_status'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(('generation__gte', 1)), name='operation_generation'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'approved'), _negated=True), models.Q(('decided_at__isnull', False), models.Q(('decided_by', ''), _negated=True), models.Q(('approved_digest', ''), _negated=True)), _connector='OR'), name='an_approval_is_whole'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'applied'), _negated=True), models.Q(('applied_at__isnull', False), models.Q(('applied_by', ''), _negated=True), models.Q(('applied_digest', ''), _negated=True)), _connector='OR'), name='an_application_is_whole'),
        ),
        migrations.AddConstraint(
            model_name='operation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'applied'), _negated=True), ('approval', 'AUTO'), models.Q(('decided_by', ''), _negated=True), _connector='OR'), name='a_person_decided'),
        ),
        migrations.AddConstraint(
            model_name='consumption',
            constraint=models.UniqueConstraint(fields=('scope', 'observation'), name='an_observation_is_consumed_once'),
        ),
        migrations.AddConstraint(
            model_name='consumption',
            constraint=models.UniqueConstraint(fields=('scope', 'episode'), name='an_episode_is_consumed_once'),
        ),
        migrations.AddConstraint(
            model_name='consumption',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('episode__isnull', False), ('observation__isnull', True)), models.Q(('episode__isnull', True), ('observation__isnull', False)), _connector='OR'), name='consumption_of_one_row'),
        ),
        migrations.AddIndex(
            model_name='operationsource',
            index=models.Index(fields=['scope', 'observation'], name='source_by_observation'),
        ),
        migrations.AddConstraint(
            model_name='operationsource',
            constraint=models.UniqueConstraint(fields=('scope', 'operation', 'position'), name='source_position'),
        ),
        migrations.AddConstraint(
            model_name='operationsource',
            constraint=models.UniqueConstraint(fields=('scope', 'operation', 'observation'), name='source_observation_once'),
        ),
        migrations.AddConstraint(
            model_name='operationsource',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('episode__isnull', False), ('observation__isnull', True)), models.Q(('episode__isnull', True), ('observation__isnull', False)), _connector='OR'), name='source_is_one_row'),
        ),
        migrations.AddConstraint(
            model_name='pause',
            constraint=models.UniqueConstraint(fields=('scope',), name='one_pause_everywhere', nulls_distinct=False),
        ),
        migrations.AddIndex(
            model_name='plan',
            index=models.Index(fields=['-id'], name='plan_newest'),
        ),
        migrations.AddConstraint(
            model_name='plan',
            constraint=models.UniqueConstraint(condition=models.Q(('window', ''), _negated=True), fields=('pattern', 'window'), name='one_plan_per_window'),
        ),
        migrations.AddIndex(
            model_name='planitem',
            index=models.Index(fields=['plan', 'position'], name='plan_items_in_order'),
        ),
        migrations.AddConstraint(
            model_name='planitem',
            constraint=models.UniqueConstraint(fields=('scope', 'plan', 'operation'), name='plan_item_once'),
        ),
        migrations.AddConstraint(
            model_name='verdict',
            constraint=models.UniqueConstraint(fields=('scope', 'low', 'high'), name='verdict_once'),
        ),
        migrations.AddConstraint(
            model_name='verdict',
            constraint=models.CheckConstraint(condition=models.Q(('low__lt', models.F('high'))), name='verdict_in_order'),
        ),
    ]
