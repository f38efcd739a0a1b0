package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// book writes a history, a line each. Times are in seconds.
type book struct {
	lines []string
	ends  map[string]bool
}

func (b *book) add(format string, arguments ...any) {
	b.lines = append(b.lines, fmt.Sprintf(format, arguments...))
}

func ns(s float64) int64 { return int64(s * 1e9) }

func (b *book) call(client, number, count int, at float64, more string) {
	b.add(`{"event":"append","group":"g","client":%d,"number":%d,"count":%d,"at":%d%s}`, client, number, count, ns(at), more)
}

func (b *book) end(client, number int, outcome string, at float64) {
	b.add(`{"event":"append_end","group":"g","client":%d,"number":%d,"at":%d,"outcome":%q,"code":"x"}`, client, number,
		ns(at), outcome)
}

func (b *book) refuse(client, number int, code string, at float64) {
	b.add(`{"event":"append_end","group":"g","client":%d,"number":%d,"at":%d,"outcome":"refused","code":%q}`, client, number,
		ns(at), code)
}

func (b *book) ack(client, number, offset int, at float64) {
	b.add(`{"event":"append_end","group":"g","client":%d,"number":%d,"at":%d,"outcome":"acked","offset":%d}`, client,
		number, ns(at), offset)
}

func (b *book) read(client, offset int, runs string, called, at float64) {
	b.add(`{"event":"read","group":"g","client":%d,"from":"s1","offset":%d,"called":%d,"at":%d,"runs":%s}`, client, offset,
		ns(called), ns(at), runs)
}

func (b *book) tail(sequence, offset int, runs string, at float64) {
	b.add(`{"event":"read","group":"g","client":99,"from":"tail","offset":%d,"called":%d,"at":%d,"runs":%s,"sequence":%d}`,
		offset, ns(at), ns(at), runs, sequence)
}

func (b *book) asked(end int, confirmed bool, called, at float64) {
	b.add(`{"event":"end","group":"g","client":98,"from":"s1","called":%d,"at":%d,"end":%d,"confirmed":%t,"role":"head","epoch":1}`,
		ns(called), ns(at), end, confirmed)
}

func (b *book) log(from string, end int, runs string) {
	b.add(`{"event":"log","group":"g","from":%q,"at":%d,"trim":0,"end":%d,"runs":%s}`, from, ns(100), end, runs)
}

