"""Further credits of a closed month of a group. Pure, in integers.

Credits of a month grow and never shrink. Together they are at most what the month's invoice billed for the group.
"""

from collections.abc import Iterable, Sequence

from quorate_api.billing import calculator
from quorate_api.billing.calculator import SLA_CREDIT, Line, Missed
from quorate_api.corrections.correction import UsageCorrection
from quorate_api.pricing import prices


def left_of(kind: str, billed: Iterable[Line], credited: Iterable[Line]) -> int:
    """The quantity of a kind that an invoice billed a group, less what its credit notes took back."""
    return sum(line.quantity for line in (*billed, *credited) if line.kind == kind)


def further_credits(
    billed: Sequence[Line], credited: Sequence[Line], corrections: Iterable[UsageCorrection], missed: Sequence[Missed]
) -> list[Line]:
    """Lines of a further credit note: corrections that lower what was billed, then what the SLA credit has grown by.

    `billed`: the group's lines on the month's invoice. `credited`: its lines on the credit notes of that invoice.
    """
    if not billed:
        return []
    made: list[Line] = []
    for correction in corrections:
        made.append(_correction_line(billed, [*credited, *made], correction))
    return made + _sla_lines(billed, [*credited, *made], missed)


def _correction_line(billed: Sequence[Line], credited: Sequence[Line], correction: UsageCorrection) -> Line:
    """It may be worth nothing, as all was credited before. On a document it is done with."""
    like = next(line for line in billed if line.kind == correction.kind)
    had = left_of(correction.kind, billed, credited)
    before, after = (
        prices.amount_micros(max(0, quantity), like.unit_price_micros, like.price_quantity)
        for quantity in (had, had + correction.quantity)
    )
    amount = min(before - after, _sum(billed) + _sum(credited))
    return Line(
        like.group_id, like.group_name, like.kind, correction.description, correction.quantity, like.unit,
        like.price_quantity, like.unit_price_micros, -amount, correction.id,
    )  # fmt: skip


def _sla_lines(billed: Sequence[Line], credited: Sequence[Line], missed: Sequence[Missed]) -> list[Line]:
    """The credit is of what the month costs by now: corrections are taken off it."""
    credits = [line for line in credited if line.kind == SLA_CREDIT]
    by_now = [*billed, *(line for line in credited if line.kind != SLA_CREDIT)]
    owed = -_sum(calculator.credit_lines(by_now, missed))
    amount = min(owed + _sum(credits), _sum(billed) + _sum(credited))
    if amount <= 0:
        return []
    percent = min(100, sum(each.percent for each in missed))
    clauses = ", ".join(f"{each.clause} {each.attained}" for each in missed)
    words = f"SLA credit, judged anew: {clauses}; {percent} % of this group's fee, less what was credited before"
    one = billed[0]
    return [Line(one.group_id, one.group_name, SLA_CREDIT, words, percent, "percent", 100, -_sum(by_now), -amount)]


def _sum(lines: Iterable[Line]) -> int:
    return sum(line.amount_micros for line in lines)
