// quorate-chaos-check judges a history recorded by quorate-load. Is there an order in which all its operations could
// have happened one after another on one log? Did every property hold? The checks and their limits are in
// docs/internals/chaos.md.
//
// Exit code 0: clean. 1: not. 2: it could not judge.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	lost := flag.String("lost", "", "names of groups that lost all their replicas, with commas between: their "+
		"acknowledged entries are gone, but must not have contradicted one another")
	pictures := flag.String("pictures", "", "folder for porcupine's visualization of a history that is not linearizable")
	out := flag.String("json", "", "write the report to this file too")
	timeout := flag.Duration("timeout", time.Minute, "longest time of porcupine's search for each group")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: quorate-chaos-check [flags] HISTORY.jsonl")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	isClean, err := judgeFile(flag.Arg(0), split(*lost), *pictures, *out, *timeout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "quorate-chaos-check:", err)
		os.Exit(2)
	}
	if !isClean {
		os.Exit(1)
	}
}

func split(names string) []string {
	return slices.DeleteFunc(strings.Split(names, ","), func(name string) bool { return name == "" })
}

func judgeFile(path string, lost []string, pictures, out string, timeout time.Duration) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer file.Close()
	groups, err := readHistory(file)
	if err != nil {
		return false, fmt.Errorf("%s: %w", path, err)
	}
	if len(groups) == 0 {
		return false, fmt.Errorf("%s is empty", path)
	}
	names := []string{}
	for name := range groups {
		names = append(names, name)
	}
	slices.Sort(names)
	reports, isClean := []*groupReport{}, true
	for _, name := range names {
		report, err := judge(groups[name], slices.Contains(lost, name), timeout, pictures)
		if err != nil {
			return false, err
		}
		fmt.Println(report)
		reports = append(reports, report)
		isClean = isClean && report.Clean
	}
	if out == "" {
		return isClean, nil
	}
	text, err := json.MarshalIndent(reports, "", " ")
	if err != nil {
		return false, err
	}
	return isClean, os.WriteFile(out, append(text, '\n'), 0o644)
}
