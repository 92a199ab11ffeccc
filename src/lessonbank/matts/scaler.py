"""The model behind choosing and rewriting, where a bank has one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lessonbank.contracts.ports import LanguageModel

if TYPE_CHECKING:
    from lessonbank.text.rendering import View

    from .best_of_n import ModelChooser
    from .sequential import Rewriter


@dataclass(frozen=True, slots=True)
class Scaler:
    """What scaling asks of a model. Without one, verdicts choose, and only the agent can re-examine a run."""

    model: LanguageModel | None = None
    view: View = "full"
    """What of a run is shown when the best is chosen."""

    def chooser(self) -> ModelChooser | None:
        """Who chooses the best run."""
        from .best_of_n import ModelChooser  # noqa: PLC0415 - few banks scale

        return ModelChooser(self.model, view=self.view) if self.model else None

    def rewriter(self) -> Rewriter | None:
        """Who re-examines a run without acting again."""
        from .sequential import Rewriter  # noqa: PLC0415 - few banks scale

        return Rewriter(self.model) if self.model else None
