// Command generate writes the checked-in generated files: the API's client and the reference of the provider. With -check
// it changes nothing and names the stale ones.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"quorate/infra/terraform/provider/internal/provider"
	"quorate/infra/terraform/provider/reference"
)

const repository = "../../.." // from the module's folder, where `go run` is called

func main() {
	check := len(os.Args) > 1 && os.Args[1] == "-check"
	stale, err := run(check)
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	if check && stale > 0 {
		os.Exit(1)
	}
}

func run(check bool) (int, error) {
	code, err := client(filepath.Join(repository, "sdk/contract/openapi.json"))
	if err != nil {
		return 0, fmt.Errorf("the client: %w", err)
	}
	files := map[string][]byte{
		"internal/api/gen/client.gen.go":                         code,
		filepath.Join(repository, "docs/reference/terraform.md"): reference.Page(provider.New(), "the provider's reference"),
	}
	stale := 0
	for path, text := range files {
		if old, err := os.ReadFile(path); err == nil && bytes.Equal(old, text) {
			continue
		}
		stale++
		if check {
			fmt.Fprintf(os.Stderr, "%s is out of date: run `make gen`\n", path)
			continue
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			return stale, err
		}
		fmt.Println("wrote", path)
	}
	return stale, nil
}
