"""Entries are 64 bytes, unique, checked to the last byte, and the same in both languages."""

import json
import subprocess
from pathlib import Path

import pytest

from quorate_demo.entries import EntryFormat
from quorate_demo.trace import Schedule

SCHEDULE = Schedule(512, [3, 0, 4], 1.0)
FORMAT = EntryFormat(15, "stade-de-france", SCHEDULE)
JS = Path(__file__).parents[1] / "js" / "entries.mjs"


def test_the_layout_is_what_the_documentation_shows() -> None:
    assert FORMAT.encode_range(2, 4) == [
        b"wc98 day=15 min=0512 n=000000000002 org=stade-de-france.........",
        b"wc98 day=15 min=0514 n=000000000003 org=stade-de-france.........",
    ]


def test_every_entry_knows_its_number_and_no_other_bytes_do() -> None:
    for number, entry in enumerate(FORMAT.encode_range(0, SCHEDULE.total)):
        assert FORMAT.number_of(entry) == number
        for position in range(len(entry)):
            changed = bytearray(entry)
            changed[position] ^= 1
            assert FORMAT.number_of(bytes(changed)) != number
    assert FORMAT.number_of(b"") is None
    assert EntryFormat(15, "parc-des-princes", SCHEDULE).number_of(entry) is None


def test_a_name_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ValueError, match="at most 24"):
        EntryFormat(15, "an-organization-with-a-long-name", SCHEDULE)


def test_javascript_writes_the_same_bytes_and_accepts_ours() -> None:
    script = f"""
    import {{ EntryFormat, Schedule }} from {json.dumps(JS.as_uri())};
    const schedule = new Schedule(512, [3, 0, 4], 1.0);
    const format = new EntryFormat(15, "stade-de-france", schedule);
    const entries = format.encodeRange(0, schedule.total);
    const changed = Buffer.from(entries[0]); changed[63] ^= 1;
    console.log(JSON.stringify({{
      entries: entries.map((entry) => Buffer.from(entry).toString("latin1")),
      numbers: entries.map((entry) => format.numberOf(entry)),
      changed: format.numberOf(changed),
      due: [0, 0.1, 0.34, 0.67, 0.9, 1, 2].map((at) => schedule.due(at)),
    }}));
    """
    command = ["node", "--input-type=module", "-e", script]
    answer = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout)
    assert [entry.encode() for entry in answer["entries"]] == FORMAT.encode_range(0, SCHEDULE.total)
    assert answer["numbers"] == list(range(SCHEDULE.total))
    assert answer["changed"] is None
    assert answer["due"] == [SCHEDULE.due(at) for at in (0, 0.1, 0.34, 0.67, 0.9, 1, 2)]
