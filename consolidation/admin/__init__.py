"""The review desk. One file per screen; this is the register list.

Screens show memory text, so the store's observations, episodes and events are registered here too: this side knows how
hostile text is shown.
"""

from __future__ import annotations

from django.contrib import admin
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule

from consolidation.admin.aliases import AliasScreen
from consolidation.admin.calibrations import CalibrationScreen
from consolidation.admin.core import CoreScreen
from consolidation.admin.episodes import EpisodeScreen
from consolidation.admin.events import EventScreen
from consolidation.admin.intake import IntakeScreen
from consolidation.admin.intake_runs import IntakeRunScreen
from consolidation.admin.item import OperationScreen
from consolidation.admin.learnt import CardinalityScreen
from consolidation.admin.model_calls import ModelCallScreen
from consolidation.admin.observations import ObservationScreen
from consolidation.admin.pauses import PauseScreen
from consolidation.admin.plans import PlanScreen
from consolidation.admin.policies import PolicyScreen, VerdictAdmin
from consolidation.admin.residue import ResidueScreen
from consolidation.admin.schedules import ScheduleAdmin, TimesAdmin
from consolidation.admin.tokens import TokenScreen
from consolidation.models import Alias, Calibration, Cardinality, Operation, Pause, Plan, Policy, Verdict
from observations.models import (
    CoreMemory,
    Episode,
    Event,
    Intake,
    IntakeRun,
    ModelCall,
    Observation,
    Residue,
    Token,
)

REGISTERED = {
    Operation: OperationScreen,
    Plan: PlanScreen,
    Observation: ObservationScreen,
    Episode: EpisodeScreen,
    Event: EventScreen,
    ModelCall: ModelCallScreen,
    Intake: IntakeScreen,
    IntakeRun: IntakeRunScreen,
    CoreMemory: CoreScreen,
    Residue: ResidueScreen,
    Token: TokenScreen,
    Alias: AliasScreen,
    Cardinality: CardinalityScreen,
    Pause: PauseScreen,
    Policy: PolicyScreen,
    Calibration: CalibrationScreen,
    Verdict: VerdictAdmin,
    PeriodicTask: ScheduleAdmin,
    IntervalSchedule: TimesAdmin,
    CrontabSchedule: TimesAdmin,
}
# Beat's own pages run tasks with any arguments and check no permission in their actions.
REPLACED = (PeriodicTask, IntervalSchedule, CrontabSchedule, ClockedSchedule, SolarSchedule)

for model in REPLACED:
    if admin.site.is_registered(model):
        admin.site.unregister(model)
for model, screen in REGISTERED.items():
    admin.site.register(model, screen)
