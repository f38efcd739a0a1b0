// Terraform's provider for replica servers as processes of this machine: for development and tests, not for customers.
package main

import (
	"context"
	"flag"
	"log"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"quorate/infra/terraform/provider-local/internal/process"
	"quorate/infra/terraform/provider-local/internal/provider"
)

func main() {
	if folder, ok := process.SuperviseAsked(os.Args); ok {
		os.Exit(process.Supervise(folder))
	}
	debug := flag.Bool("debug", false, "wait for a debugger")
	flag.Parse()
	options := providerserver.ServeOpts{Address: "registry.terraform.io/quorate/quorate-local", Debug: *debug}
	if err := providerserver.Serve(context.Background(), provider.New, options); err != nil {
		log.Fatal(err)
	}
}
