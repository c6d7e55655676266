import django.db.models.deletion
import observations.models
import observations.records
import pgvector.django.vector
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        # vector is not a trusted extension: where a superuser has not made it, this fails with PostgreSQL's own sentence
        migrations.RunSQL("CREATE EXTENSION IF NOT EXISTS vector", migrations.RunSQL.noop),
        migrations.RunSQL("CREATE EXTENSION IF NOT EXISTS pg_trgm", migrations.RunSQL.noop),
        migrations.CreateModel(
            name='Episode',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(max_length=200)),
                ('text', models.TextField(null=True)),
                ('content_hash', models.CharField(max_length=64)),
                ('cleaned', models.BooleanField(default=False)),
                ('speaker', models.CharField(blank=True, default='', max_length=200)),
                ('role', models.CharField(blank=True, default='', max_length=40)),
                ('session', models.CharField(blank=True, default='', max_length=200)),
                ('seq', models.IntegerField(default=0)),
                ('happened_at', models.DateTimeField()),
                ('recorded_at', models.DateTimeField(db_default=observations.models.ClockTimestamp(), editable=False)),
                ('source_uri', models.CharField(blank=True, default='', max_length=1000)),
                ('root_source', models.CharField(blank=True, default='', max_length=1000)),
                ('outcome', models.CharField(choices=[('success', 'success'), ('claimed', 'claimed'), ('partial', 'partial'), ('failure', 'failure'), ('unknown', 'unknown')], default=observations.records.Outcome['UNKNOWN'], max_length=10)),
                ('status', models.CharField(choices=[('active', 'active'), ('superseded', 'superseded'), ('archived', 'archived'), ('retracted', 'retracted'), ('quarantined', 'quarantined'), ('erased', 'erased')], default=observations.records.Status['ACTIVE'], max_length=12)),
                ('version', models.IntegerField(default=1)),
            ],
        ),
        migrations.CreateModel(
            name='Scope',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=200, unique=True)),
                ('created_at', models.DateTimeField(db_default=observations.models.ClockTimestamp(), editable=False)),
                ('held_at', models.DateTimeField(blank=True, null=True)),
                ('held_until', models.DateTimeField(blank=True, null=True)),
                ('hold_reason', models.CharField(blank=True, default='', max_length=200)),
            ],
            options={
                'ordering': ['name'],
                'constraints': [models.CheckConstraint(condition=models.Q(('name__regex', '^[^\\x01-\\x1f*/\\s]([^\\x01-\\x1f*]*[^\\x01-\\x1f*/\\s])?$'), models.Q(('name__contains', '//'), _negated=True)), name='scope_name_is_a_path'), models.CheckConstraint(condition=models.Q(('held_until', None), models.Q(('held_at', None), _negated=True), _connector='OR'), name='scope_held_until_needs_held_at')],
            },
        ),
        migrations.CreateModel(
            name='Observation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('external_id', models.CharField(max_length=200)),
                ('text', models.TextField(null=True)),
                ('content_hash', models.CharField(max_length=64)),
                ('cleaned', models.BooleanField(default=False)),
                ('subject', models.CharField(blank=True, default='', max_length=500)),
                ('predicate', models.CharField(blank=True, default='', max_length=500)),
                ('object', models.CharField(blank=True, default='', max_length=1000)),
                ('text_key', models.BigIntegerField()),
                ('subject_key', models.BigIntegerField(default=0)),
                ('sp_key', models.BigIntegerField(default=0)),
                ('spo_key', models.BigIntegerField(default=0)),
                ('confidence', models.FloatField(default=0.5)),
                ('stated_by', models.CharField(choices=[('user', 'user'), ('operator', 'operator'), ('agent', 'agent'), ('tool', 'tool'), ('outside', 'outside')], max_length=8)),
                ('written_by', models.CharField(choices=[('deliberate', 'deliberate'), ('background', 'background'), ('import', 'import'), ('consolidation', 'consolidation')], max_length=13)),
                ('created_at', models.DateTimeField()),
                ('recorded_at', models.DateTimeField(db_default=observations.models.ClockTimestamp(), editable=False)),
                ('reconciled_at', models.DateTimeField(blank=True, null=True)),
                ('valid_from', models.DateTimeField(blank=True, null=True)),
                ('valid_to', models.DateTimeField(blank=True, null=True)),
                ('derivation', models.CharField(blank=True, max_length=10, null=True)),
                ('derived_at', models.DateTimeField(blank=True, null=True)),
                ('produced_by', models.CharField(blank=True, max_length=80, null=True)),
                ('chain', models.SmallIntegerField(default=0)),
                ('uses_inherited', models.IntegerField(default=0)),
                ('status', models.CharField(choices=[('active', 'active'), ('superseded', 'superseded'), ('archived', 'archived'), ('retracted', 'retracted'), ('quarantined', 'quarantined'), ('erased', 'erased')], default=observations.records.Status['ACTIVE'], max_length=12)),
                ('version', models.IntegerField(default=1)),
                ('superseded_by', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='supersedes', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='observations', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='Lineage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('derivation', models.CharField(max_length=10)),
                ('derived_at', models.DateTimeField()),
                ('operation', models.CharField(max_length=80)),
                ('imported', models.BooleanField(default=False)),
                ('source_episode', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='derivatives', to='observations.episode')),
                ('derived', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='lineage', to='observations.observation')),
                ('source_observation', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='derivatives', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
            options={
                'verbose_name_plural': 'lineage',
            },
        ),
        migrations.CreateModel(
            name='Evidence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source_uri', models.CharField(max_length=1000)),
                ('root_source', models.CharField(max_length=1000)),
                ('quote', models.TextField(blank=True, null=True)),
                ('quote_start', models.IntegerField(blank=True, null=True)),
                ('episode', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='observations.episode')),
                ('observation', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='evidence', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
            options={
                'verbose_name_plural': 'evidence',
            },
        ),
        migrations.CreateModel(
            name='Event',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_default=observations.models.ClockTimestamp())),
                ('action', models.CharField(max_length=40)),
                ('actor', models.CharField(max_length=150)),
                ('subject', models.CharField(max_length=80)),
                ('generation', models.IntegerField(null=True)),
                ('detail', models.JSONField(default=dict)),
                ('scope', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
        ),
        migrations.AddField(
            model_name='episode',
            name='scope',
            field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='episodes', to='observations.scope'),
        ),
        migrations.CreateModel(
            name='Embedding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('profile', models.CharField(max_length=80)),
                ('dimensions', models.SmallIntegerField()),
                ('vector', pgvector.django.vector.VectorField(null=True)),
                ('bands', models.BinaryField(null=True)),
                ('active', models.BooleanField(default=True)),
                ('episode', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='embeddings', to='observations.episode')),
                ('observation', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='embeddings', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='ScopeAccess',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pattern', models.CharField(max_length=200)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='scope_access', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'scope access',
            },
        ),
        migrations.CreateModel(
            name='Tombstone',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('erased_at', models.DateTimeField(db_default=observations.models.ClockTimestamp())),
                ('erased_by', models.CharField(max_length=150)),
                ('reason', models.CharField(max_length=300)),
                ('request', models.CharField(max_length=80)),
                ('fingerprint', models.CharField(blank=True, default='', max_length=64)),
                ('episode', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='tombstones', to='observations.episode')),
                ('observation', models.ForeignKey(blank=True, db_constraint=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='tombstones', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='Transition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('version', models.IntegerField()),
                ('from_status', models.CharField(max_length=12)),
                ('to_status', models.CharField(max_length=12)),
                ('superseded_by_id', models.BigIntegerField(null=True)),
                ('at', models.DateTimeField(db_default=observations.models.ClockTimestamp())),
                ('cause', models.CharField(blank=True, default='', max_length=120)),
                ('observation', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='transitions', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='Use',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('used_at', models.DateTimeField(db_default=observations.models.ClockTimestamp())),
                ('call_site', models.CharField(max_length=40)),
                ('answer', models.UUIDField()),
                ('observation', models.ForeignKey(db_constraint=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='uses', to='observations.observation')),
                ('scope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
        ),
        migrations.CreateModel(
            name='Outbox',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('task', models.CharField(max_length=40)),
                ('key', models.CharField(max_length=120)),
                ('payload', models.JSONField(default=dict)),
                ('created_at', models.DateTimeField(db_default=observations.models.ClockTimestamp())),
                ('due_at', models.DateTimeField(db_default=observations.models.ClockTimestamp())),
                ('done_at', models.DateTimeField(blank=True, null=True)),
                ('attempts', models.IntegerField(default=0)),
                ('last_error', models.CharField(blank=True, default='', max_length=200)),
                ('scope', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='observations.scope')),
            ],
            options={
                'verbose_name_plural': 'outbox',
                'indexes': [models.Index(condition=models.Q(('done_at', None)), fields=['due_at'], name='outbox_due')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('done_at', None)), fields=('scope', 'task', 'key'), name='outbox_one_open_row', nulls_distinct=False)],
            },
        ),
        migrations.AddIndex(
            model_name='observation',
            index=models.Index(fields=['scope', 'status', '-id'], name='observation_list'),
        ),
        migrations.AddIndex(
            model_name='observation',
            index=models.Index(condition=models.Q(('status', 'active')), fields=['scope'], name='observation_active'),
        ),
        migrations.AddIndex(
            model_name='observation',
            index=models.Index(fields=['scope', 'text_key'], name='observation_text_key'),
        ),
        migrations.AddIndex(
            model_name='observation',
            index=models.Index(condition=models.Q(('sp_key', 0), _negated=True), fields=['scope', 'sp_key'], name='observation_sp_key'),
        ),
        migrations.AddIndex(
            model_name='observation',
            index=models.Index(condition=models.Q(('superseded_by__isnull', False)), fields=['scope', 'superseded_by'], name='observation_successor'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.UniqueConstraint(fields=('scope', 'external_id'), name='observation_external_id'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.UniqueConstraint(fields=('id', 'scope'), name='observation_scope_id'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', [observations.records.Status['ACTIVE'], observations.records.Status['SUPERSEDED'], observations.records.Status['ARCHIVED'], observations.records.Status['RETRACTED'], observations.records.Status['QUARANTINED'], observations.records.Status['ERASED']])), name='observation_status'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(('stated_by__in', [observations.records.StatedBy['USER'], observations.records.StatedBy['OPERATOR'], observations.records.StatedBy['AGENT'], observations.records.StatedBy['TOOL'], observations.records.StatedBy['OUTSIDE']])), name='observation_stated_by'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(('written_by__in', [observations.records.WrittenBy['DELIBERATE'], observations.records.WrittenBy['BACKGROUND'], observations.records.WrittenBy['IMPORT'], observations.records.WrittenBy['CONSOLIDATION']])), name='observation_written_by'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(('confidence__gte', 0), ('confidence__lte', 1)), name='observation_confidence'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(('version__gte', 1)), name='observation_version'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'superseded'), _negated=True), ('superseded_by__isnull', False), _connector='OR'), name='superseded_names_a_successor'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(('superseded_by__isnull', True), ('status__in', ['superseded', 'archived', 'erased']), _connector='OR'), name='a_successor_means_superseded_or_archived'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(('superseded_by', models.F('id')), _negated=True), name='no_row_supersedes_itself'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('derivation__isnull', True), ('derived_at__isnull', True), ('produced_by__isnull', True)), models.Q(('derivation__isnull', False), ('derived_at__isnull', False), ('produced_by__isnull', False)), _connector='OR'), name='derivation_is_whole'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'erased'), ('text__isnull', True)), models.Q(('text__isnull', False), models.Q(('status', 'erased'), _negated=True)), _connector='OR'), name='observation_erased_text'),
        ),
        migrations.AddConstraint(
            model_name='observation',
            constraint=models.CheckConstraint(condition=models.Q(('valid_from__isnull', True), ('valid_to__isnull', True), ('valid_from__lte', models.F('valid_to')), _connector='OR'), name='validity_runs_forward'),
        ),
        migrations.AddIndex(
            model_name='lineage',
            index=models.Index(fields=['scope', 'source_observation'], name='lineage_by_source'),
        ),
        migrations.AddConstraint(
            model_name='lineage',
            constraint=models.UniqueConstraint(fields=('scope', 'derived', 'source_observation'), name='lineage_observation_once'),
        ),
        migrations.AddConstraint(
            model_name='lineage',
            constraint=models.UniqueConstraint(fields=('scope', 'derived', 'source_episode'), name='lineage_episode_once'),
        ),
        migrations.AddConstraint(
            model_name='lineage',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('source_episode__isnull', False), ('source_observation__isnull', True)), models.Q(('source_episode__isnull', True), ('source_observation__isnull', False)), _connector='OR'), name='lineage_of_one_source'),
        ),
        migrations.AddConstraint(
            model_name='lineage',
            constraint=models.CheckConstraint(condition=models.Q(('derived', models.F('source_observation')), _negated=True), name='nothing_derives_from_itself'),
        ),
        migrations.AddConstraint(
            model_name='evidence',
            constraint=models.UniqueConstraint(fields=('scope', 'observation', 'source_uri'), name='evidence_once'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['scope', 'subject', 'id'], name='event_by_subject'),
        ),
        migrations.AddIndex(
            model_name='event',
            index=models.Index(fields=['scope', '-id'], name='event_by_scope'),
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(fields=['scope', 'happened_at', 'seq'], name='episode_by_time'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.UniqueConstraint(fields=('scope', 'external_id'), name='episode_external_id'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.UniqueConstraint(condition=models.Q(('content_hash', ''), _negated=True), fields=('scope', 'source_uri', 'content_hash'), name='episode_once'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.UniqueConstraint(fields=('id', 'scope'), name='episode_scope_id'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.CheckConstraint(condition=models.Q(('status__in', ['active', 'archived', 'erased'])), name='episode_status'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.CheckConstraint(condition=models.Q(('outcome__in', [observations.records.Outcome['SUCCESS'], observations.records.Outcome['CLAIMED'], observations.records.Outcome['PARTIAL'], observations.records.Outcome['FAILURE'], observations.records.Outcome['UNKNOWN']])), name='episode_outcome'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('status', 'erased'), ('text__isnull', True)), models.Q(('text__isnull', False), models.Q(('status', 'erased'), _negated=True)), _connector='OR'), name='episode_erased_text'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.CheckConstraint(condition=models.Q(('version__gte', 1)), name='episode_version'),
        ),
        migrations.AddConstraint(
            model_name='embedding',
            constraint=models.UniqueConstraint(fields=('scope', 'observation', 'profile'), name='embedding_of_observation'),
        ),
        migrations.AddConstraint(
            model_name='embedding',
            constraint=models.UniqueConstraint(fields=('scope', 'episode', 'profile'), name='embedding_of_episode'),
        ),
        migrations.AddConstraint(
            model_name='embedding',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('episode__isnull', False), ('observation__isnull', True)), models.Q(('episode__isnull', True), ('observation__isnull', False)), _connector='OR'), name='embedding_of_one_row'),
        ),
        migrations.AddConstraint(
            model_name='scopeaccess',
            constraint=models.UniqueConstraint(fields=('user', 'pattern'), name='scope_access_once'),
        ),
        migrations.AddConstraint(
            model_name='transition',
            constraint=models.UniqueConstraint(fields=('scope', 'observation', 'version'), name='transition_once'),
        ),
        migrations.AddIndex(
            model_name='use',
            index=models.Index(fields=['scope', 'observation', 'used_at'], name='use_by_observation'),
        ),
    ]
