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
			"destroying drains it and waits until it holds nothing. Let it depend on its machine (through `instance_id`): then " +
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

// untilAlive waits for the server, and takes it into service if it was draining.
func (s *server) untilAlive(ctx context.Context, model *serverModel, diagnostics *diag.Diagnostics) bool {
	name := model.Name.ValueString()
	deadline := time.Now().Add(time.Duration(model.RegistrationS.ValueInt64()) * time.Second)
	for {
		found, err := findServer(ctx, s.api, name)
		if err != nil {
			explain(diagnostics, "Waiting for the server "+name, err)
			return false
		}
		if found != nil && found.Alive && found.Draining {
			if _, err = api.Ask[gen.Server](ctx, s.api, func(ctx context.Context) (*http.Response, error) {
				return s.api.CallOffDrain(ctx, found.ServerId)
			}); err != nil {
				explain(diagnostics, "Calling the drain of "+name+" off", err)
				return false
			}
		}
		if found != nil && found.Alive {
			model.ServerID, model.Address = types.Int64Value(int64(found.ServerId)), types.StringValue(found.Address)
			return true
		}
		if time.Now().After(deadline) || !pause(ctx, serverPollEvery) {
			state := "no server of this name has ever registered: the machine did not come up, its join token had expired or was " +
				"for another name, or it does not reach the coordinator"
			if found != nil {
				state = "it is registered and does not run"
			}
			diagnostics.AddAttributeError(path.Root("name"), "The server "+name+" does not join",
				fmt.Sprintf("After %d s %s. Look at its machine's log; apply again to wait further.", model.RegistrationS.ValueInt64(), state))
			return false
		}
	}
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
	if !found.Alive {
		answer.Diagnostics.AddWarning("The server "+found.Name+" does not run",
			"The fleet does without it. Its machine's resource shows what became of the machine.")
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

// Delete drains. A server that does not run has nothing to give: its groups have replaced it already, or wait for it.
func (s *server) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model serverModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	name := model.Name.ValueString()
	found, err := findServer(ctx, s.api, name)
	if err == nil && found == nil {
		return
	}
	if err == nil {
		parameters := &gen.DrainServerParams{IdempotencyKey: api.NewIdempotencyKey()}
		found, err = api.Ask[gen.Server](ctx, s.api, func(ctx context.Context) (*http.Response, error) {
			return s.api.DrainServer(ctx, found.ServerId, parameters)
		})
	}
	deadline := time.Now().Add(time.Duration(model.DrainS.ValueInt64()) * time.Second)
	for err == nil && found != nil {
		if found.Drain != nil && found.Drain.State == gen.Drained {
			return
		}
		if found.Drain == nil {
			answer.Diagnostics.AddError("The drain of "+name+" was called off", "By somebody else. Apply again to drain it.")
			return
		}
		if time.Now().After(deadline) || !pause(ctx, serverPollEvery) {
			answer.Diagnostics.AddError("The drain of "+name+" takes its time",
				fmt.Sprintf("%d replicas are left after %d s: %s The drain goes on; apply again to wait further.",
					found.Replicas, model.DrainS.ValueInt64(), found.Drain.Message))
			return
		}
		found, err = findServer(ctx, s.api, name)
	}
	if err != nil && !api.NotFound(err) {
		explain(&answer.Diagnostics, "Draining the server "+name, err)
	}
}

func (*server) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("name"), asked, answer)
}
