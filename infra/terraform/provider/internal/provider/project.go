package provider

import (
	"context"
	"net/http"

	"github.com/google/uuid"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

const nameLengthMax = 100

type project struct{ customers }

type projectModel struct {
	ID   types.String `tfsdk:"id"`
	Name types.String `tfsdk:"name"`
}

func (*project) Metadata(_ context.Context, _ resource.MetadataRequest, answer *resource.MetadataResponse) {
	answer.TypeName = "quorate_project"
}

func (*project) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	answer.Schema = schema.Schema{
		MarkdownDescription: "A project, which contains groups and keys. Import by its id.",
		Attributes: map[string]schema.Attribute{
			"id": idAttribute("The project's id."),
			"name": schema.StringAttribute{
				Required:            true,
				MarkdownDescription: "Unique in the organization. Another name changes the project in place: its groups and keys stay.",
				Validators:          []validator.String{stringvalidator.LengthBetween(1, nameLengthMax)},
			},
		},
	}
}

func idAttribute(description string) schema.StringAttribute {
	return schema.StringAttribute{
		Computed: true, MarkdownDescription: description,
		PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
	}
}

func (p *project) Create(ctx context.Context, asked resource.CreateRequest, answer *resource.CreateResponse) {
	var model projectModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	const doing = "Making the project"
	body := gen.NewProject{Name: model.Name.ValueString()}
	made, err := createOnce(ctx, &p.customers, &answer.Diagnostics, creation[gen.Project]{
		doing: doing, identity: []any{"project", body},
		create: func(ctx context.Context, key *string) (*http.Response, error) {
			return p.api.CreateProject(ctx, &gen.CreateProjectParams{IdempotencyKey: key}, body)
		},
		current: func(ctx context.Context, made *gen.Project) (*gen.Project, error) { return p.read(ctx, made.Id) },
	})
	if api.HasCode(err, "name_taken") {
		nameTaken(&answer.Diagnostics, doing, p.idOf(ctx, body.Name), err)
		return
	}
	if err != nil {
		explain(&answer.Diagnostics, doing, err, "name")
		return
	}
	model.ID = types.StringValue(made.Id.String())
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (p *project) read(ctx context.Context, id uuid.UUID) (*gen.Project, error) {
	return api.Ask[gen.Project](ctx, p.api, func(ctx context.Context) (*http.Response, error) {
		return p.api.GetProject(ctx, id)
	})
}

// idOf finds a project by its name, for a hint; "" when that fails.
func (p *project) idOf(ctx context.Context, name string) string {
	limit := pageLimit
	var cursor *string
	for {
		page, err := api.Ask[gen.PageProject](ctx, p.api, func(ctx context.Context) (*http.Response, error) {
			return p.api.ListProjects(ctx, &gen.ListProjectsParams{Limit: &limit, Cursor: cursor})
		})
		if err != nil {
			return ""
		}
		for _, each := range page.Items {
			if each.Name == name {
				return each.Id.String()
			}
		}
		if cursor = page.NextCursor; cursor == nil {
			return ""
		}
	}
}

func (p *project) Read(ctx context.Context, asked resource.ReadRequest, answer *resource.ReadResponse) {
	var model projectModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := parseID(model.ID, path.Root("id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	found, err := p.read(ctx, id)
	if api.NotFound(err) {
		answer.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		explain(&answer.Diagnostics, "Reading the project", err)
		return
	}
	model.Name = types.StringValue(found.Name)
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (p *project) Update(ctx context.Context, asked resource.UpdateRequest, answer *resource.UpdateResponse) {
	var model projectModel
	if answer.Diagnostics.Append(asked.Plan.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := parseID(model.ID, path.Root("id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	wanted := gen.ProjectSettings{Name: model.Name.ValueString()}
	_, err := api.Ask[gen.Project](ctx, p.api, func(ctx context.Context) (*http.Response, error) {
		return p.api.ChangeProjectSettings(ctx, id, wanted)
	})
	if err != nil {
		explain(&answer.Diagnostics, "Renaming the project", err, "name")
		return
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

func (p *project) Delete(ctx context.Context, asked resource.DeleteRequest, answer *resource.DeleteResponse) {
	var model projectModel
	if answer.Diagnostics.Append(asked.State.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	id := parseID(model.ID, path.Root("id"), &answer.Diagnostics)
	if answer.Diagnostics.HasError() {
		return
	}
	_, err := api.Ask[struct{}](ctx, p.api, func(ctx context.Context) (*http.Response, error) {
		return p.api.DeleteProject(ctx, id)
	})
	if err != nil && !api.NotFound(err) {
		explain(&answer.Diagnostics, "Deleting the project", err)
	}
}

func (*project) ImportState(ctx context.Context, asked resource.ImportStateRequest, answer *resource.ImportStateResponse) {
	resource.ImportStatePassthroughID(ctx, path.Root("id"), asked, answer)
}

func parseID(value types.String, at path.Path, diagnostics *diag.Diagnostics) uuid.UUID {
	id, err := uuid.Parse(value.ValueString())
	if err != nil {
		diagnostics.AddAttributeError(at, "This is not an id", value.ValueString()+" is not an id of Quorate: a UUID.")
	}
	return id
}
