// Command natsbench appends to a replicated JetStream stream and waits for each publish acknowledgement.
package main

import (
	"context"
	"flag"
	"log"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"quorate.dev/loadtest/peers/window"
)

const streamBytesMax = 1 << 30

func main() {
	log.SetFlags(0)
	url := flag.String("url", "", "a server's address")
	storage := flag.String("storage", "memory", "memory or file")
	load := window.Flags()
	flag.Parse()
	if err := run(*url, *storage, load); err != nil {
		log.Fatalf("natsbench: %v", err)
	}
}

func run(url, storage string, load *window.Load) error {
	connection, err := nats.Connect(url, nats.Timeout(10*time.Second))
	if err != nil {
		return err
	}
	defer connection.Close()
	stream, err := jetstream.New(connection, jetstream.WithPublishAsyncMaxPending(load.Outstanding+1))
	if err != nil {
		return err
	}
	config := jetstream.StreamConfig{
		Name: "bench", Subjects: []string{"bench"}, Replicas: 3, MaxBytes: streamBytesMax,
		Discard: jetstream.DiscardOld, Storage: jetstream.MemoryStorage, Duplicates: 100 * time.Millisecond,
	}
	if storage == "file" {
		config.Storage = jetstream.FileStorage
	}
	if err := create(stream, config); err != nil {
		return err
	}
	payload := load.Payload()
	return load.Loop(func() (func() error, error) {
		future, err := stream.PublishAsync("bench", payload)
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

// create makes the stream; servers that have just started refuse it until they have a leader.
func create(stream jetstream.JetStream, config jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		attempt, done := context.WithTimeout(ctx, 5*time.Second)
		_, err := stream.CreateOrUpdateStream(attempt, config)
		done()
		if err == nil || ctx.Err() != nil {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}
