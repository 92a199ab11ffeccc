"""What an experiment has cost so far, and where its budget ends."""

from __future__ import annotations

from collections import Counter

from lessonbank.contracts.records import Usage
from lessonbank.guard import one_line

from .records import AttemptRow, Experiment


class Spent:
    """What the rows so far cost, and whether there is any left."""

    def __init__(self, experiment: Experiment, /) -> None:
        self._budget, self._price = experiment.budget, experiment.price.attempt
        self.rows, self.attempts, self.tokens, self.errors, self.cost = 0, 0, 0, 0, 0.0
        self._in_a_row = 0
        self._of_arm: Counter[str] = Counter()
        self._last = ""

    def add(self, row: AttemptRow, /) -> None:
        """One more row; an attempt that was shared is paid for where it was made."""
        self.rows += 1
        self.attempts += len(row.runs) or 1
        again = row.run.usage if row.shared and row.run else Usage()
        self.tokens += row.tokens - again.input_tokens - again.output_tokens
        self.cost += self._paid(row, again)
        self.errors += row.error is not None
        self._last = one_line(row.error.message, limit=200) if row.error else self._last
        self._in_a_row = self._in_a_row + 1 if row.error is not None else 0
        self._of_arm[row.arm] = self._of_arm[row.arm] + 1 if row.error is not None else 0

    def _paid(self, row: AttemptRow, again: Usage) -> float:
        if row.cost is None:
            return 0.0 if row.shared else self._price * (len(row.runs) or 1)
        return row.cost - (again.cost or 0.0)

    def forgive(self) -> None:
        """What broke before this call may be mended."""
        self._in_a_row = 0
        self._of_arm.clear()

    @property
    def reason(self) -> str:
        """Why to stop; empty while there is some left."""
        budget = self._budget
        if budget.attempts is not None and self.attempts >= budget.attempts:
            return f"the budget of {budget.attempts:,} attempts is used up"
        if budget.tokens is not None and self.tokens >= budget.tokens:
            return f"the budget of {budget.tokens:,} tokens is used up"
        if budget.money is not None and self.cost >= budget.money:
            return f"the budget of {budget.money:,.2f} US dollars is used up"
        if self._in_a_row >= budget.errors:
            return f"{budget.errors} attempts in a row met an error of infrastructure, the last: {self._last}"
        dead = next((arm for arm, errors in self._of_arm.items() if errors >= budget.errors), None)
        if dead is not None:
            return f"{budget.errors} attempts of arm {dead!r} in a row met an error of infrastructure: {self._last}"
        return ""
