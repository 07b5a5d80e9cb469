"""Who outranks whom."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from evicortex.errors import InputError
from evicortex.types import Authority


@dataclass(frozen=True, slots=True)
class AuthorityOrder:
    """Who outranks whom: ``ranking`` names every authority once, highest first."""

    ranking: tuple[Authority, ...] = tuple(Authority)
    ranks: Mapping[Authority, int] = field(init=False, repr=False, compare=False)
    """The rank of each authority; higher outranks lower, 0 is the lowest."""

    def __post_init__(self) -> None:
        known = {str(authority) for authority in Authority}
        names = [str(name) for name in self.ranking]
        if sorted(names) != sorted(known):
            raise InputError(
                f"an order of authority names each of {', '.join(sorted(known))} exactly once, "
                f"not {names}"
            )
        ranking = tuple(Authority(name) for name in names)
        ranks = {authority: rank for rank, authority in enumerate(reversed(ranking))}
        object.__setattr__(self, "ranking", ranking)
        object.__setattr__(self, "ranks", MappingProxyType(ranks))

    def exceeds(self, a: Authority, b: Authority) -> bool:
        """Return whether ``a`` outranks ``b``."""
        return self.ranks[a] > self.ranks[b]

    def lower(self, a: Authority, b: Authority) -> Authority:
        """Return the lower of two authorities."""
        return b if self.exceeds(a, b) else a


DEFAULT_ORDER = AuthorityOrder()
