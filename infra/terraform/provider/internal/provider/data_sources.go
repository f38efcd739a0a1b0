package provider

import (
	"context"
	"net/http"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
)

type quote struct{ customers }

type quoteModel struct {
	sla
	ReplacesGroupID types.String `tfsdk:"replaces_group_id"`
	Admissible      types.Bool   `tfsdk:"admissible"`
	Refusal         types.String `tfsdk:"refusal"`
	ScarceResource  types.String `tfsdk:"scarce_resource"`
	RatePerSFits    types.Int64  `tfsdk:"rate_per_s_that_fits"`
	RetentionFits   types.Int64  `tfsdk:"retention_bytes_that_fits"`
	MonthlyMicros   types.Int64  `tfsdk:"monthly_micros"`
	Currency        types.String `tfsdk:"currency"`
}

func (*quote) Metadata(_ context.Context, _ datasource.MetadataRequest, answer *datasource.MetadataResponse) {
	answer.TypeName = "quorate_quote"
}

func (q *quote) Configure(_ context.Context, asked datasource.ConfigureRequest, answer *datasource.ConfigureResponse) {
	configureData(q, asked, answer)
}

func (*quote) Schema(_ context.Context, _ datasource.SchemaRequest, answer *datasource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"replaces_group_id": schema.StringAttribute{
			Optional: true, MarkdownDescription: "A group of yours whose own reservation does not count against the SLA.",
		},
		"admissible": schema.BoolAttribute{Computed: true, MarkdownDescription: "Whether the fleet can promise it now."},
		"refusal":    schema.StringAttribute{Computed: true, MarkdownDescription: "The reason of a refusal, for people; null if admissible."},
		"scarce_resource": schema.StringAttribute{
			Computed: true, MarkdownDescription: "The scarce resource: `cpu`, `network`, `storage_io`, `memory`, `disk`, `servers` or `shard`; null if admissible.",
		},
		"rate_per_s_that_fits": schema.Int64Attribute{
			Computed: true, MarkdownDescription: "A rate that would be admitted (a greater one may be, too); null if admissible, or if no rate is.",
		},
		"retention_bytes_that_fits": schema.Int64Attribute{
			Computed: true, MarkdownDescription: "The retention that would be admitted at that rate; null if admissible, or if none is.",
		},
		"monthly_micros": schema.Int64Attribute{
			Computed: true, MarkdownDescription: "Price of the reservation for 730 hours, in millionths of `currency`, without usage.",
		},
		"currency": schema.StringAttribute{Computed: true, MarkdownDescription: "Currency of the price."},
	}
	for _, field := range slaFields {
		if field.text != nil {
			attributes[field.name] = schema.StringAttribute{
				Required: field.required, Optional: !field.required, MarkdownDescription: field.description, Validators: field.textValidators(),
			}
			continue
		}
		attributes[field.name] = schema.Int64Attribute{
			Required: field.required, Optional: !field.required, MarkdownDescription: field.description, Validators: field.numberValidators(),
		}
	}
	answer.Schema = schema.Schema{
		MarkdownDescription: "The price of an SLA, and whether the fleet can promise it. In a precondition of a group it refuses " +
			"an over-ask when planning. Nothing is reserved.",
		Attributes: attributes,
	}
}

func (q *quote) Read(ctx context.Context, asked datasource.ReadRequest, answer *datasource.ReadResponse) {
	var model quoteModel
	if answer.Diagnostics.Append(asked.Config.Get(ctx, &model)...); answer.Diagnostics.HasError() {
		return
	}
	body := model.quoteRequest()
	if !model.ReplacesGroupID.IsNull() {
		id := parseID(model.ReplacesGroupID, path.Root("replaces_group_id"), &answer.Diagnostics)
		if answer.Diagnostics.HasError() {
			return
		}
		body.ReplacesGroupId = &id
	}
	found, err := api.Ask[gen.QuoteAnswer](ctx, q.api, func(ctx context.Context) (*http.Response, error) {
		return q.api.CreateQuote(ctx, &gen.CreateQuoteParams{}, body)
	})
	if err != nil {
		explain(&answer.Diagnostics, "Asking for a quote", err, append(slaNames(), "replaces_group_id")...)
		return
	}
	model.Admissible = types.BoolValue(found.Admissible)
	model.MonthlyMicros = types.Int64Value(int64(found.Price.MonthlyMicros))
	model.Currency = types.StringValue(found.Price.Currency)
	if refusal := found.Refusal; refusal != nil {
		model.Refusal, model.ScarceResource = types.StringValue(refusal.Message), types.StringValue(refusal.ScarceResource)
		if fits := refusal.LargestSlaThatFits; fits != nil {
			model.RatePerSFits = types.Int64Value(int64(fits.RatePerS))
			model.RetentionFits = types.Int64Value(int64(fits.RetentionBytes))
		}
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, model)...)
}

