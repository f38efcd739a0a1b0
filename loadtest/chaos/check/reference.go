package main

import "fmt"

// entry is the writer of an offset's entry.
type entry struct{ client, number uint64 }

// nobody marks an unknown entry. Only a lost group has such holes.
var nobody = entry{unknownClient, 0}

// reference is the log that the others are compared with: the longest log of a replica at the end. For a lost group it
// is all entries ever acknowledged or read.
type reference struct {
	entries []entry // by offset
	from    string
	isLost  bool
	// places has the offset of every append whose first entry is in the log.
	places map[appendKey]uint64
}

func (r *reference) length() uint64 { return uint64(len(r.entries)) }

// holds reports whether an append is whole at the offset.
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

// refer builds the reference and reports contradictions among its sources.
func refer(g *group, isLost bool, found *findings) (*reference, error) {
	r := &reference{isLost: isLost, places: map[appendKey]uint64{}, from: "acknowledgements and reads"}
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
			return nil, fmt.Errorf("group %s: the history has no replica's log at its end, and the group is not declared lost", g.name)
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
				break // a gap: the checks of that replica's log report it
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
