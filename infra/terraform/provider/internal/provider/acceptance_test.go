package provider

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"quorate/infra/terraform/provider/internal/fakeapi"
)

// These tests run Terraform itself (TF_ACC=1), with this provider in the test's process.
var factories = map[string]func() (tfprotov6.ProviderServer, error){
	"quorate": providerserver.NewProtocol6WithError(New()),
}

func connected(url, apiKey, operatorToken string) string {
	return fmt.Sprintf("provider \"quorate\" {\n  endpoint       = %q\n  api_key        = %q\n  operator_token = %q\n}\n",
		url, apiKey, operatorToken)
}

func to(fake *fakeapi.API) string { return connected(fake.URL, fakeapi.APIKey, fakeapi.OperatorToken) }

func owned(fake *fakeapi.API, owner string) string {
	return strings.Replace(to(fake), "provider \"quorate\" {", fmt.Sprintf("provider \"quorate\" {\n  owner = %q", owner), 1)
}

const slaOfTest = `
  durability         = "persistent"
  replication_degree = 3
  request_size_bytes = 64
`

func projectAndGroup(rate int, more string) string {
	return fmt.Sprintf(`
resource "quorate_project" "p" { name = "shop" }
resource "quorate_group" "g" {
  project_id = quorate_project.p.id
  name       = "orders"
  rate_per_s = %d
  %s %s
  deletion_protection = false
}
`, rate, slaOfTest, more)
}

func key(rotation string) string {
	return fmt.Sprintf(`
resource "quorate_api_key" "k" {
  project_id = quorate_project.p.id
  name       = "app"
  scopes     = ["append", "read"]
  rotation   = %q
  lifecycle { create_before_destroy = true }
}
`, rotation)
}

func gone(fake *fakeapi.API) resource.TestCheckFunc {
	return func(*terraform.State) error {
		if projects, groups, keys, _ := fake.Count(); projects+groups+keys != 0 {
			return fmt.Errorf("left behind: %d projects, %d groups, %d keys", projects, groups, keys)
		}
		return nil
	}
}

func pairOf(name string) resource.ImportStateIdFunc {
	return func(state *terraform.State) (string, error) {
		found := state.RootModule().Resources[name].Primary.Attributes
		return found["project_id"] + "/" + found["id"], nil
	}
}

func TestAccProjectGroupAndKey(t *testing.T) {
	fake := fakeapi.Start(t)
	var before, after string
	secret := func(into *string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttrWith("quorate_api_key.k", "secret", func(value string) error { *into = value; return nil })
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: func(s *terraform.State) error { return gone(fake)(s) },
		Steps: []resource.TestStep{
			{Config: to(fake) + projectAndGroup(1000, "min_replicas = 9"), ExpectError: regexp.MustCompile(`between 1 and 7`)},
			{
				Config: to(fake) + projectAndGroup(1000, "") + key("1"),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr("quorate_group.g", "retention_bytes", "268435456"),
					resource.TestCheckNoResourceAttr("quorate_group.g", "min_replicas"),
					resource.TestCheckResourceAttr("quorate_group.g", "latency", "standard"),
					resource.TestCheckResourceAttr("quorate_group.g", "monthly_micros", "730000"), secret(&before)),
			},
			{ResourceName: "quorate_project.p", ImportState: true, ImportStateVerify: true},
			{ResourceName: "quorate_group.g", ImportState: true, ImportStateVerify: true, ImportStateIdFunc: pairOf("quorate_group.g")},
			{
				ResourceName: "quorate_api_key.k", ImportState: true, ImportStateVerify: true,
				ImportStateIdFunc: pairOf("quorate_api_key.k"), ImportStateVerifyIgnore: []string{"secret", "rotation"},
			},
			{ResourceName: "quorate_group.g", ImportState: true, ImportStateId: "orders", ExpectError: regexp.MustCompile(`project_id/id`)},
			{Config: to(fake) + projectAndGroup(1000, "") + key("2"), Check: secret(&after)},
			{ // deleted without Terraform: the next apply creates it again
				PreConfig: fake.DeleteGroups,
				Config:    to(fake) + projectAndGroup(1000, "") + key("2"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("quorate_group.g", plancheck.ResourceActionCreate),
					plancheck.ExpectResourceAction("quorate_project.p", plancheck.ResourceActionNoop),
				}},
			},
		},
	})
	if before == "" || after == "" || before == after {
		t.Errorf("rotation gave %q after %q", after, before)
	}
}

