"""What a test of code that uses this package needs: fakes to call, and contracts to pass, which need pytest."""

from typing import TYPE_CHECKING

from lessonbank._base.first_use import on_first_use
from lessonbank.errors import UsageError

from .fakes import Call as Call
from .fakes import HashingEmbedder as HashingEmbedder
from .fakes import ScriptedModel as ScriptedModel
from .model_server import ModelServer as ModelServer

if TYPE_CHECKING:
    from .adapter_contract import AdapterContract as AdapterContract
    from .adapter_contract import Calls as Calls
    from .adapter_contract import Program as Program
    from .adapter_contract import Request as Request
    from .adapter_contract import Says as Says
    from .adapter_contract import ScriptedAgentModel as ScriptedAgentModel
    from .bank_contract import BankContract as BankContract
    from .embedder_contract import EmbedderContract as EmbedderContract
    from .importer_contract import ImporterContract as ImporterContract
    from .model_contract import LanguageModelContract as LanguageModelContract
    from .store_contract import CareContract as CareContract
    from .store_contract import QueueContract as QueueContract
    from .store_contract import StoreContract as StoreContract

_load = on_first_use(
    __name__,
    {
        "AdapterContract": ".adapter_contract",
        "Calls": ".adapter_contract",
        "Program": ".adapter_contract",
        "Request": ".adapter_contract",
        "Says": ".adapter_contract",
        "ScriptedAgentModel": ".adapter_contract",
        "BankContract": ".bank_contract",
        "CareContract": ".store_contract",
        "EmbedderContract": ".embedder_contract",
        "ImporterContract": ".importer_contract",
        "LanguageModelContract": ".model_contract",
        "QueueContract": ".store_contract",
        "StoreContract": ".store_contract",
    },
)


def __getattr__(name: str) -> object:
    try:
        return _load(name)
    except ModuleNotFoundError as error:
        if error.name != "pytest":
            raise
        raise UsageError(f"lessonbank.testing.{name} runs under pytest: pip install pytest") from error
