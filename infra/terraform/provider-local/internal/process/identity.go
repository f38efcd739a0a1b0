package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Identity is one run of one process, unique on this machine even after a reboot. A pid alone does not identify a process,
// because the kernel uses it again.
type Identity struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
	BootID     string `json:"boot_id"`
}

const (
	fieldState = 0 // index in /proc/<pid>/stat after the command's name, which may hold spaces
	fieldStart = 19
)

// IdentityOf is the identity of the process that has this pid now.
func IdentityOf(pid int) (Identity, error) {
	state, start, err := statOf(pid)
	if err != nil {
		return Identity{}, err
	}
	if !runs(state) {
		return Identity{}, fmt.Errorf("process %d has ended", pid)
	}
	boot, err := bootID()
	return Identity{pid, start, boot}, err
}

// Alive: this process runs. An ended process that was not waited for does not run.
func (i Identity) Alive() bool {
	state, start, err := statOf(i.PID)
	if err != nil || start != i.StartTicks || !runs(state) {
		return false
	}
	boot, err := bootID()
	return err == nil && boot == i.BootID
}

// Signal reaches this process or none. The handle is taken before the start time is compared, so that a pid that is used
// again in between gets no signal.
func (i Identity) Signal(signal syscall.Signal) {
	if i.PID <= 0 {
		return
	}
	process, err := os.FindProcess(i.PID)
	if err != nil {
		return
	}
	defer func() { _ = process.Release() }()
	if i.Alive() {
		_ = process.Signal(signal)
	}
}

func runs(state string) bool { return state != "Z" && state != "X" && state != "x" }

func statOf(pid int) (state string, startTicks uint64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", 0, err
	}
	_, after, ok := strings.Cut(string(text[max(strings.LastIndexByte(string(text), ')'), 0):]), " ")
	fields := strings.Fields(after)
	if !ok || len(fields) <= fieldStart {
		return "", 0, fmt.Errorf("/proc/%d/stat is cut short", pid)
	}
	startTicks, err = strconv.ParseUint(fields[fieldStart], 10, 64)
	return fields[fieldState], startTicks, err
}

func bootID() (string, error) {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(text)), err
}