func TestAccAKeyMayBeNarrowAndMayExpire(t *testing.T) {
	fake := fakeapi.Start(t)
	narrow := func(scopes, expiresAt string) string {
		return to(fake) + fmt.Sprintf(`
resource "quorate_project" "p" { name = "shop" }
resource "quorate_api_key" "k" {
  project_id = quorate_project.p.id
  name       = "app"
  scopes     = [%s]
  expires_at = %s
}
`, scopes, expiresAt)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: gone(fake),
		Steps: []resource.TestStep{
			{Config: narrow(`"append:"`, "null"), PlanOnly: true, ExpectError: regexp.MustCompile(`read:orders`)},
			{Config: narrow(`"billing:x"`, "null"), PlanOnly: true, ExpectError: regexp.MustCompile(`read:orders`)},
			{Config: narrow(`"append"`, `"tomorrow"`), PlanOnly: true, ExpectError: regexp.MustCompile(`2027-01-31T00:00:00Z`)},
			{
				Config: narrow(`"append:orders", "read:pay-*"`, `"2099-01-31T01:00:00+01:00"`),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckResourceAttr("quorate_api_key.k", "scopes.#", "2"),
					resource.TestCheckResourceAttr("quorate_api_key.k", "expires_at", "2099-01-31T01:00:00+01:00")),
			},
			{Config: narrow(`"append:orders", "read:pay-*"`, `"2099-01-31T01:00:00+01:00"`), PlanOnly: true},
		},
	})
}

func TestAccAGroupIsResizedInPlace(t *testing.T) {
	fake := fakeapi.Start(t)
	var id string
	same := resource.TestCheckResourceAttrWith("quorate_group.g", "id", func(value string) error {
		if id != "" && id != value {
			return fmt.Errorf("%s was %s: it was made again", value, id)
		}
		id = value
		return nil
	})
	inPlace := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction("quorate_group.g", plancheck.ResourceActionUpdate),
	}}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: gone(fake),
		Steps: []resource.TestStep{
			{Config: to(fake) + projectAndGroup(6000, "min_replicas = 3\n  retention_age_s = 60\n  latency = \"low\""), Check: same},
			{
				Config: to(fake) + projectAndGroup(9000, ""), ConfigPlanChecks: inPlace,
				Check: resource.ComposeTestCheckFunc(same, resource.TestCheckResourceAttr("quorate_group.g", "rate_per_s", "9000"),
					resource.TestCheckNoResourceAttr("quorate_group.g", "min_replicas"),
					resource.TestCheckNoResourceAttr("quorate_group.g", "retention_age_s")),
			},
			{
				Config: to(fake) + projectAndGroup(99_000, ""), PlanOnly: true,
				ExpectError: regexp.MustCompile(`(?s)cannot promise.*rate_per_s = 99000.*Scarce: cpu.*would fit now:\s+rate_per_s\s+=\s+10000`),
			},
			{ // the capacity that was free when planning is taken
				PreConfig:   fake.RefuseResizes,
				Config:      to(fake) + projectAndGroup(9500, ""),
				ExpectError: regexp.MustCompile(`(?s)Resizing.*rate_per_s = 9500.*Scarce: cpu`),
			},
			{Config: to(fake) + projectAndGroup(9000, ""), PlanOnly: true}, // nothing had changed
			{Config: to(fake) + projectAndGroup(10, ""), ConfigPlanChecks: inPlace, Check: same},
			{ // replicas move before the SLA begins
				PreConfig: func() { fake.MoveSlowly(3) },
				Config:    to(fake) + projectAndGroup(700, ""), ConfigPlanChecks: inPlace,
				Check: resource.ComposeTestCheckFunc(same, resource.TestCheckResourceAttr("quorate_group.g", "rate_per_s", "700")),
			},
			{Config: to(fake) + projectAndGroup(700, ""), PlanOnly: true},
			{Config: to(fake) + projectAndGroup(10, ""), ConfigPlanChecks: inPlace, Check: same},
			{
				Config: to(fake) + projectAndGroup(10, "partitions = 4"), ConfigPlanChecks: inPlace,
				Check: resource.ComposeTestCheckFunc(same, resource.TestCheckResourceAttr("quorate_group.g", "partitions", "4")),
			},
			{Config: to(fake) + projectAndGroup(10, "partitions = 257"), PlanOnly: true, ExpectError: regexp.MustCompile(`between 1 and\s+256`)},
			{
				Config: to(fake) + projectAndGroup(10, "partitions = 2"), PlanOnly: true,
				ExpectError: regexp.MustCompile(`(?s)added and never removed.*has 4 partitions`),
			},
			{Config: to(fake) + projectAndGroup(10, "partitions = 4"), PlanOnly: true},
		},
	})
	if calls := fake.Calls("PATCH", ""); calls != 6 {
		t.Errorf("%d resizes were asked for, one of them refused", calls)
	}
}

