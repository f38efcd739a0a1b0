// Command natsbench appends to a replicated JetStream stream and waits for each publish acknowledgement. It talks to
// the server that leads the stream: any other would pass each message on, and cost a hop.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"quorate.dev/loadtest/peers/window"
)

const (
	streamName = "bench"
	patience   = 30 * time.Second
)

func main() {
	log.SetFlags(0)
	servers := flag.String("servers", "", "NAME=URL of each server, with commas between")
	storage := flag.String("storage", "memory", "memory or file")
	retention := flag.Int64("retention", 64<<20, "bytes that the stream keeps")
	flag.Parse()
	bench, err := newBench(*servers, *storage, *retention)
	if err == nil {
		err = window.Serve(bench.run)
	}
	if err != nil {
		log.Fatalf("natsbench: %v", err)
	}
}

type bench struct {
	urls       map[string]string
	config     jetstream.StreamConfig
	connection *nats.Conn
	// connected is the name of the server that connection leads to.
	connected string
}

func newBench(servers, storage string, retention int64) (*bench, error) {
	b := &bench{urls: map[string]string{}, config: jetstream.StreamConfig{
		Name: streamName, Subjects: []string{streamName}, Replicas: 3, MaxBytes: retention,
		Discard: jetstream.DiscardOld, Storage: jetstream.MemoryStorage, Duplicates: 100 * time.Millisecond,
	}}
	if storage == "file" {
		b.config.Storage = jetstream.FileStorage
	}
	for _, server := range strings.Split(servers, ",") {
		name, url, isPair := strings.Cut(server, "=")
		if !isPair {
			return nil, fmt.Errorf("no server: %q", server)
		}
		b.urls[name] = url
		if b.connected == "" {
			b.connected = name
		}
	}
	return b, b.connect(b.connected)
}

func (b *bench) connect(name string) error {
	url, isKnown := b.urls[name]
	if !isKnown {
		return fmt.Errorf("the stream's leader is %q, which is no server of this run", name)
	}
	// A lost connection ends the run: it would be restored to any server, leader or not.
	connection, err := nats.Connect(url, nats.Timeout(10*time.Second), nats.NoReconnect())
	if err != nil {
		return err
	}
	if b.connection != nil {
		b.connection.Close()
	}
	b.connection, b.connected = connection, name
	return nil
}

func (b *bench) run(load *window.Load) error {
	leader, err := b.leader()
	if err != nil {
		return err
	}
	if leader != b.connected {
		if err := b.connect(leader); err != nil {
			return err
		}
	}
	stream, err := jetstream.New(b.connection, jetstream.WithPublishAsyncMaxPending(load.Outstanding+1))
	if err != nil {
		return err
	}
	defer stream.CleanupPublisher()
	payload := load.Payload()
	return load.Loop(func() (func() error, error) {
		future, err := stream.PublishAsync(streamName, payload)
		if err != nil {
			return nil, err
		}
		return func() error {
			select {
			case <-future.Ok():
				return nil
			case err := <-future.Err():
				return err
			}
		}, nil
	})
}

// leader makes the stream if there is none, and waits until it has a leader. Servers that have just started refuse it
// until they have a leader of their own.
func (b *bench) leader() (string, error) {
	streams, err := jetstream.New(b.connection)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		leader, err := b.tryLeader(ctx, streams)
		if err == nil || ctx.Err() != nil {
			return leader, err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

func (b *bench) tryLeader(ctx context.Context, streams jetstream.JetStream) (string, error) {
	attempt, done := context.WithTimeout(ctx, 5*time.Second)
	defer done()
	stream, err := streams.CreateOrUpdateStream(attempt, b.config)
	if err != nil {
		return "", err
	}
	info, err := stream.Info(attempt)
	if err != nil {
		return "", err
	}
	if info.Cluster == nil || info.Cluster.Leader == "" {
		return "", errors.New("the stream has no leader")
	}
	return info.Cluster.Leader, nil
}
