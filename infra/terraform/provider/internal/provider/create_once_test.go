package provider

import (
	"context"
	"net/http"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"quorate/infra/terraform/provider/internal/api"
	"quorate/infra/terraform/provider/internal/api/gen"
	"quorate/infra/terraform/provider/internal/fakeapi"
)

func TestOnlyWhatAnEarlierApplyMadeWasThereAlready(t *testing.T) {
	fake := fakeapi.Start(t)
	client, err := api.New(fake.URL, fakeapi.APIKey, "test", false)
	if err != nil {
		t.Fatal(err)
	}
	once := func(owner string) (*gen.Project, diag.Diagnostics, error) {
		var said diag.Diagnostics
		ours := &customers{api: client, shared: &connection{owner: owner}}
		body := gen.NewProject{Name: "shop"}
		made, err := createOnce(context.Background(), ours, &said, creation[gen.Project]{
			doing: "Making the project", identity: []any{"project", body},
			create: func(ctx context.Context, key *string) (*http.Response, error) {
				return client.CreateProject(ctx, &gen.CreateProjectParams{IdempotencyKey: key}, body)
			},
			current: func(ctx context.Context, made *gen.Project) (*gen.Project, error) {
				return (&project{customers: *ours}).read(ctx, made.Id)
			},
		})
		return made, said, err
	}
	fake.LoseAnswers(1)
	first, said, err := once("a")
	if err != nil || len(said) != 0 {
		t.Fatalf("an answer that was lost and repeated: %v, %v", said, err)
	}
	again, said, err := once("a")
	if err != nil || again.Id != first.Id || said.WarningsCount() != 1 {
		t.Errorf("the next apply of the same configuration: %v, %v, %v", again, said, err)
	}
	for _, other := range []string{"b", ""} {
		if _, _, err := once(other); !api.HasCode(err, "name_taken") {
			t.Errorf("another configuration, %q: %v", other, err)
		}
	}
}

func TestCredentialsGoOverHTTPOnThisMachineOnly(t *testing.T) {
	for address, isFine := range map[string]bool{
		"https://api.example.com": true, "http://127.0.0.1:8080": true, "http://localhost:8080": true, "http://[::1]:8080": true,
		"http://api.example.com": false, "http://10.0.0.7:8080": false, "http://localhost.example.com": false,
	} {
		if _, err := api.New(address, "qk_x", "test", false); (err == nil) != isFine {
			t.Errorf("%s: %v", address, err)
		}
		if _, err := api.New(address, "qk_x", "test", true); err != nil {
			t.Errorf("%s, as was agreed to: %v", address, err)
		}
	}
}
