// Package provider is Quorate's Terraform provider: projects, groups and keys for customers, servers and quotas for operators.
package provider

import (
	"context"
	"os"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
)

// Version of the provider, as Terraform shows it.
const Version = "0.1.0"

type quorate struct{}

// New makes the provider.
func New() provider.Provider { return quorate{} }

type settings struct {
	Endpoint      types.String `tfsdk:"endpoint"`
	APIKey        types.String `tfsdk:"api_key"`
	OperatorToken types.String `tfsdk:"operator_token"`
	Owner         types.String `tfsdk:"owner"`
	AllowHTTP     types.Bool   `tfsdk:"allow_http"`
}

// connection: the clients and settings that resources get.
type connection struct {
	customer *api.Client // clients, nil without their credentials
	operator *api.Client
	owner    string      // the configuration's owner; "" if not given
	joining  atomic.Bool // this plan brings servers
}

func (quorate) Metadata(_ context.Context, _ provider.MetadataRequest, answer *provider.MetadataResponse) {
	answer.TypeName, answer.Version = "quorate", Version
}

func (quorate) Schema(_ context.Context, _ provider.SchemaRequest, answer *provider.SchemaResponse) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "Quorate: ordered, durable logs with an SLA. Customers' resources need `api_key`, operators' " +
			"need `operator_token`. Neither credential is valid for the other kind.",
		Attributes: map[string]schema.Attribute{
			"endpoint": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Address of the API, as `https://api.example.com`. Or the environment variable `QUORATE_ENDPOINT`.",
			},
			"api_key": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "The key of a service account, `qk_…`, made in the portal or by `POST /v1/organization/keys`. A project's key creates " +
					"groups in its project, and neither projects nor keys. Or `QUORATE_API_KEY`.",
			},
			"operator_token": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "An operator's token, `qo_…`, for `quorate_server`, `quorate_join_token`, " +
					"`quorate_organization_quota` and `quorate_capacity`. Or `QUORATE_OPERATOR_TOKEN`.",
			},
			"owner": schema.StringAttribute{
				Optional: true, Validators: []validator.String{stringvalidator.LengthBetween(1, 200)},
				MarkdownDescription: "The configuration's name, unique among the configurations with the same credential and equal at each " +
					"apply, as `\"shop-${terraform.workspace}\"`. By it the next apply finds projects and groups of an interrupted one. " +
					"Without it that is an error which names the resource to import. Or `QUORATE_OWNER`.",
			},
			"allow_http": schema.BoolAttribute{
				Optional: true, MarkdownDescription: "Send credentials unencrypted to an `endpoint` with `http` on another machine.",
			},
		},
	}
}

func (quorate) Configure(ctx context.Context, asked provider.ConfigureRequest, answer *provider.ConfigureResponse) {
	var given settings
	answer.Diagnostics.Append(asked.Config.Get(ctx, &given)...)
	if answer.Diagnostics.HasError() {
		return
	}
	if given.Endpoint.IsUnknown() || given.APIKey.IsUnknown() || given.OperatorToken.IsUnknown() || given.Owner.IsUnknown() || given.AllowHTTP.IsUnknown() {
		return // resources are planned as unknown then, and the provider is configured again at apply
	}
	endpoint := orEnvironment(given.Endpoint, "QUORATE_ENDPOINT")
	if endpoint == "" {
		answer.Diagnostics.AddAttributeError(path.Root("endpoint"), "The API's address is missing or not valid",
			"Set `endpoint` in the provider block, or the environment variable QUORATE_ENDPOINT.")
		return
	}
	made := &connection{owner: orEnvironment(given.Owner, "QUORATE_OWNER")}
	for _, each := range []struct {
		value, variable, attribute string
		client                     **api.Client
	}{
		{orEnvironment(given.APIKey, "QUORATE_API_KEY"), "QUORATE_API_KEY", "api_key", &made.customer},
		{orEnvironment(given.OperatorToken, "QUORATE_OPERATOR_TOKEN"), "QUORATE_OPERATOR_TOKEN", "operator_token", &made.operator},
	} {
		if each.value == "" {
			continue
		}
		client, err := api.New(endpoint, each.value, Version, given.AllowHTTP.ValueBool())
		if err != nil {
			answer.Diagnostics.AddAttributeError(path.Root("endpoint"), "The API's address is missing or not valid", err.Error())
			return
		}
		*each.client = client
	}
	answer.ResourceData, answer.DataSourceData = made, made
}

func orEnvironment(value types.String, variable string) string {
	if !value.IsNull() {
		return value.ValueString()
	}
	return os.Getenv(variable)
}

func (quorate) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		func() resource.Resource { return &project{} },
		func() resource.Resource { return &guarantee{} },
		func() resource.Resource { return &group{} },
		func() resource.Resource { return &apiKey{} },
		func() resource.Resource { return &webhook{} },
		func() resource.Resource { return &joinToken{} },
		func() resource.Resource { return &server{} },
		func() resource.Resource { return &organizationQuota{} },
	}
}

func (quorate) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		func() datasource.DataSource { return &quote{} },
		func() datasource.DataSource { return &capacity{} },
	}
}
