package provider

import (
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"quorate/infra/terraform/provider/internal/api/gen"
)

// sla is a customer's request: the same attributes in a group and in a quote, named as in the API.
type sla struct {
	Durability        types.String `tfsdk:"durability"`
	ReplicationDegree types.Int64  `tfsdk:"replication_degree"`
	MinReplicas       types.Int64  `tfsdk:"min_replicas"`
	RequestSizeBytes  types.Int64  `tfsdk:"request_size_bytes"`
	RatePerS          types.Int64  `tfsdk:"rate_per_s"`
	ReadRatePerS      types.Int64  `tfsdk:"read_rate_per_s"`
	Region            types.String `tfsdk:"region"`
	RetentionBytes    types.Int64  `tfsdk:"retention_bytes"`
	RetentionAgeS     types.Int64  `tfsdk:"retention_age_s"`
	Latency           types.String `tfsdk:"latency"`
	Partitions        types.Int64  `tfsdk:"partitions"`
}

const (
	regionDefault         = "local"
	latencyDefault        = "standard"
	retentionBytesDefault = 256 << 20
)

// slaField is one attribute of an SLA. A test compares its bounds with the API's (sdk/contract/openapi.json).
type slaField struct {
	name, description string
	text              []string // allowed values of a string; nil for a number
	least, most       int64
	required          bool
	textDefault       string
	numberDefault     int64
}

var slaFields = []slaField{
	{name: "durability", required: true, text: []string{"persistent", "in_memory"},
		description: "Place of an entry on every replica before its acknowledgement: `persistent`, stable storage, or `in_memory`, memory."},
	{name: "replication_degree", required: true, least: 1, most: 7, description: "Copies of the log, each on another server."},
	{name: "min_replicas", least: 1, most: 7, description: "Appends pause with fewer live replicas; left out: a majority."},
	{name: "request_size_bytes", required: true, least: 1, most: 1 << 20, description: "Size of a typical entry."},
	{name: "rate_per_s", required: true, least: 1, most: 100_000_000,
		description: "Reserved appends of `request_size_bytes`, each second."},
	{name: "read_rate_per_s", most: 100_000_000,
		description: "Reserved reads: entries of `request_size_bytes`, each second, from all replicas together. 0: reads have what is spare."},
	{name: "region", text: []string{}, textDefault: regionDefault, description: "Region of the servers."},
	{name: "retention_bytes", least: 1 << 20, most: 1 << 50, numberDefault: retentionBytesDefault,
		description: "How many of its newest bytes the log keeps."},
	{name: "retention_age_s", least: 60, most: 100 * 366 * 86_400,
		description: "Age at which entries are discarded as well; left out: no limit on age."},
	{name: "latency", text: []string{"standard", "low"}, textDefault: latencyDefault,
		description: "Class of commit latency at p99, by the terms of the SLA. `low` takes more capacity, and costs more."},
	{name: "partitions", least: 1, most: 256, numberDefault: 1,
		description: "Chains among which keys are divided; rates and retention are those of all together. More can be added in place, and none is removed."},
}

// slaFixed are attributes that a group keeps.
var slaFixed = []string{"durability", "replication_degree", "region"}

// resized is the body of a resize. It sends null for left-out fields, which the generated type cannot.
func (s sla) resized() []byte {
	changes := map[string]any{
		"rate_per_s": s.RatePerS.ValueInt64(), "read_rate_per_s": s.ReadRatePerS.ValueInt64(), "request_size_bytes": s.RequestSizeBytes.ValueInt64(),
		"min_replicas": number(s.MinReplicas), "retention_bytes": s.RetentionBytes.ValueInt64(),
		"retention_age_s": number(s.RetentionAgeS), "latency": s.Latency.ValueString(),
	}
	if partitions := s.divided(); partitions != nil {
		changes["partitions"] = *partitions
	}
	text, err := json.Marshal(changes)
	if err != nil {
		panic(err) // numbers are JSON
	}
	return text
}

// divided is the number of partitions; nil for one, of which an API of an earlier version knows nothing.
func (s sla) divided() *int {
	if s.Partitions.ValueInt64() <= 1 {
		return nil
	}
	return number(s.Partitions)
}

