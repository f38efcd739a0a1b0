package provider

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider-local/internal/process"
)

// destroyedKey of the private state marks a Delete that was planned as such.
const destroyedKey = "destroyed"

type localServer struct{}

type localServerModel struct {
	ID               types.String  `tfsdk:"id"`
	Name             types.String  `tfsdk:"name"`
	StateDir         types.String  `tfsdk:"state_dir"`
	ServerBinary     types.String  `tfsdk:"server_binary"`
	Coordinator      types.String  `tfsdk:"coordinator"`
	JoinToken        types.String  `tfsdk:"join_token"`
	Listen           types.String  `tfsdk:"listen"`
	Region           types.String  `tfsdk:"region"`
	FailureDomain    types.String  `tfsdk:"failure_domain"`
	Shards           types.Int64   `tfsdk:"shards"`
	CPU              types.Float64 `tfsdk:"cpu"`
	NetworkBytesPerS types.Int64   `tfsdk:"network_bytes_per_s"`
	StorageIOPerS    types.Int64   `tfsdk:"storage_io_per_s"`
	RedisURL         types.String  `tfsdk:"redis_url"`
	AllowPlaintext   types.Bool    `tfsdk:"allow_plaintext"`
	LeaseS           types.Int64   `tfsdk:"lease_s"`
	LeaseAddress     types.String  `tfsdk:"lease_address"`
	ReadyTimeoutS    types.Int64   `tfsdk:"ready_timeout_s"`
	StopTimeoutS     types.Int64   `tfsdk:"stop_timeout_s"`
	PID              types.Int64   `tfsdk:"pid"`
	Address          types.String  `tfsdk:"address"`
	LogFile          types.String  `tfsdk:"log_file"`
}

func (m *localServerModel) folder() process.Folder {
	return process.Folder(filepath.Join(m.StateDir.ValueString(), m.Name.ValueString()))
}

func (m *localServerModel) spec() process.Spec {
	domain := m.FailureDomain.ValueString()
	if m.FailureDomain.IsNull() {
		domain = m.Name.ValueString()
	}
	return process.Spec{
		Name: m.Name.ValueString(), Binary: m.ServerBinary.ValueString(), Coordinator: m.Coordinator.ValueString(),
		Listen: m.Listen.ValueString(), Region: m.Region.ValueString(), FailureDomain: domain, Shards: m.Shards.ValueInt64(),
		CPU: m.CPU.ValueFloat64Pointer(), NetworkBytesPerS: m.NetworkBytesPerS.ValueInt64Pointer(),
		StorageIOPerS: m.StorageIOPerS.ValueInt64Pointer(), RedisURL: m.RedisURL.ValueStringPointer(),
		AllowPlaintext: m.AllowPlaintext.ValueBool(), LeaseS: m.LeaseS.ValueInt64(), LeaseAddress: m.LeaseAddress.ValueStringPointer(),
	}
}

func (m *localServerModel) grace() time.Duration {
	return time.Duration(m.StopTimeoutS.ValueInt64()) * time.Second
}

func (*localServer) Metadata(_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = "quorate_local_server"
}

func (l *localServer) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	if model := l.start(ctx, asked.Plan, asked.Config, &answer.Diagnostics); model != nil {
		answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
	}
}

// Update restarts the server on its disk, because it reads its flags at its start only.
func (l *localServer) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	var before, after localServerModel
	answer.Diagnostics.Append(asked.State.Get(ctx, &before)...)
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &after)...); answer.Diagnostics.HasError() {
		return
	}
	if !reflect.DeepEqual(before.spec(), after.spec()) {
		process.Stop(before.folder(), after.grace())
	}
	if model := l.start(ctx, asked.Plan, asked.Config, &answer.Diagnostics); model != nil {
		answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
	}
}

func (*localServer) start(ctx context.Context, plan tfsdk.Plan, config tfsdk.Config, diagnostics *diag.Diagnostics) *localServerModel {
	var model localServerModel
	var token types.String // in the configuration alone
	diagnostics.Append(plan.Get(ctx, &model)...)
	if diagnostics.Append(config.GetAttribute(ctx, path.Root("join_token"), &token)...); diagnostics.HasError() {
		return nil
	}
	folder, wait := model.folder(), time.Duration(model.ReadyTimeoutS.ValueInt64())*time.Second
	if token.IsNull() && !folder.Registered() {
		diagnostics.AddAttributeError(path.Root("join_token"), "The server "+model.Name.ValueString()+" has not joined yet",
			"It needs a join token, once: quorate_join_token makes one.")
		return nil
	}
	found, err := process.Start(ctx, folder, model.spec(), token.ValueString(), wait)
	if err != nil {
		explain(diagnostics, &model, err)
		return nil
	}
	model.ID, model.PID = model.Name, types.Int64Value(int64(found.PID))
	model.Address, model.LogFile = types.StringValue(found.Address), types.StringValue(folder.Log())
	model.JoinToken = types.StringNull()
	return &model
}

