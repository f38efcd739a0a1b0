package provider

import (
	"context"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
)

const (
	listenDefault = "127.0.0.1:0"
	leaseDefaultS = 60
	readyDefaultS = 60
	stopDefaultS  = 5
)

var (
	nameRule     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$`) // it is a folder's name too
	absoluteRule = regexp.MustCompile(`^/`)
	addressRule  = regexp.MustCompile(`^.+:[0-9]{1,5}$`)
	loopbackRule = regexp.MustCompile(`^(127\.[0-9.]+|\[::1\]):[0-9]{1,5}$`)
)

func (*localServer) Schema(_ context.Context, _ resource.SchemaRequest, answer *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	absolute := []validator.String{stringvalidator.RegexMatches(absoluteRule, "must be an absolute path")}
	address := []validator.String{stringvalidator.RegexMatches(addressRule, "must be host:port")}
	number := func(least, most, value int64, description string) schema.Attribute {
		return schema.Int64Attribute{
			Optional: true, Computed: true, Default: int64default.StaticInt64(value), MarkdownDescription: description,
			Validators: []validator.Int64{int64validator.Between(least, most)},
		}
	}
	resourceOf := func(description string) schema.Attribute {
		return schema.Int64Attribute{
			Optional: true, MarkdownDescription: description, Validators: []validator.Int64{int64validator.AtLeast(1)},
		}
	}
	answer.Schema = schema.Schema{
		MarkdownDescription: "A replica server as a process on loopback. It outlives Terraform, and ends by itself when its fleet " +
			"has not answered for `lease_s`. A dead server is missing in the plan, and the apply starts it again on its " +
			"disk. Changed arguments restart it; another `name` or `state_dir` is another server. Destroying ends it and " +
			"removes its folder: drain it first, by a `quorate_server` that depends on it. Replacing it (`-replace`) starts it again on " +
			"its folder; that of another name or `state_dir` stays. Import by the absolute path of its folder.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				Computed: true, MarkdownDescription: "Its name.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"name": schema.StringAttribute{
				Required: true, MarkdownDescription: "Unique in the fleet.", PlanModifiers: replace,
				Validators: []validator.String{stringvalidator.RegexMatches(nameRule, "must be letters, digits, `_`, `.` and `-`, at most 63")},
			},
			"state_dir": schema.StringAttribute{
				Required: true, MarkdownDescription: "Absolute path of the folder for the server's own folder, which has its name.",
				PlanModifiers: replace, Validators: absolute,
			},
			"server_binary": schema.StringAttribute{
				Required: true, MarkdownDescription: "Absolute path of `quorate-replica`.", Validators: absolute,
			},
			"coordinator": schema.StringAttribute{
				Required: true, MarkdownDescription: "Address of the coordinator's control listener.", Validators: address,
			},
			"join_token": schema.StringAttribute{
				Optional: true, Sensitive: true, WriteOnly: true,
				MarkdownDescription: "Needed until the server has joined. It is not stored, and not visible in the process's arguments.",
			},
			"listen": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString(listenDefault),
				MarkdownDescription: "Loopback address for clients and peers. Port 0: a free one, kept over restarts if possible.",
				Validators:          []validator.String{stringvalidator.RegexMatches(loopbackRule, "must be a loopback address with a port")},
			},
			"region": schema.StringAttribute{
				Optional: true, Computed: true, Default: stringdefault.StaticString("local"), MarkdownDescription: "Its region.",
			},
			"failure_domain": schema.StringAttribute{
				Optional: true, MarkdownDescription: "The set of servers that fail together with it; default: its name, as it fails alone.",
			},
			"shards": number(1, 64, 1, "Threads that serve groups."),
			"cpu": schema.Float64Attribute{
				Optional: true, MarkdownDescription: "Cores that admission may promise; default: all of the machine's.",
				Validators: []validator.Float64{float64validator.AtLeast(0.001)},
			},
			"network_bytes_per_s": resourceOf("Network bytes a second, in plus out, that admission may promise."),
			"storage_io_per_s":    resourceOf("Storage operations a second that admission may promise."),
			"redis_url": schema.StringAttribute{
				Optional: true, Sensitive: true, MarkdownDescription: "Address of Redis, which takes telemetry; without it none is sent.",
			},
			"allow_plaintext": schema.BoolAttribute{
				Optional: true, Computed: true, Default: booldefault.StaticBool(false),
				MarkdownDescription: "Accept clients and peers without TLS too.",
			},
			"lease_s": number(2, 86_400, leaseDefaultS, "How long its fleet may not answer before it ends itself."),
			"lease_address": schema.StringAttribute{
				Optional: true, MarkdownDescription: "Address whose answers renew the lease, host:port; default: the coordinator's.", Validators: address,
			},
			"ready_timeout_s": number(1, 3600, readyDefaultS, "How long it may take to join."),
			"stop_timeout_s":  number(1, 3600, stopDefaultS, "How long it may take to end, before it is killed."),
			"pid":             schema.Int64Attribute{Computed: true, MarkdownDescription: "Its process."},
			"address":         schema.StringAttribute{Computed: true, MarkdownDescription: "Address for clients and peers."},
			"log_file": schema.StringAttribute{
				Computed: true, MarkdownDescription: "File of its output.",
				PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
		},
	}
}