func TestAccAProjectsGuaranteeChangesInPlace(t *testing.T) {
	fake := fakeapi.Start(t)
	guaranteed := func(tokens int, more string) string {
		return to(fake) + projectAndGroup(6000, "") + fmt.Sprintf(`
resource "quorate_project_guarantee" "all" {
  project_id          = quorate_project.p.id
  shared_tokens_per_s = %d
  %s
}
`, tokens, more)
	}
	first := "policy = \"first_fit\"\n  groups = [{ group_id = quorate_group.g.id }]"
	inPlace := resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction("quorate_project_guarantee.all", plancheck.ResourceActionUpdate),
	}}
	const name = "quorate_project_guarantee.all"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: gone(fake),
		Steps: []resource.TestStep{
			{Config: guaranteed(1000, ""), Check: resource.ComposeTestCheckFunc(
				resource.TestCheckResourceAttr(name, "policy", "drf"), resource.TestCheckResourceAttr(name, "monthly_micros", "730000"),
			)},
			{Config: guaranteed(2000, first), ConfigPlanChecks: inPlace, Check: resource.ComposeTestCheckFunc(
				resource.TestCheckResourceAttr(name, "groups.0.weight", "1"), resource.TestCheckResourceAttr(name, "groups.#", "1"),
			)},
			{Config: guaranteed(2000, first), PlanOnly: true},
			{
				ResourceName: name, ImportState: true, ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "project_id",
				ImportStateIdFunc: func(state *terraform.State) (string, error) {
					return state.RootModule().Resources[name].Primary.Attributes["project_id"], nil
				},
			},
			{
				Config:      guaranteed(900_000, first),
				ExpectError: regexp.MustCompile(`(?s)Changing the guarantee.*shared_tokens_per_s.*500000\s+fit\s+now`),
			},
			{Config: guaranteed(2000, "policy = \"best\""), ExpectError: regexp.MustCompile(`(?s)policy.*one of`)},
			{Config: guaranteed(2000, "max_tokens_per_s = 90000"), ConfigPlanChecks: inPlace},
			{Config: to(fake) + projectAndGroup(6000, "")},
		},
	})
}

func TestAccALogIsNotDeletedBehindItsOwnersBack(t *testing.T) {
	fake := fakeapi.Start(t)
	degree := func(more string) string {
		return strings.Replace(to(fake)+projectAndGroup(1000, more), "replication_degree = 3", "replication_degree = 5", 1)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: gone(fake),
		Steps: []resource.TestStep{
			{Config: to(fake) + projectAndGroup(1000, "")},
			{Config: degree(""), ExpectError: regexp.MustCompile(`(?s)replication_degree = 5.*would\s+delete\s+its\s+log`)},
			{
				Config: degree(`on_sla_change = "replace"`),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("quorate_group.g", plancheck.ResourceActionDestroyBeforeCreate),
				}},
				Check: resource.TestCheckResourceAttr("quorate_group.g", "replication_degree", "5"),
			},
		},
	})
}

