// Package process runs a replica server as a process of this machine that outlives Terraform. It has a folder of its own,
// and a supervisor that ends it when its fleet is gone.
package process

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Spec holds a server's start arguments. The folder keeps it, so that the next apply finds an interrupted one.
type Spec struct {
	Name             string   `json:"name"`
	Binary           string   `json:"binary"`
	Coordinator      string   `json:"coordinator"`
	Listen           string   `json:"listen"`
	Region           string   `json:"region"`
	FailureDomain    string   `json:"failure_domain"`
	Shards           int64    `json:"shards"`
	CPU              *float64 `json:"cpu,omitempty"`
	NetworkBytesPerS *int64   `json:"network_bytes_per_s,omitempty"`
	StorageIOPerS    *int64   `json:"storage_io_per_s,omitempty"`
	RedisURL         *string  `json:"redis_url,omitempty"`
	AllowPlaintext   bool     `json:"allow_plaintext"`
	LeaseS           int64    `json:"lease_s"`
	LeaseAddress     *string  `json:"lease_address,omitempty"`
}

// Folder holds one server: its arguments, its identity, its log and its data.
type Folder string

func (f Folder) data() string      { return filepath.Join(string(f), "data") }
func (f Folder) spec() string      { return filepath.Join(string(f), "server.json") }
func (f Folder) running() string   { return filepath.Join(string(f), "running.json") }
func (f Folder) joinToken() string { return filepath.Join(string(f), "join-token") }
func (f Folder) ready() string     { return filepath.Join(f.data(), "ready.json") }
func (f Folder) lock() string      { return filepath.Join(string(f), "lock") }

// Log is the file of the server's output.
func (f Folder) Log() string { return filepath.Join(string(f), "log") }

// Spec holds the arguments of the server's last start; nil without one.
func (f Folder) Spec() (*Spec, error) { return read[Spec](f.spec()) }

// Registered: the server here has joined, so its data must be kept.
func (f Folder) Registered() bool {
	_, err := os.Stat(filepath.Join(f.data(), "identity.json"))
	return err == nil
}

type running struct {
	Server     Identity `json:"server"`
	Supervisor Identity `json:"supervisor"`
}

// ready is the server's report after it has joined.
type ready struct {
	Address string `json:"address"`
	PID     int    `json:"pid"`
}

func (f Folder) readiness() (*ready, error) { return read[ready](f.ready()) }

func read[T any](path string) (*T, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	value := new(T)
	return value, json.Unmarshal(text, value)
}

// write creates the file whole or not at all, readable by its owner only.
func write(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
