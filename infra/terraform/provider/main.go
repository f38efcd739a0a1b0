// Terraform's provider for Quorate.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"quorate/infra/terraform/provider/internal/provider"
)

func main() {
	debug := flag.Bool("debug", false, "wait for a debugger")
	flag.Parse()
	options := providerserver.ServeOpts{Address: "registry.terraform.io/quorate/quorate", Debug: *debug}
	if err := providerserver.Serve(context.Background(), provider.New, options); err != nil {
		log.Fatal(err)
	}
}