func TestAccAJoinTokenThatWasRevokedIsMadeAnew(t *testing.T) {
	fake := fakeapi.Start(t)
	config := to(fake) + `resource "quorate_join_token" "s1" { name = "s1" }`
	longer := to(fake) + "resource \"quorate_join_token\" \"s1\" {\n  name  = \"s1\"\n  ttl_s = 100000\n}\n"
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy: func(*terraform.State) error {
			if left := fake.Outstanding(); left != 0 {
				return fmt.Errorf("%d tokens can still be used", left)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: config, Check: resource.TestMatchResourceAttr("quorate_join_token.s1", "id", regexp.MustCompile(`^[0-9a-f]{16}$`))},
			{
				PreConfig: fake.RevokeJoinTokens, Config: config,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("quorate_join_token.s1", plancheck.ResourceActionCreate),
				}},
			},
			{ // no server joined with it in time, because the apply was interrupted
				PreConfig: fake.ExpireJoinTokens, Config: config,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("quorate_join_token.s1", plancheck.ResourceActionCreate),
				}},
			},
			{ // it is usable: another lifetime is another token
				Config: longer,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("quorate_join_token.s1", plancheck.ResourceActionDestroyBeforeCreate),
				}},
			},
			{ // it was used, so its lifetime does not matter
				PreConfig: func() { fake.Register("s1") }, Config: config,
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("quorate_join_token.s1", plancheck.ResourceActionUpdate),
				}},
				Check: func(*terraform.State) error { fake.GiveUp("s1"); return nil },
			},
		},
	})
}

func TestAccARefusalStandsAtItsAttribute(t *testing.T) {
	fake := fakeapi.Start(t)
	quote := func(replaces string) string {
		return fmt.Sprintf(`
data "quorate_quote" "q" {
  rate_per_s = 9000
  %s %s
}
output "admissible" { value = data.quorate_quote.q.admissible }
output "fits" { value = coalesce(data.quorate_quote.q.rate_per_s_that_fits, 0) }
`, slaOfTest, replaces)
	}
	precondition := `lifecycle {
    precondition {
      condition     = data.quorate_quote.over.admissible
      error_message = "Scarce: ${coalesce(data.quorate_quote.over.scarce_resource, "nothing")}."
    }
  }`
	over := fmt.Sprintf("data \"quorate_quote\" \"over\" {\n  rate_per_s = 99000\n  %s\n}\n", slaOfTest)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: gone(fake),
		Steps: []resource.TestStep{
			{
				Config:      to(fake) + projectAndGroup(99_000, ""),
				ExpectError: regexp.MustCompile(`(?s)rate_per_s = 99000.*Scarce: cpu.*would fit now:\s+rate_per_s\s+=\s+10000`),
			},
			{Config: to(fake) + over + projectAndGroup(99_000, precondition), PlanOnly: true, ExpectError: regexp.MustCompile(`Scarce: cpu`)},
			{Config: to(fake) + projectAndGroup(8000, "")},
			{
				Config: to(fake) + projectAndGroup(8000, "") + quote(""),
				Check: resource.ComposeTestCheckFunc(
					resource.TestCheckOutput("admissible", "false"), resource.TestCheckOutput("fits", "2000")),
			},
			{
				Config: to(fake) + projectAndGroup(8000, "") + quote("replaces_group_id = quorate_group.g.id"),
				Check:  resource.TestCheckOutput("admissible", "true"),
			},
		},
	})
}

func TestAccANewGroupIsRefusedWhenPlanning(t *testing.T) {
	fake := fakeapi.Start(t)
	customer := connected(fake.URL, fakeapi.APIKey, "")
	says := regexp.MustCompile(`(?s)cannot promise this SLA now.*rate_per_s = 99000.*Scarce: cpu.*would fit now:\s+rate_per_s\s+=\s+10000`)
	afterItsServers := projectAndGroup(99_000, "depends_on = [quorate_server.s2]")
	none := func(*terraform.State) error {
		if projects, groups, _, _ := fake.Count(); projects+groups != 0 {
			return fmt.Errorf("a plan made %d projects, %d groups", projects, groups)
		}
		return nil
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: none,
		Steps: []resource.TestStep{
			{Config: customer + projectAndGroup(99_000, ""), PlanOnly: true, ExpectError: says},
			// No server serves yet: the plan cannot know, and the apply asks again.
			{Config: to(fake) + projectAndGroup(99_000, ""), PlanOnly: true, ExpectNonEmptyPlan: true},
			{Config: to(fake) + projectAndGroup(99_000, ""), ExpectError: regexp.MustCompile(`(?s)Making the group.*Scarce: cpu`)},
			{PreConfig: func() { fake.Register("s1") }, Config: to(fake) + projectAndGroup(99_000, ""), PlanOnly: true, ExpectError: says},
			// More servers come with the same plan.
			{Config: to(fake) + servers(1, "s2") + afterItsServers, PlanOnly: true, ExpectNonEmptyPlan: true},
			{ // the answer is not known now
				PreConfig: func() { fake.LoseGatewayAt("/v1/quotes", 1000) },
				Config:    customer + projectAndGroup(99_000, ""), PlanOnly: true, ExpectNonEmptyPlan: true,
			},
		},
	})
}

