"""What a test of code that uses this package needs: fakes to call and contracts to pass."""

from .adapter_contract import AdapterContract as AdapterContract
from .adapter_contract import Calls as Calls
from .adapter_contract import Program as Program
from .adapter_contract import Request as Request
from .adapter_contract import Says as Says
from .adapter_contract import ScriptedAgentModel as ScriptedAgentModel
from .bank_contract import BankContract as BankContract
from .embedder_contract import EmbedderContract as EmbedderContract
from .fakes import Call as Call
from .fakes import HashingEmbedder as HashingEmbedder
from .fakes import ScriptedModel as ScriptedModel
from .model_contract import LanguageModelContract as LanguageModelContract
from .model_server import ModelServer as ModelServer
from .store_contract import StoreContract as StoreContract
