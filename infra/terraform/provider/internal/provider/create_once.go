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

// creation of what has a unique name.
type creation[Answer any] struct {
	doing    string
	identity []any // what tells it from all else that one owner may ask for
	create   func(context.Context, *string) (*http.Response, error)
	// current is how it is by now; nil when it is no more.
	current func(context.Context, *Answer) (*Answer, error)
}

// createOnce makes it, and finds again what an interrupted apply of the same owner made.
//
// Terraform keeps nothing of a create whose answer it never saw. The API does: for a day, by Idempotency-Key and
// credential. So the key is derived from whose configuration it is and what is asked for, and its next apply gets the same
// answer. Without an owner nobody can tell an interrupted apply from another configuration, which would come to share, and
// one day delete, what it did not make: then the key is random, and the next apply hears that the name is taken.
//
// An answer that was given before is worth something only while the thing still exists; otherwise it is asked for anew,
// as something new.
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
	// A not_found is of the thing that this key made once and that was deleted since, or of its project: a new key tells.
	if err == nil && header.Get("Idempotency-Replayed") == "" {
		return made, nil
	}
	if err == nil {
		var now *Answer
		if now, err = asked.current(ctx, made); err == nil && now != nil {
			if calls == 1 { // otherwise this very apply made it, and the answer was lost
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

// nameTaken says how to go on when there is something of that name, whose import id is known or "".
func nameTaken(diagnostics *diag.Diagnostics, doing, importID string, err error) {
	if importID == "" {
		importID = "ID"
	}
	diagnostics.AddAttributeError(path.Root("name"), doing+": the name is taken",
		fmt.Sprintf("If it is this very thing, which an interrupted apply made and could not write down, take it over: "+
			"terraform import ADDRESS %s, with this resource's address. Applies find it again by themselves when the provider has "+
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