func TestAccAGatewayThatLosesTheAPIIsBridged(t *testing.T) {
	fake := fakeapi.Start(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: gone(fake),
		Steps: []resource.TestStep{
			{
				PreConfig: func() { fake.LoseGateway(4) }, Config: to(fake) + `resource "quorate_project" "p" { name = "shop" }`,
				ExpectError: regexp.MustCompile(`(?s)does not answer.*gateway.*status 50[234].*unknown`),
			},
			{PreConfig: func() { fake.LoseGateway(2) }, Config: to(fake) + projectAndGroup(1000, "")},
			{ // longer than one call is repeated: a resource that waits for a server continues to wait
				PreConfig: func() { fake.Register("s1"); fake.LoseGatewayAt("/v1/operator/servers", 6) },
				Config:    to(fake) + projectAndGroup(1000, "") + servers(30, "s1"),
				Check:     func(*terraform.State) error { fake.KillServer("s1", 0); return nil },
			},
		},
	})
}

func TestAccWhatIsWrongIsSaid(t *testing.T) {
	away := fakeapi.Start(t)
	away.Stop()
	garbled := fakeapi.Start(t)
	garbled.Garble("<html><title>Log in</title></html>")
	fake := fakeapi.Start(t)
	one := `resource "quorate_project" "p" { name = "shop" }`
	fleet := `data "quorate_capacity" "c" {}`
	for name, each := range map[string]struct{ config, says string }{
		"a wrong key":       {connected(fake.URL, "qk_wrong", "") + one, `(?s)credential is wrong.*qk_`},
		"a token as a key":  {connected(fake.URL, fakeapi.OperatorToken, "") + one, `credential is wrong`},
		"a key as a token":  {connected(fake.URL, "", fakeapi.APIKey) + fleet, `credential is wrong`},
		"no token":          {connected(fake.URL, fakeapi.APIKey, "") + fleet, `(?s)credential is missing.*operator_token`},
		"nobody there":      {to(away) + one, `(?s)does not answer.*Nothing was changed`},
		"somebody else":     {to(garbled) + one, `(?s)not from Quorate's API.*text/html.*Log in.*endpoint`},
		"http elsewhere":    {connected("http://api.example.com", "qk_x", "") + one, `(?s)API's address.*not valid.*unencrypted.*allow_http`},
		"no address at all": {connected("api.example.com", "qk_x", "") + one, `(?s)API's address.*not valid`},
	} {
		t.Run(name, func(t *testing.T) {
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps:                    []resource.TestStep{{Config: each.config, ExpectError: regexp.MustCompile(each.says)}},
			})
		})
	}
}

// The answers of a create are lost for good: Terraform does not know the resource. The next apply finds it.
func TestAccAnInterruptedCreateIsRepaired(t *testing.T) {
	fake := fakeapi.Start(t)
	ours := owned(fake, "shop")
	project := `resource "quorate_project" "p" { name = "shop" }`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: gone(fake),
		Steps: []resource.TestStep{
			{
				PreConfig: func() { fake.LoseAnswers(4) }, Config: ours + project,
				ExpectError: regexp.MustCompile(`(?s)does not answer.*Apply again`),
			},
			{Config: owned(fake, "another") + project, ExpectError: regexp.MustCompile(`(?s)name is taken.*terraform import ADDRESS\s+[0-9a-f-]{36}`)},
			{Config: ours + project},
			{
				PreConfig: func() { fake.LoseAnswers(4) }, Config: ours + projectAndGroup(1000, ""),
				ExpectError: regexp.MustCompile(`(?s)does not answer.*Apply again`),
			},
			{
				Config: ours + projectAndGroup(1000, ""),
				Check: func(*terraform.State) error {
					if projects, groups, _, _ := fake.Count(); projects != 1 || groups != 1 {
						return fmt.Errorf("%d projects, %d groups: one was made twice", projects, groups)
					}
					return nil
				},
			},
			{ // one lost answer is repeated within the same apply
				PreConfig: func() { fake.LoseAnswers(1) },
				Config:    ours + projectAndGroup(1000, "") + key("1"),
				Check: func(*terraform.State) error {
					if _, _, keys, _ := fake.Count(); keys != 1 {
						return fmt.Errorf("%d keys: one was made twice", keys)
					}
					return nil
				},
			},
		},
	})
}

