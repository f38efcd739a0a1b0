// Package reference writes a provider's page from its schemas.
package reference

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
)

// attribute is the common part of providers', resources' and data sources' attributes.
type attribute interface {
	IsRequired() bool
	IsOptional() bool
	IsComputed() bool
	IsSensitive() bool
	GetMarkdownDescription() string
}

// Page is one page with all of the provider's schemas.
func Page(made framework.Provider, title string) []byte {
	ctx := context.Background()
	page := &strings.Builder{}
	page.WriteString("<!-- Generated from the provider's schemas by `make gen`; do not edit. -->\n# Terraform: " + title + "\n\n")
	page.WriteString("How to install and use it: [operating](../operating/terraform.md).\n")

	var who framework.MetadataResponse
	made.Metadata(ctx, framework.MetadataRequest{}, &who)
	var own framework.SchemaResponse
	made.Schema(ctx, framework.SchemaRequest{}, &own)
	section(page, "provider `"+who.TypeName+"`", own.Schema.MarkdownDescription, own.Schema.Attributes)
	for _, each := range made.Resources(ctx) {
		var name resource.MetadataResponse
		var found resource.SchemaResponse
		each().Metadata(ctx, resource.MetadataRequest{ProviderTypeName: who.TypeName}, &name)
		each().Schema(ctx, resource.SchemaRequest{}, &found)
		section(page, "resource `"+name.TypeName+"`", found.Schema.MarkdownDescription, found.Schema.Attributes)
	}
	for _, each := range made.DataSources(ctx) {
		var name datasource.MetadataResponse
		var found datasource.SchemaResponse
		each().Metadata(ctx, datasource.MetadataRequest{ProviderTypeName: who.TypeName}, &name)
		each().Schema(ctx, datasource.SchemaRequest{}, &found)
		section(page, "data source `"+name.TypeName+"`", found.Schema.MarkdownDescription, found.Schema.Attributes)
	}
	return []byte(page.String())
}

func section[A attribute](page *strings.Builder, title, description string, attributes map[string]A) {
	fmt.Fprintf(page, "\n## %s\n\n%s\n", title, description)
	if len(attributes) == 0 {
		return
	}
	page.WriteString("\n| attribute | | |\n| --- | --- | --- |\n")
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
	if write, ok := each.(interface{ IsWriteOnly() bool }); ok && write.IsWriteOnly() {
		words += ", write-only"
	}
	return words
}
