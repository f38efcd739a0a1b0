package main

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// The sequential specification: an ordered log.
//
// The state is the log itself, as an immutable list of batches that shares its beginning with the states before it.
// Every node also points far back (skew-binary jumps: Myers, "An applicative random-access stack", 1983), so that
// the batch at an offset is found in logarithmic time.
type logState struct {
	prev, jump *logState
	depth      uint64
	base, end  uint64
	client     uint64
	number     uint64
	token      uint64 // the greatest fencing token up to here
	hash       uint64 // hash of all batches up to here
}

func (s *logState) length() uint64 {
	if s == nil {
		return 0
	}
	return s.end
}

func (s *logState) greatestToken() uint64 {
	if s == nil {
		return 0
	}
	return s.token
}

func (s *logState) depthOf() uint64 {
	if s == nil {
		return 0
	}
	return s.depth
}

func (s *logState) push(client, number, count, token uint64) *logState {
	node := &logState{prev: s, depth: s.depthOf() + 1, base: s.length(), client: client, number: number}
	node.end = node.base + count
	node.token = max(token, s.greatestToken())
	var before uint64
	if s != nil {
		before = s.hash
		node.jump = s
		if s.jump != nil && s.depth-s.jump.depth == s.jump.depth-s.jump.jump.depthOf() {
			node.jump = s.jump.jump
		}
	}
	node.hash = mix(mix(mix(before, client), number), node.end)
	return node
}

// at is the batch that holds the offset; nil if the log is shorter.
func (s *logState) at(offset uint64) *logState {
	if offset >= s.length() {
		return nil
	}
	for s.base > offset {
		if s.jump != nil && s.jump.end > offset {
			s = s.jump
		} else {
			s = s.prev
		}
	}
	return s
}

// holds reports whether the log has these entries at these offsets.
func (s *logState) holds(r run) bool {
	for r.count > 0 {
		batch := s.at(r.offset)
		if batch == nil || batch.client != r.client || batch.number+(r.offset-batch.base) != r.number {
			return false
		}
		step := min(r.count, batch.end-r.offset)
		r.offset, r.number, r.count = r.offset+step, r.number+step, r.count-step
	}
	return true
}

// mix is splitmix64's finaliser over a running value.
func mix(hash, value uint64) uint64 {
	z := hash ^ (value + 0x9e3779b97f4a7c15 + hash<<6 + hash>>2)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Refusals that depend on the log; the head commits the entries that they depend on before it refuses.
const (
	codeConditionFailed = "condition_failed"
	codeFenced          = "fenced"
)

// Inputs of porcupine, one for each kind of operation. The answer is part of the input: the next operation depends on it.
type (
	// appendInput is a batch that is in the log, or may be.
	appendInput struct {
		op     *appendOp
		offset uint64
		// known: it is in the log at offset. Otherwise it may have happened at any time from its call on, or never.
		known bool
	}
	// readInput: these entries were committed. Further committed entries are no contradiction: a replica may lag.
	readInput struct {
		op   fmt.Stringer
		runs []run
	}
	// refusalInput: a condition that did not hold, by what was committed.
	refusalInput struct{ op *appendOp }
	// endInput: the log ended exactly here.
	endInput struct {
		op  fmt.Stringer
		end uint64
	}
)

func step(state, input, _ any) (bool, any) {
	log := state.(*logState)
	switch in := input.(type) {
	case appendInput:
		op := in.op
		if in.known && log.length() != in.offset {
			return false, state
		}
		if op.expected != nil && *op.expected != log.length() {
			return !in.known, state // it may never have happened
		}
		if op.token != 0 && op.token < log.greatestToken() {
			return !in.known, state
		}
		return true, log.push(op.client, op.number, op.count, op.token)
	case readInput:
		for _, r := range in.runs {
			if !log.holds(r) {
				return false, state
			}
		}
		return true, state
	case refusalInput:
		if in.op.code == codeFenced {
			return log.greatestToken() > in.op.token, state
		}
		return in.op.expected != nil && log.length() != *in.op.expected, state
	case endInput:
		return log.length() == in.end, state
	}
	panic(fmt.Sprintf("no operation: %T", input))
}

var model = porcupine.Model{
	Init: func() any { return (*logState)(nil) },
	Step: step,
	Equal: func(a, b any) bool {
		x, y := a.(*logState), b.(*logState)
		if x == y {
			return true
		}
		return x != nil && y != nil && x.hash == y.hash && x.end == y.end && x.depth == y.depth && x.token == y.token
	},
	Hash: func(state any) uint64 {
		if log := state.(*logState); log != nil {
			return log.hash
		}
		return 0
	},
	DescribeOperation: func(input, _ any) string {
		switch in := input.(type) {
		case appendInput:
			return in.op.String()
		case readInput:
			return in.op.String()
		case refusalInput:
			return in.op.String()
		case endInput:
			return in.op.String()
		}
		return ""
	},
	DescribeState: func(state any) string {
		log := state.(*logState)
		return fmt.Sprintf("length %d, token %d", log.length(), log.greatestToken())
	},
}