// known: no attribute is left to be known at the apply.
func (s sla) known() bool {
	for _, each := range []attr.Value{
		s.Durability, s.ReplicationDegree, s.MinReplicas, s.RequestSizeBytes, s.RatePerS, s.ReadRatePerS, s.Region, s.RetentionBytes, s.RetentionAgeS, s.Latency, s.Partitions,
	} {
		if each.IsUnknown() {
			return false
		}
	}
	return true
}

func slaNames() []string {
	names := make([]string, 0, len(slaFields))
	for _, field := range slaFields {
		names = append(names, field.name)
	}
	return names
}

// defaultsTo is the number of an attribute that is left out; false: it is null then.
func (f slaField) defaultsTo() (int64, bool) {
	return f.numberDefault, !f.required && (f.numberDefault != 0 || f.least == 0)
}

func (f slaField) numberValidators() []validator.Int64 {
	return []validator.Int64{int64validator.Between(f.least, f.most)}
}

func (f slaField) textValidators() []validator.String {
	if len(f.text) == 0 {
		return []validator.String{stringvalidator.LengthBetween(1, 40)}
	}
	return []validator.String{stringvalidator.OneOf(f.text...)}
}

func (s sla) newGroup(name string) gen.NewGroup {
	return gen.NewGroup{
		Name: name, Durability: gen.NewGroupDurability(s.Durability.ValueString()),
		ReplicationDegree: int(s.ReplicationDegree.ValueInt64()), MinReplicas: number(s.MinReplicas),
		RequestSizeBytes: int(s.RequestSizeBytes.ValueInt64()), RatePerS: int(s.RatePerS.ValueInt64()),
		ReadRatePerS: number(s.ReadRatePerS),
		Region:       s.Region.ValueStringPointer(), RetentionBytes: number(s.RetentionBytes), RetentionAgeS: number(s.RetentionAgeS),
		Latency: (*gen.NewGroupLatency)(s.Latency.ValueStringPointer()), Partitions: s.divided(),
	}
}

func (s sla) quoteRequest() gen.QuoteRequest {
	asked := s.newGroup("")
	return gen.QuoteRequest{
		Durability: gen.QuoteRequestDurability(asked.Durability), ReplicationDegree: asked.ReplicationDegree,
		MinReplicas: asked.MinReplicas, RequestSizeBytes: asked.RequestSizeBytes, RatePerS: asked.RatePerS,
		ReadRatePerS: asked.ReadRatePerS,
		Region:       asked.Region, RetentionBytes: asked.RetentionBytes, RetentionAgeS: asked.RetentionAgeS,
		Latency: (*gen.QuoteRequestLatency)(asked.Latency), Partitions: asked.Partitions,
	}
}

// partitionsOf is the number of a group's partitions; an API of an earlier version names none.
func partitionsOf(found *gen.Group) int64 {
	if found.Partitions == nil {
		return 1
	}
	return int64(*found.Partitions)
}

// slaOf is what the API has observed of an SLA, divided among so many partitions.
func slaOf(observed gen.ObservedSla, partitions int64) sla {
	return sla{
		Durability:        types.StringValue(string(observed.Durability)),
		ReplicationDegree: types.Int64Value(int64(observed.ReplicationDegree)), MinReplicas: optional(observed.MinReplicas),
		RequestSizeBytes: types.Int64Value(int64(observed.RequestSizeBytes)), RatePerS: types.Int64Value(int64(observed.RatePerS)),
		ReadRatePerS:   types.Int64Value(readRateOf(observed)),
		Region:         types.StringValue(observed.Region),
		RetentionBytes: types.Int64Value(int64(observed.RetentionBytes)), RetentionAgeS: optional(observed.RetentionAgeS),
		Latency: types.StringValue(latencyOf(observed)), Partitions: types.Int64Value(partitions),
	}
}

// readRateOf is a group's rate of reads; an API of an earlier version names none.
func readRateOf(observed gen.ObservedSla) int64 {
	if observed.ReadRatePerS == nil {
		return 0
	}
	return int64(*observed.ReadRatePerS)
}

// latencyOf is the class of a group; an API of an earlier version names none.
func latencyOf(observed gen.ObservedSla) string {
	if observed.Latency == nil {
		return latencyDefault
	}
	return string(*observed.Latency)
}

func number(value types.Int64) *int {
	if value.IsNull() || value.IsUnknown() {
		return nil
	}
	n := int(value.ValueInt64())
	return &n
}

func optional(value *int) types.Int64 {
	if value == nil {
		return types.Int64Null()
	}
	return types.Int64Value(int64(*value))
}
