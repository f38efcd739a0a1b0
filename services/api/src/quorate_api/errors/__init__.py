"""Problems: the error, whose fault it is, whether to retry, whether it happened."""

from quorate_api.errors.catalogue import Code
from quorate_api.errors.problem import FieldError, Problem, invalid, not_found

__all__ = ["Code", "FieldError", "Problem", "invalid", "not_found"]
