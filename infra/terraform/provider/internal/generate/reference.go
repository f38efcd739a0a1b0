package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	datasources "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	framework "github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	resources "github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"quorate/infra/terraform/provider/internal/provider"
)

// attribute is what schemas of providers, resources and data sources have in common.
type attribute interface {
	IsRequired() bool
	IsOptional() bool
	IsComputed() bool
	IsSensitive() bool
	GetMarkdownDescription() string
}

// reference is one page with everything that the provider's schemas say.
func reference() []byte {
	ctx := context.Background()
	made := provider.New()
	page := &strings.Builder{}
	page.WriteString("<!-- Generated from the provider's schemas by `make gen`; do not edit. -->\n# Terraform: the provider's reference\n\n")
	page.WriteString("How to install and use it: [operating](../operating/terraform.md).\n")

	var own framework.SchemaResponse
	made.Schema(ctx, framework.SchemaRequest{}, &own)
	section(page, "provider `quorate`", own.Schema.MarkdownDescription, own.Schema.Attributes)
	for _, each := range made.Resources(ctx) {
		var name resource.MetadataResponse
		var found resource.SchemaResponse
		each().Metadata(ctx, resource.MetadataRequest{ProviderTypeName: "quorate"}, &name)
		each().Schema(ctx, resource.SchemaRequest{}, &found)
		section(page, "resource `"+name.TypeName+"`", found.Schema.MarkdownDescription, found.Schema.Attributes)
	}
	for _, each := range made.DataSources(ctx) {
		var name datasource.MetadataResponse
		var found datasource.SchemaResponse
		each().Metadata(ctx, datasource.MetadataRequest{ProviderTypeName: "quorate"}, &name)
		each().Schema(ctx, datasource.SchemaRequest{}, &found)
		section(page, "data source `"+name.TypeName+"`", found.Schema.MarkdownDescription, found.Schema.Attributes)
	}
	return []byte(page.String())
}

func section[A attribute](page *strings.Builder, title, description string, attributes map[string]A) {
	fmt.Fprintf(page, "\n## %s\n\n%s\n\n| attribute | | |\n| --- | --- | --- |\n", title, description)
	rows(page, "", attributes)
}

func rows[A attribute](page *strings.Builder, prefix string, attributes map[string]A) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		each := attributes[name]
		fmt.Fprintf(page, "| `%s%s` | %s | %s |\n", prefix, name, use(each), each.GetMarkdownDescription())
		switch nested := any(each).(type) {
		case datasources.SingleNestedAttribute:
			rows(page, prefix+name+".", nested.Attributes)
		case resources.SingleNestedAttribute:
			rows(page, prefix+name+".", nested.Attributes)
		}
	}
}

func use(each attribute) string {
	words := "computed"
	switch {
	case each.IsRequired():
		words = "required"
	case each.IsOptional():
		words = "optional"
	}
	if each.IsSensitive() {
		words += ", sensitive"
	}
	return words
}
