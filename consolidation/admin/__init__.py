"""The review desk. One file per screen; this is the register list.

Screens show memory text, so the store's observations, episodes and events are registered here too: this side knows how
hostile text is shown.
"""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.models import Group, User
from django_celery_beat.models import ClockedSchedule, CrontabSchedule, IntervalSchedule, PeriodicTask, SolarSchedule

from consolidation.admin.intake.held import HeldScreen
from consolidation.admin.intake.runs import IntakeRunScreen
from consolidation.admin.intake.screen import IntakeScreen
from consolidation.admin.measured.bands import DemotionScreen
from consolidation.admin.measured.model_calls import ModelCallScreen
from consolidation.admin.measured.samples import SampleScreen
from consolidation.admin.measured.suites import SuiteScreen
from consolidation.admin.memory.answers import GivenAnswerScreen
from consolidation.admin.memory.core import CoreScreen
from consolidation.admin.memory.episodes import EpisodeScreen
from consolidation.admin.memory.events import EventScreen
from consolidation.admin.memory.observations import ObservationScreen
from consolidation.admin.memory.residue import ResidueScreen
from consolidation.admin.memory.tokens import TokenScreen
from consolidation.admin.operations import OperationScreen
from consolidation.admin.pauses import PauseScreen
from consolidation.admin.people import PeopleAdmin, RolesAdmin
from consolidation.admin.plan.screen import PlanScreen
from consolidation.admin.rules.aliases import AliasScreen
from consolidation.admin.rules.calibrations import CalibrationScreen
from consolidation.admin.rules.learnt import CardinalityScreen
from consolidation.admin.rules.policies import PolicyScreen, VerdictAdmin
from consolidation.admin.schedules import ScheduleAdmin, TimesAdmin
from consolidation.models import (
    Alias,
    Calibration,
    Cardinality,
    Demotion,
    Operation,
    Pause,
    Plan,
    Policy,
    Sample,
    Suite,
    Verdict,
)
from observations.models import (
    CoreMemory,
    Episode,
    Event,
    GivenAnswer,
    Intake,
    IntakeItem,
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
    GivenAnswer: GivenAnswerScreen,
    ModelCall: ModelCallScreen,
    Intake: IntakeScreen,
    IntakeRun: IntakeRunScreen,
    IntakeItem: HeldScreen,
    CoreMemory: CoreScreen,
    Residue: ResidueScreen,
    Token: TokenScreen,
    Alias: AliasScreen,
    Cardinality: CardinalityScreen,
    Pause: PauseScreen,
    Policy: PolicyScreen,
    Calibration: CalibrationScreen,
    Suite: SuiteScreen,
    Sample: SampleScreen,
    Demotion: DemotionScreen,
    Verdict: VerdictAdmin,
    PeriodicTask: ScheduleAdmin,
    IntervalSchedule: TimesAdmin,
    CrontabSchedule: TimesAdmin,
    User: PeopleAdmin,
    Group: RolesAdmin,
}
# Beat's own pages run tasks with any arguments and check no permission in their actions.
REPLACED = (User, Group, PeriodicTask, IntervalSchedule, CrontabSchedule, ClockedSchedule, SolarSchedule)

for model in REPLACED:
    if admin.site.is_registered(model):
        admin.site.unregister(model)
for model, screen in REGISTERED.items():
    admin.site.register(model, screen)
