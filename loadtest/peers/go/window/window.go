// Package window is what the load clients of all peers written in Go have in common: flags, a closed loop of a
// fixed number of outstanding requests, and the window in which requests are counted.
//
// The client says {"event":"begin"} on stdout when the window begins and {"event":"end", …} with its figures when
// it ends, so that whoever started it can read the processor time of all processes at the same moments.
package window

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencyMaxUS is the longest latency told from longer ones.
const latencyMaxUS = 120_000_000

// Load is what to put on the servers.
type Load struct {
	SizeBytes   int
	Outstanding int
	Warmup      time.Duration
	Window      time.Duration
}

// Flags registers the load's flags; read it after flag.Parse.
func Flags() *Load {
	load := &Load{}
	flag.IntVar(&load.SizeBytes, "size", 64, "bytes of each request")
	flag.IntVar(&load.Outstanding, "outstanding", 1024, "requests in flight")
	flag.DurationVar(&load.Warmup, "warmup", 2*time.Second, "time before the window")
	flag.DurationVar(&load.Window, "window", 5*time.Second, "time in which requests are counted")
	return load
}

// Payload is a request of the load's size.
func (l *Load) Payload() []byte {
	payload := make([]byte, l.SizeBytes)
	for i := range payload {
		payload[i] = byte('a' + i%26)
	}
	return payload
}

// Loop puts the load on the servers by send, which returns what waits for the request's acknowledgement. It keeps
// load.Outstanding requests in flight: one goroutine sends, another waits for the answers in the same order.
func (l *Load) Loop(send func() (wait func() error, err error)) error {
	type pending struct {
		wait func() error
		at   time.Time
	}
	// The receiver holds one more than the channel does.
	queue := make(chan pending, max(l.Outstanding-1, 0))
	slots := make(chan struct{}, l.Outstanding)
	meter := newMeter(l)
	var stopped atomic.Bool
	failed := make(chan error, 1)
	go func() {
		defer close(queue)
		for !stopped.Load() {
			slots <- struct{}{}
			at := time.Now()
			wait, err := send()
			if err != nil {
				failed <- err
				return
			}
			queue <- pending{wait, at}
		}
	}()
	for p := range queue {
		if err := p.wait(); err != nil {
			return err
		}
		<-slots
		if meter.acked(p.at, time.Now()) {
			stopped.Store(true)
		}
	}
	select {
	case err := <-failed:
		return err
	default:
		return meter.report()
	}
}

// Workers puts the load on the servers by one goroutine for each outstanding request, each of which calls do.
func (l *Load) Workers(do func(worker int) error) error {
	type sample struct{ began, ended time.Time }
	samples := make(chan sample, 4*l.Outstanding)
	failed := make(chan error, l.Outstanding)
	var stopped atomic.Bool
	for worker := range l.Outstanding {
		go func() {
			for !stopped.Load() {
				began := time.Now()
				if err := do(worker); err != nil {
					failed <- err
					return
				}
				samples <- sample{began, time.Now()}
			}
		}()
	}
	meter := newMeter(l)
	for {
		select {
		case err := <-failed:
			return err
		case s := <-samples:
			if meter.acked(s.began, s.ended) {
				stopped.Store(true)
				return meter.report()
			}
		}
	}
}

type meter struct {
	begin, end time.Time
	isOpen     bool
	opened     time.Time
	closed     time.Time
	count      int64
	latencyUS  *hdrhistogram.Histogram
}

func newMeter(l *Load) *meter {
	begin := time.Now().Add(l.Warmup)
	return &meter{begin: begin, end: begin.Add(l.Window), latencyUS: hdrhistogram.New(1, latencyMaxUS, 3)}
}

// acked counts one acknowledgement; true: the window is over.
func (m *meter) acked(sent, now time.Time) bool {
	if now.Before(m.begin) {
		return false
	}
	if !m.isOpen {
		m.isOpen, m.opened = true, now
		say(map[string]any{"event": "begin"})
	}
	if !now.Before(m.end) {
		if m.closed.IsZero() {
			m.closed = now
		}
		return true
	}
	m.count++
	// Clamped to the histogram's bounds, so that recording cannot fail.
	us := min(max(now.Sub(sent).Microseconds(), 1), latencyMaxUS)
	if err := m.latencyUS.RecordValue(us); err != nil {
		panic(err)
	}
	return false
}

func (m *meter) report() error {
	if m.closed.IsZero() {
		return fmt.Errorf("the load ended before its window did")
	}
	say(map[string]any{
		"event": "end", "acked": m.count, "window_s": m.closed.Sub(m.opened).Seconds(),
		"p50_us": m.latencyUS.ValueAtQuantile(50), "p99_us": m.latencyUS.ValueAtQuantile(99),
		"p999_us": m.latencyUS.ValueAtQuantile(99.9),
	})
	return nil
}

func say(line map[string]any) {
	if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
		panic(err)
	}
}
