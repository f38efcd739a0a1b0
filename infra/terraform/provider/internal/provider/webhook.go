package provider

import (
	"context"
	"net/http"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

const urlLengthMax = 2048

// The API knows the types of events.
var (
	urlForm       = regexp.MustCompile(`^https?://[^\s#]+$`)
	eventTypeForm = regexp.MustCompile(`^[a-z_]+\.[a-z_]+$`)
)

type webhook struct{ customers }

type webhookModel struct {
	ID          types.String `tfsdk:"id"`
	URL         types.String `tfsdk:"url"`
	Description types.String `tfsdk:"description"`
	EventTypes  types.Set    `tfsdk:"event_types"`
	Paused      types.Bool   `tfsdk:"paused"`
	Secret      types.String `tfsdk:"secret"`
}

func (*webhook) Metadata(_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = "quorate_webhook"
}

func (*webhook) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "A URL to which events of the organization are sent, signed after Standard Webhooks. It needs an organization's " +
			"key with `administer`. The state holds the secret, and is therefore secret itself. Import by its id; the secret of an imported " +
			"webhook is not known. An apply enables a webhook that the service has disabled, once anything of it changes.",
		Attributes: map[string]schema.Attribute{
			"id": idAttribute("The webhook's id."),
			"url": schema.StringAttribute{
				Required: true, MarkdownDescription: "Where events go: https, reachable from the public internet.",
				Validators: []validator.String{
					stringvalidator.LengthAtMost(urlLengthMax), stringvalidator.RegexMatches(urlForm, "as in `https://example.com/quorate`"),
				},
			},
			"description": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(""), MarkdownDescription: "For people.",
				Validators: []validator.String{stringvalidator.LengthAtMost(nameLengthMax)},
			},
			"event_types": schema.SetAttribute{
				Optional: true, ElementType: types.StringType,
				MarkdownDescription: "Only events of these types, as in `budget.cap_reached`. Left out: of all.",
				Validators: []validator.Set{
					setvalidator.SizeAtLeast(1),
					setvalidator.ValueStringsAre(stringvalidator.RegexMatches(eventTypeForm, "as in `group.status_changed`")),
				},
			},
			"paused": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "While it is paused, events pass it by.",
			},
			"secret": schema.StringAttribute{
				Computed: true, Sensitive: true, MarkdownDescription: "For checking signatures, `whsec_…`.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
		},
	}
}

// eventTypes of the model; empty: all.
func (m *webhookModel) eventTypes(ctx context.Context, problems *diag.Diagnostics) *[]gen.EventType {
	chosen := []gen.EventType{}
	if !m.EventTypes.IsNull() {
		problems.Append(m.EventTypes.ElementsAs(ctx, &chosen, false)...)
	}
	return &chosen
}

func (w *webhook) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	var model webhookModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	chosen := model.eventTypes(ctx, &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	wanted := gen.NewWebhook{Url: model.URL.ValueString(), Description: model.Description.ValueStringPointer(), EventTypes: chosen}
	parameters := &gen.CreateWebhookParams{IdempotencyKey: api.NewIdempotencyKey()}
	made, err := api.Ask[gen.CreatedWebhook](ctx, w.api, func(ctx context.Context) (*http.Response, error) {
		return w.api.CreateWebhook(ctx, parameters, wanted)
	})
	if err != nil {
		explain(&answer.Diagnostics, "Making the webhook", err, "url", "description", "event_types")
		return
	}
	model.ID, model.Secret = types.StringValue(made.Id.String()), types.StringValue(made.Secret)
	// From here on it is in the state, so that a failed pause is repaired by the next apply.
	if answer.Diagnostics.Append(answer.State.Set(ctx, model)...); answer.Diagnostics.HasError() || !model.Paused.ValueBool() {
		return
	}
	w.change(ctx, &model, &answer.Diagnostics)
}

// change sends the whole model.
func (w *webhook) change(ctx context.Context, model *webhookModel, problems *diag.Diagnostics) {
	id := parseID(model.ID, path.Root("id"), problems)
	chosen := model.eventTypes(ctx, problems)
	if problems.HasError() {
		return
	}
	status := gen.ChangedWebhookStatus("enabled")
	if model.Paused.ValueBool() {
		status = gen.ChangedWebhookStatus("paused")
	}
	wanted := gen.ChangedWebhook{
		Url: model.URL.ValueString(), Description: model.Description.ValueStringPointer(), EventTypes: chosen, Status: &status,
	}
	_, err := api.Ask[gen.Webhook](ctx, w.api, func(ctx context.Context) (*http.Response, error) {
		return w.api.ChangeWebhook(ctx, id, wanted)
	})
	if err != nil {
		explain(problems, "Changing the webhook", err, "url", "description", "event_types")
	}
}

func (w *webhook) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	var model webhookModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := parseID(model.ID, path.Root("id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	found, err := api.Ask[gen.Webhook](ctx, w.api, func(ctx context.Context) (*http.Response, error) { return w.api.GetWebhook(ctx, id) })
	if api.NotFound(err) {
		answer.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		explain(&answer.Diagnostics, "Reading the webhook", err)
		return
	}
	model.URL, model.Description = types.StringValue(found.Url), types.StringValue(found.Description)
	model.Paused = types.BoolValue(found.Status == "paused")
	model.EventTypes = types.SetNull(types.StringType)
	if len(found.EventTypes) > 0 {
		chosen, problems := types.SetValueFrom(ctx, types.StringType, found.EventTypes)
		answer.Diagnostics.Append(problems...)
		model.EventTypes = chosen
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (w *webhook) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	var model webhookModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	if w.change(ctx, &model, &answer.Diagnostics); answer.Diagnostics.HasError() {
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (w *webhook) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model webhookModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := parseID(model.ID, path.Root("id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	_, err := api.Ask[struct{}](ctx, w.api, func(ctx context.Context) (*http.Response, error) { return w.api.DeleteWebhook(ctx, id) })
	if err != nil && !api.NotFound(err) {
		explain(&answer.Diagnostics, "Deleting the webhook", err)
	}
}

func (*webhook) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), asked, answer)
}
