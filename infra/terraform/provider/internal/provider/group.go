package provider

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

const (
	groupReadyMax = 60 * time.Second
	groupGoneMax  = 60 * time.Second
	groupMovedMax = 30 * time.Minute // replicas copy their logs to other servers
	pollEvery     = 250 * time.Millisecond
	onChangeStop  = "refuse"
	onChangeLose  = "replace"
)

type group struct{ customers }

type groupModel struct {
	ID        types.String `tfsdk:"id"`
	ProjectID types.String `tfsdk:"project_id"`
	Name      types.String `tfsdk:"name"`
	sla
	OnSlaChange        types.String `tfsdk:"on_sla_change"`
	DeletionProtection types.Bool   `tfsdk:"deletion_protection"`
	MonthlyMicros      types.Int64  `tfsdk:"monthly_micros"`
}

func (*group) Metadata(_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = "quorate_group"
}

func (*group) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	attributes := map[string]schema.Attribute{
		"id":         idAttribute("The group's id."),
		"project_id": schema.StringAttribute{Required: true, MarkdownDescription: "The group's project.", PlanModifiers: replace},
		"name": schema.StringAttribute{
			Required: true, MarkdownDescription: "Unique in the project. Another name changes the group in place: its log stays. Keys whose " +
				"scopes name groups see it by its new name alone.",
			Validators: []validator.String{stringvalidator.LengthBetween(1, nameLengthMax)},
		},
		"deletion_protection": schema.BoolAttribute{
			Optional: true, Computed: true, Default: booldefault.StaticBool(true),
			MarkdownDescription: "`true` (default): a plan that would delete the group with its log is an error, and the API refuses to delete " +
				"it for anybody. Apply `false` first, if the log may really go. A key without `administer` cannot set it to `false`.",
		},
		"on_sla_change": schema.StringAttribute{
			Optional: true, Computed: true, Default: stringdefault.StaticString(onChangeStop),
			MarkdownDescription: "Effect of a changed `durability`, `replication_degree` or `region`, which a group keeps for life. " +
				"`refuse` (default): it is an error of the plan. " +
				"`replace`: the group is deleted with its log, and another is created. Other fields of the SLA change in place.",
			Validators: []validator.String{stringvalidator.OneOf(onChangeStop, onChangeLose)},
		},
		"monthly_micros": schema.Int64Attribute{
			Computed:            true,
			MarkdownDescription: "Price of the reservation for 730 hours, in millionths of the currency, as agreed at its creation or last resize.",
		},
	}
	for _, field := range slaFields {
		attributes[field.name] = groupAttribute(field)
	}
	answer.Schema = schema.Schema{
		MarkdownDescription: "An SLA and its log. A refusal names the scarce resource, at the attribute that asks for it. The plan already " +
			"refuses, unless the fleet is empty or the same plan brings servers. A changed " +
			"SLA resizes the group in place, while appends continue. If its servers have no room for that, nothing changes. " +
			"Import by `PROJECT_ID/GROUP_ID`.",
		Attributes: attributes,
	}
}

func groupAttribute(field slaField) schema.Attribute {
	if field.text != nil {
		attribute := schema.StringAttribute{
			Required: field.required, Optional: !field.required, MarkdownDescription: field.description,
			Validators: field.textValidators(),
		}
		if field.textDefault != "" {
			attribute.Computed, attribute.Default = true, stringdefault.StaticString(field.textDefault)
		}
		return attribute
	}
	attribute := schema.Int64Attribute{
		Required: field.required, Optional: !field.required, MarkdownDescription: field.description,
		Validators: field.numberValidators(),
	}
	if number, has := field.defaultsTo(); has {
		attribute.Computed, attribute.Default = true, int64default.StaticInt64(number)
	}
	return attribute
}

