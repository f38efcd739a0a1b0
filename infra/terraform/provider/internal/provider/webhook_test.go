package provider

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"quorate/infra/terraform/provider/internal/fakeapi"
)

func TestAccAWebhookIsMadeChangedInPlaceAndImported(t *testing.T) {
	fake := fakeapi.Start(t)
	hook := func(more string) string {
		return to(fake) + fmt.Sprintf("resource \"quorate_webhook\" \"w\" {\n  %s\n}\n", more)
	}
	address := `url = "https://example.com/quorate"`
	inPlace := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction("quorate_webhook.w", plancheck.ResourceActionUpdate),
	}}
	var secret string
	same := resource.TestCheckResourceAttrWith("quorate_webhook.w", "secret", func(value string) error {
		if secret != "" && secret != value {
			return fmt.Errorf("another secret: it was made again")
		}
		secret = value
		return nil
	})
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy: func(*terraform.State) error {
			if left := fake.Webhooks(); left != 0 {
				return fmt.Errorf("%d webhooks are left", left)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: hook(`url = "example.com"`), PlanOnly: true, ExpectError: regexp.MustCompile(`https://example.com/quorate`)},
			{Config: hook(address + "\n  event_types = [\"Caps\"]"), PlanOnly: true, ExpectError: regexp.MustCompile(`group.status_changed`)},
			{Config: hook(`url = "http://example.com/"`), ExpectError: regexp.MustCompile(`(?s)Making the webhook.*https`)},
			{
				Config: hook(address),
				Check: resource.ComposeTestCheckFunc(same, resource.TestCheckResourceAttr("quorate_webhook.w", "paused", "false"),
					resource.TestCheckNoResourceAttr("quorate_webhook.w", "event_types")),
			},
			{ResourceName: "quorate_webhook.w", ImportState: true, ImportStateVerify: true, ImportStateVerifyIgnore: []string{"secret"}},
			{
				Config:           hook(address + "\n  event_types = [\"budget.cap_reached\"]\n  description = \"pager\""),
				ConfigPlanChecks: inPlace,
				Check: resource.ComposeTestCheckFunc(same, resource.TestCheckResourceAttr("quorate_webhook.w", "event_types.#", "1"),
					resource.TestCheckResourceAttr("quorate_webhook.w", "description", "pager")),
			},
			{ // paused without Terraform: the next apply enables it
				PreConfig:        fake.PauseWebhooks,
				Config:           hook(address),
				ConfigPlanChecks: inPlace,
				Check:            same,
			},
			{Config: hook(address), PlanOnly: true},
			{Config: hook(address + "\n  paused = true"), ConfigPlanChecks: inPlace, Check: same},
		},
	})
}

func TestAccAWebhookMayBeginPaused(t *testing.T) {
	fake := fakeapi.Start(t)
	config := to(fake) + "resource \"quorate_webhook\" \"w\" {\n  url = \"https://example.com/\"\n  paused = true\n}\n"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps:                    []resource.TestStep{{Config: config}, {Config: config, PlanOnly: true}},
	})
}
