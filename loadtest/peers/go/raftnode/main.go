// Command raftnode is one of three processes of hashicorp/raft. The library has no server protocol: the load runs
// inside the leader, so that its figures are without a client's hop.
package main

import (
	"flag"
	"io"
	"log"
	"os"
	"path/filepath"
	"strings"
	"time"

	hclog "github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	wal "github.com/hashicorp/raft-wal"
	"quorate.dev/loadtest/peers/window"
)

const entriesRetained = 4096

func main() {
	log.SetFlags(0)
	me := flag.Int("node", 0, "which of the peers this is, from 0")
	peers := flag.String("peers", "", "addresses of all three, with commas between")
	dir := flag.String("dir", "", "folder for the log; none: in memory")
	flag.Parse()
	if err := run(*me, strings.Split(*peers, ","), *dir); err != nil {
		log.Fatalf("raftnode: %v", err)
	}
}

func run(me int, peers []string, dir string) error {
	node, err := start(me, peers, dir)
	if err != nil {
		return err
	}
	// Each line on stdin is a load for the leader; the end of stdin is the end of the node.
	err = window.Serve(func(load *window.Load) error {
		if node.State() != raft.Leader {
			load.Say(map[string]any{"event": "not_leader"})
			return nil
		}
		payload := load.Payload()
		return load.Loop(func() (func() error, error) { return node.Apply(payload, 30*time.Second).Error, nil })
	})
	if err != nil {
		return err
	}
	return node.Shutdown().Error()
}

func start(me int, peers []string, dir string) (*raft.Raft, error) {
	config := raft.DefaultConfig()
	config.LocalID = raft.ServerID(peers[me])
	config.MaxAppendEntries = 512
	config.BatchApplyCh = true
	// Retention: as many entries as fill 64 MiB at 16 KB, checked each second.
	config.TrailingLogs, config.SnapshotThreshold = entriesRetained, entriesRetained
	config.SnapshotInterval = time.Second
	config.HeartbeatTimeout, config.ElectionTimeout = 5*time.Second, 5*time.Second
	config.Logger = hclog.New(&hclog.LoggerOptions{Level: hclog.Error, Output: os.Stderr})
	logs, stable, err := stores(dir)
	if err != nil {
		return nil, err
	}
	transport, err := raft.NewTCPTransportWithLogger(peers[me], nil, 3, 10*time.Second, config.Logger)
	if err != nil {
		return nil, err
	}
	snapshots := raft.NewInmemSnapshotStore()
	node, err := raft.NewRaft(config, discard{}, logs, stable, snapshots, transport)
	if err != nil {
		return nil, err
	}
	if me == 0 {
		var cluster raft.Configuration
		for _, peer := range peers {
			cluster.Servers = append(cluster.Servers, raft.Server{ID: raft.ServerID(peer), Address: raft.ServerAddress(peer)})
		}
		if err := node.BootstrapCluster(cluster).Error(); err != nil {
			return nil, err
		}
	}
	return node, nil
}

func stores(dir string) (raft.LogStore, raft.StableStore, error) {
	if dir == "" {
		memory := raft.NewInmemStore()
		return memory, memory, nil
	}
	path := filepath.Join(dir, "wal")
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, nil, err
	}
	log, err := wal.Open(path)
	return log, log, err
}

// discard is a state machine without state.
type discard struct{}

func (discard) Apply(*raft.Log) any                 { return nil }
func (discard) Snapshot() (raft.FSMSnapshot, error) { return empty{}, nil }
func (discard) Restore(from io.ReadCloser) error    { return from.Close() }

type empty struct{}

func (empty) Persist(sink raft.SnapshotSink) error { return sink.Close() }
func (empty) Release()                             {}