// Without an owner an interrupted apply looks like another configuration, and no log gets two owners.
func TestAccNoConfigurationTakesAnothersGroup(t *testing.T) {
	fake := fakeapi.Start(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: gone(fake),
		Steps: []resource.TestStep{
			{Config: to(fake) + projectAndGroup(1000, "")},
			{
				Config: to(fake) + projectAndGroup(1000, "") + `
resource "quorate_group" "again" {
  project_id = quorate_project.p.id
  name       = "orders"
  rate_per_s = 1000
` + slaOfTest + "  deletion_protection = false\n}\n",
				ExpectError: regexp.MustCompile(`(?s)name is taken.*terraform import\s+ADDRESS\s+[0-9a-f-]{36}/[0-9a-f-]{36}`),
			},
			{ // one lost answer is still repeated within the same apply
				PreConfig: func() { fake.DeleteGroups(); fake.LoseAnswers(1) }, Config: to(fake) + projectAndGroup(1000, ""),
				Check: func(*terraform.State) error {
					if _, groups, _, _ := fake.Count(); groups != 1 {
						return fmt.Errorf("%d groups", groups)
					}
					return nil
				},
			},
		},
	})
}

// The stored answer names a group under deletion. A new group is created when that one is gone.
func TestAccAGroupThatIsBeingDeletedIsNotTakenOver(t *testing.T) {
	fake := fakeapi.Start(t)
	var first, second string
	id := func(into *string) resource.TestCheckFunc {
		return resource.TestCheckResourceAttrWith("quorate_group.g", "id", func(value string) error { *into = value; return nil })
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: gone(fake),
		Steps: []resource.TestStep{
			{Config: owned(fake, "shop") + projectAndGroup(1000, ""), Check: id(&first)},
			{PreConfig: func() { fake.DeleteSlowly(6) }, Config: owned(fake, "shop") + projectAndGroup(1000, ""), Check: id(&second)},
		},
	})
	if first == "" || second == "" || first == second {
		t.Errorf("%q after %q", second, first)
	}
}

func servers(timeout int, names ...string) string {
	config := ""
	for _, name := range names {
		config += fmt.Sprintf(`
resource "quorate_join_token" %[1]q { name = %[1]q }
resource "quorate_server" %[1]q {
  name                   = %[1]q
  instance_id            = sha256(quorate_join_token.%[1]s.token)
  registration_timeout_s = %[2]d
}
`, name, timeout)
	}
	return config
}

func TestAccServersJoinAndAreDrained(t *testing.T) {
	fake := fakeapi.Start(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: to(fake) + servers(1, "s1"), ExpectError: regexp.MustCompile(`(?s)s1 does not join.*no server of this name`)},
			{PreConfig: func() { fake.Register("s1"); fake.Register("s2") }, Config: to(fake) + servers(5, "s1", "s2")},
			{
				ResourceName: "quorate_server.s1", ImportState: true, ImportStateId: "s1", ImportStateVerify: true,
				ImportStateVerifyIdentifierAttribute: "name", ImportStateVerifyIgnore: []string{"instance_id", "registration_timeout_s"},
			},
			{
				Config: to(fake) + servers(5, "s1", "s2") + "data \"quorate_capacity\" \"c\" {}\n" +
					"output \"alive\" { value = data.quorate_capacity.c.servers_alive }\n",
				Check: resource.TestCheckOutput("alive", "2"),
			},
			{ // s2 is removed: drained, its machine ends, its name is free
				Config: to(fake) + servers(5, "s1") + `resource "quorate_join_token" "s2" { name = "s2" }`,
				Check: func(*terraform.State) error {
					if drains := fake.Calls("POST", "/drain"); drains != 1 {
						return fmt.Errorf("%d drains", drains)
					}
					return nil
				},
			},
			{
				PreConfig: func() { fake.StopServer("s2") }, Config: to(fake) + servers(5, "s1"),
				Check: func(*terraform.State) error {
					if _, _, _, left := fake.Count(); left != 1 {
						return fmt.Errorf("%d servers are registered", left)
					}
					fake.KillServer("s1", 0) // its machine ends before the last step's destroy
					return nil
				},
			},
		},
	})
	if _, _, _, left := fake.Count(); left != 0 {
		t.Errorf("%d servers stay registered", left)
	}
}

