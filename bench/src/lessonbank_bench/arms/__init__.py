"""What stands in for memory in a comparison: the bank, parts of it, the baselines, and the controls it must beat."""

from ._interface import PATIENCE as PATIENCE
from ._interface import Factory as Factory
from ._interface import Memory as Memory
from ._interface import Setting as Setting
from ._interface import lesson_code as lesson_code
from .awm import AllWorkflowsMemory as AllWorkflowsMemory
from .awm import WorkflowMemory as WorkflowMemory
from .bank import BankMemory as BankMemory
from .controls import PlaceboMemory as PlaceboMemory
from .controls import RandomMemory as RandomMemory
from .controls import ShuffledMemory as ShuffledMemory
from .controls import irrelevant as irrelevant
from .options import Options as Options
from .plain import NoMemory as NoMemory
from .plain import OracleMemory as OracleMemory
from .synapse import SynapseMemory as SynapseMemory
from .tables import ARMS as ARMS
from .tables import ArmName as ArmName
from .tables import arm_from as arm_from
from .tables import name_of as name_of
from .tables import read_arms as read_arms
from .tables import with_embedder as with_embedder