type capacity struct{ operators }

type amounts struct {
	CPU              types.Float64 `tfsdk:"cpu"`
	NetworkBytesPerS types.Float64 `tfsdk:"network_bytes_per_s"`
	StorageIOPerS    types.Float64 `tfsdk:"storage_io_per_s"`
	MemoryBytes      types.Int64   `tfsdk:"memory_bytes"`
	DiskBytes        types.Int64   `tfsdk:"disk_bytes"`
}

type capacityModel struct {
	ServersAlive types.Int64 `tfsdk:"servers_alive"`
	Promisable   amounts     `tfsdk:"promisable"`
	Allocated    amounts     `tfsdk:"allocated"`
	Free         amounts     `tfsdk:"free"`
}

func (*capacity) Metadata(_ context.Context, _ datasource.MetadataRequest, answer *datasource.MetadataResponse) {
	answer.TypeName = "quorate_capacity"
}

func (c *capacity) Configure(_ context.Context, asked datasource.ConfigureRequest, answer *datasource.ConfigureResponse) {
	configureData(c, asked, answer)
}

func (*capacity) Schema(_ context.Context, _ datasource.SchemaRequest, answer *datasource.SchemaResponse) {
	vector := func(description string) schema.Attribute {
		return schema.SingleNestedAttribute{
			Computed: true, MarkdownDescription: description,
			Attributes: map[string]schema.Attribute{
				"cpu":                 schema.Float64Attribute{Computed: true, MarkdownDescription: "Cores."},
				"network_bytes_per_s": schema.Float64Attribute{Computed: true, MarkdownDescription: "In plus out."},
				"storage_io_per_s":    schema.Float64Attribute{Computed: true, MarkdownDescription: "Operations."},
				"memory_bytes":        schema.Int64Attribute{Computed: true, MarkdownDescription: "Bytes; null if a server does not say how much it has."},
				"disk_bytes":          schema.Int64Attribute{Computed: true, MarkdownDescription: "Bytes; null if a server does not say how much it has."},
			},
		}
	}
	answer.Schema = schema.Schema{
		MarkdownDescription: "Capacity that the fleet's live servers may promise. Needs `operator_token`.",
		Attributes: map[string]schema.Attribute{
			"servers_alive": schema.Int64Attribute{Computed: true, MarkdownDescription: "Servers that are alive."},
			"promisable":    vector("What may be promised: what there is, times the safety factor."),
			"allocated":     vector("What is promised."),
			"free":          vector("What may still be promised."),
		},
	}
}

// known is null where the fleet does not say.
func known(bytes *int) types.Int64 {
	if bytes == nil {
		return types.Int64Null()
	}
	return types.Int64Value(int64(*bytes))
}

func (c *capacity) Read(ctx context.Context, _ datasource.ReadRequest, answer *datasource.ReadResponse) {
	found, err := api.Ask[gen.Capacity](ctx, c.api, func(ctx context.Context) (*http.Response, error) { return c.api.GetCapacity(ctx) })
	if err != nil {
		explain(&answer.Diagnostics, "Reading the fleet's capacity", err)
		return
	}
	of := func(a gen.Amounts) amounts {
		return amounts{
			types.Float64Value(a.Cpu), types.Float64Value(a.NetworkBytesPerS), types.Float64Value(a.StorageIoPerS),
			known(a.MemoryBytes), known(a.DiskBytes),
		}
	}
	answer.Diagnostics.Append(answer.State.Set(ctx, capacityModel{
		types.Int64Value(int64(found.ServersAlive)), of(found.Promisable), of(found.Allocated), of(found.Free),
	})...)
}
