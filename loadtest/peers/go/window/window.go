// Package window is shared by the load clients of all peers written in Go. It has their loads, a closed loop of a fixed
// number of outstanding requests, and the window in which requests are counted.
//
// A client reads loads on stdin, one a line: "size outstanding warmup_s window_s". It writes {"event":"begin"} to stdout
// when the window begins, and {"event":"end", …} with its figures when it ends. The starter of the client reads the
// processor time of all processes at the same moments.
package window

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencyMaxUS is the longest latency that is distinguished from longer ones.
const latencyMaxUS = 120_000_000

// Load is a load to put on the servers.
type Load struct {
	SizeBytes   int
	Outstanding int
	Warmup      time.Duration
	Window      time.Duration
	said        io.Writer
}

// Serve runs the loads on stdin, one after another, until stdin ends.
func Serve(run func(*Load) error) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		load, err := parse(lines.Text())
		if err != nil {
			return err
		}
		if err := run(load); err != nil {
			return err
		}
	}
	return lines.Err()
}

func parse(line string) (*Load, error) {
	load := &Load{said: os.Stdout}
	var warmupS, windowS float64
	if _, err := fmt.Sscan(line, &load.SizeBytes, &load.Outstanding, &warmupS, &windowS); err != nil {
		return nil, fmt.Errorf("no load: %q: %w", line, err)
	}
	if load.SizeBytes < 1 || load.Outstanding < 1 || warmupS < 0 || windowS <= 0 {
		return nil, fmt.Errorf("no load: %q", line)
	}
	load.Warmup = time.Duration(warmupS * float64(time.Second))
	load.Window = time.Duration(windowS * float64(time.Second))
	return load, nil
}

// Payload is a request of the load's size.
func (l *Load) Payload() []byte {
	payload := make([]byte, l.SizeBytes)
	for i := range payload {
		payload[i] = byte('a' + i%26)
	}
	return payload
}

// Say writes one event for the starter of this process.
func (l *Load) Say(line map[string]any) {
	if err := json.NewEncoder(l.said).Encode(line); err != nil {
		panic(err)
	}
}

// Loop puts the load on the servers by send, which returns a function that waits for the request's acknowledgement. It
// keeps load.Outstanding requests in flight: one goroutine sends, another waits for the answers in the same order. It
// returns when every request is acknowledged.
func (l *Load) Loop(send func() (wait func() error, err error)) error {
	if l.Outstanding == 1 {
		return l.oneByOne(send)
	}
	type pending struct {
		wait func() error
		at   time.Time
	}
	// The receiver holds one more than the channel does.
	queue := make(chan pending, l.Outstanding-1)
	slots := make(chan struct{}, l.Outstanding)
	meter := newMeter(l, time.Now())
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
	return firstOf(failed)
}

func firstOf(failed <-chan error) error {
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// oneByOne uses no second goroutine: its wake-up would be counted as the peer's latency.
func (l *Load) oneByOne(send func() (wait func() error, err error)) error {
	meter := newMeter(l, time.Now())
	for {
		at := time.Now()
		wait, err := send()
		if err != nil {
			return err
		}
		if err := wait(); err != nil {
			return err
		}
		if meter.acked(at, time.Now()) {
			return nil
		}
	}
}

// Workers puts the load on the servers by one goroutine for each outstanding request, which calls do. It returns when
// all have ended.
func (l *Load) Workers(do func(worker int) error) error {
	type sample struct{ began, ended time.Time }
	samples := make(chan sample, 4*l.Outstanding)
	failed := make(chan error, l.Outstanding)
	var stopped atomic.Bool
	var working sync.WaitGroup
	for worker := range l.Outstanding {
		working.Go(func() {
			for !stopped.Load() {
				began := time.Now()
				if err := do(worker); err != nil {
					failed <- err
					return
				}
				samples <- sample{began, time.Now()}
			}
		})
	}
	go func() {
		working.Wait()
		close(samples)
	}()
	meter := newMeter(l, time.Now())
	for {
		select {
		case err := <-failed:
			return err
		case s, isOpen := <-samples:
			if !isOpen {
				return firstOf(failed)
			}
			if meter.acked(s.began, s.ended) {
				stopped.Store(true)
			}
		}
	}
}

// meter counts acknowledgements in the window, and reports when it begins and ends.
type meter struct {
	load       *Load
	begin, end time.Time
	opened     time.Time
	isClosed   bool
	count      int64
	latencyUS  *hdrhistogram.Histogram
}

func newMeter(l *Load, now time.Time) *meter {
	begin := now.Add(l.Warmup)
	return &meter{load: l, begin: begin, end: begin.Add(l.Window), latencyUS: hdrhistogram.New(1, latencyMaxUS, 3)}
}

// acked takes one acknowledgement; true: the window is over. The first one after its begin opens it and is counted. The
// first one after its end closes it and is not counted: the count is the number of spans between them.
func (m *meter) acked(sent, now time.Time) bool {
	if m.isClosed || now.Before(m.begin) {
		return m.isClosed
	}
	if m.opened.IsZero() {
		m.opened = now
		m.load.Say(map[string]any{"event": "begin"})
	}
	if !now.Before(m.end) {
		// At once: requests still on their way are waited for after the window, not in it.
		m.isClosed = true
		m.report(now)
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

func (m *meter) report(closed time.Time) {
	m.load.Say(map[string]any{
		"event": "end", "acked": m.count, "window_s": closed.Sub(m.opened).Seconds(),
		"p50_us": m.latencyUS.ValueAtQuantile(50), "p99_us": m.latencyUS.ValueAtQuantile(99),
		"p999_us": m.latencyUS.ValueAtQuantile(99.9),
	})
}
