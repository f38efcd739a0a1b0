"""Long answers, made at once, and files."""

from typing import Any

from starlette.responses import Response

from quorate_api.http.schemas import Output


def as_json(answer: Output) -> Response:
    """The answer of a route that names its schema as `response_model`.

    The framework would make dictionaries of it first, which takes several times as long.
    """
    return Response(answer.model_dump_json(), media_type="application/json")


def file_of(media_type: str, description: str) -> dict[str, Any]:
    """The options of a route whose answer is a file."""
    content = {media_type: {"schema": {"type": "string", "format": "binary"}}}
    return {"response_class": Response, "responses": {200: {"description": description, "content": content}}}
