"""The only room that knows MLflow: runs are started and logged, and read back."""

from ncu_exp.tracking.delivery import deliver_safely as deliver_safely
from ncu_exp.tracking.journal import Head as Head
from ncu_exp.tracking.journal import Journal as Journal
from ncu_exp.tracking.journal import journals_below as journals_below
from ncu_exp.tracking.lost import end_earlier as end_earlier
from ncu_exp.tracking.lost import end_lost as end_lost
from ncu_exp.tracking.operations import PARAM_LENGTH as PARAM_LENGTH
from ncu_exp.tracking.operations import TAG_LENGTH as TAG_LENGTH
from ncu_exp.tracking.operations import DatasetInput as DatasetInput
from ncu_exp.tracking.past import FoundRuns as FoundRuns
from ncu_exp.tracking.past import PastRun as PastRun
from ncu_exp.tracking.past import artifact_folder as artifact_folder
from ncu_exp.tracking.past import find_runs as find_runs
from ncu_exp.tracking.place import moved as moved
from ncu_exp.tracking.place import place_of as place_of
from ncu_exp.tracking.run import Run as Run
from ncu_exp.tracking.run import is_pending as is_pending
from ncu_exp.tracking.run import reopen_run as reopen_run
from ncu_exp.tracking.run import start_run as start_run
from ncu_exp.tracking.run import start_sweep as start_sweep
from ncu_exp.tracking.run import system_metrics as system_metrics
from ncu_exp.tracking.run import upload_command as upload_command
from ncu_exp.tracking.store import ui_command as ui_command
