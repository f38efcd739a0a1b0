package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"quorate/infra/terraform/provider/internal/api"
)

// createOnce makes what has a unique name, and finds again what an interrupted apply made of the same `identity`.
//
// Terraform keeps nothing of a create whose answer it never saw. The API does: for a day, by Idempotency-Key and
// credential. So the key is derived from what is asked for, and the next apply gets the same answer. An answer that was
// given before is worth something only while the thing still exists; otherwise it is asked for anew, as something new.
func createOnce[Answer any](
	ctx context.Context, client *api.Client, diagnostics *diag.Diagnostics, doing string, identity []any,
	create func(context.Context, *string) (*http.Response, error), exists func(context.Context, *Answer) error,
) (*Answer, error) {
	key := derivedKey(identity)
	header, made, err := api.AskWithHeader[Answer](ctx, client, func(ctx context.Context) (*http.Response, error) {
		return create(ctx, key)
	})
	// A not_found is of the thing that this key made once and that was deleted since, or of its project: a new key tells.
	if err == nil && header.Get("Idempotency-Replayed") == "" {
		return made, nil
	}
	if err == nil {
		if err = exists(ctx, made); err == nil {
			diagnostics.AddWarning(doing+": it was there already",
				"An apply of the last day made it and did not come to write it down, or another configuration with the same "+
					"credential has the same. It was taken over.")
			return made, nil
		}
	}
	if !api.NotFound(err) {
		return nil, err
	}
	fresh := api.NewIdempotencyKey()
	return api.Ask[Answer](ctx, client, func(ctx context.Context) (*http.Response, error) { return create(ctx, fresh) })
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
