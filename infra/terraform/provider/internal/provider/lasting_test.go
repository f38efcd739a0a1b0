package provider

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"

	"quorate/infra/terraform/provider/internal/fakeapi"
)

// shop is a project with a group. `changes` are of the group's attributes, and of the project's name.
func shop(fake *fakeapi.API, changes map[string]string) string {
	attributes := map[string]string{
		"project_id": "quorate_project.p.id", "name": `"orders"`, "durability": `"persistent"`, "replication_degree": "3",
		"request_size_bytes": "64", "rate_per_s": "1000",
	}
	maps.Copy(attributes, changes)
	project, isRenamed := attributes["project"]
	if !isRenamed {
		project = `"shop"`
	}
	delete(attributes, "project")
	group := ""
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		group += "  " + name + " = " + attributes[name] + "\n"
	}
	return to(fake) + fmt.Sprintf("resource \"quorate_project\" \"p\" { name = %s }\nresource \"quorate_project\" \"other\" { name = \"other\" }\n"+
		"resource \"quorate_group\" \"g\" {\n%s}\n", project, group)
}

// noDeletion: the plan deletes nothing.
type noDeletion struct{}

func (noDeletion) CheckPlan(_ context.Context, asked plancheck.CheckPlanRequest, answer *plancheck.CheckPlanResponse) {
	for _, change := range asked.Plan.ResourceChanges {
		if change.Change.Actions.Delete() || change.Change.Actions.Replace() {
			answer.Error = fmt.Errorf("%s: %v", change.Address, change.Change.Actions)
		}
	}
}

// Each attribute of a group, and its project's name, changed alone. No plan deletes the log unless it was told so before.
func TestAccNoChangeOfAnAttributeDeletesALog(t *testing.T) {
	const inPlace, refused, protected = "in place", `keeps its|never\s+removed`, `protected\s+from\s+deletion`
	type change = map[string]string
	cases := map[string]struct {
		changes change
		outcome string
	}{
		"project":            {change{"project": `"store"`}, inPlace},
		"name":               {change{"name": `"purchases"`}, inPlace},
		"both names":         {change{"project": `"store"`, "name": `"purchases"`}, inPlace},
		"project_id":         {change{"project_id": "quorate_project.other.id"}, protected},
		"durability":         {change{"durability": `"in_memory"`}, refused},
		"replication_degree": {change{"replication_degree": "5"}, refused},
		"region":             {change{"region": `"elsewhere"`}, refused},
		"request_size_bytes": {change{"request_size_bytes": "128"}, inPlace},
		"rate_per_s":         {change{"rate_per_s": "2000"}, inPlace},
		"read_rate_per_s":    {change{"read_rate_per_s": "10"}, inPlace},
		"min_replicas":       {change{"min_replicas": "3"}, inPlace},
		"retention_bytes":    {change{"retention_bytes": "1073741824"}, inPlace},
		"retention_age_s":    {change{"retention_age_s": "3600"}, inPlace},
		"latency":            {change{"latency": `"low"`}, inPlace},
		"partitions":         {change{"partitions": "2"}, inPlace},
		"on_sla_change":      {change{"on_sla_change": `"replace"`}, inPlace},
		"accepted loss":      {change{"on_sla_change": `"replace"`, "durability": `"in_memory"`}, protected},
		"protection":         {change{"deletion_protection": "false"}, inPlace},
	}
	for name, each := range cases {
		t.Run(name, func(t *testing.T) {
			fake := fakeapi.Start(t)
			second := resource.TestStep{Config: shop(fake, each.changes)}
			last := maps.Clone(each.changes)
			if each.outcome == inPlace {
				second.ConfigPlanChecks = resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{noDeletion{}}}
			} else {
				second.ExpectError = regexp.MustCompile(each.outcome)
				last = change{}
			}
			last["deletion_protection"] = "false"
			resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: []resource.TestStep{
				{Config: shop(fake, nil), Check: resource.TestCheckResourceAttr("quorate_group.g", "deletion_protection", "true")},
				second,
				{Config: shop(fake, last)},
			}})
			if made := fake.Calls("POST", "/groups"); made != 1 {
				t.Errorf("%d groups were made", made)
			}
		})
	}
	attributes := []string{"project_id", "name", "on_sla_change"}
	for _, field := range slaFields {
		attributes = append(attributes, field.name)
	}
	for _, name := range attributes {
		if _, has := cases[name]; !has {
			t.Errorf("no case changes %s", name)
		}
	}
}

// A destroy stops at the plan, and the API refuses it to others.
func TestAccAProtectedGroupIsNotDestroyed(t *testing.T) {
	fake := fakeapi.Start(t)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: []resource.TestStep{
		{Config: shop(fake, nil)},
		{Config: shop(fake, nil), Destroy: true, ExpectError: regexp.MustCompile(`(?s)protected.*apply\s+.deletion_protection\s+=\s+false.`)},
		{Config: to(fake), ExpectError: regexp.MustCompile(`protected\s+from\s+deletion`)},
		{Config: shop(fake, map[string]string{"deletion_protection": "false"})},
	}})
}

func TestAccNamesThatAreTakenAreSaid(t *testing.T) {
	fake := fakeapi.Start(t)
	resource.Test(t, resource.TestCase{ProtoV6ProviderFactories: factories, Steps: []resource.TestStep{
		{Config: shop(fake, nil)},
		{Config: shop(fake, map[string]string{"project": `"other"`}), ExpectError: regexp.MustCompile(`(?s)Renaming the project.*Another one has this name`)},
		{Config: shop(fake, map[string]string{"deletion_protection": "false"})},
	}})
}
