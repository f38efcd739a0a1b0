"""The session's state machine, event by event: its frames and decisions. No socket, no clock, no sleep."""

import itertools

from quorate import limits, wire
from quorate.codes import Code
from quorate.errors import Failure
from quorate.handle import Limits
from quorate.writer import Acked, Failed, Reroute, Writer

LOST = Failure(Code.NO_CONNECTION, "the connection was lost")


def make_writer(**kwargs):
    sessions = itertools.count(100)
    return Writer(Limits(**kwargs), lambda: next(sessions))


def attached(next_seq=1, epoch=1, role=wire.Role.HEAD, window=256, last_index=0, head="h:1"):
    return wire.Attached(epoch, role, 2, 1, window, last_index, next_seq, 0, 0, 5_000, head)


def refused(seq, code, retry, *, outcome=1, retry_after_ms=0, head=""):
    return wire.Refused(wire.Kind.APPEND, outcome, retry, code, retry_after_ms, seq, head, "")


def sent(writer, now=0.0):
    """The frames of take_frames: (seq, entries) of each batch."""
    frames = wire.FrameSplitter(1 << 24).feed(b"".join(writer.take_frames(now)))
    messages = [wire.decode(frame) for frame in frames]
    return [(m.seq, wire.split_entries(m.payload, m.entry_count)) for m in messages]


def append(writer, call, entry=b"x", deadline=10.0):
    assert writer.append(call, entry, deadline) is None


def alone(writer, call, entries, deadline=10.0, **options):
    assert writer.append_many(call, entries, deadline, **options) is None


def ready_writer(**kwargs):
    writer = make_writer()
    assert writer.on_attached(attached(**kwargs), 1) == []
    return writer


def test_appends_of_one_turn_share_a_batch_and_get_consecutive_offsets():
    writer = ready_writer()
    for call, entry in (("a", b"1"), ("b", b""), ("c", b"3")):
        append(writer, call, entry)
    assert sent(writer) == [(1, [b"1", b"", b"3"])]
    assert writer.on_acked([(1, 70)]) == [Acked(["a", "b", "c"], 70, 3, False)]
    assert writer.idle()
    assert (writer.pending_bytes, writer.pending_calls) == (0, 0)


def test_appends_with_one_deadline_share_a_batch_whatever_it_is():
    for deadline in (0.25, 0.5, 1_234.567, 40_000.1, 987_654.321):
        writer = ready_writer()
        for call in ("a", "b", "c"):
            append(writer, call, deadline=deadline)
        assert sent(writer) == [(1, [b"x", b"x", b"x"])], deadline


def test_fills_the_next_batch_while_enough_are_outstanding():
    writer = ready_writer()
    for number in range(limits.EAGER_BATCHES):
        append(writer, number)
        assert len(sent(writer)) == 1
    append(writer, "held")
    assert sent(writer) == []
    append(writer, "with it")
    writer.on_acked([(1, 0)])
    assert sent(writer) == [(limits.EAGER_BATCHES + 1, [b"x", b"x"])]


def test_a_full_batch_is_not_held_back():
    writer = ready_writer()
    for number in range(limits.EAGER_BATCHES):
        append(writer, number)
        sent(writer)
    append(writer, "large", b"y" * limits.EAGER_BATCH_BYTES)
    assert len(sent(writer)) == 1


def test_never_exceeds_the_window():
    writer = ready_writer(window=3)
    for number in range(10):
        alone(writer, number, [b"x"])
    assert [seq for seq, _ in sent(writer)] == [1, 2, 3]
    assert sent(writer) == []
    writer.on_acked([(1, 0), (2, 1)])
    assert [seq for seq, _ in sent(writer)] == [4, 5]


def test_bounds_the_bytes_in_flight():
    writer = ready_writer()
    for number in range(4):
        alone(writer, number, [b"x" * (1 << 20)] * 3)
    assert [seq for seq, _ in sent(writer)] == [1, 2]


def test_refuses_what_is_too_large_or_too_much_at_once():
    writer = make_writer(max_entry_bytes=10, max_batch_bytes=50, max_batch_entries=4)
    assert writer.append("a", b"x" * 11, 1.0).code == Code.ENTRY_TOO_LARGE
    assert writer.append_many("a", [b"x" * 11], 1.0).code == Code.ENTRY_TOO_LARGE
    assert writer.append_many("a", [b"x" * 10] * 4, 1.0).code == Code.BATCH_TOO_LARGE
    assert writer.append_many("a", [b""] * 5, 1.0).code == Code.BATCH_TOO_LARGE
    writer.pending_bytes = limits.PENDING_BYTES_MAX
    assert writer.append("a", b"", 1.0).code == Code.QUEUE_FULL
    assert writer.append_many("a", [b""], 1.0).code == Code.QUEUE_FULL


