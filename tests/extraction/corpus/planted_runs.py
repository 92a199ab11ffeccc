"""Runs with planted names, addresses, ids and amounts, drawn from a seed: what no lesson may repeat."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from lessonbank.contracts.records import Action, Observation, Outcome, Run, Step, ToolCall, Trajectory, Verdict

NAMES = (
    "Jane Roe", "Sophia Silva", "Daiki Lee", "José Álvarez", "Anne-Marie O'Brien", "Ludwig van Beek", "Søren Kjær",
    "Анна Каренина", "Дмитрий Орлов", "Ελένη Παπαδοπούλου", "田中太郎", "王小明", "김민수", "محمد العلي", "רות כהן",
    "राम शर्मा", "Nguyễn Thị Hoa", "Łukasz Żak", "Maria de la Cruz", "Fatima Zahra", "Mia Page", "Robert McDonald",
    "Grace Young", "Yusuf Demirel", "Chloé Lefèvre",
)  # fmt: skip
STREETS = (
    "12 Elm Street", "7 Sunset Blvd", "221B Baker Street", "4 Kestrel Lane", "908 Maple Avenue, Apt 4B",
    "Lindenstraße 14", "14 rue de la Paix", "Calle Mayor 33", "1600 Harbour Way", "55 Quarry Road",
)  # fmt: skip
CITIES = ("Springfield", "Wellmouth", "Orvieto", "Kraków", "Larnaca")


@dataclass(frozen=True)
class Person:
    """The planted values of one run."""

    name: str
    street: str
    city: str
    order: str
    user: str
    balance: str
    mail: str
    phone: str
    token: str
    birth: str

    @property
    def values(self) -> tuple[str, ...]:
        return (
            self.name, self.street, self.order, self.user, self.balance, self.mail, self.phone, self.token, self.birth,
        )  # fmt: skip


@dataclass(frozen=True)
class Case:
    """Runs of one task and what was planted in them."""

    kind: str
    attempts: tuple[Run, ...]
    planted: tuple[str, ...]
    tools: tuple[str, ...]
    fields: tuple[str, ...]


def person(draw: random.Random) -> Person:
    name = draw.choice(NAMES)
    number = str(draw.randint(1000, 99999))
    login = f"{draw.choice(('jroe', 'silva', 'k_orlov', 'mhoa', 'ybeek'))}_{draw.randint(100, 9999)}"
    return Person(
        name=name,
        street=draw.choice(STREETS),
        city=draw.choice(CITIES),
        order=draw.choice((number, f"#W{number}77", f"ORD-{number}-K", f"{number}{draw.choice('QXZ')}7M")),
        user=login,
        balance=f"{draw.randint(21, 4000)}.{draw.randint(11, 99)}",
        mail=f"{login.replace('_', '.')}@mail.example.org",
        phone=f"+{draw.randint(1, 49)} 555 01{draw.randint(10, 99)} {draw.randint(10, 99)}",
        token=str(uuid.UUID(int=draw.getrandbits(128))),
        birth=f"19{draw.randint(40, 99)}-0{draw.randint(1, 9)}-1{draw.randint(0, 9)}",
    )


def cased(text: str, draw: random.Random) -> str:
    """The same in odd letters, and sometimes over two lines."""
    text = draw.choice((str, str.upper, str.lower, str.swapcase))(text)
    return text.replace(" ", "\n", 1) if draw.random() < 0.3 else text


def called(name: str, arguments: dict[str, Any] | str, seen: Any, *, error: bool = False) -> Step:
    text = seen if isinstance(seen, str) else json.dumps(seen, ensure_ascii=False)
    return Step(
        action=Action(calls=(ToolCall(name=name, arguments=arguments),)),
        observations=(Observation(text=text, source="tool", name=name, is_error=error),),
    )


def said(text: str) -> Step:
    return Step(action="Let me look.", observations=(Observation(text=text, source="user"),))


def attempt(task: str, steps: list[Step], outcome: Outcome, **more: Any) -> Run:
    run = Trajectory(task=task, steps=tuple(steps), **more)
    return Run(trajectory=run, verdict=Verdict(outcome=outcome, source="ground_truth"))


def support(p: Person, draw: random.Random, outcome: Outcome) -> Case:
    task = f"You are {cased(p.name, draw)}. Refund order {p.order}; you live at {p.street}."
    found = {
        "customer": {"name": p.name, "street": p.street, "orders": [{"order_id": p.order, "balance": float(p.balance)}]}
    }
    steps = [
        called("find_customer", {"name": p.name, "street": p.street}, found),
        called(
            "refund",
            {"order_id": p.order, "amount": float(p.balance) + 10},
            f"Error: {cased(p.name, draw)} may not get more than {p.balance} back for {p.order}",
            error=True,
        ),
        called("refund", {"order_id": p.order, "amount": float(p.balance)}, f"Refunded {p.balance} EUR to {p.name}"),
    ]
    return Case(
        "support", (attempt(task, steps, outcome),), p.values, ("find_customer", "refund"), ("order_id", "name")
    )


def chat(p: Person, draw: random.Random, outcome: Outcome) -> Case:
    steps = [
        said(f"My name is {p.name},\nmy e-mail is {p.mail} and I was born on {p.birth}."),
        called(
            "get_user",
            {"email": p.mail},
            {
                "user_id": p.user,
                "profile": {"full_name": p.name, "address": {"line1": p.street, "city": p.city}, "dob": p.birth},
            },
        ),
        called("list_orders", {"user_id": p.user}, [{"id": p.order, "total": p.balance, "status": "pending"}]),
        said(f"Yes, {cased(p.street, draw)}. Call me: {p.phone}"),
        called(
            "cancel_order",
            {"id": p.order, "reason": f"{p.name} ordered twice"},
            {"status": "cancelled", "id": p.order, "token": p.token},
        ),
    ]
    task = f"Help the customer {p.name} with an order."
    return Case("chat", (attempt(task, steps, outcome),), p.values, ("get_user", "cancel_order"), ("user_id", "email"))


def transfer(p: Person, draw: random.Random, outcome: Outcome) -> Case:
    wrong = {"error": f"Account {p.user} of {cased(p.name, draw)} has only {p.balance}; see case {p.token}"}
    arguments = json.dumps({"to": {"holder": p.name, "account": p.user}, "amount": p.balance}, ensure_ascii=False)
    steps = [
        called(
            "look_up_account",
            {"holder": cased(p.name, draw)},
            {"account": p.user, "holder": p.name, "balance": p.balance},
        ),
        called("transfer", arguments, wrong, error=True),
        called(
            "transfer",
            {"to": {"holder": p.name, "account": p.user}, "amount": 5},
            f"done: {p.token} for {cased(p.name, draw)}",
        ),
    ]
    task = f"Send {p.balance} EUR to {p.name}, reference {p.token}, by {p.birth}"
    return Case("transfer", (attempt(task, steps, outcome),), p.values, ("transfer",), ("holder", "amount"))


def shell(p: Person, draw: random.Random, outcome: Outcome) -> Case:
    row = f"{p.order},{p.name},{p.street.replace(',', ' ')},{p.balance}"
    record = f"name: {cased(p.name, draw)}\nstreet: {p.street}\nbalance: {p.balance}\nlogin: {p.user}\nphone: {p.phone}"
    steps = [
        called("bash", {"command": "head -3 data/customers.csv"}, f"id,name,street,balance\n{row}"),
        called("bash", {"command": f"grep -rn '{p.name}' data/"}, record),
        called(
            "bash",
            {"command": f"python refund.py --order {p.order} --to {p.mail}"},
            f"Traceback (most recent call last):\nValueError: no customer {p.name!r} with {p.order} ({p.mail})",
        ),
        called(
            "bash",
            {"command": f"python refund.py --order {p.order} --file data/customers.csv"},
            f"paid {p.balance} to {p.user}",
        ),
    ]
    task = f"Use refund.py to pay {p.name} ({p.mail}) back, order {p.order}."
    return Case("shell", (attempt(task, steps, outcome),), p.values, ("bash(", "refund.py"), ())


def browser(p: Person, draw: random.Random, outcome: Outcome) -> Case:
    page = "[a12] button 'New refund', clickable\n[b2] textbox 'Customer'\n"
    page += f"[b3] textbox 'Amount' value='{p.balance}'\n[c4] link '{p.name}'\n"
    done = f"{page}Refund of {p.balance} for {p.name}, {p.street}, {p.user}, is saved under {p.order}. " + "text " * 60
    steps = [
        Step(observation=page),
        Step(action="I open the form.\n```click('a12')```", observation=page + "Form"),
        Step(action=f"```fill('b2', '{p.user}')```", observation=page + "Form."),
        Step(action="```click('c4')```", observation=f"Error: {cased(p.name, draw)} is not a payee of {p.order}"),
        Step(action=f"```fill('b3', '{p.balance}')```", observation=page + "Form 3"),
        Step(action="```press('b3', 'Enter')```", observation=done),
        Step(action=f'```send_msg_to_user("{p.name} has {p.balance}")```', observation="Sent."),
    ]
    task = f'In the admin panel refund "{p.name}", {p.street}, order {p.order}'
    return Case("browser", (attempt(task, steps, outcome),), p.values, ("click(", "fill("), ("Customer", "New refund"))


def typed(p: Person, draw: random.Random, outcome: Outcome) -> Case:
    steps = [
        Step(action="open refunds", observation="Refunds opened."),
        Step(action=f"type {p.name} into customer", observation=f"{cased(p.name, draw)} chosen."),
        Step(action=f"type {p.order} into order", observation=f"No order {p.order} for {p.name}."),
        Step(action="press send", observation=f"Rejected: {p.street} is not confirmed."),
        Step(action="press confirm address", observation=f"Confirmed {cased(p.street, draw)} for {p.user}."),
    ]
    task = f"For customer {p.name} of {p.street}: refund {p.balance} of {p.order} ({p.phone})"
    return Case("typed", (attempt(task, steps, outcome),), p.values, ("open refunds",), ())


def several(p: Person, draw: random.Random, _: Outcome) -> Case:
    good, bad = support(p, draw, "success"), support(p, draw, "failure")
    again = called("refund", {"order_id": p.user, "amount": p.balance}, f"Not found: {p.user} of {cased(p.name, draw)}")
    failed = bad.attempts[0].trajectory
    looped = failed.model_copy(update={"id": "r2", "steps": (*failed.steps[:1], again, again, again)})
    attempts = (*good.attempts, bad.attempts[0].model_copy(update={"trajectory": looped}))
    return Case("several", attempts, p.values, ("refund",), ("order_id",))


SHAPES: tuple[Callable[[Person, random.Random, Outcome], Case], ...] = (
    support, chat, transfer, shell, browser, typed, several,
)  # fmt: skip


def cases(count: int) -> Iterator[Case]:
    """`count` cases, always the same; every seventh is of several runs."""
    draw = random.Random("planted 13")
    for number in range(count):
        shape = SHAPES[number % len(SHAPES)]
        yield shape(person(draw), draw, "failure" if number % 3 == 0 else "success")
