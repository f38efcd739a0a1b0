package provider

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

const (
	tokensMax = 1_000_000_000_000
	weightMax = 1_000_000
)

type guarantee struct{ customers }

type guaranteeModel struct {
	ProjectID        types.String           `tfsdk:"project_id"`
	SharedTokensPerS types.Int64            `tfsdk:"shared_tokens_per_s"`
	MaxTokensPerS    types.Int64            `tfsdk:"max_tokens_per_s"`
	Policy           types.String           `tfsdk:"policy"`
	Groups           []guaranteedGroupModel `tfsdk:"groups"`
	MonthlyMicros    types.Int64            `tfsdk:"monthly_micros"`
}

type guaranteedGroupModel struct {
	GroupID types.String `tfsdk:"group_id"`
	Weight  types.Int64  `tfsdk:"weight"`
	Class   types.String `tfsdk:"class"`
}

func (*guarantee) Metadata(_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = "quorate_project_guarantee"
}

func (*guarantee) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "A project's guarantee: tokens that any of its groups may use beside its own rate. A project has one. " +
			"It changes in place. Import by the project's id.",
		Attributes: map[string]schema.Attribute{
			"project_id": schema.StringAttribute{
				Required: true, MarkdownDescription: "The project. Another one is another guarantee.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"shared_tokens_per_s": schema.Int64Attribute{
				Required: true, MarkdownDescription: "Tokens each second that all groups share.",
				Validators: []validator.Int64{int64validator.Between(0, tokensMax)},
			},
			"max_tokens_per_s": schema.Int64Attribute{
				Optional: true, MarkdownDescription: "Tokens each second that all groups together may use, own rates and idle " +
					"capacity included. By default there is no limit.",
				Validators: []validator.Int64{int64validator.Between(1, tokensMax)},
			},
			"policy": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("drf"),
				MarkdownDescription: "How the tokens are divided: `drf` (default), `hierarchical_drf`, `first_fit` or `maximum_revenue`.",
				Validators: []validator.String{
					stringvalidator.OneOf("drf", "hierarchical_drf", "first_fit", "maximum_revenue"),
				},
			},
			"groups": schema.ListNestedAttribute{
				Optional: true, MarkdownDescription: "Groups that the policy treats otherwise than the others. `first_fit` serves these " +
					"first, in this order.",
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"group_id": schema.StringAttribute{Required: true, MarkdownDescription: "A group of the project."},
					"weight": schema.Int64Attribute{
						Optional: true, Computed: true, Default: int64default.StaticInt64(1),
						MarkdownDescription: "The proportion of its share, or the worth of a token; 1 by default.",
						Validators:          []validator.Int64{int64validator.Between(1, weightMax)},
					},
					"class": schema.StringAttribute{
						Optional: true, MarkdownDescription: "Its class, for `hierarchical_drf`.",
						Validators: []validator.String{stringvalidator.LengthBetween(1, 64)},
					},
				}},
			},
			"monthly_micros": schema.Int64Attribute{
				Computed: true, MarkdownDescription: "Price of 730 hours, in millionths of the currency.",
			},
		},
	}
}

func (g *guarantee) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	var model guaranteeModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	if g.put(ctx, "Giving the guarantee", &model, &answer.Diagnostics); answer.Diagnostics.HasError() {
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (g *guarantee) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	var model guaranteeModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	if g.put(ctx, "Changing the guarantee", &model, &answer.Diagnostics); answer.Diagnostics.HasError() {
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

// put is harmless when repeated.
func (g *guarantee) put(ctx context.Context, doing string, model *guaranteeModel, diagnostics *diag.Diagnostics) {
	projectID := parseID(model.ProjectID, path.Root("project_id"), diagnostics)
	name := gen.LocalPolicyName(model.Policy.ValueString())
	groups := make([]gen.PolicyGroup, 0, len(model.Groups))
	for i, group := range model.Groups {
		weight := int(group.Weight.ValueInt64())
		groups = append(groups, gen.PolicyGroup{
			GroupId: parseID(group.GroupID, path.Root("groups").AtListIndex(i).AtName("group_id"), diagnostics),
			Weight:  &weight,
			Class:   group.Class.ValueStringPointer(),
		})
	}
	if diagnostics.HasError() {
		return
	}
	body := gen.GuaranteeTerms{
		SharedTokensPerS: int(model.SharedTokensPerS.ValueInt64()),
		Policy:           &gen.LocalPolicy{Name: &name, Groups: &groups},
	}
	if !model.MaxTokensPerS.IsNull() {
		most := int(model.MaxTokensPerS.ValueInt64())
		body.MaxTokensPerS = &most
	}
	given, err := api.Ask[gen.ProjectGuarantee](ctx, g.api, func(ctx context.Context) (*http.Response, error) {
		return g.api.PutGuarantee(ctx, projectID, body)
	})
	if err != nil {
		explain(diagnostics, doing, err, "shared_tokens_per_s", "max_tokens_per_s", "policy", "groups", "project_id")
		return
	}
	model.MonthlyMicros = types.Int64Value(int64(given.Price.MonthlyMicros))
}

func (g *guarantee) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	var model guaranteeModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	projectID := parseID(model.ProjectID, path.Root("project_id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	found, err := g.read(ctx, projectID)
	if api.NotFound(err) || (err == nil && found.Since == nil) {
		answer.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		explain(&answer.Diagnostics, "Reading the guarantee", err)
		return
	}
	model.take(found)
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (g *guarantee) read(ctx context.Context, projectID uuid.UUID) (*gen.ProjectGuarantee, error) {
	return api.Ask[gen.ProjectGuarantee](ctx, g.api, func(ctx context.Context) (*http.Response, error) {
		return g.api.GetGuarantee(ctx, projectID)
	})
}

// take takes over what the API has. A list that is left out stays so.
func (m *guaranteeModel) take(found *gen.ProjectGuarantee) {
	m.SharedTokensPerS = types.Int64Value(int64(found.SharedTokensPerS))
	m.MaxTokensPerS = types.Int64Null()
	if found.MaxTokensPerS != nil {
		m.MaxTokensPerS = types.Int64Value(int64(*found.MaxTokensPerS))
	}
	m.Policy = types.StringValue("drf")
	if found.Policy.Name != nil {
		m.Policy = types.StringValue(string(*found.Policy.Name))
	}
	m.MonthlyMicros = types.Int64Value(int64(found.Price.MonthlyMicros))
	var groups []guaranteedGroupModel
	if found.Policy.Groups != nil {
		for _, group := range *found.Policy.Groups {
			one := guaranteedGroupModel{GroupID: types.StringValue(group.GroupId.String()), Weight: types.Int64Value(1)}
			if group.Weight != nil {
				one.Weight = types.Int64Value(int64(*group.Weight))
			}
			one.Class = types.StringPointerValue(group.Class)
			groups = append(groups, one)
		}
	}
	if len(groups) > 0 || m.Groups != nil {
		m.Groups = groups
	}
}

func (g *guarantee) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model guaranteeModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	projectID := parseID(model.ProjectID, path.Root("project_id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	_, err := api.Ask[struct{}](ctx, g.api, func(ctx context.Context) (*http.Response, error) {
		return g.api.DeleteGuarantee(ctx, projectID)
	})
	if err != nil && !api.NotFound(err) {
		explain(&answer.Diagnostics, "Taking back the guarantee", err)
	}
}

func (*guarantee) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("project_id"), asked, answer)
}
