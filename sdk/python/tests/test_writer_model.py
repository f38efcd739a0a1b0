"""The session's state machine against a model of a head, with faults from a seed.

Batches and answers are lost, refused, reordered around reconnects and left behind in old connections. Sessions are
forgotten, deadlines pass, then everything heals. Always an acked entry is in the log once, at its offset. A refused
one is not in it, and an unknown one at most once. Every call gets an answer.
"""

import random

import pytest

from quorate import wire
from quorate.codes import Code
from quorate.errors import Failure
from quorate.handle import Limits
from quorate.pacing import Charges, Pacing
from quorate.writer import Acked, Failed, Reroute, Writer

SEEDS = range(300)
STEPS = 400


CHARGES = Charges(20, (20_000, 0, 0), (1_000, 0, 0), (0, 0, 0), 3, (0, 0, 0))


class Head:
    """Orders batches as wire.md says. `inbox` is one connection's, FIFO."""

    def __init__(self, rng):
        self.rng = rng
        self.log = []
        self.sessions = {}
        self.index = self.forgotten_index = 0
        self.owner = {}

    def next_seq(self, session):
        return self.sessions.get(session, {"next": 1})["next"]

    def answer(self, connection, append, faulty):
        """ACKED or REFUSED for an APPEND that arrived."""

        def refuse(code, retry, outcome=1):
            after_ms = self.rng.choice((0, 20))
            return wire.Refused(wire.Kind.APPEND, outcome, retry, code, after_ms, append.seq, "", "")

        session = connection.session
        if self.owner[session] is not connection:
            return refuse(Code.SESSION_MOVED, 0)
        state = self.sessions.get(session)
        if state is None:
            if append.floor_index < self.forgotten_index:
                return refuse(Code.SESSION_EXPIRED, 0)
            state = {"next": 1, "offsets": {}}
        if append.seq < state["next"]:
            return wire.Acked([(append.seq, state["offsets"][append.seq])])
        if append.seq > state["next"]:
            return refuse(Code.SEQUENCE_GAP, 1)
        if faulty and self.rng.random() < 0.15:
            choices = ((Code.THROTTLED, 1), (Code.CONDITION_FAILED, 0), (Code.EPOCH_CHANGED, 2), (Code.CUT_OFF, 3))
            return refuse(*self.rng.choice(choices))
        ordered = not faulty or self.rng.random() < 0.95
        if ordered:
            self.sessions[session] = state
            state["offsets"][append.seq] = len(self.log)
            state["next"] += 1
            self.index += 1
            self.log += wire.split_entries(append.payload, append.entry_count)
        if (faulty and self.rng.random() < 0.05) or not ordered:
            return refuse(*self.rng.choice(((Code.INTERNAL, 0), (Code.INTERNAL, 1), (Code.CUT_OFF, 3))), outcome=2)
        return wire.Acked([(append.seq, state["offsets"][append.seq])])

    def forget(self):
        self.sessions.clear()
        self.forgotten_index = self.index


class Connection:
    def __init__(self, session):
        self.session = session
        self.inbox = []
        self.outbox = []