def test_sends_again_under_the_same_seq_after_a_lost_connection():
    writer = ready_writer()
    alone(writer, "a", [b"a"])
    alone(writer, "b", [b"b"])
    assert [seq for seq, _ in sent(writer)] == [1, 2]
    writer.on_detached(LOST)
    assert sent(writer) == []
    assert writer.on_attached(attached(next_seq=2), 1) == []
    assert sent(writer) == [(1, [b"a"]), (2, [b"b"])]
    assert [action.calls for action in writer.on_acked([(1, 0), (2, 1)])] == [["a"], ["b"]]


def test_the_floor_is_the_least_index_seen_in_the_session():
    writer = ready_writer(last_index=9)
    writer.on_detached(LOST)
    writer.on_attached(attached(last_index=7, role=wire.Role.FOLLOWER), 1)
    writer.on_attached(attached(last_index=12), 1)
    append(writer, "a")
    (frame,) = wire.FrameSplitter(1 << 20).feed(b"".join(writer.take_frames(0.0)))
    assert wire.decode(frame).floor_index == 7


def test_goes_back_after_a_refusal_and_waits_as_asked():
    writer = ready_writer()
    for call in "abc":
        alone(writer, call, [call.encode()])
    sent(writer)
    writer.on_refused(refused(2, Code.THROTTLED, 1, retry_after_ms=500), now=1.0)
    alone(writer, "d", [b"d"])
    assert sent(writer, 1.0) == []  # batch 3 has no answer yet
    writer.on_refused(refused(3, Code.SEQUENCE_GAP, 1), now=1.1)
    assert sent(writer, 1.4) == []
    assert writer.wake_at() == 1.5
    assert [action.calls for action in writer.on_acked([(1, 0)])] == [["a"]]
    assert sent(writer, 1.5) == [(2, [b"b"]), (3, [b"c"]), (4, [b"d"])]


def test_sends_nothing_again_before_each_later_batch_has_been_answered():
    """The head's queue was full for 1 and for 3 and accepted 2 between them, so 2's answer comes last."""
    writer = ready_writer()
    for call in "abc":
        alone(writer, call, [call.encode()])
    sent(writer)
    writer.on_refused(refused(1, Code.THROTTLED, 1, retry_after_ms=500), now=1.0)
    writer.on_refused(refused(3, Code.THROTTLED, 1, retry_after_ms=500), now=1.0)
    assert sent(writer, 9.0) == []
    writer.on_refused(refused(2, Code.SEQUENCE_GAP, 1), now=1.1)
    assert sent(writer, 9.0) == [(1, [b"a"]), (2, [b"b"]), (3, [b"c"])]


def test_a_batch_refused_for_good_gives_its_seq_to_the_next():
    writer = ready_writer()
    for call in "abc":
        alone(writer, call, [call.encode()])
    sent(writer)
    (failed,) = writer.on_refused(refused(1, Code.CONDITION_FAILED, 0), now=0.0)
    assert failed == Failed(["a"], Failure(Code.CONDITION_FAILED), unknown=False)
    writer.on_refused(refused(2, Code.SEQUENCE_GAP, 1), now=0.0)
    writer.on_refused(refused(3, Code.SEQUENCE_GAP, 1), now=0.0)
    assert sent(writer) == [(1, [b"b"]), (2, [b"c"])]


def test_a_connection_lost_while_going_back_forgets_nothing():
    writer = ready_writer()
    for call in "abc":
        alone(writer, call, [call.encode()])
    sent(writer)
    writer.on_refused(refused(1, Code.CONDITION_FAILED, 0), now=0.0)
    writer.on_detached(LOST)
    writer.on_attached(attached(next_seq=1), 1)
    assert sent(writer) == [(1, [b"b"]), (2, [b"c"])]


def test_an_unsent_append_that_is_late_did_not_happen():
    writer = make_writer()
    writer.reason = Failure(Code.NO_CONNECTION, "h:1: refused")
    append(writer, "a", deadline=1.0)
    assert writer.on_time(0.9) == []
    (failed,) = writer.on_time(writer.wake_at())
    assert (failed.calls, failed.unknown, failed.failure.code) == (["a"], False, Code.NO_CONNECTION)
    assert "h:1: refused" in failed.failure.message
    assert writer.wake_at() == float("inf")


