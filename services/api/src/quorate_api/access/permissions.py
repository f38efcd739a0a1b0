"""What callers may do: the permissions of each role, in one table, and the scopes of API keys. No I/O."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Permission(StrEnum):
    APPEND = "append"  # to the logs of groups
    READ = "read"  # their entries
    MANAGE = "manage"  # groups: create, resize, delete, quote
    BILLING = "billing"  # invoices, spend and budgets of the whole organization
    VIEW = "view"  # projects, groups, usage, SLA reports, quotas
    TEAM = "team"  # see who the members are, and which API keys there are
    ADMINISTER = "administer"  # projects, API keys and members
    OWN = "own"  # owners among the members, and the organization as a whole


P = Permission
PERMISSIONS_BY_ROLE: dict[str, frozenset[Permission]] = {
    "owner": frozenset(P),
    "admin": frozenset(P) - {P.OWN},
    "developer": frozenset({P.APPEND, P.READ, P.MANAGE, P.VIEW, P.TEAM}),
    "billing": frozenset({P.BILLING, P.VIEW}),
    "viewer": frozenset({P.VIEW}),
}

# Operations that a key's scope may name, and those of them that it may allow on some groups alone.
OF_PROJECT_KEYS = frozenset({P.APPEND, P.READ, P.MANAGE, P.BILLING})
OF_ORGANIZATION_KEYS = OF_PROJECT_KEYS | {P.ADMINISTER}
ON_GROUPS = frozenset({P.APPEND, P.READ, P.MANAGE})


@dataclass(frozen=True, slots=True)
class KeyScope:
    """`append`: on all groups. `append:orders`: on the group of that name. `append:pay-*`: where names begin so."""

    permission: Permission
    groups: str | None = None

    @classmethod
    def parse(cls, text: str, allowed: frozenset[Permission]) -> "KeyScope":
        """Raises `ValueError` with a sentence for people."""
        name, colon, groups = text.partition(":")
        if name not in allowed:
            known = ", ".join(sorted(allowed))
            raise ValueError(f"begins with none of {known}")
        permission = Permission(name)
        if not colon:
            return cls(permission)
        if permission not in ON_GROUPS:
            raise ValueError(f"{name} is not about groups: leave out what follows the colon")
        if not groups or groups != groups.strip() or not groups.isprintable():
            raise ValueError("needs a group's name behind the colon, or the begin of names and *")
        return cls(permission, groups)

    def __str__(self) -> str:
        return self.permission if self.groups is None else f"{self.permission}:{self.groups}"

    def has_group(self, name: str) -> bool:
        return self.groups is None or matches(self.groups, name)

    def covers(self, other: "KeyScope") -> bool:
        """Whether it allows everything that the other does."""
        if self.permission is not other.permission:
            return False
        if self.groups is None or self.groups == other.groups:
            return True
        return other.groups is not None and is_prefix(self.groups) and other.groups.startswith(self.groups[:-1])


def is_prefix(groups: str) -> bool:
    return groups.endswith("*")


def matches(groups: str, name: str) -> bool:
    return name.startswith(groups[:-1]) if is_prefix(groups) else name == groups


@dataclass(frozen=True, slots=True)
class Allowed:
    """What one caller may do. `everywhere`: on all groups, and beside them. `on_some`: on groups by name."""

    everywhere: frozenset[Permission]
    on_some: tuple[KeyScope, ...] = ()

    @classmethod
    def of_role(cls, role: str) -> "Allowed":
        return cls(PERMISSIONS_BY_ROLE[role])

    @classmethod
    def of_scopes(cls, scopes: Iterable[str]) -> "Allowed":
        """Of a key. It sees the groups on which it may do something. One that makes keys sees which there are."""
        parsed = [KeyScope.parse(text, OF_ORGANIZATION_KEYS) for text in scopes]
        everywhere = {scope.permission for scope in parsed if scope.groups is None}
        on_some = tuple(scope for scope in parsed if scope.groups is not None)
        if Permission.ADMINISTER in everywhere:
            everywhere.add(Permission.TEAM)
        if not on_some or everywhere & (ON_GROUPS | {Permission.ADMINISTER}):
            everywhere.add(Permission.VIEW)
        return cls(frozenset(everywhere), on_some)

    def names(self) -> list[str]:
        """All of it, as scopes."""
        return sorted([*self.everywhere, *(str(scope) for scope in self.on_some)])

    def has(self, permission: Permission, group: str | None = None) -> bool:
        """`group`: the name of the one that it is about. None: it is about no group, or about all."""
        if permission in self.everywhere:
            return True
        if group is None:
            return False
        about = [scope for scope in self.on_some if scope.has_group(group)]
        return any(permission in (scope.permission, Permission.VIEW) for scope in about)

    def has_somewhere(self, permission: Permission) -> bool:
        return permission in self.everywhere or any(scope.permission is permission for scope in self.on_some)

    def groups_seen(self) -> tuple[str, ...] | None:
        """Names of groups, and begins of names with `*`, that it may see. None: all."""
        if Permission.VIEW in self.everywhere:
            return None
        return tuple(sorted({scope.groups for scope in self.on_some if scope.groups is not None}))

    def covers(self, scope: KeyScope) -> bool:
        if scope.permission in self.everywhere:
            return True
        return any(own.covers(scope) for own in self.on_some)
