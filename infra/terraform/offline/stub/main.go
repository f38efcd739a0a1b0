// A provider with another provider's schemas and no function. Terraform checks configurations against them, with
// `validate`, and with `test` if the provider is mocked. It refuses to plan and to apply.
//
// Its program has the name of the imitated provider, such as terraform-provider-aws_v6.25.0, and schema.json beside it:
// {"provider": S, "resources": {name: S}, "data_sources": {name: S}}, each S as in `terraform providers schema -json`.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov5"
	"github.com/hashicorp/terraform-plugin-go/tfprotov5/tf5server"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

type attribute struct {
	Type                         json.RawMessage
	Required, Optional, Computed bool
}

type nested struct {
	NestingMode string `json:"nesting_mode"`
	Block       block
	MinItems    int64 `json:"min_items"`
	MaxItems    int64 `json:"max_items"`
}

type block struct {
	Attributes map[string]attribute
	BlockTypes map[string]nested `json:"block_types"`
}

type described struct{ Block block }

type schemas struct {
	Provider    described
	Resources   map[string]described
	DataSources map[string]described `json:"data_sources"`
}

var nestings = map[string]tfprotov5.SchemaNestedBlockNestingMode{
	"single": tfprotov5.SchemaNestedBlockNestingModeSingle,
	"list":   tfprotov5.SchemaNestedBlockNestingModeList,
	"set":    tfprotov5.SchemaNestedBlockNestingModeSet,
	"map":    tfprotov5.SchemaNestedBlockNestingModeMap,
}

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve() error {
	program, err := filepath.Abs(os.Args[0])
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(program), "schema.json"))
	if err != nil {
		return err
	}
	var found schemas
	if err := json.Unmarshal(text, &found); err != nil {
		return fmt.Errorf("schema.json: %w", err)
	}
	answer, err := found.answer()
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(program), "terraform-provider-"), "_v")
	return tf5server.Serve("registry.terraform.io/hashicorp/"+name, func() tfprotov5.ProviderServer {
		return &stub{name: name, schema: answer}
	})
}

func (s schemas) answer() (*tfprotov5.GetProviderSchemaResponse, error) {
	provider, err := s.Provider.schema("provider")
	if err != nil {
		return nil, err
	}
	answer := &tfprotov5.GetProviderSchemaResponse{
		Provider:          provider,
		ResourceSchemas:   map[string]*tfprotov5.Schema{},
		DataSourceSchemas: map[string]*tfprotov5.Schema{},
	}
	for name, resource := range s.Resources {
		if answer.ResourceSchemas[name], err = resource.schema(name); err != nil {
			return nil, err
		}
	}
	for name, source := range s.DataSources {
		if answer.DataSourceSchemas[name], err = source.schema(name); err != nil {
			return nil, err
		}
	}
	return answer, nil
}

func (d described) schema(name string) (*tfprotov5.Schema, error) {
	converted, err := d.Block.convert()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return &tfprotov5.Schema{Block: converted}, nil
}

func (b block) convert() (*tfprotov5.SchemaBlock, error) {
	converted := &tfprotov5.SchemaBlock{}
	for name, found := range b.Attributes {
		kind, err := tftypes.ParseJSONType(found.Type) //nolint:staticcheck // the only reader of this notation
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		converted.Attributes = append(converted.Attributes, &tfprotov5.SchemaAttribute{
			Name: name, Type: kind, Required: found.Required, Optional: found.Optional, Computed: found.Computed,
		})
	}
	for name, found := range b.BlockTypes {
		inner, err := found.Block.convert()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		nesting, known := nestings[found.NestingMode]
		if !known {
			return nil, fmt.Errorf("%s: unknown nesting %q", name, found.NestingMode)
		}
		converted.BlockTypes = append(converted.BlockTypes, &tfprotov5.SchemaNestedBlock{
			TypeName: name, Block: inner, Nesting: nesting, MinItems: found.MinItems, MaxItems: found.MaxItems,
		})
	}
	return converted, nil
}

// stub answers the calls of `validate`. The embedded nil interface has all other calls, which never happen: Terraform
// configures a provider first, and that is refused.
type stub struct {
	tfprotov5.ProviderServer
	name   string
	schema *tfprotov5.GetProviderSchemaResponse
}

func (s *stub) GetMetadata(context.Context, *tfprotov5.GetMetadataRequest) (*tfprotov5.GetMetadataResponse, error) {
	answer := &tfprotov5.GetMetadataResponse{}
	for name := range s.schema.ResourceSchemas {
		answer.Resources = append(answer.Resources, tfprotov5.ResourceMetadata{TypeName: name})
	}
	for name := range s.schema.DataSourceSchemas {
		answer.DataSources = append(answer.DataSources, tfprotov5.DataSourceMetadata{TypeName: name})
	}
	return answer, nil
}

func (s *stub) GetProviderSchema(context.Context, *tfprotov5.GetProviderSchemaRequest) (*tfprotov5.GetProviderSchemaResponse, error) {
	return s.schema, nil
}

func (s *stub) PrepareProviderConfig(_ context.Context, asked *tfprotov5.PrepareProviderConfigRequest) (*tfprotov5.PrepareProviderConfigResponse, error) {
	return &tfprotov5.PrepareProviderConfigResponse{PreparedConfig: asked.Config}, nil
}

func (s *stub) ConfigureProvider(context.Context, *tfprotov5.ConfigureProviderRequest) (*tfprotov5.ConfigureProviderResponse, error) {
	return &tfprotov5.ConfigureProviderResponse{Diagnostics: []*tfprotov5.Diagnostic{{
		Severity: tfprotov5.DiagnosticSeverityError,
		Summary:  "This is not the provider " + s.name,
		Detail:   "It has that provider's schemas, to check configurations against, and no cloud behind them.",
	}}}, nil
}

func (s *stub) StopProvider(context.Context, *tfprotov5.StopProviderRequest) (*tfprotov5.StopProviderResponse, error) {
	return &tfprotov5.StopProviderResponse{}, nil
}

func (s *stub) ValidateResourceTypeConfig(context.Context, *tfprotov5.ValidateResourceTypeConfigRequest) (*tfprotov5.ValidateResourceTypeConfigResponse, error) {
	return &tfprotov5.ValidateResourceTypeConfigResponse{}, nil
}

func (s *stub) ValidateDataSourceConfig(context.Context, *tfprotov5.ValidateDataSourceConfigRequest) (*tfprotov5.ValidateDataSourceConfigResponse, error) {
	return &tfprotov5.ValidateDataSourceConfigResponse{}, nil
}
