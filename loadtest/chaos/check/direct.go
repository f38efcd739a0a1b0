package main

import (
	"fmt"
	"sort"
)

// Checks of the whole history, one for each property. Porcupine covers most of them together; these name the broken
// property and the operations that broke it.

// perCheckMax bounds the findings of one broken property.
const perCheckMax = 10

type violation struct {
	Check      string   `json:"check"`
	Message    string   `json:"message"`
	Operations []string `json:"operations"`
}

type findings struct {
	violations []violation
	counts     map[string]int
}

func (f *findings) add(check, message string, operations ...fmt.Stringer) {
	if f.counts == nil {
		f.counts = map[string]int{}
	}
	f.counts[check]++
	if f.counts[check] > perCheckMax {
		return
	}
	texts := []string{}
	for _, op := range operations {
		texts = append(texts, op.String())
	}
	f.violations = append(f.violations, violation{check, message, texts})
}

func checkDirectly(g *group, r *reference, found *findings) {
	checkReplicas(g, r, found)
	checkAppends(g, r, found)
	checkEntries(g, r, found)
	checkSessions(g, r, found)
	checkRealTime(g, r, found)
	checkConditions(g, r, found)
	checkReads(g, r, found)
	checkTails(g, found)
	checkEnds(g, r, found)
}

// Every replica gives the whole log, and all logs are equal.
func checkReplicas(g *group, r *reference, found *findings) {
	for _, log := range g.logs {
		if log.length() < log.end {
			found.add("every replica has everything",
				fmt.Sprintf("%s gave offsets up to %d of %d", log.from, log.length(), log.end), log)
		}
		for _, part := range log.runs {
			checkRun(part, r, "replicas agree", log, found)
		}
	}
}

func checkRun(part run, r *reference, check string, source fmt.Stringer, found *findings) {
	for i := range part.count {
		offset := part.offset + i
		if offset >= r.length() {
			found.add(check, fmt.Sprintf("offset %d was given and is not in the log, which %s ends at %d", offset, r.from,
				r.length()), source)
			return
		}
		if at := r.entries[offset]; at != (entry{part.client, part.number + i}) && at != nobody {
			found.add(check, fmt.Sprintf("offset %d was given as client %d's %d; the log of %s has client %d's %d there",
				offset, part.client, part.number+i, r.from, at.client, at.number), source)
			return
		}
	}
}

// No acked entry is lost or elsewhere, no refused one is there, and no batch is there in part.
func checkAppends(g *group, r *reference, found *findings) {
	for _, op := range g.appends {
		place, isThere := r.places[appendKey{op.client, op.number}]
		switch {
		case op.outcome == acked && !isThere:
			found.add("no acked entry lost", "an acknowledged append is not in the log", op)
		case op.outcome == acked && place != op.offset:
			found.add("acked at its offset", fmt.Sprintf("it is at %d", place), op)
		case op.outcome == refused && isThere:
			found.add("no refused entry present", fmt.Sprintf("a refused append is at %d", place), op)
		case isThere && !r.holds(op, place) && !r.isLost:
			found.add("batches are whole", fmt.Sprintf("only a part of it is at %d", place), op)
		}
	}
}

// Every entry was called by a client, and is there once.
func checkEntries(g *group, r *reference, found *findings) {
	called := map[uint64][]*appendOp{}
	for _, op := range g.appends {
		called[op.client] = append(called[op.client], op)
	}
	for _, ops := range called {
		sort.Slice(ops, func(i, j int) bool { return ops[i].number < ops[j].number })
	}
	seen := map[entry]uint64{}
	for offset, at := range r.entries {
		if at == nobody && r.isLost {
			continue
		}
		if first, isDouble := seen[at]; isDouble {
			found.add("no entry doubled", fmt.Sprintf("client %d's %d is at %d and at %d", at.client, at.number, first,
				offset))
			continue
		}
		seen[at] = uint64(offset)
		if owner(called[at.client], at.number) == nil {
			found.add("only appended entries", fmt.Sprintf("offset %d holds client %d's %d, which was never called",
				offset, at.client, at.number))
		}
	}
}

// owner finds the append that an entry belongs to, among one client's in order of their numbers.
func owner(ops []*appendOp, number uint64) *appendOp {
	i := sort.Search(len(ops), func(i int) bool { return ops[i].number > number })
	if i == 0 || number >= ops[i-1].number+ops[i-1].count {
		return nil
	}
	return ops[i-1]
}

