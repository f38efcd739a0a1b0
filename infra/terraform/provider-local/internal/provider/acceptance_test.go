package provider

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"quorate/infra/terraform/provider-local/internal/process"
	"quorate/infra/terraform/provider-local/internal/standin"
)

// These tests run Terraform itself (TF_ACC=1), with this provider in the test's process.
var factories = map[string]func() (tfprotov6.ProviderServer, error){
	"quorate-local": providerserver.NewProtocol6WithError(New()),
}

const one, two = "quorate_local_server.s1", "quorate_local_server.s2"

type world struct {
	stateDir string
	fleet    *standin.Fleet
}

func newWorld(t *testing.T) world {
	return world{filepath.Join(t.TempDir(), "servers"), standin.StartFleet(t)}
}

func (w world) server(name, more string) string {
	binary, _ := os.Executable()
	return fmt.Sprintf(`
resource "quorate_local_server" %[1]q {
  provider      = quorate-local
  name          = %[1]q
  state_dir     = %[2]q
  server_binary = %[3]q
  coordinator   = %[4]q
  join_token    = "qjt_of_%[1]s"
  %[5]s
}
`, name, w.stateDir, binary, w.fleet.Address(), more)
}

// mark adds a file to the server's data, as a replica that no other server has.
func (w world) mark(t *testing.T, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(w.folder(name), "data", "replica"), []byte("its only copy"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (w world) marked(name string) resource.TestCheckFunc {
	return func(*terraform.State) error {
		_, err := os.Stat(filepath.Join(w.folder(name), "data", "replica"))
		return err
	}
}

func (w world) folder(name string) string { return filepath.Join(w.stateDir, name) }

// gone: neither a process nor a file is left.
func (w world) gone(pids ...*int) resource.TestCheckFunc {
	return func(*terraform.State) error {
		for _, pid := range pids {
			if _, err := process.IdentityOf(*pid); err == nil {
				return fmt.Errorf("process %d is left", *pid)
			}
		}
		if _, err := os.Stat(w.stateDir); !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s is left: %w", w.stateDir, err)
		}
		return nil
	}
}

func pidOf(name string, into *int) resource.TestCheckFunc {
	return resource.TestCheckResourceAttrWith(name, "pid", func(value string) error {
		pid, err := strconv.Atoi(value)
		if err == nil {
			_, err = process.IdentityOf(pid)
		}
		*into = pid
		return err
	})
}

func actions(first, second plancheck.ResourceActionType) resource.ConfigPlanChecks {
	return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
		plancheck.ExpectResourceAction(one, first), plancheck.ExpectResourceAction(two, second),
	}}
}

func TestAccServersLiveDieAndAreRestarted(t *testing.T) {
	w := newWorld(t)
	var first, second, again, restarted int
	var address string
	both := func(more string) string { return w.server("s1", more) + w.server("s2", "") }
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: w.gone(&first, &second, &again, &restarted),
		Steps: []resource.TestStep{
			{Config: w.server("s1", `listen = "0.0.0.0:0"`), ExpectError: regexp.MustCompile(`must be a loopback address`)},
			{
				Config: both(""),
				Check: resource.ComposeTestCheckFunc(
					pidOf(one, &first), pidOf(two, &second), resource.TestCheckResourceAttr(one, "id", "s1"),
					resource.TestCheckNoResourceAttr(one, "join_token"),
					resource.TestCheckResourceAttrWith(one, "address", func(value string) error { address = value; return nil }),
				),
			},
			{ // killed: it is missing in the plan, and the apply starts it again on its disk
				PreConfig:        func() { kill(t, first) },
				Config:           both(""),
				ConfigPlanChecks: actions(plancheck.ResourceActionCreate, plancheck.ResourceActionNoop),
				Check: resource.ComposeTestCheckFunc(pidOf(one, &again),
					resource.TestCheckResourceAttrWith(one, "address", func(value string) error {
						if value != address {
							return fmt.Errorf("%s was %s", value, address)
						}
						return nil
					})),
			},
			{
				Config:           both("cpu = 1.5"),
				ConfigPlanChecks: actions(plancheck.ResourceActionUpdate, plancheck.ResourceActionNoop),
				Check:            pidOf(one, &restarted),
			},
			{ // replaced: it continues with its folder, for which its join token is used
				Taint: []string{one}, PreConfig: func() { w.mark(t, "s1") }, Config: w.server("s1", "cpu = 1.5") + w.server("s2", ""),
				ConfigPlanChecks: actions(plancheck.ResourceActionDestroyBeforeCreate, plancheck.ResourceActionNoop),
				Check:            resource.ComposeTestCheckFunc(pidOf(one, &restarted), w.marked("s1")),
			},
			{ // a changed timeout does not restart it
				Config: both("cpu = 1.5\n  stop_timeout_s = 3"),
				Check: func(state *terraform.State) error {
					same := restarted
					if err := pidOf(one, &same)(state); err != nil || same != restarted {
						return fmt.Errorf("%d is %d now: %w", restarted, same, err)
					}
					return nil
				},
			},
			{
				ResourceName: one, ImportState: true, ImportStateVerify: true, ImportStateId: w.folder("s1"),
				ImportStateVerifyIgnore: []string{"stop_timeout_s"},
			},
			{ResourceName: one, ImportState: true, ImportStateId: w.stateDir, ExpectError: regexp.MustCompile(`No server has this folder`)},
		},
	})
	if first == again || again == restarted {
		t.Errorf("pids %d, %d, %d", first, again, restarted)
	}
}

func TestAccWhatIsWrongIsSaid(t *testing.T) {
	w := newWorld(t)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: w.left(),
		Steps: []resource.TestStep{
			{Config: w.server(standin.Refused, ""), ExpectError: regexp.MustCompile(`(?s)refused does not join.*join token is not known`)},
			{Config: w.server(standin.Silent, "ready_timeout_s = 1"), ExpectError: regexp.MustCompile(`(?s)silent does not join.*after 1 s`)},
			{
				Config:      strings.Replace(w.server("s1", ""), `join_token    = "qjt_of_s1"`, "", 1),
				ExpectError: regexp.MustCompile(`(?s)has not joined yet.*quorate_join_token`),
			},
			{
				Config:      strings.Replace(w.server("s1", ""), "provider.test", "no-such-binary", 1),
				ExpectError: regexp.MustCompile(`(?s)s1 does not join.*no such file`),
			},
		},
	})
}

// left: only the folder of a server that had joined and has ended since.
func (w world) left() resource.TestCheckFunc {
	return func(*terraform.State) error {
		entries, err := os.ReadDir(w.stateDir)
		for _, entry := range entries {
			if entry.Name() != standin.Silent {
				return fmt.Errorf("%s is left", entry.Name())
			}
		}
		return err
	}
}

// An apply that was interrupted after it had started the server, and before Terraform stored it.
func TestAccAnInterruptedCreateIsTakenOver(t *testing.T) {
	w := newWorld(t)
	var first, second int
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories, CheckDestroy: w.gone(&first),
		Steps: []resource.TestStep{
			{Config: w.server("s1", ""), Check: pidOf(one, &first)},
			{ // Terraform forgets it
				Config: "provider \"quorate-local\" {}\nremoved {\n  from = quorate_local_server.s1\n  lifecycle { destroy = false }\n}\n",
			},
			{Config: w.server("s1", "cpu = 2"), ExpectError: regexp.MustCompile(`(?s)Another server runs in the folder.*terraform import`)},
			{Config: w.server("s1", ""), Check: pidOf(one, &second)},
		},
	})
	if first != second {
		t.Errorf("%d was started beside %d", second, first)
	}
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