// ModifyPlan refuses a change of a lifelong attribute, unless the configuration accepts the loss of the log: Terraform
// would otherwise replace the group. It also reports whether there is room for a new group or a resize.
func (g *group) ModifyPlan(ctx context.Context, asked resource.ModifyPlanRequest, answer *resource.ModifyPlanResponse) {
	if asked.Plan.Raw.IsNull() {
		refuseLoss(ctx, asked.State, path.Empty(), &answer.Diagnostics)
		return
	}
	if asked.State.Raw.IsNull() {
		var planned groupModel
		if answer.Diagnostics.Append(asked.Plan.Get(ctx, &planned)...); !answer.Diagnostics.HasError() {
			g.refuseNewIfNoRoom(ctx, &planned, &answer.Diagnostics)
		}
		return
	}
	var before, after groupModel
	answer.Diagnostics.Append(asked.State.Get(ctx, &before)...)
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &after)...); answer.Diagnostics.HasError() {
		return
	}
	if !after.ProjectID.Equal(before.ProjectID) {
		refuseLoss(ctx, asked.State, path.Root("project_id"), &answer.Diagnostics)
	}
	changed := changedAttributes(before.sla, after.sla)
	if len(changed) == 0 {
		after.MonthlyMicros = before.MonthlyMicros
		answer.Diagnostics.Append(answer.Plan.Set(ctx, after)...)
		return
	}
	fixed := 0
	for _, name := range changed {
		if !slices.Contains(slaFixed, name) {
			continue
		}
		fixed++
		if after.OnSlaChange.ValueString() == onChangeLose {
			refuseLoss(ctx, asked.State, path.Root(name), &answer.Diagnostics)
			answer.RequiresReplace = append(answer.RequiresReplace, path.Root(name))
			continue
		}
		answer.Diagnostics.AddAttributeError(path.Root(name), "A group keeps its "+name+" for life",
			fmt.Sprintf("Replacing %s would delete its log. Restore %s, create a second group and move to it, or accept the loss of "+
				"the log with on_sla_change = \"replace\".", before.Name.ValueString(), name))
	}
	if few, has := after.Partitions.ValueInt64(), before.Partitions.ValueInt64(); !after.Partitions.IsUnknown() && few < has {
		answer.Diagnostics.AddAttributeError(path.Root("partitions"), "Partitions are added and never removed",
			fmt.Sprintf("%s has %d partitions, and their logs would be lost. Restore partitions = %d, or create a second group and move to it.",
				before.Name.ValueString(), has, has))
		return
	}
	if fixed == 0 {
		g.refuseIfNoRoom(ctx, &before, &after, &answer.Diagnostics)
	}
}

// refuseLoss makes the deletion of a protected group an error of the plan. `at`: the attribute that would replace it.
func refuseLoss(ctx context.Context, state tfsdk.State, at path.Path, diagnostics *diag.Diagnostics) {
	var model groupModel
	diagnostics.Append(state.Get(ctx, &model)...)
	if diagnostics.HasError() || !model.DeletionProtection.ValueBool() {
		return
	}
	summary := "The group " + model.Name.ValueString() + " is protected from deletion"
	detail := "This plan would delete its log. If the log may really go, apply `deletion_protection = false` first."
	if at.Equal(path.Empty()) {
		diagnostics.AddError(summary, detail)
		return
	}
	diagnostics.AddAttributeError(at, summary, detail)
}

// refuseIfNoRoom asks for a quote, so that a resize without room is an error of the plan. A quote as a data source would be
// too late: it waits for the apply if it names a group that is to change.
func (g *group) refuseIfNoRoom(ctx context.Context, before, after *groupModel, diagnostics *diag.Diagnostics) {
	id, err := uuid.Parse(before.ID.ValueString())
	if err != nil || g.api == nil || !after.known() {
		return
	}
	request := after.quoteRequest()
	request.ReplacesGroupId = &id
	found, err := g.quote(ctx, request)
	if err != nil {
		explain(diagnostics, "Asking for a quote", err, slaNames()...)
		return
	}
	if found.Refusal != nil {
		attribute, text := refusalInWords(found.Refusal)
		diagnostics.AddAttributeError(path.Root(attribute), "The fleet cannot promise this SLA now", text+
			"\n\nThe group is unchanged. If another change of this plan is to make room, apply that one first.")
	}
}

