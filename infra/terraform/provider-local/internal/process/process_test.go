package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quorate/infra/terraform/provider-local/internal/process"
	"quorate/infra/terraform/provider-local/internal/standin"
)

func TestMain(m *testing.M) { os.Exit(standin.Main(m)) }

const (
	grace = time.Second
	wait  = 10 * time.Second
)

func specOf(t *testing.T, name, coordinator string) (process.Folder, process.Spec) {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	folder := process.Folder(filepath.Join(t.TempDir(), name))
	t.Cleanup(func() { process.Stop(folder, grace) })
	return folder, process.Spec{
		Name: name, Binary: binary, Coordinator: coordinator, Listen: "127.0.0.1:0", Region: "local", FailureDomain: name,
		Shards: 1, LeaseS: 60,
	}
}

func start(t *testing.T, folder process.Folder, spec process.Spec) *process.Running {
	t.Helper()
	found, err := process.Start(context.Background(), folder, spec, "qjt_secret", wait)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(wait); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", wait, what)
		}
	}
}

func runs(pid int) bool { _, err := process.IdentityOf(pid); return err == nil }

func TestAServerIsStartedFoundAndRemoved(t *testing.T) {
	folder, spec := specOf(t, "s1", standin.StartFleet(t).Address())
	made := start(t, folder, spec)
	found, err := process.Find(folder)
	if err != nil || found == nil || *found != *made {
		t.Fatalf("found %v (%v) after starting %v", found, err, made)
	}
	if line := standin.CommandLine(made.PID); !strings.Contains(line, "--name s1") || strings.Contains(line, "qjt_") {
		t.Errorf("its arguments are public: %s", line)
	}
	if _, err := os.Stat(filepath.Join(string(folder), "join-token")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a token that was used is still there: %v", err)
	}
	if err := process.Remove(folder, grace); err != nil || runs(made.PID) {
		t.Errorf("after removing (%v) it still runs: %v", err, runs(made.PID))
	}
	if _, err := os.Stat(string(folder)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its folder is still there: %v", err)
	}
}

func TestAnInterruptedStartIsTakenOver(t *testing.T) {
	folder, spec := specOf(t, "s1", standin.StartFleet(t).Address())
	first := start(t, folder, spec)
	if again := start(t, folder, spec); *again != *first {
		t.Errorf("started twice: %v and %v", first, again)
	}
	spec.Shards = 2
	_, err := process.Start(context.Background(), folder, spec, "", wait)
	if taken := new(process.Taken); !errors.As(err, &taken) {
		t.Errorf("another server's folder was taken: %v", err)
	}
	if !runs(first.PID) {
		t.Error("and its server was ended")
	}
}

func TestAnInterruptionSaysWhatRuns(t *testing.T) {
	fleet := standin.StartFleet(t).Address()
	interrupted := func(folder process.Folder, spec process.Spec, more context.Context) process.Interrupted {
		t.Helper()
		_, err := process.Start(more, folder, spec, "qjt_secret", wait)
		said := new(process.Interrupted)
		if !errors.As(err, &said) {
			t.Fatalf("no interruption: %v", err)
		}
		return *said
	}
	never, cancel := context.WithCancel(context.Background())
	cancel()

	folder, spec := specOf(t, standin.Silent, fleet)
	said := interrupted(folder, spec, never)
	// It is ended at once, and may have registered before: its disk stays then.
	if _, err := os.Stat(string(folder)); said.Runs || said.Known == errors.Is(err, os.ErrNotExist) {
		t.Errorf("of a new server: %v, its folder: %v", said, err)
	}

	folder, spec = specOf(t, "s1", fleet)
	made := start(t, folder, spec)
	ready := filepath.Join(string(folder), "data", "ready.json")
	text, err := os.ReadFile(ready)
	if err := errors.Join(err, os.Remove(ready)); err != nil { // as if it had not joined again yet
		t.Fatal(err)
	}
	if said := interrupted(folder, spec, never); !said.Runs || !runs(made.PID) {
		t.Errorf("of one that runs (%v): %v", runs(made.PID), said)
	}
	if err := os.WriteFile(ready, text, 0o600); err != nil {
		t.Fatal(err)
	}

	process.Stop(folder, grace)
	spec.Shards = 2 // as a changed argument restarts it
	if said := interrupted(folder, spec, never); said.Runs || !said.Known || !folder.Registered() {
		t.Errorf("of one that was restarted: %v, its disk is there: %v", said, folder.Registered())
	}
	if found, err := process.Find(folder); found != nil || err != nil {
		t.Errorf("it runs: %v (%v)", found, err)
	}
	start(t, folder, spec)
}

