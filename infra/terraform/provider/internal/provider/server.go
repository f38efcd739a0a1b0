package provider

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

const (
	registrationDefaultS = 600 // a machine boots, installs and tests itself
	drainDefaultS        = 3600
	serverPollEvery      = 500 * time.Millisecond
	stoppedMax           = 30 * time.Second // a lease, and the time of a slow machine's end
)

type server struct{ operators }

type serverModel struct {
	Name          types.String `tfsdk:"name"`
	InstanceID    types.String `tfsdk:"instance_id"`
	RegistrationS types.Int64  `tfsdk:"registration_timeout_s"`
	DrainS        types.Int64  `tfsdk:"drain_timeout_s"`
	GiveUpIfDead  types.Bool   `tfsdk:"give_up_if_dead"`
	ServerID      types.Int64  `tfsdk:"server_id"`
	Address       types.String `tfsdk:"address"`
}

func (*server) Metadata(_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = "quorate_server"
}

func (*server) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	seconds := func(value int64, description string) schema.Attribute {
		return schema.Int64Attribute{
			Optional: true, Computed: true, Default: int64default.StaticInt64(value), MarkdownDescription: description,
			Validators: []validator.Int64{int64validator.Between(1, 86_400)},
		}
	}
	answer.Schema = schema.Schema{
		MarkdownDescription: "A machine's membership in the fleet. Creating waits for the server to register itself, and calls off its drain. " +
			"Changing it leaves a drain alone, which an operator has begun. Destroying drains it and waits until it holds no replica. The next apply waits again for a server that was removed from the fleet. " +
			"Let it depend on its machine (through `instance_id`): then Terraform drains first and stops afterwards. Import by the server's name.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "The name under which the server registers.",
				Validators:    []validator.String{stringvalidator.LengthBetween(1, 63)},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"instance_id": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The machine's id. After a change the next apply waits for the server again.",
			},
			"registration_timeout_s": seconds(registrationDefaultS, "How long the server may take to register."),
			"drain_timeout_s": seconds(drainDefaultS, "How long a drain may take. After it, destroying fails and the drain goes on: "+
				"apply again to wait further."),
			"give_up_if_dead": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "Destroying a server that does not run and that no group needs any more. `true`: it is removed from the " +
					"fleet; others have all its entries, and it could only return with a new join token. `false`: that is an error.",
			},
			"server_id": schema.Int64Attribute{
				Computed: true, MarkdownDescription: "The fleet's number for it.",
				PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"address": schema.StringAttribute{Computed: true, MarkdownDescription: "Address for clients and peers."},
		},
	}
}

func (s *server) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	var model serverModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	if s.untilAlive(ctx, &model, s.intoService, &answer.Diagnostics) {
		answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
	}
}

// Update leaves a drain alone: an operator has begun it since.
func (s *server) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	var model serverModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	asItIs := func(context.Context, *gen.Server) error { return nil }
	if s.untilAlive(ctx, &model, asItIs, &answer.Diagnostics) {
		answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
	}
}

// ModifyPlan records for groups of the same plan that new servers bring more room.
func (s *server) ModifyPlan(_ context.Context, asked resource.ModifyPlanRequest, _ *resource.ModifyPlanResponse) {
	if asked.State.Raw.IsNull() && !asked.Plan.Raw.IsNull() && s.shared != nil {
		s.shared.joining.Store(true)
	}
}

// untilAlive waits for the server, and then does with it what is to be done.
func (s *server) untilAlive(
	ctx context.Context, model *serverModel, then func(context.Context, *gen.Server) error, diagnostics *diag.Diagnostics,
) bool {
	name := model.Name.ValueString()
	deadline := time.Now().Add(time.Duration(model.RegistrationS.ValueInt64()) * time.Second)
	for {
		found, err := findServer(ctx, s.api, name)
		if err == nil && found != nil && found.Alive {
			if err = then(ctx, found); err == nil {
				model.ServerID, model.Address = types.Int64Value(int64(found.ServerId)), types.StringValue(found.Address)
				return true
			}
		}
		isLate := time.Now().After(deadline)
		if err != nil && (isLate || !api.Passing(err)) {
			explain(diagnostics, "Waiting for the server "+name, err)
			return false
		}
		if isLate || !pause(ctx, serverPollEvery) {
			state := "no server of this name is registered: the machine did not come up, its join token had expired or was " +
				"for another name, or it does not reach the coordinator. Look at its machine's log; apply again to wait further. A new " +
				"token, and with it a new machine: terraform apply -replace=ADDRESS, with the address of its quorate_join_token, as in " +
				"-replace='quorate_join_token." + name + "'. A new machine with the same token, if none has joined with it: the " +
				"same with the machine's address"
			if found != nil {
				state = "it is registered and does not run. Look at its machine's log; apply again to wait further"
			}
			diagnostics.AddAttributeError(path.Root("name"), "The server "+name+" does not join",
				fmt.Sprintf("After %d s %s.", model.RegistrationS.ValueInt64(), state))
			return false
		}
	}
}

// intoService cancels a drain.
func (s *server) intoService(ctx context.Context, found *gen.Server) error {
	if !found.Draining {
		return nil
	}
	_, err := api.Ask[gen.Server](ctx, s.api, func(ctx context.Context) (*http.Response, error) {
		return s.api.CallOffDrain(ctx, found.ServerId)
	})
	return err
}

