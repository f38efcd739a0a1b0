package provider

import (
	"fmt"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"quorate/infra/terraform/provider/internal/fakeapi"
)

// An operator drains a server. An apply that changes only how long Terraform waits must not call that off.
func TestAccAnUpdateLeavesAnOperatorsDrainAlone(t *testing.T) {
	fake := fakeapi.Start(t)
	drains := func(want int) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if found := fake.Drains(); found != want {
				return fmt.Errorf("%d servers are being drained, not %d", found, want)
			}
			return nil
		}
	}
	updates := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction("quorate_server.s1", plancheck.ResourceActionUpdate),
	}}
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: []resource.TestStep{
		{PreConfig: func() { fake.Register("s1"); fake.Drain("s1") }, Config: to(fake) + servers(5, "s1"), Check: drains(0)},
		{PreConfig: func() { fake.Drain("s1") }, Config: to(fake) + servers(9, "s1"), ConfigPlanChecks: updates, Check: drains(1)},
		{ // so that the destroy has nothing to wait for
			Config: to(fake) + servers(9, "s1"),
			Check:  func(*terraform.State) error { fake.KillServer("s1", 0); return nil },
		},
	}})
}