func TestAccADeadServerIsRemoved(t *testing.T) {
	fake := fakeapi.Start(t)
	more := func(config, arguments string) string {
		return strings.Replace(config, "instance_id ", arguments+"\n  instance_id ", 1)
	}
	kept := more(servers(5, "s3"), "give_up_if_dead = false\n  drain_timeout_s = 1")
	token := func(name string) string {
		return fmt.Sprintf("resource \"quorate_join_token\" %[1]q { name = %[1]q }\n", name)
	}
	left := func(want int) resource.TestCheckFunc {
		return func(*terraform.State) error {
			if _, _, _, count := fake.Count(); count != want {
				return fmt.Errorf("%d servers are registered, not %d", count, want)
			}
			return nil
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{
				PreConfig: func() { fake.Register("s1"); fake.Register("s2"); fake.Register("s3") },
				Config:    to(fake) + servers(5, "s1", "s2") + kept,
			},
			{ // no group needs it: it is removed from the fleet without a drain
				PreConfig: func() { fake.KillServer("s2", 0) }, Config: to(fake) + servers(5, "s1") + kept + token("s2"), Check: left(2),
			},
			{
				PreConfig: func() { fake.KillServer("s3", 0) }, Config: to(fake) + servers(5, "s1") + token("s3"),
				ExpectError: regexp.MustCompile(`(?s)s3 does not run.*DELETE\s+/v1/operator/servers/3`),
			},
			{
				PreConfig: func() { fake.KillServer("s3", 2) }, Config: to(fake) + servers(5, "s1") + token("s3"),
				ExpectError: regexp.MustCompile(`(?s)groups wait for its disk.*2 groups.*DELETE\s+/v1/operator/servers/3`),
			},
			{ // it is back: the drain ends, and Terraform sees it
				PreConfig: func() { fake.ReviveServer("s3") }, Config: to(fake) + servers(5, "s1") + token("s3"), Check: left(2),
			},
			{PreConfig: func() { fake.StopServer("s3") }, Config: to(fake) + servers(5, "s1"), Check: left(1)},
			{ // removed from the fleet without Terraform: the plan shows it, and the apply waits for it
				PreConfig: func() { fake.GiveUp("s1") }, Config: to(fake) + servers(1, "s1"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("quorate_server.s1", plancheck.ResourceActionCreate),
				}},
				ExpectError: regexp.MustCompile(`(?s)s1 does not join.*no server of this name is registered`),
			},
			{
				PreConfig: func() { fake.Register("s1") }, Config: to(fake) + servers(5, "s1"),
				Check: func(*terraform.State) error { fake.KillServer("s1", 0); return nil },
			},
		},
	})
	if drains := fake.Calls("POST", "/drain"); drains != 2 {
		t.Errorf("%d drains were asked for: of s3, dead and alive again", drains)
	}
	if err := left(0)(nil); err != nil {
		t.Error(err)
	}
}

// Its machine depends on the token: an expired token that no server needs must not replace a serving machine.
func TestAccAnExpiredTokenOfAServerThatJoinedOtherwiseStays(t *testing.T) {
	fake := fakeapi.Start(t)
	fake.Register("s1")
	config := to(fake) + `resource "quorate_join_token" "s1" { name = "s1" }`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config},
			{PreConfig: fake.ExpireJoinTokens, Config: config, PlanOnly: true},
			{PreConfig: func() { fake.GiveUp("s1") }, Config: config, PlanOnly: true, ExpectNonEmptyPlan: true},
		},
	})
}
