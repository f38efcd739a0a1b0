package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// unused are the tags of calls that infrastructure as code has no use for: people's, money's and monitoring's.
var unused = []string{"accounts", "members", "audit", "billing", "reports", "status", "prober", "health"}

// client writes Go for the API's contract. The generator knows OpenAPI 3.0, and the contract is 3.1, so `anyOf`
// with null is translated to 3.0 first.
func client(contract string) ([]byte, error) {
	text, err := os.ReadFile(contract)
	if err != nil {
		return nil, err
	}
	var document map[string]any
	if err := json.Unmarshal(text, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", contract, err)
	}
	document["openapi"] = "3.0.3"
	delete(document, "webhooks") // another 3.1 feature
	folder, err := os.MkdirTemp("", "quorate-contract-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	reduced, err := json.Marshal(in30(document))
	if err != nil {
		return nil, err
	}
	path := filepath.Join(folder, "openapi.json")
	if err := os.WriteFile(path, reduced, 0o600); err != nil {
		return nil, err
	}
	command := exec.Command("go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "gen",
		"-exclude-tags", strings.Join(unused, ","), path)
	command.Stderr = os.Stderr
	return command.Output()
}

func in30(value any) any {
	switch value := value.(type) {
	case []any:
		for i := range value {
			value[i] = in30(value[i])
		}
	case map[string]any:
		for name := range value {
			value[name] = in30(value[name])
		}
		if value["type"] == "number" {
			value["format"] = "double" // keeps all digits of JSON's numbers
		}
		return nullable(value)
	}
	return value
}

// nullable turns anyOf [X, null] into X with `nullable`.
func nullable(schema map[string]any) any {
	choices, ok := schema["anyOf"].([]any)
	if !ok || len(choices) != 2 {
		return schema
	}
	for i, choice := range choices {
		if kind, ok := choice.(map[string]any); ok && kind["type"] == "null" {
			delete(schema, "anyOf")
			schema["nullable"] = true
			other, _ := choices[1-i].(map[string]any)
			if reference, ok := other["$ref"]; ok {
				schema["allOf"] = []any{map[string]any{"$ref": reference}}
				return schema
			}
			for name, value := range other {
				schema[name] = value
			}
		}
	}
	return schema
}
