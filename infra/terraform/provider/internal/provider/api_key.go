package provider

import (
	"context"
	"net/http"
	"regexp"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/setplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

const pageLimit = 200

// The API knows the rest.
var (
	scopeForm = regexp.MustCompile(`^((append|read|manage)(:.+)?|billing)$`)
	timeForm  = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)
)

type apiKey struct{ customers }

type apiKeyModel struct {
	ID        types.String `tfsdk:"id"`
	ProjectID types.String `tfsdk:"project_id"`
	Name      types.String `tfsdk:"name"`
	Scopes    types.Set    `tfsdk:"scopes"`
	ExpiresAt types.String `tfsdk:"expires_at"`
	Rotation  types.String `tfsdk:"rotation"`
	Secret    types.String `tfsdk:"secret"`
}

func (*apiKey) Metadata(_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = "quorate_api_key"
}

func (*apiKey) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	answer.Schema = schema.Schema{
		MarkdownDescription: "A project's API key. The state holds its secret, and is therefore secret itself. " +
			"Rotate it by changing `rotation`, with `lifecycle { create_before_destroy = true }` so that one is always valid. " +
			"An apply that is interrupted while it creates a key may leave that key unused: the next apply creates another. " +
			"Import by `PROJECT_ID/KEY_ID`; the secret of an imported key is not known.",
		Attributes: map[string]schema.Attribute{
			"id":         idAttribute("The key's id."),
			"project_id": schema.StringAttribute{Required: true, MarkdownDescription: "The key's project.", PlanModifiers: replace},
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "A name for people. It need not be unique.",
				Validators: []validator.String{stringvalidator.LengthBetween(1, nameLengthMax)}, PlanModifiers: replace,
			},
			"scopes": schema.SetAttribute{
				Required: true, ElementType: types.StringType,
				MarkdownDescription: "Any of `append`, `read`, `manage`, `billing`. The first three may name a group behind a colon, " +
					"as in `append:orders`, or begins of groups' names, as in `read:pay-*`; else they are on all groups of the project.",
				Validators: []validator.Set{
					setvalidator.SizeAtLeast(1),
					setvalidator.ValueStringsAre(stringvalidator.RegexMatches(scopeForm, "as in `append`, `read:orders` or `append:pay-*`")),
				},
				PlanModifiers: []planmodifier.Set{setplanmodifier.RequiresReplace()},
			},
			"expires_at": schema.StringAttribute{
				Optional: true, PlanModifiers: replace,
				MarkdownDescription: "From then on the key is refused (RFC 3339). Left out: it does not expire. A change replaces the key.",
				Validators:          []validator.String{stringvalidator.RegexMatches(timeForm, "as in `2027-01-31T00:00:00Z`")},
			},
			"rotation": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Any value. A change replaces the key with a new one.", PlanModifiers: replace,
			},
			"secret": schema.StringAttribute{
				Computed: true, Sensitive: true, MarkdownDescription: "The key itself, `qk_…`.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
		},
	}
}

func (k *apiKey) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	var model apiKeyModel
	var scopes []string
	answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...)
	if answer.Diagnostics.Append(model.Scopes.ElementsAs(ctx, &scopes, false)...); answer.Diagnostics.HasError() {
		return
	}
	projectID := parseID(model.ProjectID, path.Root("project_id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	wanted := gen.NewKey{Name: model.Name.ValueString(), Scopes: &scopes}
	if !model.ExpiresAt.IsNull() {
		expiresAt, err := time.Parse(time.RFC3339Nano, model.ExpiresAt.ValueString())
		if err != nil {
			answer.Diagnostics.AddAttributeError(path.Root("expires_at"), "Not a time", err.Error())
			return
		}
		wanted.ExpiresAt = &expiresAt
	}
	// Unlike groups, a key is not found again after an interruption: equal keys are two keys, and a rotation needs the second.
	parameters := &gen.CreateKeyParams{IdempotencyKey: api.NewIdempotencyKey()}
	made, err := api.Ask[gen.CreatedKey](ctx, k.api, func(ctx context.Context) (*http.Response, error) {
		return k.api.CreateKey(ctx, projectID, parameters, wanted)
	})
	if err != nil {
		explain(&answer.Diagnostics, "Making the key", err, "name", "scopes", "expires_at")
		return
	}
	model.ID, model.Secret = types.StringValue(made.Id.String()), types.StringValue(made.Secret)
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (k *apiKey) find(ctx context.Context, projectID uuid.UUID, id string) (*gen.Key, error) {
	limit := pageLimit
	var cursor *string
	for {
		page, err := api.Ask[gen.PageKey](ctx, k.api, func(ctx context.Context) (*http.Response, error) {
			return k.api.ListKeys(ctx, projectID, &gen.ListKeysParams{Limit: &limit, Cursor: cursor})
		})
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			if page.Items[i].Id.String() == id {
				return &page.Items[i], nil
			}
		}
		if cursor = page.NextCursor; cursor == nil {
			return nil, nil
		}
	}
}

func (k *apiKey) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	var model apiKeyModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	projectID := parseID(model.ProjectID, path.Root("project_id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	found, err := k.find(ctx, projectID, model.ID.ValueString())
	if api.NotFound(err) || (err == nil && found == nil) {
		answer.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		explain(&answer.Diagnostics, "Reading the key", err)
		return
	}
	scopes, problems := types.SetValueFrom(ctx, types.StringType, found.Scopes)
	answer.Diagnostics.Append(problems...)
	model.Name, model.Scopes = types.StringValue(found.Name), scopes
	if known, err := time.Parse(time.RFC3339Nano, model.ExpiresAt.ValueString()); found.ExpiresAt == nil {
		model.ExpiresAt = types.StringNull()
	} else if err != nil || !known.Equal(*found.ExpiresAt) { // another zone of the same time is no change
		model.ExpiresAt = types.StringValue(found.ExpiresAt.UTC().Format(time.RFC3339Nano))
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (*apiKey) Update(context.Context, resource.UpdateRequest, *resource.UpdateResponse) {
	panic("every attribute requires replacement")
}

func (k *apiKey) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model apiKeyModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := parseID(model.ID, path.Root("id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	_, err := api.Ask[struct{}](ctx, k.api, func(ctx context.Context) (*http.Response, error) { return k.api.RevokeKey(ctx, id) })
	if err != nil && !api.NotFound(err) {
		explain(&answer.Diagnostics, "Revoking the key", err)
	}
}

func (*apiKey) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	importPair(ctx, asked, answer, "project_id", "id")
}
