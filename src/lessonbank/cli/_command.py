"""A command that names everything it lacks in one sentence, so that nobody runs it once for each option."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand


class Command(TyperCommand):
    """A command of the command line."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As always; if several things are missing, the error names all of them."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            missing = self._missing(ctx, given) if type(error).__name__ == "MissingParameter" else []
            if len(missing) < 2:
                raise
            named = f"{', '.join(missing[:-1])} and {missing[-1]}"
            wrong = typer.BadParameter.__mro__[1]
            raise wrong(f"Missing {named}", ctx=ctx) from None

    def _missing(self, ctx: Any, args: list[str]) -> list[str]:
        options, _, _ = self.make_parser(ctx).parse_args(args=args)
        wanted = [parameter for parameter in self.get_params(ctx) if parameter.required]
        values = [(parameter, parameter.consume_value(ctx, options)[0]) for parameter in wanted]
        return [
            repr(max(slot.opts, key=len)) if slot.opts[0].startswith("-") else str(slot.metavar or slot.name).upper()
            for slot, value in values
            if slot.value_is_missing(value)
        ]