func (b *book) judge(t *testing.T, isLost bool) *groupReport {
	t.Helper()
	groups, err := readHistory(strings.NewReader(strings.Join(b.lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	report, err := judge(groups["g"], isLost, 10*time.Second, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func (r *groupReport) found(check string) bool {
	for _, v := range r.Violations {
		if v.Check == check {
			return true
		}
	}
	return false
}

// sound is a history without a fault: three appends acknowledged, one refused, two unknown of which one happened.
func sound() *book {
	b := &book{}
	b.call(1, 0, 2, 1, "")
	b.ack(1, 0, 0, 2)
	b.call(1, 2, 1, 3, "")
	b.ack(1, 2, 2, 4)
	b.call(2, 0, 1, 5, `,"expected":3`)
	b.ack(2, 0, 3, 6)
	b.call(2, 1, 1, 6.5, `,"expected":3`)
	b.refuse(2, 1, codeConditionFailed, 7)
	b.call(3, 0, 1, 7, "")
	b.end(3, 0, "unknown", 8)
	b.call(3, 1, 1, 8.5, "")
	b.read(4, 1, "[[1,1,1,2]]", 4.5, 5)
	b.tail(0, 0, "[[0,1,0,2]]", 5)
	b.tail(1, 2, "[[2,1,2,1],[3,2,0,1]]", 9)
	b.asked(3, true, 4.2, 4.4)
	b.asked(1, false, 9, 9.5)
	return b
}

const soundLog = "[[0,1,0,3],[3,2,0,1],[4,3,0,1]]"

func TestSoundHistoryIsClean(t *testing.T) {
	b := sound()
	b.log("s1", 5, soundLog)
	b.log("s2", 5, soundLog)
	report := b.judge(t, false)
	if !report.Clean {
		t.Fatal(report)
	}
	if report.Acked != 3 || report.Refused != 1 || report.Unknown != 2 || report.UnknownInLog != 1 ||
		report.EntriesInLog != 5 || report.LongestGapMs != 2000 {
		t.Fatalf("miscounted: %+v", report)
	}
}

// bad is a history with one fault. byPorcupine: the model must reject it too, without the direct checks.
type bad struct {
	name, check string
	byPorcupine bool
	write       func(*book)
}

func logs(text string, end int) func(*book) {
	return func(b *book) {
		b.log("s1", end, text)
		b.log("s2", end, text)
	}
}

var bads = []bad{
	{"a lost ack", "no acked entry lost", false, logs("[[0,1,0,3]]", 3)},
	{"a lost ack overwritten", "no acked entry lost", true, logs("[[0,1,0,3],[3,3,0,1]]", 4)},
	{"a duplicate", "no entry doubled", true, logs("[[0,1,0,3],[3,2,0,1],[4,3,0,1],[5,2,0,1]]", 6)},
	{"a reorder of acked entries", "acked at its offset", true, logs("[[0,1,2,1],[1,1,0,2],[3,2,0,1],[4,3,0,1]]", 5)},
	{"a refused append present", "no refused entry present", true, logs("[[0,1,0,3],[3,2,0,1],[4,3,0,1],[5,2,1,1]]", 6)},
	{"a refused append read", "no refused entry present", true, func(b *book) {
		b.read(4, 4, "[[4,2,1,1]]", 9, 9.5)
		logs("[[0,1,0,3],[3,2,0,2],[5,3,0,1]]", 6)(b)
	}},
	{"a stale end, confirmed", "a confirmed end is current", true, func(b *book) {
		b.asked(2, true, 6.2, 6.4)
		logs(soundLog, 5)(b)
	}},
	{"an end ahead, confirmed", "a confirmed end is current", true, func(b *book) {
		b.asked(3, true, 2.2, 2.4)
		logs(soundLog, 5)(b)
	}},
	{"an end that never was", "an end is of the log", false, func(b *book) {
		b.asked(9, false, 9, 9.4)
		logs(soundLog, 5)(b)
	}},
	{"a read before the append", "reads are of the log", true, func(b *book) {
		b.read(4, 3, "[[3,2,0,1]]", 4, 4.5)
		logs(soundLog, 5)(b)
	}},
	{"a read of truncated entries", "reads are of the log", true, func(b *book) {
		b.read(4, 4, "[[4,3,1,1]]", 9, 9.5)
		logs(soundLog, 5)(b)
	}},
	{"a read with a hole", "reads are dense", false, func(b *book) {
		b.read(4, 0, "[[0,1,0,1],[2,1,2,1]]", 9, 9.5)
		logs(soundLog, 5)(b)
	}},
	{"a tail that skips", "a tail's order", false, func(b *book) {
		b.tail(2, 5, "[]", 9.5)
		logs(soundLog, 5)(b)
	}},
	{"a tail that repeats", "a tail's order", false, func(b *book) {
		b.tail(2, 3, "[[3,2,0,1]]", 9.5)
		logs(soundLog, 5)(b)
	}},
	{"a session's order broken", "a session's order", false, logs("[[0,1,0,3],[3,2,0,1],[4,3,1,1],[5,3,0,1]]", 6)},
	{"real time broken", "real-time order", true, func(b *book) {
		b.call(5, 0, 1, 10, "")
		b.ack(5, 0, 5, 11)
		b.call(6, 0, 1, 12, "")
		b.end(6, 0, "unknown", 13)
		logs("[[0,1,0,3],[3,2,0,1],[4,6,0,1],[5,5,0,1],[6,3,0,1]]", 7)(b)
	}},
	{"half a batch", "batches are whole", false, func(b *book) {
		b.call(7, 0, 3, 10, "")
		b.end(7, 0, "unknown", 11)
		logs("[[0,1,0,3],[3,2,0,1],[4,7,0,2]]", 6)(b)
	}},
	{"an entry that no client called", "only appended entries", true, logs("[[0,1,0,3],[3,2,0,1],[4,8,0,1]]", 5)},
	{"an expected offset missed", "expected offset", true, func(b *book) {
		b.call(5, 0, 1, 10, `,"expected":4`)
		b.ack(5, 0, 5, 11)
		logs("[[0,1,0,3],[3,2,0,1],[4,3,0,1],[5,5,0,1]]", 6)(b)
	}},
	{"an old fencing token", "fencing token", true, func(b *book) {
		b.call(5, 0, 1, 10, `,"token":7`)
		b.ack(5, 0, 5, 11)
		b.call(5, 1, 1, 12, `,"token":6`)
		b.ack(5, 1, 6, 13)
		logs("[[0,1,0,3],[3,2,0,1],[4,3,0,1],[5,5,0,2]]", 7)(b)
	}},
	{"replicas that differ", "replicas agree", true, func(b *book) {
		b.log("s1", 5, soundLog)
		b.log("s2", 5, "[[0,1,0,3],[3,2,0,1],[4,3,1,1]]")
	}},
	{"a replica with a shorter log", "every replica has everything", false, func(b *book) {
		b.log("s1", 5, soundLog)
		b.log("s2", 5, "[[0,1,0,3],[3,2,0,1]]")
	}},
	{"a condition that held refused", "linearizable", true, func(b *book) {
		b.call(5, 0, 1, 2.2, `,"expected":2`)
		b.refuse(5, 0, codeConditionFailed, 2.4)
		logs(soundLog, 5)(b)
	}},
	{"a token fenced by no other", "linearizable", true, func(b *book) {
		b.call(5, 0, 1, 2.2, `,"token":7`)
		b.refuse(5, 0, codeFenced, 2.4)
		logs(soundLog, 5)(b)
	}},
	{"a token fenced by a later one", "linearizable", true, func(b *book) {
		b.call(5, 0, 1, 2.2, `,"token":7`)
		b.refuse(5, 0, codeFenced, 2.4)
		b.call(5, 1, 1, 10, `,"token":8`)
		b.ack(5, 1, 5, 11)
		logs("[[0,1,0,3],[3,2,0,1],[4,3,0,1],[5,5,1,1]]", 6)(b)
	}},
	{"two acks at one offset", "linearizable", true, func(b *book) {
		b.call(5, 0, 1, 10, "")
		b.ack(5, 0, 3, 11)
		logs(soundLog, 5)(b)
	}},
}

func TestEveryBadHistoryIsRejected(t *testing.T) {
	for _, bad := range bads {
		t.Run(bad.name, func(t *testing.T) {
			b := sound()
			bad.write(b)
			report := b.judge(t, false)
			if report.Clean || !report.found(bad.check) {
				t.Fatalf("%q was not found: %v", bad.check, report)
			}
			if report.found("linearizable") != bad.byPorcupine {
				t.Fatalf("by porcupine: %v, expected %v\n%v", report.found("linearizable"), bad.byPorcupine, report)
			}
			if !bad.byPorcupine {
				return
			}
			if text, err := os.ReadFile(report.Picture); err != nil || !strings.Contains(string(text), "<html") {
				t.Fatalf("no visualization: %v", err)
			}
		})
	}
}

func TestALostGroupMustNotContradictItself(t *testing.T) {
	b := sound()
	if report := b.judge(t, true); !report.Clean || !report.IsLost {
		t.Fatal(report)
	}
	b.read(4, 7, "[[7,3,1,1]]", 9, 9.5) // the entries at 4 to 6 are unknown
	if report := b.judge(t, true); !report.Clean {
		t.Fatal(report)
	}
	b.read(4, 3, "[[3,3,0,1]]", 9, 9.5)
	if report := b.judge(t, true); report.Clean || !report.found("one entry per offset") {
		t.Fatal(report)
	}
}

func TestAGroupWithoutItsLogsIsNotJudged(t *testing.T) {
	groups, err := readHistory(strings.NewReader(strings.Join(sound().lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := judge(groups["g"], false, time.Second, ""); err == nil {
		t.Fatal("judged without logs")
	}
}

func TestOnlyTheLastLineMayBeTorn(t *testing.T) {
	lines := sound().lines
	torn := strings.Join(append(lines, `{"event":"app`), "\n")
	if groups, err := readHistory(strings.NewReader(torn)); err != nil || len(groups["g"].appends) != 6 {
		t.Fatal(groups, err)
	}
	for _, wrong := range []string{
		"{\"event\":\"app\n" + lines[0],
		lines[0] + "\n" + lines[0],
		lines[1],
		`{"event":"nothing","group":"g"}`,
		lines[0] + "\n" + strings.Replace(lines[1], "acked", "great", 1),
	} {
		if _, err := readHistory(strings.NewReader(wrong)); err == nil {
			t.Errorf("taken: %s", wrong)
		}
	}
}

func TestTheModelFindsBatchesAtAnyOffset(t *testing.T) {
	var log *logState
	for i := range uint64(1_000) {
		log = log.push(i%3, i*10, 1+i%4, 0)
	}
	for offset := range log.length() {
		batch := log.at(offset)
		if offset < batch.base || offset >= batch.end {
			t.Fatalf("%d is not in %d..%d", offset, batch.base, batch.end)
		}
		if !log.holds(run{offset, batch.client, batch.number + offset - batch.base, 1}) {
			t.Fatalf("%d is not held", offset)
		}
	}
	if log.at(log.length()) != nil || log.holds(run{0, 0, 1, 1}) {
		t.Fatal("the log holds what it does not")
	}
}

func TestAnUnknownAppendMayHappenAtAnyTimeOrNever(t *testing.T) {
	op := &appendOp{client: 1, count: 2, call: 1, ret: never}
	for _, state := range []*logState{nil, (*logState)(nil).push(2, 0, 5, 0)} {
		isTaken, after := step(state, appendInput{op, 0, false}, nil)
		if !isTaken || after.(*logState).length() != state.length()+2 {
			t.Fatal("it may happen here")
		}
	}
	expected := uint64(3)
	op.expected = &expected
	if isTaken, after := step((*logState)(nil), appendInput{op, 0, false}, nil); !isTaken || after.(*logState) != nil {
		t.Fatal("its condition is not met: it never happened")
	}
}

func TestALongHistoryIsJudgedInTime(t *testing.T) {
	b := &book{}
	const count = 10_000
	for i := range count { // sixteen at a time, of two clients
		b.call(i%2, i/2, 1, float64(i)/100, "")
	}
	for i := range count {
		b.ack(i%2, i/2, i, float64(i)/100+0.16)
		b.asked(i+1, true, float64(i)/100, float64(i)/100+0.16)
	}
	text := []string{}
	for i := range count {
		text = append(text, fmt.Sprintf("[%d,%d,%d,1]", i, i%2, i/2))
	}
	b.log("s1", count, "["+strings.Join(text, ",")+"]")
	begun := time.Now()
	if report := b.judge(t, false); !report.Clean {
		t.Fatal(report)
	}
	if took := time.Since(begun); took > 20*time.Second {
		t.Fatalf("it took %s", took)
	}
}
