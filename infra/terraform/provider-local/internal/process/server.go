package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"time"
)

const (
	pollEvery   = 50 * time.Millisecond
	killWait    = 5 * time.Second // bound on a killed process's end
	logTailSize = 1500
)

// Running is a server that runs and has joined.
type Running struct {
	PID     int
	Address string
}

// Taken: another server than the requested one runs in the folder.
type Taken struct{ Folder Folder }

func (t *Taken) Error() string {
	return fmt.Sprintf("a server that was started with other arguments runs in %s", t.Folder)
}

// NotReady: the server was started and did not join.
type NotReady struct {
	Why string
	Log string // its last lines
}

func (n *NotReady) Error() string { return n.Why }

// Interrupted: the caller stopped waiting for the server.
type Interrupted struct {
	Runs  bool // it ran before, as requested, and continues
	Known bool // it has joined before: its disk is unchanged
}

func (i *Interrupted) Error() string {
	switch {
	case i.Runs:
		return "it runs, and goes on"
	case i.Known:
		return "it does not run now; its disk is as it was"
	}
	return "what was started was ended again"
}

// Unwrap makes it a context's error.
func (i *Interrupted) Unwrap() error { return context.Canceled }

// Start starts the server of a folder, or finds it running there as requested, and waits until it has joined the fleet.
// It uses the data of an earlier server of the folder. A server that does not join leaves nothing but such earlier data.
func Start(ctx context.Context, folder Folder, spec Spec, joinToken string, wait time.Duration) (*Running, error) {
	if before, err := folder.Spec(); err != nil {
		return nil, err
	} else if live(folder) != nil {
		if before == nil || !reflect.DeepEqual(*before, spec) {
			return nil, &Taken{folder}
		}
		found, err := untilReady(ctx, folder, nil, wait)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = &Interrupted{Runs: true}
		}
		return found, err
	}
	ended, err := launch(folder, spec, joinToken)
	var found *Running
	if err == nil {
		found, err = untilReady(ctx, folder, ended, wait)
	}
	_ = os.Remove(folder.joinToken()) // it is used, or useless without its server
	if err != nil {
		known(folder, ended, stopGrace) // else no later call would find the starting server
		Stop(folder, stopGrace)
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = &Interrupted{Known: folder.Registered()}
		}
		if !folder.Registered() {
			err = errors.Join(err, os.RemoveAll(string(folder)))
		}
		return nil, err
	}
	return found, nil
}

// launch starts a supervisor, which starts the server. The channel closes when the supervisor has ended.
func launch(folder Folder, spec Spec, joinToken string) (<-chan struct{}, error) {
	if err := os.MkdirAll(folder.data(), 0o700); err != nil {
		return nil, err
	}
	if joinToken != "" {
		if err := os.WriteFile(folder.joinToken(), []byte(joinToken+"\n"), 0o600); err != nil {
			return nil, err
		}
	}
	if err := write(folder.spec(), spec); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(folder.Log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	me, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(me, superviseWord, string(folder))
	command.Stdout, command.Stderr = log, log
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "QUORATE_LOG=" + os.Getenv("QUORATE_LOG")}
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it outlives Terraform, even an interrupted one
	if err := command.Start(); err != nil {
		return nil, err
	}
	ended := make(chan struct{})
	go func() { _ = command.Wait(); close(ended) }()
	return ended, nil
}

func untilReady(ctx context.Context, folder Folder, ended <-chan struct{}, wait time.Duration) (*Running, error) {
	deadline := time.After(wait)
	for {
		who := live(folder)
		if said, err := folder.readiness(); err == nil && who != nil && said != nil && said.PID == who.Server.PID {
			return &Running{said.PID, said.Address}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ended:
			return nil, &NotReady{"it ended before it had joined", logTail(folder)}
		case <-deadline:
			return nil, &NotReady{fmt.Sprintf("it has not joined after %.0f s", wait.Seconds()), logTail(folder)}
		case <-time.After(pollEvery):
			if ended == nil && who == nil { // the child of another process
				return nil, &NotReady{"it ended before it had joined", logTail(folder)}
			}
		}
	}
}

// known waits until the supervisor has stored the started server's identity, or has ended.
func known(folder Folder, ended <-chan struct{}, wait time.Duration) {
	deadline := time.After(wait)
	for ended != nil && live(folder) == nil {
		select {
		case <-ended:
			return
		case <-deadline:
			return
		case <-time.After(pollEvery / 5):
		}
	}
}

// live is the identity of the folder's running server; nil without one.
func live(folder Folder) *running {
	who, err := read[running](folder.running())
	if err != nil || who == nil || !who.Server.Alive() {
		return nil
	}
	return who
}

// Find returns the folder's running server; nil without one.
func Find(folder Folder) (*Running, error) {
	who := live(folder)
	if who == nil {
		return nil, nil
	}
	said, err := folder.readiness()
	if err != nil || said == nil || said.PID != who.Server.PID {
		return &Running{PID: who.Server.PID}, err
	}
	return &Running{who.Server.PID, said.Address}, nil
}

// Stop ends the server and its supervisor: by a request first, killed after `grace`. It never ends another process that has
// one of their pids.
func Stop(folder Folder, grace time.Duration) {
	who, err := read[running](folder.running())
	if err != nil || who == nil {
		return
	}
	who.Server.Signal(syscall.SIGTERM)
	if !gone(who.Server, grace) {
		who.Server.Signal(syscall.SIGKILL)
		gone(who.Server, killWait)
	}
	if !gone(who.Supervisor, killWait) {
		who.Supervisor.Signal(syscall.SIGKILL)
		gone(who.Supervisor, killWait)
	}
	_ = os.Remove(folder.running())
}

// Remove stops the server and removes its folder.
func Remove(folder Folder, grace time.Duration) error {
	Stop(folder, grace)
	return os.RemoveAll(string(folder))
}

func gone(who Identity, wait time.Duration) bool {
	for deadline := time.Now().Add(wait); who.Alive(); time.Sleep(pollEvery / 5) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

func logTail(folder Folder) string {
	text, err := os.ReadFile(folder.Log())
	if err != nil {
		return ""
	}
	tail := text[max(0, len(text)-logTailSize):]
	return strings.TrimSpace(string(bytes.ToValidUTF8(tail, []byte("?"))))
}
