// Package provider is the Terraform provider that runs replica servers as processes of this machine.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// Version of the provider, as Terraform shows it.
const Version = "0.1.0"

type quorateLocal struct{}

// New makes the provider.
func New() provider.Provider { return quorateLocal{} }

func (quorateLocal) Metadata(_ context.Context, _ provider.MetadataRequest, answer *provider.MetadataResponse) {
	answer.TypeName, answer.Version = "quorate-local", Version
}

func (quorateLocal) Schema(_ context.Context, _ provider.SchemaRequest, answer *provider.SchemaResponse) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "Replica servers as processes of the machine that runs Terraform, for development and tests. They replace " +
			"a cloud's machines. It has no settings. Its resource's name does not begin with the provider's, so set " +
			"`provider = quorate-local` in it. Needs Terraform 1.11 and Linux.",
	}
}

func (quorateLocal) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {
}

func (quorateLocal) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{func() resource.Resource { return &localServer{} }}
}

func (quorateLocal) DataSources(context.Context) []func() datasource.DataSource { return nil }
