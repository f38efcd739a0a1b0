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
	stoppedMax           = 30 * time.Second // a lease, and a machine that takes its time to end
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
		MarkdownDescription: "A machine's membership in the fleet. Creating waits for the server to register itself, " +
			"destroying drains it and waits until it holds nothing. One that was given up is waited for anew by the next apply. Let it depend on its machine (through `instance_id`): then " +
			"Terraform's own order is drain first, stop after. Import by the server's name.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "The name that the server registers under.",
				Validators:    []validator.String{stringvalidator.LengthBetween(1, 63)},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"instance_id": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The machine's id. When it changes, the server is waited for again.",
			},
			"registration_timeout_s": seconds(registrationDefaultS, "How long the server may take to register."),
			"drain_timeout_s": seconds(drainDefaultS, "How long a drain may take. After it, destroying fails and the drain goes on: "+
				"apply again to wait further."),
			"give_up_if_dead": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(true),
				MarkdownDescription: "What destroying does with a server that does not run and that no group needs any more. `true`: it is " +
					"given up; others have all that it held, and it could only come back with a new join token. `false`: that is an error.",
			},
			"server_id": schema.Int64Attribute{
				Computed: true, MarkdownDescription: "The fleet's number for it.",
				PlanModifiers: []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"address": schema.StringAttribute{Computed: true, MarkdownDescription: "Where clients and peers reach it."},
		},
	}
}

func (s *server) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	var model serverModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	if s.untilAlive(ctx, &model, &answer.Diagnostics) {
		answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
	}
}

func (s *server) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	var model serverModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	if s.untilAlive(ctx, &model, &answer.Diagnostics) {
		answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
	}
}

// ModifyPlan notes for groups of the same plan, which depend on their servers, that there will be more room.
func (s *server) ModifyPlan(_ context.Context, asked resource.ModifyPlanRequest, _ *resource.ModifyPlanResponse) {
	if asked.State.Raw.IsNull() && !asked.Plan.Raw.IsNull() && s.shared != nil {
		s.shared.joining.Store(true)
	}
}

// untilAlive waits for the server, and takes it into service if it was draining.
func (s *server) untilAlive(ctx context.Context, model *serverModel, diagnostics *diag.Diagnostics) bool {
	name := model.Name.ValueString()
	deadline := time.Now().Add(time.Duration(model.RegistrationS.ValueInt64()) * time.Second)
	for {
		found, err := findServer(ctx, s.api, name)
		if err == nil && found != nil && found.Alive {
			if err = s.intoService(ctx, found); err == nil {
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

// intoService calls a drain off.
func (s *server) intoService(ctx context.Context, found *gen.Server) error {
	if !found.Draining {
		return nil
	}
	_, err := api.Ask[gen.Server](ctx, s.api, func(ctx context.Context) (*http.Response, error) {
		return s.api.CallOffDrain(ctx, found.ServerId)
	})
	return err
}

// findServer answers nil when there is none of this name.
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
			"The fleet does without it. Its machine's resource shows what became of the machine.")
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

// Delete drains, and waits until the server holds nothing.
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
			answer.Diagnostics.AddError("The drain of "+name+" takes its time",
				fmt.Sprintf("%d replicas are left after %d s:%s The drain goes on; apply again to wait further.",
					left, model.DrainS.ValueInt64(), message))
			return
		}
	}
}

// leaving is one server on its way out of the fleet.
type leaving struct {
	api         *api.Client
	diagnostics *diag.Diagnostics
	name        string
	drain       *gen.DrainServerParams
	drains      bool // it was told to
	keepIfDead  bool
	deadSince   time.Time
}

// look answers how the server is, nil when it is gone. One that has something to give is told to drain.
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

// isOver tells whether nothing is left to wait for, and says so where that is no success.
//
// A server that does not run drains no further: what it is to drop waits for it. If no chain has it, others have all that it
// held, and nothing is lost by giving it up.
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
			"No group needs it: others have replaced it. Start it again, so that it drains, or give it up ("+call+
				", or give_up_if_dead = true). Then apply again.")
		return true
	case !found.Alive && found.Replicas == 0:
		return l.giveUp(ctx, found)
	case !found.Alive && (isLate || time.Since(l.deadSince) > stoppedMax):
		l.diagnostics.AddError("The server "+l.name+" does not run, and groups wait for its disk",
			fmt.Sprintf("%d groups have no other replica to go on with. Start it again with its disk; then apply again. If the disk is "+
				"gone for good, say so (%s): what only it held is lost then.", found.Replicas, call))
		return true
	case l.drains && found.Drain == nil:
		l.diagnostics.AddError("The drain of "+l.name+" was called off", "By somebody else. Apply again to drain it.")
		return true
	}
	return false
}

func (l *leaving) giveUp(ctx context.Context, found *gen.Server) bool {
	_, err := api.Ask[struct{}](ctx, l.api, func(ctx context.Context) (*http.Response, error) {
		return l.api.GiveUpServer(ctx, found.ServerId)
	})
	if api.HasCode(err, "server_alive") || api.Passing(err) {
		return false // it is back, or the next look tells
	}
	if err != nil && !api.NotFound(err) {
		explain(l.diagnostics, "Giving the server "+l.name+" up", err)
	}
	return true
}

func (*server) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("name"), asked, answer)
}