def test_a_sent_append_that_is_late_is_unknown_and_keeps_its_seq():
    writer = ready_writer()
    alone(writer, "a", [b"a"], deadline=1.0)
    alone(writer, "b", [b"b"], deadline=9.0)
    sent(writer)
    (failed,) = writer.on_time(1.0)
    assert (failed.calls, failed.unknown) == (["a"], True)
    writer.on_detached(LOST)
    writer.on_attached(attached(next_seq=1), 1)
    assert sent(writer, 1.1) == [(1, [b"a"]), (2, [b"b"])]
    assert [action.calls for action in writer.on_acked([(1, 0), (2, 1)])] == [["b"]]
    assert writer.idle()


def test_what_the_head_says_it_does_not_have_is_no_longer_in_doubt():
    writer = ready_writer()
    alone(writer, "a", [b"a"])
    alone(writer, "b", [b"b"], deadline=1.0)
    alone(writer, "c", [b"c"])
    sent(writer)
    writer.on_detached(LOST)
    writer.on_attached(attached(next_seq=2), 1)
    (failed,) = writer.on_time(1.0)
    assert (failed.calls, failed.unknown) == (["b"], False)
    assert sent(writer, 1.0) == [(1, [b"a"]), (2, [b"c"])]


def test_a_head_that_forgot_a_session_does_not_clear_doubts():
    writer = ready_writer()
    alone(writer, "a", [b"a"], deadline=1.0)
    sent(writer)
    writer.on_detached(LOST)
    writer.on_attached(attached(next_seq=1), 1)  # an unknown session begins at 1 too
    (failed,) = writer.on_time(1.0)
    assert failed.unknown


def test_an_older_epoch_is_not_believed():
    writer = ready_writer(epoch=5)
    (reroute,) = writer.on_attached(attached(epoch=4), 1)
    assert reroute.to == "other"
    assert sent(writer) == []


def test_a_follower_names_the_head():
    writer = make_writer()
    append(writer, "a")
    (reroute,) = writer.on_attached(attached(role=wire.Role.TAIL, head="h:9"), 1)
    assert (reroute.to, reroute.address) == ("head", "h:9")


def test_a_notice_that_the_head_has_moved_is_followed():
    writer = ready_writer()
    (reroute,) = writer.on_notice(wire.Notice(2, wire.Role.FOLLOWER, 1, 7, "h:2"))
    assert (reroute.to, reroute.address) == ("head", "h:2")
    assert writer.on_notice(wire.Notice(3, wire.Role.HEAD, 2, 9, "h:1")) == []
    assert (writer.epoch, writer.rate_per_s) == (3, 9)


def test_a_head_that_was_another_in_between_is_asked_for_the_floor_anew():
    deposed, head = wire.Notice(2, wire.Role.FOLLOWER, 1, 7, "h:1"), wire.Notice(3, wire.Role.HEAD, 1, 7, "h:1")
    for notices, to in (([deposed, head], "head"), ([head], "again")):
        writer = make_writer()
        assert writer.on_attached(attached(last_index=100), 1) == []
        (reroute,) = [action for notice in notices for action in writer.on_notice(notice)]
        assert reroute.to == to
        append(writer, "a")
        assert writer.take_frames(0.0) == []  # the floor may be too high now
        writer.on_detached(Failure(Code.NO_CONNECTION))
        assert writer.on_attached(attached(epoch=3, last_index=50), 1) == []
        assert b"".join(writer.take_frames(0.0))[16 + 8 :][:8] == (50).to_bytes(8, "little")
        assert writer.on_notice(head._replace(epoch=4)) == []  # a head that stays head keeps its log


def test_an_expired_session_is_replaced_without_a_word_when_nothing_is_in_doubt():
    writer = ready_writer()
    alone(writer, "a", [b"a"])
    sent(writer)
    writer.on_acked([(1, 0)])
    alone(writer, "b", [b"b"])
    alone(writer, "c", [b"c"])
    sent(writer)
    first_session = writer.session
    (reroute,) = writer.on_refused(refused(2, Code.SESSION_EXPIRED, 0), now=0.0)
    assert reroute.to == "again"
    assert writer.session != first_session
    writer.on_detached(LOST)
    writer.on_attached(attached(next_seq=1), 1)
    assert sent(writer) == [(1, [b"b"]), (2, [b"c"])]