// findServer returns nil if no server has this name.
func findServer(ctx context.Context, client *api.Client, name string) (*gen.Server, error) {
	found, err := api.Ask[gen.Servers](ctx, client, func(ctx context.Context) (*http.Response, error) {
		return client.ListServers(ctx, &gen.ListServersParams{Name: &name})
	})
	if err != nil || len(found.Items) == 0 {
		return nil, err
	}
	return &found.Items[0], nil
}

func (s *server) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	var model serverModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	found, err := findServer(ctx, s.api, model.Name.ValueString())
	if err != nil {
		explain(&answer.Diagnostics, "Reading the server "+model.Name.ValueString(), err)
		return
	}
	if found == nil {
		answer.State.RemoveResource(ctx)
		return
	}
	model.ServerID, model.Address = types.Int64Value(int64(found.ServerId)), types.StringValue(found.Address)
	if model.RegistrationS.IsNull() { // just imported
		model.RegistrationS, model.DrainS = types.Int64Value(registrationDefaultS), types.Int64Value(drainDefaultS)
	}
	if model.GiveUpIfDead.IsNull() {
		model.GiveUpIfDead = types.BoolValue(true)
	}
	if !found.Alive {
		answer.Diagnostics.AddWarning("The server "+found.Name+" does not run",
			"The fleet serves without it. The machine's resource shows its state.")
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

// Delete drains, and waits until the server holds no replica.
func (s *server) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model serverModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	name := model.Name.ValueString()
	going := leaving{
		api: s.api, diagnostics: &answer.Diagnostics, name: name, drain: &gen.DrainServerParams{IdempotencyKey: api.NewIdempotencyKey()},
		keepIfDead: model.GiveUpIfDead.Equal(types.BoolValue(false)),
	}
	deadline := time.Now().Add(time.Duration(model.DrainS.ValueInt64()) * time.Second)
	for {
		found, err := going.look(ctx)
		isLate := time.Now().After(deadline)
		if err == nil && (found == nil || going.isOver(ctx, found, isLate)) {
			return
		}
		if err != nil && (isLate || !api.Passing(err)) {
			explain(&answer.Diagnostics, "Draining the server "+name, err)
			return
		}
		if isLate || !pause(ctx, serverPollEvery) {
			left, message := 0, ""
			if found != nil && found.Drain != nil {
				left, message = found.Replicas, " "+found.Drain.Message
			}
			answer.Diagnostics.AddError("The drain of "+name+" takes a while",
				fmt.Sprintf("%d replicas are left after %d s:%s The drain continues; apply again to wait further.",
					left, model.DrainS.ValueInt64(), message))
			return
		}
	}
}

// leaving is one server that leaves the fleet.
type leaving struct {
	api         *api.Client
	diagnostics *diag.Diagnostics
	name        string
	drain       *gen.DrainServerParams
	drains      bool // its drain was requested
	keepIfDead  bool
	deadSince   time.Time
}

// look returns the server's state, nil when it is gone. It drains a server that holds replicas.
func (l *leaving) look(ctx context.Context) (*gen.Server, error) {
	found, err := findServer(ctx, l.api, l.name)
	if err != nil || found == nil || l.drains || (!found.Alive && found.Replicas == 0) {
		return found, err
	}
	number := found.ServerId
	found, err = api.Ask[gen.Server](ctx, l.api, func(ctx context.Context) (*http.Response, error) {
		return l.api.DrainServer(ctx, number, l.drain)
	})
	if api.NotFound(err) {
		return nil, nil
	}
	l.drains = err == nil
	return found, err
}

// isOver: the wait is over. It reports an error if that is no success.
//
// A server that does not run drains no further: its replicas wait for it. If no chain has it, others have all its entries,
// and removing it loses nothing.
func (l *leaving) isOver(ctx context.Context, found *gen.Server, isLate bool) bool {
	if found.Alive {
		l.deadSince = time.Time{}
	} else if l.deadSince.IsZero() {
		l.deadSince = time.Now()
	}
	call := fmt.Sprintf("DELETE /v1/operator/servers/%d", found.ServerId)
	switch {
	case found.Drain != nil && found.Drain.State == gen.Drained:
		return true
	case !found.Alive && found.Replicas == 0 && l.keepIfDead:
		l.diagnostics.AddError("The server "+l.name+" does not run, and was not drained",
			"No group needs it: others have replaced it. Start it again, so that it drains, or remove it ("+call+
				", or give_up_if_dead = true). Then apply again.")
		return true
	case !found.Alive && found.Replicas == 0:
		return l.giveUp(ctx, found)
	case !found.Alive && (isLate || time.Since(l.deadSince) > stoppedMax):
		l.diagnostics.AddError("The server "+l.name+" does not run, and groups wait for its disk",
			fmt.Sprintf("%d groups have no other replica to go on with. Start it again with its disk, then apply again. If the disk is "+
				"gone for good, remove the server (%s): entries that only it held are lost then.", found.Replicas, call))
		return true
	case l.drains && found.Drain == nil:
		l.diagnostics.AddError("The drain of "+l.name+" was cancelled", "Another operator did so. Apply again to drain it.")
		return true
	}
	return false
}

func (l *leaving) giveUp(ctx context.Context, found *gen.Server) bool {
	_, err := api.Ask[struct{}](ctx, l.api, func(ctx context.Context) (*http.Response, error) {
		return l.api.GiveUpServer(ctx, found.ServerId)
	})
	if api.HasCode(err, "server_alive") || api.Passing(err) {
		return false // it is back, or the next look finds out
	}
	if err != nil && !api.NotFound(err) {
		explain(l.diagnostics, "Removing the server "+l.name, err)
	}
	return true
}

func (*server) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("name"), asked, answer)
}
