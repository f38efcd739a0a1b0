package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

// explain reports a failed call as a diagnostic, at the attribute at fault if there is one.
// `attributes` are those of the resource that have the same name in the API.
func explain(diagnostics *diag.Diagnostics, doing string, err error, attributes ...string) {
	var problem *api.Problem
	var unreachable *api.Unreachable
	var other *api.NotTheAPI
	switch {
	case errors.As(err, &problem):
		explainProblem(diagnostics, doing, problem, attributes)
	case errors.As(err, &unreachable):
		detail := fmt.Sprintf("%s.\n\nNothing was changed.", sentence(err))
		if unreachable.Sent {
			detail = fmt.Sprintf("%s.\n\nWhether the request took effect is unknown. Apply again: an effect is found "+
				"again, or named, and not repeated.", sentence(err))
		}
		diagnostics.AddError(doing+": the API does not answer", detail)
	case errors.As(err, &other):
		diagnostics.AddError(doing+": the answer is not from Quorate's API",
			fmt.Sprintf("%s.\n\nCheck `endpoint`: it may lead to a proxy, a portal's login page or another service.", sentence(err)))
	default:
		diagnostics.AddError(doing, err.Error())
	}
}

func explainProblem(diagnostics *diag.Diagnostics, doing string, problem *api.Problem, attributes []string) {
	detail := fmt.Sprintf("%s\n\n%s, request %s.", problem.Detail, problem.Type, problem.RequestId)
	if problem.Refusal != nil {
		explainRefusal(diagnostics, doing, problem, detail)
		return
	}
	switch problem.Code {
	case "not_authenticated", "credentials_invalid":
		diagnostics.AddError(doing+": the credential is wrong",
			"The API does not know it. `api_key` takes a key (`qk_…`), `operator_token` an operator's token (`qo_…`); "+
				"a revoked one stays revoked.\n\n"+detail)
		return
	case "permission_denied":
		diagnostics.AddError(doing+": the credential does not permit it",
			"Projects and keys need the key of a service account with the scope `administer` (*Service accounts* in the portal).\n\n"+detail)
		return
	case "operator_elsewhere":
		diagnostics.AddError(doing+": this is customers' address",
			"Operators have an address of their own here. This needs a provider block whose `endpoint` is the operators' address, "+
				"which the API has as QUORATE_OPERATOR_LISTEN. The state was left as it is.\n\n"+detail)
		return
	}
	at := false
	for _, field := range problem.Errors {
		for _, attribute := range attributes {
			if field.Field == attribute || strings.HasSuffix(field.Field, "."+attribute) {
				diagnostics.AddAttributeError(path.Root(attribute), doing+": "+problem.Title, field.Message+"\n\n"+detail)
				at = true
			}
		}
	}
	if !at {
		diagnostics.AddError(doing+": "+problem.Title, detail)
	}
}

// explainRefusal names the scarce resource, at the attribute that asks for too much of it.
func explainRefusal(diagnostics *diag.Diagnostics, doing string, problem *api.Problem, detail string) {
	attribute, text := refusalInWords(problem.Refusal)
	diagnostics.AddAttributeError(path.Root(attribute), doing+": the fleet cannot promise this SLA", text+"\n\n"+detail)
}

// refusalInWords returns the attribute at fault, and a text.
func refusalInWords(refusal *gen.Refusal) (string, string) {
	attribute := "rate_per_s"
	switch {
	case refusal.Reason == "unknown_region": // servers are scarce then, too
		attribute = "region"
	case refusal.Reason == "too_few_servers" || refusal.ScarceResource == "servers" || refusal.ScarceResource == "groups":
		attribute = "replication_degree"
	case refusal.ScarceResource == "memory" || refusal.ScarceResource == "disk":
		attribute = "retention_bytes"
	case refusal.ScarceResource == "latency":
		attribute = "latency"
	}
	text := fmt.Sprintf("Scarce: %s. %s", refusal.ScarceResource, refusal.Message)
	if fits := refusal.LargestSlaThatFits; fits != nil {
		text += fmt.Sprintf("\nAn SLA that would fit now: rate_per_s = %d", fits.RatePerS)
		if reads := readRateOf(*fits); reads > 0 {
			text += fmt.Sprintf(", read_rate_per_s = %d", reads)
		}
		if attribute == "retention_bytes" {
			text += fmt.Sprintf(", retention_bytes = %d", fits.RetentionBytes)
		}
		if attribute == "latency" {
			text += fmt.Sprintf(", latency = %q", latencyOf(*fits))
		}
		text += "."
	}
	return attribute, text
}

func sentence(err error) string { return strings.TrimRight(err.Error(), ".") }

func noCredential(diagnostics *diag.Diagnostics, attribute, variable string) {
	diagnostics.AddError("A credential is missing",
		fmt.Sprintf("This needs `%s` in the provider block, or the environment variable %s.", attribute, variable))
}

// customers is embedded in the resources of an organization.
type customers struct {
	api    *api.Client
	shared *connection
}

func (c *customers) Configure(_ context.Context, asked resource.ConfigureRequest, answer *resource.ConfigureResponse) {
	c.connect(asked.ProviderData, &answer.Diagnostics)
}

func (c *customers) connect(data any, diagnostics *diag.Diagnostics) {
	if made, ok := data.(*connection); ok {
		c.shared = made
		if c.api = made.customer; c.api == nil {
			noCredential(diagnostics, "api_key", "QUORATE_API_KEY")
		}
	}
}

// operators is embedded in the resources of the fleet.
type operators struct {
	api    *api.Client
	shared *connection
}

func (o *operators) Configure(_ context.Context, asked resource.ConfigureRequest, answer *resource.ConfigureResponse) {
	o.connect(asked.ProviderData, &answer.Diagnostics)
}

func (o *operators) connect(data any, diagnostics *diag.Diagnostics) {
	if made, ok := data.(*connection); ok {
		o.shared = made
		if o.api = made.operator; o.api == nil {
			noCredential(diagnostics, "operator_token", "QUORATE_OPERATOR_TOKEN")
		}
	}
}

type dataSource interface {
	connect(data any, diagnostics *diag.Diagnostics)
}

func configureData(source dataSource, asked datasource.ConfigureRequest, answer *datasource.ConfigureResponse) {
	source.connect(asked.ProviderData, &answer.Diagnostics)
}
