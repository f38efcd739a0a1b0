package window

import (
	"bytes"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// event is a line that a client writes.
type event struct {
	Event   string  `json:"event"`
	Acked   int64   `json:"acked"`
	WindowS float64 `json:"window_s"`
	P50US   int64   `json:"p50_us"`
	P99US   int64   `json:"p99_us"`
}

// heard keeps all written lines, and calls back at each one.
type heard struct {
	sync.Mutex
	bytes.Buffer
	onLine func()
}

func (h *heard) Write(line []byte) (int, error) {
	h.Lock()
	defer h.Unlock()
	if h.onLine != nil {
		h.onLine()
	}
	return h.Buffer.Write(line)
}

func (h *heard) events(t *testing.T) []event {
	t.Helper()
	h.Lock()
	defer h.Unlock()
	var events []event
	for _, line := range bytes.Split(bytes.TrimSpace(h.Bytes()), []byte("\n")) {
		var one event
		if err := json.Unmarshal(line, &one); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, one)
	}
	return events
}

func TestMeterCountsWhatIsAcknowledgedBetweenOpeningAndClosing(t *testing.T) {
	said := &heard{}
	start := time.Unix(1_000, 0)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	m := newMeter(&Load{Warmup: time.Second, Window: 2 * time.Second, said: said}, start)
	for _, ack := range []struct {
		sent, now int
		isOver    bool
	}{
		{0, 10, false},
		{900, 999, false},     // warming up
		{1_045, 1_050, false}, // opens the window
		{1_060, 1_070, false},
		{1_080, 1_100, false},
		{2_000, 2_999, false},
		{3_010, 3_050, true}, // closes it
		{3_020, 3_060, true}, // on its way when it closed
	} {
		if isOver := m.acked(at(ack.sent), at(ack.now)); isOver != ack.isOver {
			t.Errorf("acknowledged at %d ms: over %v", ack.now, isOver)
		}
	}
	events := said.events(t)
	if len(events) != 2 || events[0].Event != "begin" || events[1].Event != "end" {
		t.Fatalf("said %+v", events)
	}
	end := events[1]
	if end.Acked != 4 || end.WindowS != 2.0 {
		t.Errorf("%d acknowledged in %v s, expected 4 in 2 s", end.Acked, end.WindowS)
	}
	if end.P50US < 9_900 || end.P50US > 10_100 || end.P99US < 998_000 || end.P99US > 1_000_000 {
		t.Errorf("latencies %d and %d µs", end.P50US, end.P99US)
	}
}

func TestTheEndIsSaidBeforeWhatIsOnItsWayIsWaitedFor(t *testing.T) {
	const outstanding = 8
	var inFlight, inFlightAtEnd, inFlightMax atomic.Int64
	said := &heard{}
	said.onLine = func() { inFlightAtEnd.Store(inFlight.Load()) }
	load := &Load{SizeBytes: 1, Outstanding: outstanding, Window: 20 * time.Millisecond, said: said}
	err := load.Loop(func() (func() error, error) {
		now := inFlight.Add(1)
		for seen := inFlightMax.Load(); now > seen && !inFlightMax.CompareAndSwap(seen, now); seen = inFlightMax.Load() {
		}
		return func() error {
			time.Sleep(time.Millisecond)
			inFlight.Add(-1)
			return nil
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if inFlightAtEnd.Load() < outstanding-1 {
		t.Errorf("%d were in flight when the end was said", inFlightAtEnd.Load())
	}
	if inFlight.Load() != 0 {
		t.Errorf("%d are still in flight after the loop", inFlight.Load())
	}
	if inFlightMax.Load() > outstanding {
		t.Errorf("%d were in flight, more than were asked for", inFlightMax.Load())
	}
}

func TestOneAtATime(t *testing.T) {
	said := &heard{}
	load := &Load{SizeBytes: 1, Outstanding: 1, Window: 20 * time.Millisecond, said: said}
	isWaiting := false
	err := load.Loop(func() (func() error, error) {
		if isWaiting {
			t.Fatal("sent while another request was in flight")
		}
		isWaiting = true
		return func() error {
			time.Sleep(time.Millisecond)
			isWaiting = false
			return nil
		}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if end := said.events(t)[1]; end.Acked < 1 || end.P50US < 1_000 {
		t.Errorf("said %+v", end)
	}
}

func TestWorkersEndBeforeTheyReturn(t *testing.T) {
	said := &heard{}
	load := &Load{SizeBytes: 1, Outstanding: 8, Window: 20 * time.Millisecond, said: said}
	var working atomic.Int64
	err := load.Workers(func(int) error {
		working.Add(1)
		defer working.Add(-1)
		time.Sleep(time.Millisecond)
		return nil
	})
	if err != nil || working.Load() != 0 {
		t.Errorf("%v, %d still work", err, working.Load())
	}
	if events := said.events(t); len(events) != 2 || events[1].Acked < 8 {
		t.Errorf("said %+v", events)
	}
}

func TestAFailureEndsTheLoad(t *testing.T) {
	broken := errors.New("broken")
	for name, run := range map[string]func(*Load) error{
		"sending": func(l *Load) error {
			return l.Loop(func() (func() error, error) { return nil, broken })
		},
		"waiting": func(l *Load) error {
			return l.Loop(func() (func() error, error) { return func() error { return broken }, nil })
		},
		"working": func(l *Load) error {
			return l.Workers(func(int) error { return broken })
		},
	} {
		for _, outstanding := range []int{1, 8} {
			load := &Load{SizeBytes: 1, Outstanding: outstanding, Window: time.Minute, said: &heard{}}
			if err := run(load); !errors.Is(err, broken) {
				t.Errorf("%s, %d outstanding: %v", name, outstanding, err)
			}
		}
	}
}

func TestLoadsAreRead(t *testing.T) {
	load, err := parse("16384 128 0.5 5")
	if err != nil || load.SizeBytes != 16384 || load.Outstanding != 128 ||
		load.Warmup != 500*time.Millisecond || load.Window != 5*time.Second {
		t.Errorf("%+v, %v", load, err)
	}
	for _, line := range []string{"", "64", "64 1 1 0", "64 0 1 1", "a b c d"} {
		if _, err := parse(line); err == nil {
			t.Errorf("%q was taken for a load", line)
		}
	}
}
