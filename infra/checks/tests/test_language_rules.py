"""Examples of headless openings and of plain ones."""

import pytest

from quorate_checks.language import rules

HEADLESS = [
    "What is kept of a log.",
    "what the head was told",
    "What a reader sees is committed.",
    "Who waits is answered.",
    "Whom to ask.",
    "Whose connection is read next.",
    "Whoever asks again gets the same answer.",
    "Whatever a server claims, no more is buffered.",
    "Whichever comes first.",
    "Which servers hold the group.",
    "Which is why it is refused.",
    "Of these, one is chosen.",
    "Of a batch that was refused, nothing stays.",
    "Of the group.",
    "Those that came late.",
    "Those who asked.",
    "Those of the other shard wait.",
    "Those without a lease are dropped.",
    "Those already sent are kept.",
    "Those it holds.",
    "That which was committed stays.",
    "All that was committed before is part of that.",
    "One that was restored holds less.",
    "He who asks is answered.",
    "To whom it is sent.",
    "In which the owner saw the group lost.",
    "Only what is committed is read.",
    "And what is left goes to the next.",
    "Where the next byte goes.",
    "Where a record lies, in bytes.",
    "Where a batch lies is recorded.",
    "Where traces go, such as an address.",
    "Where people reach the service, without a slash at the end.",
    "When the group was created, or changed last.",
    "When each entry is due: see the other class.",
    "Where the next record goes; what lies behind it, the scan cuts.",
    "Where two logs part: one asks, the other answers.",
    "When the timer wants to be called, whatever else happens.",
    "Where the logs are written, behind what is there.",
    "When the head last answered, on the clock of the server, and how long a lease is.",
    "**What does it cost** is asked often.".replace("*", " "),
]
PLAIN = [
    "The log keeps its last entries.",
    "What happens then?",
    "Who may ask?",
    "(Which of them?)",
    "When the disk is full, the server stops.",
    "When the disk is full, in most cases it stops.",
    "Where namespaces cannot be made, the run fails.",
    "When the disk is full: then the server stops.",
    "When the base is durable (the journal is enough: it keeps it), files are removed.",
    "When a link comes back, groups take turns; many busy ones broke it.",
    "When a server, which may be slow, answers, the batch goes on.",
    "Of course it waits.",
    "Those servers are full.",
    "Those are counted twice.",
    "That server is full.",
    "That is the claim.",
    "All servers get the same.",
    "One batch of entries.",
    "Each of them is answered.",
    "Whether the disk is full.",
    "How many entries were written.",
    "In memory nothing is synced.",
    "To be called once.",
    "Only the head orders.",
    '"Those in doubt" leaves its noun out.',
    "XXXX: what each may be using.",
    "",
]


@pytest.mark.parametrize("sentence", HEADLESS)
def test_a_headless_opening_is_found(sentence: str) -> None:
    assert rules.is_headless(sentence)


@pytest.mark.parametrize("sentence", PLAIN)
def test_a_plain_opening_is_left_alone(sentence: str) -> None:
    assert not rules.is_headless(sentence)


def test_headings_may_name_a_task_or_a_case() -> None:
    for heading in (
        "When to call for help",
        "Where to look",
        "When the disk is full",
        "Which server to ask",
        "Who may do this?",
    ):
        assert not rules.is_headless(heading, is_heading=True)
    for heading in ("What it costs", "Who writes", "Where things are", "What happens to one append"):
        assert rules.is_headless(heading, is_heading=True)


def test_words_are_counted_as_a_reader_does() -> None:
    assert rules.length("One, two — three: (four)") == 4
    assert rules.length("A well-known server's 1.5 % of 10 000") == 7
    assert rules.length("XXXXXX is one word") == 4