def test_an_expired_session_leaves_what_was_sent_before_unknown():
    writer = ready_writer()
    alone(writer, "a", [b"a"])
    sent(writer)
    writer.on_detached(LOST)
    alone(writer, "b", [b"b"])
    writer.on_attached(attached(next_seq=1), 1)
    sent(writer)
    failed, reroute = writer.on_refused(refused(1, Code.SESSION_EXPIRED, 0), now=0.0)
    assert (failed.calls, failed.unknown, failed.failure.code) == (["a"], True, Code.SESSION_EXPIRED)
    assert isinstance(reroute, Reroute)
    writer.on_detached(LOST)
    writer.on_attached(attached(next_seq=1), 1)
    assert sent(writer) == [(1, [b"b"])]


def test_answers_to_what_was_never_sent_end_the_connection():
    writer = ready_writer()
    append(writer, "a")
    sent(writer)
    assert isinstance(writer.on_acked([(5, 0)])[0], Reroute)
    assert isinstance(writer.on_refused(refused(5, Code.THROTTLED, 1), now=0.0)[0], Reroute)
    assert writer.on_acked([(1, 0)])[0].calls == ["a"]
    assert writer.on_acked([(1, 0)]) == []  # reported twice: harmless


def test_a_missing_answer_is_asked_for_again_on_a_new_connection():
    writer = ready_writer()
    for call in "ab":
        alone(writer, call, [call.encode()])
    sent(writer)
    acked, reroute = writer.on_acked([(2, 1)])
    assert acked.calls == ["b"]
    assert reroute.to == "again"


def test_a_session_given_up_for_a_ghost_leaves_what_is_on_its_way_unknown():
    writer = ready_writer()
    alone(writer, "a", [b"a"], deadline=1.0)
    sent(writer)
    now, session = 1.0, writer.session
    writer.on_time(now)
    for name in "bcdefghij":
        alone(writer, name, [b"x"], deadline=1e9)
        sent(writer, now)  # sent on this connection for the first time: unanswered, not in doubt
        now = writer.wake_at()
        actions = writer.on_time(now)
        if writer.session != session:
            break
        writer.on_detached(LOST)
        writer.on_attached(attached(next_seq=1), 1)
        sent(writer, now)
    assert writer.session != session
    failed = [action for action in actions if isinstance(action, Failed)]
    assert failed
    assert {(action.unknown, action.failure.code) for action in failed} == {(True, Code.NO_ANSWER)}
    writer.on_attached(attached(next_seq=1), 1)
    assert sent(writer, now) == [], "it may be in the log already"


def test_a_ghost_is_not_asked_after_for_ever():
    writer = ready_writer()
    alone(writer, "a", [b"a"], deadline=1.0)
    sent(writer)
    now, session, connections = 1.0, writer.session, 0
    writer.on_time(now)
    while writer.session == session:
        connections += 1
        assert connections < 20
        now = writer.wake_at()
        reroute = writer.on_time(now)[-1]
        assert reroute.to == "again"
        writer.on_detached(LOST)
        writer.on_attached(attached(next_seq=1), 1)
        sent(writer, now)
    assert writer.idle()


def test_a_new_session_begins_to_count_anew_how_often_a_ghost_was_asked_after():
    writer = ready_writer()
    now = 1.0

    def connections_until_given_up() -> int:
        nonlocal now
        alone(writer, "a", [b"a"], deadline=now)
        sent(writer, now)
        session, connections = writer.session, 0
        writer.on_time(now)
        while writer.session == session:
            connections += 1
            assert connections < 20
            now = writer.wake_at()
            writer.on_time(now)
            writer.on_detached(LOST)
            writer.on_attached(attached(next_seq=1), 1)
            sent(writer, now)
        return connections

    first = connections_until_given_up()
    assert first > 1
    assert connections_until_given_up() == first


def test_closing_tells_everybody():
    writer = ready_writer()
    alone(writer, "sent", [b"a"])
    sent(writer)
    writer.on_detached(LOST)
    append(writer, "queued")
    outcomes = {action.calls[0]: action.unknown for action in writer.fail_all(Failure(Code.CLIENT_CLOSED))}
    assert outcomes == {"sent": True, "queued": False}
    assert writer.pending_calls == writer.pending_bytes == 0


def test_appends_with_distant_deadlines_do_not_share_a_batch():
    writer = ready_writer()
    append(writer, "soon", deadline=1.0)
    append(writer, "later", deadline=9.0)
    append(writer, "soon again", deadline=1.0)
    assert len(sent(writer)) == 3


def test_the_first_trace_of_a_batch_travels():
    writer = ready_writer()
    append(writer, "a")
    writer.trace_last(b"t" * 25)
    append(writer, "b")
    writer.trace_last(b"u" * 25)
    (frame,) = wire.FrameSplitter(1 << 20).feed(b"".join(writer.take_frames(0.0)))
    assert frame.trace == b"t" * 25
