"""The one way to query what belongs to an organization.

`Scope` adds `organization_id = …` to every statement, and sets the organization for PostgreSQL's row-level security.
`EveryOrganization` and `SomeOrganizations` are the worker's. Their reason is part of the call, for reviews to find it.
`tests/test_scope_lint.py` fails where a repository builds a statement on an owned table in another way.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Delete,
    Insert,
    Select,
    Table,
    TableValuedAlias,
    Update,
    Uuid,
    any_,
    bindparam,
    column,
    delete,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.dialects.postgresql import Insert as Upsert
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.elements import ColumnElement
from sqlalchemy.types import TypeEngine

from quorate_api.database.tables import OWNED

Rows = Select[*tuple[Any, ...]]
ROWS = "sent_rows"


def sent(**columns: TypeEngine[Any] | type[TypeEngine[Any]]) -> TableValuedAlias:
    """Rows with these columns that the caller sends as one parameter named `ROWS`: a list of dictionaries, as JSON.

    With a parameter for each value, each number of rows is another statement. Compiling those took a third of a core at
    two hundred groups, and a third of an SLA report's time. PostgreSQL takes 65,535 parameters.
    """
    rows = func.jsonb_to_recordset(bindparam(ROWS, type_=JSONB))
    named = rows.table_valued(*(column(name, each) for name, each in columns.items()))
    return named.render_derived(name="sent", with_types=True)


def hours_sent() -> TableValuedAlias:
    """Hours of groups, by the begin of each: to be sent as `rows_of_hours` has them."""
    return sent(group_id=Uuid, hour_s=BigInteger)


def rows_of_hours(hours: Iterable[tuple[UUID, int]]) -> dict[str, Any]:
    return {ROWS: [{"group_id": str(group_id), "hour_s": hour_s} for group_id, hour_s in sorted(hours)]}


def rows_sent(table: Table) -> Rows:
    """Rows of the table, sent in the same way."""
    return select(sent(**{each.name: each.type for each in table.c}))


@dataclass(slots=True)
class Scope:
    """One organization's view, on the transaction of one request."""

    connection: AsyncConnection
    organization_id: UUID

    async def renew(self) -> None:
        """Set the organization for row-level security again: the setting ends with the transaction."""
        await self.connection.execute(select(func.set_config("app.organization_id", str(self.organization_id), True)))

    def select(self, table: Table, *columns: Any) -> Rows:
        return select(*(columns or (table,))).select_from(table).where(self._owns(table))

    def insert(self, table: Table, **values: object) -> Insert:
        self._owns(table)
        return insert(table).values(organization_id=self.organization_id, **values)

    def insert_all(self, table: Table) -> Insert:
        """To be executed with rows, each of which `owned` made this organization's."""
        self._owns(table)
        return insert(table)

    def owned(self, row: dict[str, object]) -> dict[str, object]:
        return {**row, "organization_id": self.organization_id}

    def upsert(self, table: Table, **values: object) -> Upsert:
        self._owns(table)
        return upsert(table).values(organization_id=self.organization_id, **values)

    def update(self, table: Table) -> Update:
        return update(table).where(self._owns(table))

    def delete(self, table: Table) -> Delete:
        return delete(table).where(self._owns(table))

    def _owns(self, table: Table) -> ColumnElement[bool]:
        assert table.name in OWNED, f"{table.name} belongs to no organization"
        return table.c.organization_id == self.organization_id


@dataclass(frozen=True, slots=True)
class EveryOrganization:
    """The worker's view. `reason`: why one organization is not enough."""

    connection: AsyncConnection
    reason: str

    def select(self, table: Table, *columns: Any) -> Rows:
        return select(*(columns or (table,))).select_from(table)

    def upsert(self, table: Table) -> Upsert:
        return upsert(table)

    def update(self, table: Table) -> Update:
        return update(table)

    def delete(self, table: Table) -> Delete:
        return delete(table)


@dataclass(frozen=True, slots=True)
class SomeOrganizations:
    """The worker's view of a batch of organizations, to read. `reason`: why one organization is not enough."""

    connection: AsyncConnection
    organization_ids: tuple[UUID, ...]
    reason: str

    def select(self, table: Table, *columns: Any) -> Rows:
        assert table.name in OWNED, f"{table.name} belongs to no organization"
        owner = table.c.organization_id
        ids = literal(list(self.organization_ids), ARRAY(owner.type))
        return select(*(columns or (table,))).select_from(table).where(owner == any_(ids))
