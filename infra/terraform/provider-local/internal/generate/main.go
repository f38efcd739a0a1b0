// Command generate writes the checked-in reference of the provider. With -check it changes nothing and reports a stale
// reference.
package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"quorate/infra/terraform/provider-local/internal/provider"
	"quorate/infra/terraform/provider/reference"
)

// From the module's folder, where `go run` is called.
var page = filepath.Join("../../..", "docs/reference/terraform-local.md")

func main() {
	text := reference.Page(provider.New(), "servers on one machine")
	old, err := os.ReadFile(page)
	if err == nil && bytes.Equal(old, text) {
		return
	}
	if len(os.Args) > 1 && os.Args[1] == "-check" {
		fmt.Fprintf(os.Stderr, "%s is out of date: run `make gen`\n", page)
		os.Exit(1)
	}
	if err := os.WriteFile(page, text, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
	fmt.Println("wrote", page)
}
