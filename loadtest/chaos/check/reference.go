package main

import "fmt"

// entry is who wrote what stands at an offset.
type entry struct{ client, number uint64 }

// nobody: what stood there is not known. Only a lost group has such holes.
var nobody = entry{foreign, 0}

// reference is the log that the others are compared with: the longest that a replica gave at the end or, of a lost
// group, all that was ever acknowledged or read.
type reference struct {
	entries []entry // by offset
	from    string
	isLost  bool
	// places has the offset of every append of which the first entry is in the log.
	places map[appendKey]uint64
}

func (r *reference) length() uint64 { return uint64(len(r.entries)) }

// holds says whether an append stands whole at the offset.
func (r *reference) holds(op *appendOp, offset uint64) bool {
	if offset+op.count > r.length() {
		return false
	}
	for i := range op.count {
		if r.entries[offset+i] != (entry{op.client, op.number + i}) {
			return false
		}
	}
	return true
}

// refer builds the reference and reports what contradicts it among the sources it is built from.
func refer(g *group, isLost bool, found *findings) (*reference, error) {
	r := &reference{isLost: isLost, places: map[appendKey]uint64{}, from: "what was acknowledged and read"}
	if isLost {
		for _, op := range g.appends {
			if op.outcome == acked {
				r.put(run{op.offset, op.client, op.number, op.count}, op, found)
			}
		}
		for _, op := range g.reads {
			for _, part := range op.runs {
				r.put(part, op, found)
			}
		}
	} else {
		if len(g.logs) == 0 {
			return nil, fmt.Errorf("group %s: the history has no replica's log at its end, and the group is not said to be lost", g.name)
		}
		longest := g.logs[0]
		for _, log := range g.logs {
			if log.trim != 0 {
				return nil, fmt.Errorf("group %s: %s has trimmed up to %d; give the group more retention", g.name, log.from, log.trim)
			}
			if log.length() > longest.length() {
				longest = log
			}
		}
		r.from = longest.from
		for _, part := range longest.runs {
			if part.offset != r.length() {
				break // a gap: the checks of that replica's log say so
			}
			r.put(part, longest, found)
		}
	}
	for offset, at := range r.entries {
		key := appendKey{at.client, at.number}
		if _, isDoubled := r.places[key]; !isDoubled && at != nobody {
			r.places[key] = uint64(offset)
		}
	}
	return r, nil
}

func (r *reference) put(part run, source fmt.Stringer, found *findings) {
	for r.length() < part.end() {
		r.entries = append(r.entries, nobody)
	}
	for i := range part.count {
		at := &r.entries[part.offset+i]
		is := entry{part.client, part.number + i}
		if *at != nobody && *at != is {
			found.add("one entry per offset", fmt.Sprintf("offset %d holds client %d's %d and client %d's %d",
				part.offset+i, at.client, at.number, is.client, is.number), source)
			return
		}
		*at = is
	}
}
