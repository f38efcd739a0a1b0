"""A mail, as text."""

import json
from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class Mail:
    to: str
    subject: str
    text: str

    def to_json(self) -> bytes:
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, raw: bytes) -> "Mail":
        return cls(**json.loads(raw))
