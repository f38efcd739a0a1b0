package main

import (
	"fmt"
	"math"
	"path/filepath"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"
)

// operations is the history in porcupine's form.
//
// An append of unknown outcome that is in the log happened there, at some time after its call. An unknown append that
// is not in the log at the read-back has not happened by then, and constrains nothing: it is left out. So is a refused
// append whose refusal does not depend on the log. Nothing has to be guessed, and the search stays short. Unknown
// entries of a lost group are one append by no client, at any time.
func operations(g *group, r *reference) []porcupine.Operation {
	ops := []porcupine.Operation{}
	add := func(client uint64, input any, call, ret int64) {
		ops = append(ops, porcupine.Operation{ClientId: int(client), Input: input, Call: call, Return: ret})
	}
	for _, op := range g.appends {
		place, isThere := r.places[appendKey{op.client, op.number}]
		switch {
		case op.outcome == acked:
			add(op.client, appendInput{op, op.offset, true}, op.call, op.ret)
		case op.outcome == unknown && isThere:
			add(op.client, appendInput{op, place, true}, op.call, never)
		case op.outcome == refused && (op.code == codeConditionFailed || op.code == codeFenced):
			add(op.client, refusalInput{op}, op.call, op.ret)
		}
	}
	for _, op := range g.reads {
		if len(op.runs) > 0 {
			add(op.client, readInput{op, op.runs}, op.call, op.ret)
		}
	}
	for _, op := range g.ends {
		if op.confirmed {
			add(op.client, endInput{op, op.end}, op.call, op.ret)
		}
	}
	for _, log := range g.logs {
		add(0, readInput{log, log.runs}, log.at, log.at)
	}
	if r.isLost {
		addHoles(g, r, add)
	}
	sort.SliceStable(ops, func(i, j int) bool { return ops[i].Call < ops[j].Call })
	return ops
}

func addHoles(g *group, r *reference, add func(uint64, any, int64, int64)) {
	known := make([]bool, r.length())
	for _, op := range inOrder(g, r) {
		for i := range op.count {
			if op.place+i < r.length() {
				known[op.place+i] = true
			}
		}
	}
	for offset := 0; offset < len(known); offset++ {
		first := offset
		for offset < len(known) && !known[offset] {
			offset++
		}
		if offset > first {
			hole := &appendOp{client: unknownClient, number: uint64(first), count: uint64(offset - first),
				call: math.MinInt64, ret: never}
			add(0, appendInput{hole, uint64(first), true}, hole.call, hole.ret)
		}
	}
}

// linearize asks porcupine. A history that it cannot decide in time is not clean.
func linearize(g *group, r *reference, timeout time.Duration, htmlFolder string, found *findings) (int, string) {
	ops := operations(g, r)
	result := porcupine.CheckOperationsTimeout(model, ops, timeout)
	if result == porcupine.Ok {
		return len(ops), ""
	}
	// Again, for the explanation, which costs time and memory.
	_, info := porcupine.CheckOperationsVerbose(model, ops, timeout)
	message := "no order of the operations explains all answers"
	if result == porcupine.Unknown {
		message = fmt.Sprintf("porcupine could not decide within %s", timeout)
	}
	at := firstUnexplained(ops, info)
	found.add("linearizable", message, at...)
	if htmlFolder == "" {
		return len(ops), ""
	}
	path := filepath.Join(htmlFolder, "history-"+g.name+".html")
	if err := porcupine.VisualizePath(model, info, path); err != nil {
		found.add("linearizable", "the visualization could not be written: "+err.Error())
		return len(ops), ""
	}
	return len(ops), path
}

// firstUnexplained gives the operations outside the longest linearization that returned first.
func firstUnexplained(ops []porcupine.Operation, info porcupine.LinearizationInfo) []fmt.Stringer {
	longest := map[int]bool{}
	for _, partition := range info.PartialLinearizations() {
		for _, linearization := range partition {
			if len(linearization) > len(longest) {
				longest = map[int]bool{}
				for _, index := range linearization {
					longest[index] = true
				}
			}
		}
	}
	left := []porcupine.Operation{}
	for index, op := range ops {
		if !longest[index] && op.Return != never {
			left = append(left, op)
		}
	}
	sort.Slice(left, func(i, j int) bool { return left[i].Return < left[j].Return })
	texts := []fmt.Stringer{}
	for _, op := range left[:min(len(left), 3)] {
		texts = append(texts, described{model.DescribeOperation(op.Input, op.Output)})
	}
	return texts
}

type described struct{ text string }

func (d described) String() string { return d.text }
