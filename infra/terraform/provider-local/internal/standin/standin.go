// Package standin is a replica server for tests of programs that start servers. It accepts the flags, joins no fleet,
// reports that it is ready as the real one does, and ends on request. Its name selects other behaviour.
package standin

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"quorate/infra/terraform/provider-local/internal/process"
)

const (
	// Refused is the name of a server whose join the coordinator refuses.
	Refused = "refused"
	// Stubborn ends only when it is killed.
	Stubborn = "stubborn"
	// Silent runs and never joins.
	Silent = "silent"
)

// Main runs the tests, or, in a test's binary that was started as such, a supervisor or a server.
func Main(m *testing.M) int {
	if folder, ok := process.SuperviseAsked(os.Args); ok {
		return process.Supervise(folder)
	}
	if len(os.Args) > 1 && os.Args[1] == "--data-dir" {
		return serve(os.Args[1:])
	}
	return m.Run()
}

func serve(arguments []string) int {
	flags := flag.NewFlagSet("quorate-replica", flag.ContinueOnError)
	data := flags.String("data-dir", "", "")
	token := flags.String("join-token-file", "", "")
	listen := flags.String("listen", "", "")
	name := flags.String("name", "", "")
	for _, each := range []string{"coordinator", "region", "failure-domain", "shards", "cpu", "network-bytes-per-s", "storage-io-per-s"} {
		flags.String(each, "", "")
	}
	flags.Bool("allow-plaintext", false, "")
	if flags.Parse(arguments) != nil {
		return 2
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM)
	if *name == Refused {
		fmt.Fprintln(os.Stderr, "the join token is not known")
		return 2
	}
	identity := filepath.Join(*data, "identity.json")
	if _, err := os.Stat(identity); err != nil {
		secret, err := os.ReadFile(*token)
		if err != nil {
			fmt.Fprintln(os.Stderr, "this server has not joined yet: ", err)
			return 2
		}
		if err := os.WriteFile(identity, fmt.Appendf(nil, "joined with %d bytes", len(secret)), 0o600); err != nil {
			return 5
		}
	}
	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return 4
	}
	defer listener.Close()
	if *name != Silent {
		text, _ := json.Marshal(map[string]any{"server_id": 1, "address": listener.Addr().String(), "pid": os.Getpid()})
		if os.WriteFile(filepath.Join(*data, "ready.json"), text, 0o600) != nil {
			return 5
		}
	}
	<-asked
	if *name == Stubborn {
		select {}
	}
	return 0
}

// Fleet is an address that answers until the test ends or Stop is called.
type Fleet struct {
	net.Listener
}

// StartFleet makes one.
func StartFleet(t *testing.T) *Fleet {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, connection)
			connection.Close()
		}
	}()
	return &Fleet{listener}
}

// Address of the fleet.
func (f *Fleet) Address() string { return f.Addr().String() }

// CommandLine of a process; "" when there is none.
func CommandLine(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.ReplaceAll(string(text), "\x00", " ")
}
