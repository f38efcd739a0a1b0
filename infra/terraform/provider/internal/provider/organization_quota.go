package provider

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

const quotaMax = 1_000_000_000_000_000

// The API knows the quotas.
var quotaForm = regexp.MustCompile(`^[a-z_]{1,40}$`)

type organizationQuota struct{ operators }

type organizationQuotaModel struct {
	OrganizationID types.String `tfsdk:"organization_id"`
	Quota          types.String `tfsdk:"quota"`
	Limit          types.Int64  `tfsdk:"limit"`
	Used           types.Int64  `tfsdk:"used"`
	Requested      types.Int64  `tfsdk:"requested"`
}

func (*organizationQuota) Metadata(_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = "quorate_organization_quota"
}

func (*organizationQuota) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "A limit of one organization in place of the default. Setting it answers a request for more, and the owners get " +
			"mail. Destroying it brings the default back. Needs `operator_token`. Import by `ORGANIZATION_ID/QUOTA`.",
		Attributes: map[string]schema.Attribute{
			"organization_id": schema.StringAttribute{
				Required: true, MarkdownDescription: "The organization's id, as the console shows it.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"quota": schema.StringAttribute{
				Required: true, MarkdownDescription: "The quota, as in `projects` or `groups_per_project`.",
				Validators:    []validator.String{stringvalidator.RegexMatches(quotaForm, "as in `groups_per_project`")},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"limit": schema.Int64Attribute{
				Required: true, MarkdownDescription: "The most that the organization may have, in the quota's unit. Below the present use: nothing " +
					"is taken away, and nothing more is given.",
				Validators: []validator.Int64{int64validator.Between(0, quotaMax)},
			},
			"used":      schema.Int64Attribute{Computed: true, MarkdownDescription: "The present use."},
			"requested": schema.Int64Attribute{Computed: true, MarkdownDescription: "The limit that the organization has asked for; null if it waits for no answer."},
		},
	}
}

// parsed is the organization's id.
func (m *organizationQuotaModel) parsed(problems *diag.Diagnostics) uuid.UUID {
	return parseID(m.OrganizationID, path.Root("organization_id"), problems)
}

// show takes the quota over from an answer. It is false if the organization has the default, or there is no such quota.
func (m *organizationQuotaModel) show(quotas *gen.Quotas) bool {
	for _, each := range quotas.Items {
		if each.Code == m.Quota.ValueString() {
			m.Limit, m.Used, m.Requested = types.Int64Value(int64(each.Limit)), types.Int64Value(int64(each.Used)), types.Int64Null()
			if each.Requested != nil {
				m.Requested = types.Int64Value(int64(*each.Requested))
			}
			return !each.IsDefault
		}
	}
	return false
}

// set brings the API to the plan, and the state to the answer.
func (q *organizationQuota) set(ctx context.Context, plan tfsdk.Plan, state *tfsdk.State, problems *diag.Diagnostics) {
	var model organizationQuotaModel
	if problems.Append(plan.Get(ctx, &model)...); problems.HasError() {
		return
	}
	id := model.parsed(problems)
	if problems.HasError() {
		return
	}
	wanted := gen.NewLimit{Limit: int(model.Limit.ValueInt64())}
	shown, err := api.Ask[gen.Quotas](ctx, q.api, func(ctx context.Context) (*http.Response, error) {
		return q.api.SetOrganizationQuota(ctx, id, model.Quota.ValueString(), wanted)
	})
	if err != nil {
		explain(problems, "Setting the quota "+model.Quota.ValueString(), err, "quota", "limit")
		return
	}
	model.show(shown)
	problems.Append(state.Set(ctx, model)...)
}

func (q *organizationQuota) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	q.set(ctx, asked.Plan, &answer.State, &answer.Diagnostics)
}

func (q *organizationQuota) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	q.set(ctx, asked.Plan, &answer.State, &answer.Diagnostics)
}

func (q *organizationQuota) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	var model organizationQuotaModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := model.parsed(&answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	shown, err := api.Ask[gen.Quotas](ctx, q.api, func(ctx context.Context) (*http.Response, error) {
		return q.api.GetOrganizationQuotas(ctx, id)
	})
	if err != nil && !api.NotFound(err) {
		explain(&answer.Diagnostics, "Reading the quota "+model.Quota.ValueString(), err)
		return
	}
	if err != nil || !model.show(shown) {
		answer.State.RemoveResource(ctx)
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (q *organizationQuota) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model organizationQuotaModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := model.parsed(&answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	_, err := api.Ask[gen.Quotas](ctx, q.api, func(ctx context.Context) (*http.Response, error) {
		return q.api.ResetOrganizationQuota(ctx, id, model.Quota.ValueString())
	})
	if err != nil && !api.NotFound(err) {
		explain(&answer.Diagnostics, "Bringing back the default of "+model.Quota.ValueString(), err)
	}
}

func (*organizationQuota) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	organization, quota, isPair := strings.Cut(asked.ID, "/")
	if !isPair {
		answer.Diagnostics.AddError("This is not the id of a quota", asked.ID+" should be ORGANIZATION_ID/QUOTA.")
		return
	}
	answer.Diagnostics.Append(answer.State.SetAttribute(ctx, path.Root("organization_id"), organization)...)
	answer.Diagnostics.Append(answer.State.SetAttribute(ctx, path.Root("quota"), quota)...)
}