// placed is an append in the log, with its place.
type placed struct {
	*appendOp
	place uint64
}

// inOrder gives the appends that are in the log, in the log's order.
func inOrder(g *group, r *reference) []placed {
	all := []placed{}
	for _, op := range g.appends {
		if place, isThere := r.places[appendKey{op.client, op.number}]; isThere && op.outcome != refused {
			all = append(all, placed{op, place})
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].place < all[j].place })
	return all
}

// A client's entries are in the order in which it called them.
func checkSessions(g *group, r *reference, found *findings) {
	last := map[uint64]placed{}
	for _, op := range inOrder(g, r) {
		if before, isThere := last[op.client]; isThere && before.number > op.number {
			found.add("a session's order", fmt.Sprintf("%d is at %d, %d only at %d", before.number, before.place,
				op.number, op.place), before.appendOp, op.appendOp)
		}
		last[op.client] = op
	}
}

// An append acknowledged before another was called stands before it.
func checkRealTime(g *group, r *reference, found *findings) {
	ops := inOrder(g, r)
	earliest := -1 // the later operation that returned first
	for i := len(ops) - 1; i >= 0; i-- {
		if earliest >= 0 && ops[earliest].ret < ops[i].call {
			found.add("real-time order", fmt.Sprintf("the one at %d had returned before the one at %d was called",
				ops[earliest].place, ops[i].place), ops[i].appendOp, ops[earliest].appendOp)
		}
		if earliest < 0 || ops[i].ret < ops[earliest].ret {
			earliest = i
		}
	}
}

// An expected offset was met, and no older fencing token comes behind a newer one.
func checkConditions(g *group, r *reference, found *findings) {
	var newest placed
	for _, op := range inOrder(g, r) {
		if op.expected != nil && *op.expected != op.place {
			found.add("expected offset", fmt.Sprintf("it is at %d", op.place), op.appendOp)
		}
		if op.token == 0 {
			continue
		}
		if newest.appendOp != nil && op.token < newest.token {
			found.add("fencing token", fmt.Sprintf("it is at %d, behind token %d at %d", op.place, newest.token,
				newest.place), newest.appendOp, op.appendOp)
		} else {
			newest = op
		}
	}
}

// Entries read are in the log, from the wanted offset on, and were called before that.
func checkReads(g *group, r *reference, found *findings) {
	calls := map[entry]int64{}
	for _, op := range g.appends {
		for i := range op.count {
			calls[entry{op.client, op.number + i}] = op.call
		}
	}
	for _, op := range g.reads {
		next := op.offset
		for _, part := range op.runs {
			if part.offset != next {
				found.add("reads are dense", fmt.Sprintf("offset %d came where %d was next", part.offset, next), op)
			}
			next = part.end()
			checkRun(part, r, "reads are of the log", op, found)
			for i := range part.count {
				if call, isCalled := calls[entry{part.client, part.number + i}]; !isCalled || call > op.ret {
					found.add("reads are of the log", fmt.Sprintf("offset %d was read before it was called", part.offset+i), op)
					break
				}
			}
		}
	}
}

// A tail gives every offset once, in order.
func checkTails(g *group, found *findings) {
	next := map[uint64]uint64{}
	for _, op := range g.reads {
		if op.sequence < 0 {
			continue
		}
		if want, isThere := next[op.client]; isThere && op.offset != want {
			found.add("a tail's order", fmt.Sprintf("page %d begins at %d, not at %d", op.sequence, op.offset, want), op)
		}
		next[op.client] = op.offset
		if len(op.runs) > 0 {
			next[op.client] = op.runs[len(op.runs)-1].end()
		}
	}
}

// No replica reported a commit offset beyond the log; a confirmed end was neither behind nor ahead.
func checkEnds(g *group, r *reference, found *findings) {
	ops := inOrder(g, r)
	for _, op := range g.ends {
		if op.end > r.length() {
			found.add("an end is of the log", fmt.Sprintf("the log of %s ends at %d", r.from, r.length()), op)
		}
		if !op.confirmed {
			continue
		}
		for _, other := range ops {
			if other.ret < op.call && other.place+other.count > op.end {
				found.add("a confirmed end is current", fmt.Sprintf("the one at %d had returned before", other.place), op,
					other.appendOp)
				break
			}
			if other.call > op.ret && other.place < op.end {
				found.add("a confirmed end is current", fmt.Sprintf("the one at %d was called later", other.place), op,
					other.appendOp)
				break
			}
		}
	}
}
