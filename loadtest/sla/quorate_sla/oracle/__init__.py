"""A brute-force oracle of the SLA: it simulates requests one by one, and judges what was promised of them.

`life` draws a month, shortened to some minutes. `service` serves its requests. `truth` judges what happened, by the
words of `docs/reference/sla.md`. `telemetry` says what servers would report of the same life, and loses a part of it.
`compare` gives that to the calculator of the API, and finds each difference. No code is shared with the calculator.
"""
