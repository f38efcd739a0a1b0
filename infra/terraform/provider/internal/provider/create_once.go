package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"quorate/infra/terraform/provider/internal/api"
)

// creation of a resource with a unique name.
type creation[Answer any] struct {
	doing    string
	identity []any // identifies it among all requests of one owner
	create   func(context.Context, *string) (*http.Response, error)
	// current is its present state; nil when it does not exist any more.
	current func(context.Context, *Answer) (*Answer, error)
}

// createOnce creates the resource, or finds the one that an interrupted apply of the same owner created.
//
// Terraform stores nothing of a create whose answer it never received. The API stores the answer for a day, by
// Idempotency-Key and credential. The key is therefore derived from the owner and the request, so that the owner's next
// apply gets the same answer. Without an owner an interrupted apply looks like another configuration, which must not share
// the resource and one day delete it. The key is random then, and the next apply fails because the name is taken.
//
// A stored answer counts only while the resource still exists. Otherwise a new one is requested with a new key.
func createOnce[Answer any](
	ctx context.Context, c *customers, diagnostics *diag.Diagnostics, asked creation[Answer],
) (*Answer, error) {
	key, calls := api.NewIdempotencyKey(), 0
	if owner := c.shared.owner; owner != "" {
		key = derivedKey(append([]any{owner}, asked.identity...))
	}
	header, made, err := api.AskWithHeader[Answer](ctx, c.api, func(ctx context.Context) (*http.Response, error) {
		calls++
		return asked.create(ctx, key)
	})
	// not_found is about this key's resource, which was deleted since, or about its project. A new key finds out.
	if err == nil && header.Get("Idempotency-Replayed") == "" {
		return made, nil
	}
	if err == nil {
		var now *Answer
		if now, err = asked.current(ctx, made); err == nil && now != nil {
			if calls == 1 { // else this apply created it, and the answer was lost
				diagnostics.AddWarning(asked.doing+": it was there already",
					"An apply of the last day made it and did not come to write it down. It was taken over.")
			}
			return now, nil
		}
	}
	if err != nil && !api.NotFound(err) {
		return nil, err
	}
	fresh := api.NewIdempotencyKey()
	return api.Ask[Answer](ctx, c.api, func(ctx context.Context) (*http.Response, error) { return asked.create(ctx, fresh) })
}

// nameTaken explains how to proceed when a resource has the name. Its import id is known, or "".
func nameTaken(diagnostics *diag.Diagnostics, doing, importID string, err error) {
	if importID == "" {
		importID = "ID"
	}
	diagnostics.AddAttributeError(path.Root("name"), doing+": the name is taken",
		fmt.Sprintf("If an interrupted apply created it and could not store it, take it over: "+
			"terraform import ADDRESS %s, with this resource's address. Applies find it by themselves if the provider has "+
			"an `owner`. If another configuration has it, choose another name.\n\n%v.", importID, err))
}

func derivedKey(identity []any) *string {
	text, err := json.Marshal(identity)
	if err != nil {
		panic(fmt.Sprintf("a request that is no JSON: %v", err))
	}
	sum := sha256.Sum256(text)
	key := "terraform-" + hex.EncodeToString(sum[:20])
	return &key
}