func (g *group) quote(ctx context.Context, request gen.QuoteRequest) (*gen.QuoteAnswer, error) {
	return api.Ask[gen.QuoteAnswer](ctx, g.api, func(ctx context.Context) (*http.Response, error) {
		return g.api.CreateQuote(ctx, &gen.CreateQuoteParams{}, request)
	})
}

// refuseNewIfNoRoom makes an over-ask an error of the plan. It is a warning if the servers come with the same apply, because
// the plan cannot know their capacity: the apply asks again.
func (g *group) refuseNewIfNoRoom(ctx context.Context, planned *groupModel, diagnostics *diag.Diagnostics) {
	if g.api == nil || !planned.known() {
		return
	}
	found, err := g.quote(ctx, planned.quoteRequest())
	if api.Passing(err) {
		diagnostics.AddWarning("Whether the fleet can promise "+planned.Name.ValueString()+" is not known yet",
			sentence(err)+". The apply asks again.")
		return
	}
	if err != nil {
		explain(diagnostics, "Asking for a quote", err, slaNames()...)
		return
	}
	if found.Refusal == nil {
		return
	}
	attribute, text := refusalInWords(found.Refusal)
	if g.fleetIsToCome(ctx) {
		diagnostics.AddAttributeWarning(path.Root(attribute), "The fleet cannot promise this SLA yet", text+
			"\n\nIf its servers join during the apply, there may be room by then: the apply asks again.")
		return
	}
	diagnostics.AddAttributeError(path.Root(attribute), "The fleet cannot promise this SLA now", text+
		"\n\nIf another change of this plan is to make room, apply that one first.")
}

// fleetIsToCome: there is no server yet, or this plan brings more.
func (g *group) fleetIsToCome(ctx context.Context) bool {
	if g.shared.joining.Load() {
		return true
	}
	operator := g.shared.operator
	if operator == nil {
		return false
	}
	found, err := api.Ask[gen.Capacity](ctx, operator, func(ctx context.Context) (*http.Response, error) { return operator.GetCapacity(ctx) })
	return err == nil && found.ServersAlive == 0
}

func changedAttributes(before, after sla) []string {
	var changed []string
	for _, each := range []struct {
		name string
		same bool
	}{
		{"durability", before.Durability.Equal(after.Durability)},
		{"replication_degree", before.ReplicationDegree.Equal(after.ReplicationDegree)},
		{"min_replicas", before.MinReplicas.Equal(after.MinReplicas)},
		{"request_size_bytes", before.RequestSizeBytes.Equal(after.RequestSizeBytes)},
		{"rate_per_s", before.RatePerS.Equal(after.RatePerS)},
		{"read_rate_per_s", before.ReadRatePerS.Equal(after.ReadRatePerS)},
		{"region", before.Region.Equal(after.Region)},
		{"retention_bytes", before.RetentionBytes.Equal(after.RetentionBytes)},
		{"retention_age_s", before.RetentionAgeS.Equal(after.RetentionAgeS)},
		{"latency", before.Latency.Equal(after.Latency)},
		{"partitions", before.Partitions.Equal(after.Partitions)},
	} {
		if !each.same {
			changed = append(changed, each.name)
		}
	}
	return changed
}

func (g *group) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	var model groupModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	projectID := parseID(model.ProjectID, path.Root("project_id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	const doing = "Making the group"
	body := model.newGroup(model.Name.ValueString())
	body.DeletionProtection = model.DeletionProtection.ValueBoolPointer()
	made, err := createOnce(ctx, &g.customers, &answer.Diagnostics, creation[gen.Group]{
		doing: doing, identity: []any{"group", projectID, body},
		create: func(ctx context.Context, key *string) (*http.Response, error) {
			return g.api.CreateGroup(ctx, projectID, &gen.CreateGroupParams{IdempotencyKey: key}, body)
		},
		current: func(ctx context.Context, made *gen.Group) (*gen.Group, error) { return g.unlessLeaving(ctx, made.Id) },
	})
	if api.HasCode(err, "name_taken") {
		nameTaken(&answer.Diagnostics, doing, g.importID(ctx, projectID, body.Name), err)
		return
	}
	if err != nil {
		explain(&answer.Diagnostics, doing, err, append(slaNames(), "name")...)
		return
	}
	model.take(made)
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...) // from here on the group exists
	if status := g.untilReady(ctx, made); status == gen.GroupStatusProvisioning {
		answer.Diagnostics.AddWarning("The group is admitted and not active yet",
			"Its servers have not taken up their configuration. The reservation stands; the portal shows what it waits for.")
	}
}