func TestAKilledServerComesBackWithItsDataAndAddress(t *testing.T) {
	folder, spec := specOf(t, "s1", standin.StartFleet(t).Address())
	first := start(t, folder, spec)
	if err := syscall.Kill(first.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "it is missed", func() bool { found, _ := process.Find(folder); return found == nil })
	second, err := process.Start(context.Background(), folder, spec, "", wait) // without a token: its disk has its identity
	if err != nil || second.PID == first.PID || second.Address != first.Address {
		t.Errorf("%v came back as %v: %v", first, second, err)
	}
}

func TestAServerEndsWhenItsFleetIsGone(t *testing.T) {
	fleet := standin.StartFleet(t)
	folder, spec := specOf(t, "s1", fleet.Address())
	spec.LeaseS = 2
	made := start(t, folder, spec)
	time.Sleep(3 * time.Second) // longer than the lease, which is renewed
	if !runs(made.PID) {
		t.Fatal("it ended while its fleet answered")
	}
	fleet.Close()
	until(t, "it ends", func() bool { return !runs(made.PID) })
	if text, _ := os.ReadFile(folder.Log()); !strings.Contains(string(text), "fleet has not answered") {
		t.Errorf("its log does not say why: %s", text)
	}
}

func TestAServerEndsWithItsFolder(t *testing.T) {
	folder, spec := specOf(t, "s1", standin.StartFleet(t).Address())
	made := start(t, folder, spec)
	if err := os.RemoveAll(string(folder)); err != nil {
		t.Fatal(err)
	}
	until(t, "it ends", func() bool { return !runs(made.PID) })
}

func parentOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "PPid:")
	parent, err := strconv.Atoi(strings.Fields(after)[0])
	if err != nil {
		t.Fatal(err)
	}
	return parent
}

func TestAServerEndsWithItsSupervisor(t *testing.T) {
	folder, spec := specOf(t, "s1", standin.StartFleet(t).Address())
	made := start(t, folder, spec)
	supervisor := parentOf(t, made.PID)
	if !strings.Contains(standin.CommandLine(supervisor), "supervise "+string(folder)) {
		t.Fatalf("process %d is no supervisor: %s", supervisor, standin.CommandLine(supervisor))
	}
	if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	until(t, "it ends", func() bool { return !runs(made.PID) })
}

func TestAServerThatWillNotEndIsKilled(t *testing.T) {
	folder, spec := specOf(t, standin.Stubborn, standin.StartFleet(t).Address())
	made := start(t, folder, spec)
	begun := time.Now()
	process.Stop(folder, grace)
	if runs(made.PID) {
		t.Error("it still runs")
	}
	if took := time.Since(begun); took < grace {
		t.Errorf("it was killed after %s, without its grace", took)
	}
}

func TestOfAServerThatDoesNotJoinNothingStays(t *testing.T) {
	for name, says := range map[string]string{standin.Refused: "join token is not known", standin.Silent: ""} {
		folder, spec := specOf(t, name, standin.StartFleet(t).Address())
		_, err := process.Start(context.Background(), folder, spec, "qjt_wrong", 2*time.Second)
		notReady := new(process.NotReady)
		if !errors.As(err, &notReady) || !strings.Contains(notReady.Log, says) {
			t.Errorf("%s: %v", name, err)
		}
		if found, _ := process.Find(folder); found != nil {
			t.Errorf("%s: it still runs: %v", name, found)
		}
		_, err = os.Stat(string(folder))
		if name == standin.Refused && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: its folder is still there: %v", name, err)
		}
	}
}

func TestAPidThatIsUsedAgainIsNobodysBusiness(t *testing.T) {
	other := exec.Command("sleep", "60")
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
	now, err := process.IdentityOf(other.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	before := now
	before.StartTicks--
	elsewhere := now
	elsewhere.BootID = "another"
	for _, each := range []process.Identity{before, elsewhere} {
		if each.Alive() {
			t.Errorf("%v is taken for %v", each, now)
		}
		each.Signal(syscall.SIGKILL)
	}
	time.Sleep(100 * time.Millisecond)
	if !now.Alive() {
		t.Fatal("another program's process was killed")
	}
	now.Signal(syscall.SIGKILL)
	until(t, "a process that was meant ends, although nobody waited for it", func() bool { return !now.Alive() })
}
