package provider

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
	"quorate/infra/terraform/provider/internal/fakeapi"
)

func TestAccAQuotaIsSetChangedInPlaceAndGivenBack(t *testing.T) {
	fake := fakeapi.Start(t)
	quota := func(organization, code string, limit int) string {
		return to(fake) + fmt.Sprintf("resource \"quorate_organization_quota\" \"q\" {\n  organization_id = %q\n  quota = %q\n  limit = %d\n}\n",
			organization, code, limit)
	}
	id := fakeapi.OrganizationID
	does := func(action plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
			plancheck.ExpectResourceAction("quorate_organization_quota.q", action),
		}}
	}
	shows := func(name, value string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttr("quorate_organization_quota.q", name, value)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy: func(*terraform.State) error {
			if left := fake.Quotas(); left != 0 {
				return fmt.Errorf("%d quotas are still set", left)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: quota(id, "Projects", 20), PlanOnly: true, ExpectError: regexp.MustCompile(`groups_per_project`)},
			{Config: quota(id, "projects", -1), PlanOnly: true, ExpectError: regexp.MustCompile(`between 0 and`)},
			{Config: quota("example", "projects", 20), ExpectError: regexp.MustCompile(`This is not an id`)},
			{Config: quota(id, "elephants", 20), ExpectError: regexp.MustCompile(`No such quota`)},
			{PreConfig: func() { fake.RequestQuota("projects", 25) }, Config: quota(id, "projects", 20), Check: resource.ComposeTestCheckFunc(
				shows("limit", "20"), shows("used", "3"), resource.TestCheckNoResourceAttr("quorate_organization_quota.q", "requested"))},
			{Config: quota(id, "projects", 20), PlanOnly: true},
			{
				ResourceName: "quorate_organization_quota.q", ImportState: true, ImportStateId: id + "/projects",
				ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "quota",
			},
			{ResourceName: "quorate_organization_quota.q", ImportState: true, ImportStateId: id, ExpectError: regexp.MustCompile(`ORGANIZATION_ID/QUOTA`)},
			{Config: quota(id, "projects", 30), ConfigPlanChecks: does(plancheck.ResourceActionUpdate), Check: shows("limit", "30")},
			{PreConfig: fake.ResetQuotas, Config: quota(id, "projects", 30), ConfigPlanChecks: does(plancheck.ResourceActionCreate)},
			{Config: quota(id, "groups_per_project", 30), ConfigPlanChecks: does(plancheck.ResourceActionReplace), Check: shows("quota", "groups_per_project")},
		},
	})
}

func TestAccAQuotaStaysInTheStateAtCustomersAddress(t *testing.T) {
	fake := fakeapi.Start(t)
	quota := to(fake) + fmt.Sprintf("resource \"quorate_organization_quota\" \"q\" {\n  organization_id = %q\n  quota = \"projects\"\n  limit = 20\n}\n",
		fakeapi.OrganizationID)
	explained := regexp.MustCompile(`(?s)customers' address.*endpoint.*QUORATE_OPERATOR_LISTEN`)
	elsewhere := func() { fake.CustomersOnly(true) }
	back := func() { fake.CustomersOnly(false) }
	set := func(*terraform.State) error {
		if left := fake.Quotas(); left != 1 {
			return fmt.Errorf("%d quotas are set", left)
		}
		return nil
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{PreConfig: elsewhere, Config: quota, ExpectError: explained},
			{PreConfig: back, Config: quota, Check: set},
			{PreConfig: elsewhere, Config: quota, PlanOnly: true, ExpectError: explained},
			{Config: quota, Destroy: true, ExpectError: explained},
			{PreConfig: back, Config: quota, PlanOnly: true},
			{Config: quota, Check: set},
		},
	})
}

func TestAnOperatorsCallAtCustomersAddressFindsNothingGone(t *testing.T) {
	refused := func(code string) error {
		return &api.Problem{Problem: gen.Problem{Code: gen.Code(code), Status: 404}}
	}
	if api.NotFound(refused("operator_elsewhere")) {
		t.Error("the resource counts as gone")
	}
	if !api.NotFound(refused("not_found")) {
		t.Error("what is gone is not found")
	}
}
