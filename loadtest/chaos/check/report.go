package main

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// groupReport is the report of one group's history. Times are milliseconds.
type groupReport struct {
	Group          string      `json:"group"`
	Clean          bool        `json:"clean"`
	IsLost         bool        `json:"is_lost"`
	Operations     int         `json:"operations"`
	Linearized     int         `json:"linearized"`
	Appends        int         `json:"appends"`
	Acked          int         `json:"acked"`
	Refused        int         `json:"refused"`
	Unknown        int         `json:"unknown"`
	UnknownInLog   int         `json:"unknown_in_log"`
	EntriesAcked   uint64      `json:"entries_acked"`
	EntriesInLog   uint64      `json:"entries_in_log"`
	Replicas       int         `json:"replicas"`
	Reads          int         `json:"reads"`
	Ends           int         `json:"ends"`
	ConfirmedEnds  int         `json:"confirmed_ends"`
	Unanswered     int         `json:"unanswered"`
	LongestGapMs   int64       `json:"longest_gap_ms"`
	LongestGapAtNs int64       `json:"longest_gap_at_ns"`
	Violations     []violation `json:"violations"`
	Picture        string      `json:"picture,omitempty"`
	// Codes counts appends that were not acknowledged, by outcome and code.
	Codes map[string]int `json:"codes"`
}

// judge checks one group's history.
func judge(g *group, isLost bool, timeout time.Duration, htmlFolder string) (*groupReport, error) {
	found := &findings{violations: []violation{}}
	r, err := refer(g, isLost, found)
	if err != nil {
		return nil, err
	}
	checkDirectly(g, r, found)
	report := &groupReport{Group: g.name, IsLost: isLost, Codes: map[string]int{}}
	report.Linearized, report.Picture = linearize(g, r, timeout, htmlFolder, found)
	report.count(g, r)
	report.Violations = found.violations
	report.Clean = len(found.violations) == 0
	return report, nil
}

// clientsPerLoad: each load of a history numbers its clients from another multiple of this.
const clientsPerLoad = 1000

func (r *groupReport) count(g *group, log *reference) {
	returns := map[uint64][]int64{} // by load: no append between two loads
	for _, op := range g.appends {
		switch op.outcome {
		case acked:
			r.Acked++
			r.EntriesAcked += op.count
			load := op.client / clientsPerLoad
			returns[load] = append(returns[load], op.ret)
			continue
		case refused:
			r.Refused++
		case unknown:
			r.Unknown++
			if _, isThere := log.places[appendKey{op.client, op.number}]; isThere {
				r.UnknownInLog++
			}
		}
		r.Codes[op.outcome.String()+" "+op.code]++
	}
	r.Appends, r.Reads, r.Ends, r.Unanswered = len(g.appends), len(g.reads), len(g.ends), g.failed
	for _, op := range g.ends {
		if op.confirmed {
			r.ConfirmedEnds++
		}
	}
	r.Operations = r.Appends + r.Reads + r.Ends + len(g.logs)
	r.Replicas, r.EntriesInLog = len(g.logs), log.length()
	for _, of := range returns {
		sort.Slice(of, func(i, j int) bool { return of[i] < of[j] })
		for i := 1; i < len(of); i++ {
			if gap := (of[i] - of[i-1]) / 1e6; gap > r.LongestGapMs {
				r.LongestGapMs, r.LongestGapAtNs = gap, of[i-1]
			}
		}
	}
}

func (r *groupReport) String() string {
	verdict := "clean"
	if !r.Clean {
		verdict = "NOT CLEAN"
	}
	if r.IsLost {
		verdict += ", lost"
	}
	text := fmt.Sprintf("%s: %s. %d operations, %d linearized; %d appends: %d acked, %d refused, %d unknown (%d of them in "+
		"the log); %d reads, %d queries of the end (%d confirmed), %d unanswered; %d replicas read back to %d; longest "+
		"time without an acknowledgement %d ms", r.Group, verdict, r.Operations, r.Linearized, r.Appends, r.Acked,
		r.Refused, r.Unknown, r.UnknownInLog, r.Reads, r.Ends, r.ConfirmedEnds, r.Unanswered, r.Replicas, r.EntriesInLog,
		r.LongestGapMs)
	lines := []string{text}
	for _, v := range r.Violations {
		lines = append(lines, fmt.Sprintf("  %s: %s", v.Check, v.Message))
		for _, op := range v.Operations {
			lines = append(lines, "    "+op)
		}
	}
	if r.Picture != "" {
		lines = append(lines, "  visualization: "+r.Picture)
	}
	return strings.Join(lines, "\n")
}