// unlessLeaving reads a group. It waits for the end of a deletion, because a group keeps its name until then.
func (g *group) unlessLeaving(ctx context.Context, id uuid.UUID) (*gen.Group, error) {
	found, err := g.read(ctx, id)
	if err != nil || found.Status != gen.GroupStatusDeleting {
		return found, err
	}
	gone, err := g.untilGone(ctx, id)
	if err == nil && !gone {
		err = errors.New("the former group of this name is being deleted, which takes a while: apply again")
	}
	return nil, err
}

// importID finds a group by its name, for a hint; "" when that fails.
func (g *group) importID(ctx context.Context, projectID uuid.UUID, name string) string {
	limit := pageLimit
	var cursor *string
	for {
		page, err := api.Ask[gen.PageGroup](ctx, g.api, func(ctx context.Context) (*http.Response, error) {
			return g.api.ListGroups(ctx, projectID, &gen.ListGroupsParams{Limit: &limit, Cursor: cursor})
		})
		if err != nil {
			return ""
		}
		for _, each := range page.Items {
			if each.Name == name {
				return projectID.String() + "/" + each.Id.String()
			}
		}
		if cursor = page.NextCursor; cursor == nil {
			return ""
		}
	}
}

func (m *groupModel) take(found *gen.Group) {
	m.ID, m.ProjectID = types.StringValue(found.Id.String()), types.StringValue(found.ProjectId.String())
	m.Name, m.sla = types.StringValue(found.Name), slaOf(found.Sla, partitionsOf(found))
	m.MonthlyMicros = types.Int64Value(int64(found.Price.MonthlyMicros))
	m.DeletionProtection = types.BoolValue(found.DeletionProtection != nil && *found.DeletionProtection)
}

func (g *group) untilReady(ctx context.Context, found *gen.Group) gen.GroupStatus {
	found = g.lookWhile(ctx, found, groupReadyMax, func(seen *gen.Group) bool {
		return seen.Status == gen.GroupStatusProvisioning
	})
	return found.Status
}

// untilResized waits while replicas move before the SLA that was asked for begins.
func (g *group) untilResized(ctx context.Context, found *gen.Group) *gen.Group {
	return g.lookWhile(ctx, found, groupMovedMax, func(seen *gen.Group) bool { return seen.Resizing != nil })
}

// lookWhile reads the group again as long as it waits, up to a bound; its last state.
func (g *group) lookWhile(ctx context.Context, found *gen.Group, most time.Duration, waits func(*gen.Group) bool) *gen.Group {
	deadline := time.Now().Add(most)
	for waits(found) && time.Now().Before(deadline) && pause(ctx, pollEvery) {
		newer, err := g.read(ctx, found.Id)
		if api.Passing(err) {
			continue
		}
		if err != nil {
			break
		}
		found = newer
	}
	return found
}

// pause waits. False when there is no more time.
func pause(ctx context.Context, duration time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(duration):
		return true
	}
}

func (g *group) read(ctx context.Context, id uuid.UUID) (*gen.Group, error) {
	return api.Ask[gen.Group](ctx, g.api, func(ctx context.Context) (*http.Response, error) {
		return g.api.GetGroup(ctx, id, &gen.GetGroupParams{})
	})
}

