"""Long answers, made at once."""

from starlette.responses import Response

from quorate_api.http.schemas import Output


def as_json(answer: Output) -> Response:
    """The answer of a route that names its schema as `response_model`.

    The framework would make dictionaries of it first, which takes several times as long.
    """
    return Response(answer.model_dump_json(), media_type="application/json")
