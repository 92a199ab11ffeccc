"""People whom a proxy has signed in, for example with OpenID Connect: one header names them, which only it may set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import Final, Literal, TypeAlias, get_args

from starlette.requests import HTTPConnection

from lessonbank._base.checks import a_text, one_of, short_repr
from lessonbank.contracts.records.ids import digest, now
from lessonbank.errors import Unauthenticated, UsageError
from lessonbank.guard import check_scope
from lessonbank.guard.names import checked_name, name_key

from .keys import Key

UserRole: TypeAlias = Literal["reader", "reviewer"]
PREFIX: Final = "proxy-"
"""What the id of a person's key begins with. It ends with a digest, because a log must not hold names."""
_TOKEN: Final = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")
_RATE: Final = 600


@dataclass(frozen=True, slots=True)
class ProxyUsers:
    """Who comes through a proxy that signs people in, and what they may do. The header says who; all else is said here.

    Raises:
        UsageError: a header, an address, a scope or a role that cannot be.
    """

    header: str
    """The header with the person's name, such as `X-Forwarded-User`."""
    proxies: Sequence[str]
    """The addresses of the proxy, such as `10.0.0.5` or `10.0.0.0/28`."""
    scope: str
    """The tenant of these people: this scope and all below it. Empty: the whole bank."""
    role: UserRole = "reader"

    def __post_init__(self) -> None:
        if not a_text(self.header, "header=") or not _TOKEN.issuperset(self.header.lower()):
            raise UsageError(f"{short_repr(self.header)} is no name of a header: give one such as X-Forwarded-User")
        if self.header.lower() in ("authorization", "cookie", "host"):
            raise UsageError(f"{self.header} means something else: give a header of its own, such as X-Forwarded-User")
        if not self.networks:
            raise UsageError("say which proxy may name people: its address, such as 10.0.0.5")
        if self.scope:
            check_scope(self.scope)
        one_of(self.role, "role=", get_args(UserRole))

    @property
    def networks(self) -> tuple[IPv4Network | IPv6Network, ...]:
        """Where the proxy may be. Raises UsageError."""
        try:
            return tuple(ip_network(address) for address in self.proxies)
        except ValueError as error:
            raise UsageError(f"{error}: give the proxy's address, such as 10.0.0.5 or 10.0.0.0/28") from None

    def key_of(self, request: HTTPConnection, /) -> Key | None:
        """What the person of a request may do, as if by a key of its own; `None` where the header is not there.

        Raises Unauthenticated: the header comes from elsewhere, twice, beside a key, or with what is no name.
        """
        names = request.headers.getlist(self.header)
        if not names:
            return None
        if not self._is_proxy(request):
            raise Unauthenticated(f"{self.header} is believed from the proxy alone: send a key instead")
        if request.headers.get("authorization"):  # whatever its form: a key that is misspelt is a key, too
            raise Unauthenticated(f"the request has {self.header} and a key: send one of them")
        name = self._name(names)
        return Key(
            id=f"{PREFIX}{digest(name_key(name))[:12]}",
            name=name,
            scope=self.scope,
            role=self.role,
            rate=_RATE,
            created_at=now(),
            digest="",
        )

    def _is_proxy(self, request: HTTPConnection) -> bool:
        """By the address of the connection itself: whatever a header says of it can be anybody's word."""
        try:
            peer = ip_address(request.client.host if request.client else "")
        except ValueError:
            return False
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self.networks)

    def _name(self, names: Sequence[str]) -> str:
        if len(names) > 1 or "," in names[0]:
            raise Unauthenticated(f"{self.header} has several names: let the proxy set it once")
        try:
            return checked_name(names[0].encode("latin-1").decode(), what=f"{self.header}: ")
        except UnicodeDecodeError:
            raise Unauthenticated(f"{self.header} is no UTF-8") from None
        except UsageError as error:
            raise Unauthenticated(str(error)) from None
