package provider

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"quorate/infra/terraform/provider-local/internal/standin"
)

// With TF_ACC=1 the tests run the Terraform that is in PATH; without it plugin-testing would fetch one.
func TestMain(m *testing.M) {
	if os.Getenv("TF_ACC") != "" && os.Getenv("TF_ACC_TERRAFORM_PATH") == "" {
		path, err := exec.LookPath("terraform")
		if err != nil {
			fmt.Fprintln(os.Stderr, "These tests run Terraform (1.11 or newer), and it is not in PATH.")
			os.Exit(1)
		}
		_ = os.Setenv("TF_ACC_TERRAFORM_PATH", path)
	}
	os.Exit(standin.Main(m))
}