class Model:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.head = Head(self.rng)
        self.rate_per_s = seed % 2 * 20  # every other client is paced, so that most of its appends wait
        self.writer = Writer(Limits(), lambda: self.rng.getrandbits(64) or 1, pacing=Pacing(CHARGES, 4))
        self.connection = None
        self.abandoned = []
        self.now = 0.0
        self.calls = 0
        self.data = {}
        self.outcome = {}

    # The client's side.

    def append(self):
        self.calls += 1
        count = self.rng.choice((1, 1, 1, 3))
        entries = [b"%d.%d" % (self.calls, i) for i in range(count)]
        self.data[self.calls] = entries
        deadline = self.now + self.rng.choice((0.05, 0.5, 5.0))
        if count == 1 and self.rng.random() < 0.7:
            assert self.writer.append(self.calls, entries[0], deadline) is None
        else:
            assert self.writer.append_many(self.calls, entries, deadline) is None

    def execute(self, actions):
        for action in actions:
            if isinstance(action, Acked):
                offset = action.base_offset
                for call in action.calls:
                    self.book(call, offset)
                    offset += len(self.data[call])
            elif isinstance(action, Failed):
                for call in action.calls:
                    self.book(call, "unknown" if action.unknown else "refused")
            else:
                assert isinstance(action, Reroute)
                self.drop()

    def book(self, call, outcome):
        assert call not in self.outcome, f"call {call} ended twice"
        self.outcome[call] = outcome

    def send(self):
        if self.connection is not None:
            data = b"".join(self.writer.take_frames(self.now))
            self.connection.inbox += [wire.decode(f) for f in wire.FrameSplitter(1 << 24).feed(data)]

    def drop(self):
        if self.connection is None:
            return
        # The server may still read its buffers after the client is gone.
        self.abandoned.append(self.connection)
        self.connection = None
        self.writer.on_detached(Failure(Code.NO_CONNECTION))

    def attach(self):
        self.connection = Connection(self.writer.session)
        self.head.owner[self.writer.session] = self.connection
        next_seq = self.head.next_seq(self.writer.session)
        window = self.rng.choice((2, 8, 256))
        attached = wire.Attached(1, wire.Role.HEAD, 2, 1, window, self.head.index, next_seq, 0, 0, self.rate_per_s, "")
        self.execute(self.writer.on_attached(attached, 1))

    # The world's side.

    def deliver(self, connection, faulty):
        if connection.inbox:
            append = connection.inbox.pop(0)
            if not faulty or self.rng.random() < 0.98:
                connection.outbox.append(self.head.answer(connection, append, faulty))

    def answer(self):
        if self.connection is None or not self.connection.outbox:
            return
        message = self.connection.outbox.pop(0)
        if isinstance(message, wire.Acked):
            self.execute(self.writer.on_acked(message.acks))
        else:
            self.execute(self.writer.on_refused(message, self.now))

    def step(self):
        kind = self.rng.choices(
            ("append", "send", "deliver", "answer", "drop", "attach", "time", "zombie", "forget"),
            (20, 25, 40, 40, 2, 10, 15, 5, 0.3),
        )[0]
        if kind == "append":
            self.append()
        elif kind == "send":
            self.send()
        elif kind == "deliver" and self.connection is not None:
            self.deliver(self.connection, faulty=True)
        elif kind == "answer":
            self.answer()
        elif kind == "drop":
            self.drop()
        elif kind == "attach" and self.connection is None:
            self.attach()
        elif kind == "time":
            self.now += self.rng.choice((0.001, 0.02, 0.3))
            self.execute(self.writer.on_time(self.now))
        elif kind == "zombie" and self.abandoned:
            self.deliver(self.rng.choice(self.abandoned), faulty=True)
        elif kind == "forget":
            self.head.forget()

    def heal(self):
        for _ in range(20_000):
            if self.writer.idle():
                return
            if self.connection is None:
                self.attach()
            self.send()
            if self.connection is not None:
                self.deliver(self.connection, faulty=False)
            self.answer()
            self.now += 0.001
            self.execute(self.writer.on_time(self.now))
        raise AssertionError("it does not come to rest")

    def check(self):
        assert set(self.outcome) == set(self.data), "a call has no answer"
        positions = {}
        for offset, entry in enumerate(self.head.log):
            assert entry not in positions, f"{entry} is in the log twice"
            positions[entry] = offset
        for call, outcome in self.outcome.items():
            for index, entry in enumerate(self.data[call]):
                if outcome == "refused":
                    assert entry not in positions, f"{entry} was refused and is in the log"
                elif outcome != "unknown":
                    assert positions.get(entry) == outcome + index, f"{entry} is not at {outcome + index}"
        acked = [call for call, outcome in self.outcome.items() if isinstance(outcome, int)]
        by_offset = sorted(acked, key=lambda call: self.outcome[call])
        assert by_offset == sorted(acked), "appends were ordered otherwise than they were called"
        assert self.writer.pending_calls == self.writer.pending_bytes == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_exactly_once_whatever_happens(seed):
    model = Model(seed)
    for _ in range(STEPS):
        model.step()
    model.heal()
    model.check()


def test_the_model_reaches_every_outcome():
    """The faults are harsh enough to cause failures, and mild enough to leave successes."""
    outcomes = {"refused": 0, "unknown": 0, "acked": 0}
    sessions = 0
    for seed in range(40):
        model = Model(seed)
        for _ in range(STEPS):
            model.step()
        model.heal()
        for outcome in model.outcome.values():
            outcomes["acked" if isinstance(outcome, int) else outcome] += 1
        sessions += len(model.head.owner) > 1
    assert outcomes["acked"] > 500, outcomes
    assert min(outcomes.values()) > 100, outcomes
    assert sessions > 5
