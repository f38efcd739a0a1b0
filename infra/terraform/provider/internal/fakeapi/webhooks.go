package fakeapi

import (
	"crypto/rand"
	"strings"

	"github.com/google/uuid"
)

func (f *API) makeWebhook(asked object) (int, any) {
	url, _ := asked["url"].(string)
	if !strings.HasPrefix(url, "https://") {
		return problem(422, "validation_failed", "Not valid: url.", object{"errors": []any{object{"field": "url", "message": "Must begin with https://."}}})
	}
	made := object{
		"id": uuid.NewString(), "url": url, "description": "", "event_types": []any{}, "status": "enabled", "failing_since": nil,
		"former_secret_until": nil, "created_at": now(), "updated_at": now(),
	}
	take(made, asked)
	f.webhooks[made["id"].(string)] = made
	answer := object{"secret": "whsec_" + rand.Text()}
	for name, value := range made {
		answer[name] = value
	}
	return 201, answer
}

func (f *API) changeWebhook(id string, asked object) (int, any) {
	known := f.webhooks[id]
	if known == nil {
		return problem(404, "not_found", "No such webhook.", nil)
	}
	known["description"], known["event_types"], known["status"] = "", []any{}, "enabled"
	take(known, asked)
	return 200, known
}

func take(webhook, asked object) {
	for name, value := range asked {
		if value != nil {
			webhook[name] = value
		}
	}
}

// PauseWebhooks without Terraform.
func (f *API) PauseWebhooks() {
	f.with(func() {
		for _, webhook := range f.webhooks {
			webhook["status"] = "paused"
		}
	})
}

// Webhooks so far.
func (f *API) Webhooks() (count int) {
	f.with(func() { count = len(f.webhooks) })
	return count
}
