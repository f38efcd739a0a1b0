package provider

import (
	"context"
	"net/http"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

const (
	joinTokenTTLDefault = 86_400 // the machines of a large plan boot one after the other, and applies may be interrupted
	joinTokenTTLMax     = 30 * 86_400
)

type joinToken struct{ operators }

type joinTokenModel struct {
	ID        types.String `tfsdk:"id"`
	Name      types.String `tfsdk:"name"`
	TTLS      types.Int64  `tfsdk:"ttl_s"`
	Auxiliary types.Bool   `tfsdk:"auxiliary"`
	Token     types.String `tfsdk:"token"`
	ExpiresAt types.String `tfsdk:"expires_at"`
}

func (*joinToken) Metadata(_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = "quorate_join_token"
}

func (*joinToken) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	keep := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	answer.Schema = schema.Schema{
		MarkdownDescription: "A token with which one machine joins the fleet, once, under its name. The machine depends on it. A machine that has " +
			"joined no longer needs the token. A token that expired or was revoked before is replaced. Destroying " +
			"it, after the machine, revokes it and removes the drained server from the fleet, so that its name is free. It cannot be imported: " +
			"nobody knows it but its machine.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "The server's name.",
				Validators:    []validator.String{stringvalidator.LengthBetween(1, 63)},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"ttl_s": schema.Int64Attribute{
				Optional: true, Computed: true, Default: int64default.StaticInt64(joinTokenTTLDefault),
				MarkdownDescription: "How long it can be used after its creation. A change replaces it while it can be used.",
				Validators:          []validator.Int64{int64validator.Between(1, joinTokenTTLMax)},
			},
			"auxiliary": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "The server takes replacements of failed replicas only.",
				PlanModifiers:       []planmodifier.Bool{boolplanmodifier.RequiresReplace()},
			},
			"id":         schema.StringAttribute{Computed: true, MarkdownDescription: "Operators list and revoke it by this id.", PlanModifiers: keep},
			"token":      schema.StringAttribute{Computed: true, Sensitive: true, MarkdownDescription: "The token, `qjt_…`.", PlanModifiers: keep},
			"expires_at": schema.StringAttribute{Computed: true, MarkdownDescription: "RFC 3339.", PlanModifiers: keep},
		},
	}
}

func (j *joinToken) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	var model joinTokenModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	ttl := int(model.TTLS.ValueInt64())
	body := gen.NewJoinToken{Name: model.Name.ValueStringPointer(), TtlS: &ttl, Auxiliary: model.Auxiliary.ValueBoolPointer()}
	parameters := &gen.CreateJoinTokenParams{IdempotencyKey: api.NewIdempotencyKey()}
	made, err := api.Ask[gen.JoinToken](ctx, j.api, func(ctx context.Context) (*http.Response, error) {
		return j.api.CreateJoinToken(ctx, parameters, body)
	})
	if err != nil {
		explain(&answer.Diagnostics, "Making the join token", err, "name", "ttl_s")
		return
	}
	model.ID = types.StringValue(made.Id)
	model.Token, model.ExpiresAt = types.StringValue(made.Token), types.StringValue(made.ExpiresAt.UTC().Format(time.RFC3339))
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

// Read removes an unused token with which no server can join any more. The API does not keep tokens for ever, so an unknown
// token stays. So does one of a registered server, however that joined: its machine must not be replaced.
func (j *joinToken) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	var model joinTokenModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	name := model.Name.ValueString()
	state, err := j.state(ctx, model.ID.ValueString())
	if err == nil && state == gen.Expired {
		var joined *gen.Server
		if joined, err = findServer(ctx, j.api, name); joined != nil {
			return
		}
	}
	if err != nil {
		explain(&answer.Diagnostics, "Reading the join token of "+name, err)
		return
	}
	if state == gen.Revoked || state == gen.Expired {
		answer.State.RemoveResource(ctx)
	}
}

// state of a token; "" when the API no longer knows it.
func (j *joinToken) state(ctx context.Context, id string) (gen.KnownJoinTokenState, error) {
	known, err := api.Ask[gen.JoinTokens](ctx, j.api, func(ctx context.Context) (*http.Response, error) {
		return j.api.ListJoinTokens(ctx)
	})
	if err != nil {
		return "", err
	}
	for _, each := range known.Items {
		if each.Id == id {
			return each.State, nil
		}
	}
	return "", nil
}

// ModifyPlan replaces a usable token if its lifetime changes. For any other token the change has no effect.
func (j *joinToken) ModifyPlan(ctx context.Context, asked resource.ModifyPlanRequest, answer *resource.ModifyPlanResponse) {
	if asked.State.Raw.IsNull() || asked.Plan.Raw.IsNull() || j.api == nil {
		return
	}
	var before, after joinTokenModel
	answer.Diagnostics.Append(asked.State.Get(ctx, &before)...)
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &after)...); answer.Diagnostics.HasError() || before.TTLS.Equal(after.TTLS) {
		return
	}
	state, err := j.state(ctx, before.ID.ValueString())
	if err != nil {
		explain(&answer.Diagnostics, "Reading the join token of "+before.Name.ValueString(), err)
		return
	}
	if state == gen.Outstanding {
		answer.RequiresReplace = append(answer.RequiresReplace, path.Root("ttl_s"))
	}
}

// revoke prevents any join with it.
func (j *joinToken) revoke(ctx context.Context, id types.String) error {
	if id.IsNull() {
		return nil
	}
	_, err := api.Ask[struct{}](ctx, j.api, func(ctx context.Context) (*http.Response, error) {
		return j.api.RevokeJoinToken(ctx, id.ValueString())
	})
	if api.NotFound(err) {
		return nil
	}
	return err
}

func (*joinToken) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	var model joinTokenModel
	answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...)
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

// Delete revokes the token. It removes the server that joined with it, if that was drained and its machine is gone.
func (j *joinToken) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model joinTokenModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	name := model.Name.ValueString()
	if err := j.revoke(ctx, model.ID); err != nil {
		explain(&answer.Diagnostics, "Revoking the join token of "+name, err)
		return
	}
	deadline := time.Now().Add(stoppedMax)
	for {
		found, err := findServer(ctx, j.api, name)
		if api.Passing(err) && time.Now().Before(deadline) && pause(ctx, serverPollEvery) {
			continue
		}
		if err != nil {
			explain(&answer.Diagnostics, "Removing the server "+name, err)
			return
		}
		drained := found != nil && found.Drain != nil && found.Drain.State == gen.Drained
		switch {
		case found == nil:
			return
		case !drained:
			answer.Diagnostics.AddWarning("The server "+name+" stays registered",
				"It was not drained, so its disk may hold entries that no other server has. Remove it yourself once that is settled.")
			return
		case !found.Alive:
			_, err := api.Ask[struct{}](ctx, j.api, func(ctx context.Context) (*http.Response, error) {
				return j.api.GiveUpServer(ctx, found.ServerId)
			})
			if err != nil && !api.NotFound(err) {
				explain(&answer.Diagnostics, "Removing the server "+name, err)
			}
			return
		}
		if time.Now().After(deadline) || !pause(ctx, serverPollEvery) {
			answer.Diagnostics.AddError("The drained server "+name+" still runs", "Stop its machine, then apply again.")
			return
		}
	}
}
