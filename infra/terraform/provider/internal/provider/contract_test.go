package provider

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"quorate/infra/terraform/provider/internal/api/gen"
)

// The provider's copy of the API's bounds is compared with the contract.
const contract = "../../../../../sdk/contract/"

func read(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(contract + file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

type bounds struct {
	Type             string
	Minimum, Maximum float64
}

func TestBoundsAndDefaultsAreTheContracts(t *testing.T) {
	var document struct {
		Components struct {
			Schemas map[string]struct {
				Required   []string
				Properties map[string]struct {
					bounds
					AnyOf   []bounds
					Enum    []string
					Default any
				}
			}
		}
	}
	read(t, "openapi.json", &document)
	for schema, others := range map[string][]string{"NewGroup": {"name", "deletion_protection"}, "QuoteRequest": {"replaces_group_id", "project_id"}} {
		asked := document.Components.Schemas[schema]
		if found := len(asked.Properties); found != len(slaFields)+len(others) {
			t.Errorf("%s has %d fields", schema, found)
		}
		for _, field := range slaFields {
			said := asked.Properties[field.name]
			if required := slices.Contains(asked.Required, field.name); required != field.required {
				t.Errorf("%s.%s: required %v", schema, field.name, required)
			}
			if field.text != nil {
				if !slices.Equal(said.Enum, field.text) && len(field.text) > 0 {
					t.Errorf("%s.%s is one of %v", schema, field.name, said.Enum)
				}
				if said.Default != nil && said.Default != field.textDefault {
					t.Errorf("%s.%s is %v by default", schema, field.name, said.Default)
				}
				continue
			}
			limits := said.bounds
			for _, choice := range said.AnyOf {
				if choice.Type == "integer" {
					limits = choice
				}
			}
			byDefault, _ := said.Default.(float64)
			if schema == "QuoteRequest" && field.name == "partitions" && said.Default == nil {
				byDefault = float64(field.numberDefault) // or as many as the group has
			}
			if limits.Minimum != float64(field.least) || limits.Maximum != float64(field.most) || byDefault != float64(field.numberDefault) {
				t.Errorf("%s.%s: %v, by default %v", schema, field.name, limits, said.Default)
			}
		}
	}
}

func TestRefusalsAreShownWhereTheVectorsSay(t *testing.T) {
	var vectors struct {
		Cases []struct {
			Reason         string
			ScarceResource string `json:"scarce_resource"`
			Attribute      string
		}
	}
	read(t, "vectors/refusals.json", &vectors)
	if len(vectors.Cases) == 0 {
		t.Fatal("no cases")
	}
	for _, each := range vectors.Cases {
		refusal := gen.Refusal{
			Reason: each.Reason, ScarceResource: each.ScarceResource, Message: "Too much.",
			LargestSlaThatFits: &gen.ObservedSla{RatePerS: 6000, RetentionBytes: 1 << 20},
		}
		attribute, text := refusalInWords(&refusal)
		if attribute != each.Attribute {
			t.Errorf("%s of %s is shown at %s", each.Reason, each.ScarceResource, attribute)
		}
		fits := "An SLA that would fit now: rate_per_s = 6000."
		switch attribute {
		case "retention_bytes":
			fits = "An SLA that would fit now: rate_per_s = 6000, retention_bytes = 1048576."
		case "latency":
			fits = "An SLA that would fit now: rate_per_s = 6000, latency = \"standard\"."
		}
		for _, words := range []string{"Scarce: " + each.ScarceResource + ". Too much.", fits} {
			if !strings.Contains(text, words) {
				t.Errorf("%s of %s: %q lacks %q", each.Reason, each.ScarceResource, text, words)
			}
		}
	}
}
