"""Probe suites, the rules: what a question is expected to bring, how answers are counted, and what a change did to it
(R26, R112-R118). Plain Python over frozen values.
"""

from consolidation.probes.impact import ADVICE, Impact, Numbers, falling_lines, impact_json, impact_lines
from consolidation.probes.measuring import measure
from consolidation.probes.reading import LONGEST_QUERY, Line, Sheet, read, read_rows
from consolidation.probes.values import Control, Figures, Found, K, Probe, Store, figures_json
from consolidation.probes.yaml_files import Entry, Unreadable, read_yaml, write_yaml

__all__ = [
    "ADVICE",
    "LONGEST_QUERY",
    "Control",
    "Entry",
    "Figures",
    "Found",
    "Impact",
    "K",
    "Line",
    "Numbers",
    "Probe",
    "Sheet",
    "Store",
    "Unreadable",
    "falling_lines",
    "figures_json",
    "impact_json",
    "impact_lines",
    "measure",
    "read",
    "read_rows",
    "read_yaml",
    "write_yaml",
]
