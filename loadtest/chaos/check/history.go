package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"sort"
)

// never is later than everything: when an operation of unknown outcome may have ended.
const never = int64(math.MaxInt64)

// lineBytesMax bounds a line: a replica's whole log is one.
const lineBytesMax = 256 << 20

// unknownClient is the client of an entry that no client of the history wrote.
const unknownClient = uint64(math.MaxUint64)

type outcome int

const (
	unknown outcome = iota // it has no end on record, or ended as unknown
	acked
	refused
)

func (o outcome) String() string { return [...]string{"unknown", "acked", "refused"}[o] }

// run is consecutive entries of one client at consecutive offsets.
type run struct {
	offset, client, number, count uint64
}

func (r *run) UnmarshalJSON(text []byte) error {
	var parts [4]uint64
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	*r = run{parts[0], parts[1], parts[2], parts[3]}
	return nil
}

func (r run) end() uint64 { return r.offset + r.count }

func (r run) String() string {
	return fmt.Sprintf("%d..%d = client %d's %d..%d", r.offset, r.end(), r.client, r.number, r.number+r.count)
}

// appendOp is one batch: count entries, numbered from number on by their client.
type appendOp struct {
	client, number, count uint64
	expected              *uint64
	token                 uint64
	outcome               outcome
	code                  string
	offset                uint64 // the acknowledged offset
	call, ret             int64  // nanoseconds; ret is never, unless it was answered
}

func (a *appendOp) String() string {
	text := fmt.Sprintf("client %d's append of %d..%d, %s", a.client, a.number, a.number+a.count, a.outcome)
	if a.outcome == acked {
		text += fmt.Sprintf(" at %d", a.offset)
	}
	if a.code != "" {
		text += " (" + a.code + ")"
	}
	if a.expected != nil {
		text += fmt.Sprintf(", expected %d", *a.expected)
	}
	if a.token != 0 {
		text += fmt.Sprintf(", token %d", a.token)
	}
	return text + times(a.call, a.ret)
}

// readOp is one replica's answer from an offset on; sequence is its place in a tail, -1 for a single read.
type readOp struct {
	client    uint64
	from      string
	offset    uint64
	runs      []run
	sequence  int64
	call, ret int64
}

func (r *readOp) String() string {
	what := "read"
	if r.sequence >= 0 {
		what = "tail"
	}
	return fmt.Sprintf("client %d's %s from %s at %d: %v", r.client, what, r.from, r.offset, r.runs) + times(r.call, r.ret)
}

// endOp is an answer to a query of the log's end; only a confirmed one was current.
type endOp struct {
	client    uint64
	from      string
	end       uint64
	confirmed bool
	role      string
	epoch     uint64
	call, ret int64
}

func (e *endOp) String() string {
	word := "one replica's view of the log's end"
	if e.confirmed {
		word = "the confirmed end of the log"
	}
	return fmt.Sprintf("client %d's query: %s is %d (%s, epoch %d)", e.client, word, e.end, e.role, e.epoch) +
		times(e.call, e.ret)
}

// replicaLog is everything that one replica holds at the end.
type replicaLog struct {
	from      string
	trim, end uint64 // end: the end that it should reach
	runs      []run
	at        int64
}

func (r *replicaLog) String() string {
	return fmt.Sprintf("%s's log at the end, to %d", r.from, r.length()) + times(r.at, r.at)
}

// length is the end of its entries without a gap.
func (r *replicaLog) length() uint64 {
	next := r.trim
	for _, run := range r.runs {
		if run.offset != next {
			break
		}
		next = run.end()
	}
	return next
}

// group is the history of one group. Groups are independent: that is porcupine's partition.
type group struct {
	name    string
	appends []*appendOp
	reads   []*readOp
	ends    []*endOp
	logs    []*replicaLog
	failed  int // reads, tails and queries without an answer
}

func times(call, ret int64) string {
	if ret == never {
		return fmt.Sprintf(" [%.6f s, –]", float64(call)/1e9)
	}
	return fmt.Sprintf(" [%.6f s, %.6f s]", float64(call)/1e9, float64(ret)/1e9)
}

type line struct {
	Event, Group, From, Outcome, Code, Role, What string
	Client, Number, Count, Token, Epoch, Trim     uint64
	Expected, Sequence                            *uint64
	Offset, End                                   uint64
	Called, At                                    int64
	Confirmed                                     bool
	Runs                                          []run
}

type appendKey struct{ client, number uint64 }

// readHistory reads a history of quorate-load. The last line may be torn if the writer was killed.
func readHistory(in io.Reader) (map[string]*group, error) {
	groups := map[string]*group{}
	open := map[string]map[appendKey]*appendOp{}
	scanner := bufio.NewScanner(in)
	scanner.Buffer(make([]byte, 1<<20), lineBytesMax)
	torn := 0
	for number := 1; scanner.Scan(); number++ {
		if torn > 0 {
			return nil, fmt.Errorf("line %d is no operation", torn)
		}
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			torn = number
			continue
		}
		g := groups[l.Group]
		if g == nil {
			g = &group{name: l.Group}
			groups[l.Group] = g
			open[l.Group] = map[appendKey]*appendOp{}
		}
		if err := g.take(&l, open[l.Group]); err != nil {
			return nil, fmt.Errorf("line %d: %w", number, err)
		}
	}
	for _, g := range groups {
		sort.SliceStable(g.appends, func(i, j int) bool { return g.appends[i].call < g.appends[j].call })
	}
	return groups, scanner.Err()
}

func (g *group) take(l *line, open map[appendKey]*appendOp) error {
	key := appendKey{l.Client, l.Number}
	switch l.Event {
	case "append":
		if open[key] != nil || l.Count == 0 {
			return fmt.Errorf("client %d called %d twice, or nothing", l.Client, l.Number)
		}
		op := &appendOp{client: l.Client, number: l.Number, count: l.Count, expected: l.Expected, token: l.Token,
			call: l.At, ret: never}
		open[key] = op
		g.appends = append(g.appends, op)
	case "append_end":
		op := open[key]
		if op == nil || op.ret != never {
			return fmt.Errorf("an end of client %d's %d, which is not open", l.Client, l.Number)
		}
		op.code = l.Code
		switch l.Outcome {
		case "acked":
			op.outcome, op.offset, op.ret = acked, l.Offset, l.At
		case "refused":
			op.outcome, op.ret = refused, l.At
		case "unknown":
		default:
			return fmt.Errorf("outcome %q", l.Outcome)
		}
	case "read":
		op := &readOp{client: l.Client, from: l.From, offset: l.Offset, runs: l.Runs, sequence: -1,
			call: l.Called, ret: l.At}
		if l.Sequence != nil {
			op.sequence = int64(*l.Sequence)
		}
		g.reads = append(g.reads, op)
	case "end":
		g.ends = append(g.ends, &endOp{client: l.Client, from: l.From, end: l.End, confirmed: l.Confirmed,
			role: l.Role, epoch: l.Epoch, call: l.Called, ret: l.At})
	case "log":
		g.logs = append(g.logs, &replicaLog{from: l.From, trim: l.Trim, end: l.End, runs: l.Runs, at: l.At})
	case "failed":
		g.failed++
	default:
		return fmt.Errorf("event %q", l.Event)
	}
	return nil
}
