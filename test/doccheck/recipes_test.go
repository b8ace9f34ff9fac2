package doccheck_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
	"millwright.dev/test/testinputs"
)

const contributing = "docs/contributing.md"

// TestRecipes applies the change that the recipes for contributors describe to the current code, and compiles it.
func TestRecipes(t *testing.T) {
	page := doccheck.Read(t, contributing)
	only := func(heading string) string {
		code := page.Code(t, heading)
		NewWithT(t).Expect(code).To(HaveLen(1), heading)
		return code[0]
	}
	controller := page.Code(t, "Add a controller")
	NewWithT(t).Expect(controller).To(HaveLen(2))

	o := overlay{t: t, dir: t.TempDir(), Replace: map[string]string{}}
	o.write("core/machine/quota.go", "package machine\n\nimport (\n\"context\"\n\n"+
		"\"millwright.dev/contracts/controller/outcome\"\n)\n\n"+only("Add a step")+
		"\nfunc (r *Reconciler) room(context.Context, *scope) (bool, error) { return true, nil }\n")
	o.edit("core/machine/scope.go", "\toptions     Options\n", "\twaitsForQuota, withinQuota bool\n")
	o.edit("core/machine/reconciler.go", "outcome.All(ctx, s, ", "r.reconcileQuota, ")
	o.edit("core/machine/conditions.go", "func (s *scope) setConditions() outcome.Outcome {\n", "\ts.set(s.quotaCondition())\n")
	o.edit("core/machine/conditions.go", "\tPreservedCondition,\n", "\tQuotaCondition,\n")
	o.edit("core/machine/conditions.go", "\tPreservationEndedReason = \"PreservationEnded\"\n)\n", only("Add a condition"))
	o.edit("core/machine/events.go", "var warningReasons = map[string]map[string]bool{\n", only("Add an event"))
	o.edit("core/options.go", "type options struct {\n", "\tquotaTimeout time.Duration\n")
	o.edit("core/options.go", "func (o *options) addMachineFlags(flags *pflag.FlagSet) {\n", only("Add a flag"))
	o.write("core/quota/reconciler.go", controllerHead+controller[0])
	o.edit("core/controllers.go", "\"millwright.dev/core/machineset\"\n", "\"millwright.dev/core/quota\"\n")
	o.edit("core/controllers.go", "\tresolver := &version.Resolver{Reader: mgr.GetClient()}\n", controller[1])
	o.build("./core", "./core/machine", "./core/quota")
}

// TestRecipesNameWhatExists: the files that the recipes name declare what the recipes say.
func TestRecipesNameWhatExists(t *testing.T) {
	page := doccheck.Read(t, contributing)
	rows := 0
	for _, row := range page.Table(t, "Add a flag") {
		for _, column := range []string{"Field in", "Line in"} {
			page.CheckDeclared(t, row["File"].Code[0], row[column].Code)
		}
		rows++
	}
	NewWithT(t).Expect(rows).To(Equal(4), "one for each kind of manager, and one for all")
	page.CheckDeclared(t, "core/controllers.go", []string{"addControllers"})
	page.CheckDeclared(t, "contracts/controller/outcome/outcome.go", []string{"Step", "InOrder", "All", "WaitFor"})
}

// controllerHead is what stands above the code of a controller that the page leaves out.
const controllerHead = `package quota

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/scopes"
)

`

// overlay is a change of the code that only the compiler sees; see "go help build", -overlay.
type overlay struct {
	t   *testing.T
	dir string
	// Replace has the files of the change by those that they replace.
	Replace map[string]string
}

func (o *overlay) write(file, content string) {
	o.t.Helper()
	copied := filepath.Join(o.dir, strings.ReplaceAll(file, "/", "_"))
	NewWithT(o.t).Expect(os.WriteFile(copied, []byte(content), 0o600)).To(Succeed())
	o.Replace[filepath.Join(testenv.Root(), filepath.FromSlash(file))] = copied
}

// edit adds lines after the place where the file says after.
func (o *overlay) edit(file, after, added string) {
	o.t.Helper()
	from := filepath.Join(testenv.Root(), filepath.FromSlash(file))
	if changed, ok := o.Replace[from]; ok {
		from = changed
	}
	content, err := os.ReadFile(from)
	NewWithT(o.t).Expect(err).NotTo(HaveOccurred())
	before, rest, found := strings.Cut(string(content), after)
	NewWithT(o.t).Expect(found).To(BeTrue(), "%s does not have %q any more: change the recipe or this test", file, after)
	o.write(file, before+after+added+rest)
}

// build compiles packages with the change, as make build does, so that the packages below them are compiled already.
func (o *overlay) build(packages ...string) {
	o.t.Helper()
	g := NewWithT(o.t)
	testinputs.Repository(o.t)
	content, err := json.Marshal(o)
	g.Expect(err).NotTo(HaveOccurred())
	file := filepath.Join(o.dir, "overlay.json")
	g.Expect(os.WriteFile(file, content, 0o600)).To(Succeed())
	command := exec.CommandContext(o.t.Context(), "go", append([]string{"build", "-trimpath", "-overlay", file}, packages...)...)
	command.Dir = testenv.Root()
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := command.CombinedOutput()
	g.Expect(err).NotTo(HaveOccurred(), "%s", output)
}