func explain(diagnostics *diag.Diagnostics, model *localServerModel, err error) {
	name := model.Name.ValueString()
	var notReady *process.NotReady
	var taken *process.Taken
	var interrupted *process.Interrupted
	switch {
	case errors.As(err, &notReady):
		diagnostics.AddError("The server "+name+" does not join", fmt.Sprintf("%s.\n\nThe end of its log:\n%s", err, notReady.Log))
	case errors.As(err, &taken):
		diagnostics.AddAttributeError(path.Root("state_dir"), "Another server runs in the folder of "+name,
			fmt.Sprintf("%s. If it is this one, take it over: terraform import … %s", err, taken.Folder))
	case errors.As(err, &interrupted):
		said := err.Error()
		said = strings.ToUpper(said[:1]) + said[1:] + "."
		if !interrupted.Runs {
			said += " The next apply starts it."
		}
		diagnostics.AddError("Starting the server "+name+" was interrupted", said)
	default:
		diagnostics.AddError("The server "+name+" cannot be started", err.Error())
	}
}

func (*localServer) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	var model localServerModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	found, err := process.Find(model.folder())
	if err != nil {
		answer.Diagnostics.AddError("Looking for the server "+model.Name.ValueString(), err.Error())
		return
	}
	if found == nil {
		answer.State.RemoveResource(ctx)
		return
	}
	model.PID, model.Address = types.Int64Value(int64(found.PID)), types.StringValue(found.Address)
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

// ModifyPlan marks a planned destruction. Terraform plans a Delete in it, but none in a replacement.
func (*localServer) ModifyPlan(ctx context.Context, asked resource.ModifyPlanRequest, answer *resource.ModifyPlanResponse) {
	if asked.Plan.Raw.IsNull() {
		answer.Diagnostics.Append(answer.Private.SetKey(ctx, destroyedKey, []byte("true"))...)
	}
}

// Delete ends the server. A replacement continues with its folder: it was not drained, so its disk may hold entries that no
// other server has, and its join token is used.
func (*localServer) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model localServerModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	destroyed, problems := asked.Private.GetKey(ctx, destroyedKey)
	if answer.Diagnostics.Append(problems...); answer.Diagnostics.HasError() {
		return
	}
	if destroyed == nil {
		process.Stop(model.folder(), model.grace())
		return
	}
	if err := process.Remove(model.folder(), model.grace()); err != nil {
		answer.Diagnostics.AddError("Removing the server "+model.Name.ValueString(), err.Error())
		return
	}
	_ = os.Remove(model.StateDir.ValueString()) // the last server removes the common folder; for any other this fails
}

// ImportState reads the server's arguments from its folder.
func (*localServer) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	folder := process.Folder(filepath.Clean(asked.ID))
	spec, err := folder.Spec()
	if err != nil || spec == nil {
		answer.Diagnostics.AddError("No server has this folder",
			fmt.Sprintf("%s should be the absolute path of the folder of one server: state_dir/name.", asked.ID))
		return
	}
	model := localServerModel{
		ID: types.StringValue(spec.Name), Name: types.StringValue(spec.Name), StateDir: types.StringValue(filepath.Dir(string(folder))),
		ServerBinary: types.StringValue(spec.Binary), Coordinator: types.StringValue(spec.Coordinator),
		Listen: types.StringValue(spec.Listen), Region: types.StringValue(spec.Region),
		FailureDomain: types.StringValue(spec.FailureDomain), Shards: types.Int64Value(spec.Shards),
		CPU: types.Float64PointerValue(spec.CPU), NetworkBytesPerS: types.Int64PointerValue(spec.NetworkBytesPerS),
		StorageIOPerS: types.Int64PointerValue(spec.StorageIOPerS), RedisURL: types.StringPointerValue(spec.RedisURL),
		AllowPlaintext: types.BoolValue(spec.AllowPlaintext), LeaseS: types.Int64Value(spec.LeaseS),
		LeaseAddress:  types.StringPointerValue(spec.LeaseAddress),
		ReadyTimeoutS: types.Int64Value(readyDefaultS), StopTimeoutS: types.Int64Value(stopDefaultS),
		LogFile: types.StringValue(folder.Log()),
	}
	if spec.FailureDomain == spec.Name {
		model.FailureDomain = types.StringNull()
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}