func (g *group) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	var model groupModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := parseID(model.ID, path.Root("id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	found, err := g.read(ctx, id)
	if api.NotFound(err) || (err == nil && found.Status == gen.GroupStatusDeleting) {
		answer.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		explain(&answer.Diagnostics, "Reading the group", err)
		return
	}
	if found.Status == gen.GroupStatusLost {
		answer.Diagnostics.AddWarning("The group "+found.Name+" is lost",
			"Every replica of its log is gone. Its owner may reset it (`POST /v1/groups/{id}/reset`); Terraform does not.")
	}
	model.take(found)
	if model.OnSlaChange.IsNull() {
		model.OnSlaChange = types.StringValue(onChangeStop) // just imported
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

// settle changes what is not part of the SLA.
func (g *group) settle(ctx context.Context, id uuid.UUID, model *groupModel) error {
	wanted := gen.GroupSettings{Name: model.Name.ValueString(), DeletionProtection: model.DeletionProtection.ValueBoolPointer()}
	_, err := api.Ask[gen.Group](ctx, g.api, func(ctx context.Context) (*http.Response, error) {
		return g.api.ChangeGroupSettings(ctx, id, &gen.ChangeGroupSettingsParams{}, wanted)
	})
	return err
}

// Update changes the settings, and resizes the group if its SLA changed; on_sla_change is Terraform's own.
func (g *group) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	var before, model groupModel
	answer.Diagnostics.Append(asked.State.Get(ctx, &before)...)
	answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...)
	id := parseID(before.ID, path.Root("id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	if !model.Name.Equal(before.Name) || !model.DeletionProtection.Equal(before.DeletionProtection) {
		if err := g.settle(ctx, id, &model); err != nil {
			explain(&answer.Diagnostics, "Changing the group's settings", err, "name", "deletion_protection")
			return
		}
		before.Name, before.DeletionProtection = model.Name, model.DeletionProtection
		answer.Diagnostics.Append(answer.State.Set(ctx, before)...) // it holds, whatever becomes of the SLA
	}
	if len(changedAttributes(before.sla, model.sla)) > 0 {
		found, err := api.Ask[gen.Group](ctx, g.api, func(ctx context.Context) (*http.Response, error) {
			return g.api.ResizeGroupWithBody(ctx, id, &gen.ResizeGroupParams{}, "application/json", bytes.NewReader(model.resized()))
		})
		if err != nil {
			explain(&answer.Diagnostics, "Resizing the group", err, slaNames()...)
			return
		}
		if found = g.untilResized(ctx, found); found.Resizing != nil {
			answer.Diagnostics.AddError("Resizing the group: it takes a while",
				"Replicas move to servers with room for the SLA, which begins after the last move. The resize is stored and "+
					"continues. Apply again to see its end.")
			return
		}
		model.take(found)
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (g *group) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model groupModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := parseID(model.ID, path.Root("id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	_, err := api.Ask[struct{}](ctx, g.api, func(ctx context.Context) (*http.Response, error) {
		return g.api.DeleteGroup(ctx, id, &gen.DeleteGroupParams{})
	})
	gone := api.NotFound(err)
	if err == nil {
		gone, err = g.untilGone(ctx, id)
	}
	if !gone && err != nil {
		explain(&answer.Diagnostics, "Deleting the group", err)
	} else if !gone {
		answer.Diagnostics.AddError("Deleting the group: it takes a while",
			"The deletion is stored and continues. Apply again to see its end.")
	}
}

// untilGone waits for the end of a stored deletion. It returns errors that do not pass by themselves.
func (g *group) untilGone(ctx context.Context, id uuid.UUID) (bool, error) {
	for deadline := time.Now().Add(groupGoneMax); time.Now().Before(deadline); {
		_, err := g.read(ctx, id)
		if api.NotFound(err) {
			return true, nil
		}
		if err != nil && !api.Passing(err) {
			return false, err
		}
		if !pause(ctx, pollEvery) {
			break
		}
	}
	return false, nil
}

func (*group) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	importPair(ctx, asked, answer, "project_id", "id")
}

func importPair(
	ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse, first, second string,
) {
	left, right, found := strings.Cut(asked.ID, "/")
	if !found || left == "" || right == "" {
		answer.Diagnostics.AddError("This is not an import id", fmt.Sprintf("%q should be %s/%s.", asked.ID, first, second))
		return
	}
	answer.Diagnostics.Append(answer.State.SetAttribute(ctx, path.Root(first), left)...)
	answer.Diagnostics.Append(answer.State.SetAttribute(ctx, path.Root(second), right)...)
}
