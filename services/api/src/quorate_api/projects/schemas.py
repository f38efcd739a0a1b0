"""Projects, which contain groups and API keys."""

from datetime import datetime
from uuid import UUID

from quorate_api.http.schemas import Input, Name, Output


class NewProject(Input):
    name: Name


class ProjectSettings(Input):
    name: Name


class Project(Output):
    id: UUID
    name: str
    created_at: datetime
