// Command etcdbench puts values into etcd, each under one of a fixed number of keys.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"quorate.dev/loadtest/peers/window"
)

// connectionsMax spreads the outstanding requests over connections, as etcd's own benchmark does.
const connectionsMax = 16

func main() {
	log.SetFlags(0)
	endpoints := flag.String("endpoints", "", "addresses of all servers, with commas between")
	flag.Parse()
	servers := strings.Split(*endpoints, ",")
	if err := window.Serve(func(load *window.Load) error { return run(servers, load) }); err != nil {
		log.Fatalf("etcdbench: %v", err)
	}
}

func run(endpoints []string, load *window.Load) error {
	leader, err := find(endpoints)
	if err != nil {
		return err
	}
	clients := make([]*clientv3.Client, min(connectionsMax, load.Outstanding))
	for i := range clients {
		// To the leader alone: the others would pass each request on, and cost more.
		client, err := clientv3.New(clientv3.Config{Endpoints: []string{leader}, DialTimeout: 10 * time.Second})
		if err != nil {
			return err
		}
		defer client.Close()
		clients[i] = client
	}
	value := string(load.Payload())
	ctx, cancel := context.WithTimeout(context.Background(), load.Warmup+load.Window+60*time.Second)
	defer cancel()
	return load.Workers(func(worker int) error {
		_, err := clients[worker%len(clients)].Put(ctx, fmt.Sprintf("k%06d", worker), value)
		return err
	})
}

func find(endpoints []string) (string, error) {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: 10 * time.Second})
	if err != nil {
		return "", err
	}
	defer client.Close()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		for _, endpoint := range endpoints {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
			status, err := client.Status(ctx, endpoint)
			cancel()
			if err == nil && status.Leader != 0 && status.Leader == status.Header.MemberId {
				return endpoint, nil
			}
		}
		time.Sleep(200 * time.Millisecond)
	}
	return "", fmt.Errorf("no leader within 30 s at %s", strings.Join(endpoints, ", "))
}
