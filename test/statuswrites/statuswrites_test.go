package statuswrites

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// reconcilers are the packages with a Reconcile that writes a status.
var reconcilers = []string{
	"bootstrap/cloudconfig/controller",
	"core/cluster",
	"core/machine",
	"core/machinedeployment",
	"core/machinehealthcheck",
	"core/machineset",
	"providers/driver/identity/controller",
	"providers/driver/inframachine",
	"providers/driver/machinetemplate",
}

// others are the packages that write the status of a kind that has no scope there, each with the kind.
var others = map[string]string{
	// The condition OwnerRemediated, by which health check and owner communicate.
	"core/machineset": "Machine",
	// The conditions of Machines that are judged, each Machine at most once in a round.
	"core/machinehealth": "Machine",
	// Subresource approval; the request has no other status that the provider writes.
	"bootstrap/cloudconfig/approval": "CertificateSigningRequest",
}

// runners call each step that they are passed at most once. The last is for TestManyWays.
var runners = []string{module + "contracts/controller/outcome.InOrder", module + "contracts/controller/outcome.All", module + "p.InOrder"}

// save is the method that sends the one patch of the status.
const save = "(*" + module + "contracts/controller/scopes.Base[O, S]).Save"

// below is what save consists of. Only contracts/controller uses it.
const below = module + "contracts/controller/persist."

// TestOneStatusPatch: Save is called in one place of each reconciler, which is reached from one place, and so on up to Reconcile,
// and none of these places is in a loop. So each reconcile saves at most once, on whatever path.
func TestOneStatusPatch(t *testing.T) {
	var found []string
	for _, p := range load(t, "core", "providers", "bootstrap") {
		uses := p.uses()
		saves := slices.ContainsFunc(uses, func(u use) bool { return u.of == save })
		for _, wrong := range p.otherWrites(uses) {
			t.Error(wrong)
		}
		if saves {
			found = append(found, p.path)
			if wrong := p.manyWays(uses, save); wrong != "" {
				t.Error(wrong)
			}
		}
	}
	NewWithT(t).Expect(found).To(ConsistOf(reconcilers))
}

// TestManyWays: cases that must not escape the test above.
func TestManyWays(t *testing.T) {
	for name, test := range map[string]struct {
		source string
		wrong  string
	}{
		"once":                    {"func (r r) Reconcile() { r.end() }; func (r r) end() { Save() }", ""},
		"twice":                   {"func (r r) Reconcile() { Save(); Save() }", "used in 2 places"},
		"in two branches":         {"func (r r) Reconcile() { if true { Save() } else { Save() } }", "used in 2 places"},
		"twice by another":        {"func (r r) Reconcile() { r.end(); r.end() }; func (r r) end() { Save() }", "used in 2 places"},
		"in a loop":               {"func (r r) Reconcile() { for { Save() } }", "outside of loops"},
		"over a list":             {"func (r r) Reconcile() { for range []int{} { r.end() } }; func (r r) end() { Save() }", "outside of loops"},
		"in a literal":            {"func (r r) Reconcile() { f := func() { Save() }; f(); f() }", "outside of loops"},
		"as a value":              {"func (r r) Reconcile() { f := Save; f(); f() }", "outside of loops"},
		"as a step":               {"func (r r) Reconcile() { run(r.end) }; func (r r) end() { Save() }; func run(func()) {}", "outside of loops"},
		"as a step of InOrder":    {"func (r r) Reconcile() { InOrder(r.end) }; func (r r) end() { Save() }; func InOrder(...func()) {}", ""},
		"twice as a step":         {"func (r r) Reconcile() { InOrder(r.end, r.end) }; func (r r) end() { Save() }; func InOrder(...func()) {}", "used in 2 places"},
		"in a variable":           {"var f = Save; func (r r) Reconcile() { f(); f() }", "outside of loops"},
		"with itself":             {"func (r r) Reconcile() { r.end() }; func (r r) end() { Save(); r.end() }", "used in 2 places"},
		"from elsewhere":          {"func (r r) Reconcile() {}; func (r r) end() { Save() }", "used in 0 places"},
		"by a method expression":  {"func (r r) Reconcile() { f := _r.end; f(_r{}) }; type _r struct{}; func (_r) end() { Save() }", "outside of loops"},
		"by a method of a struct": {"func (r r) Reconcile() { s{}.end() }; type s struct{}; func (s) end() { Save() }", ""},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := newProgram("p", token.NewFileSet())
			g.Expect(p.parse("p.go", "package p; func Save() {}; type r struct{}; "+test.source)).To(Succeed())
			g.Expect(p.check(nil)).To(Succeed())
			wrong := p.manyWays(p.uses(), module+"p.Save")
			if test.wrong == "" {
				g.Expect(wrong).To(BeEmpty())
			} else {
				g.Expect(wrong).To(ContainSubstring(test.wrong))
			}
		})
	}
}

// manyWays returns where more than one way leads from Reconcile to a function, or a loop; "" when there is exactly one.
func (p *program) manyWays(uses []use, function string) string {
	for range 10 {
		var found []use
		for _, u := range uses {
			if u.of == function {
				found = append(found, u)
			}
		}
		switch {
		case len(found) != 1:
			return fmt.Sprintf("%s: %s is used in %d places, and one is allowed: %v", p.path, function, len(found), found)
		case found[0].repeated || found[0].call == nil && !found[0].step || found[0].in == nil:
			return fmt.Sprintf("%s: %s must be called outside of loops and function literals", found[0].at, function)
		case found[0].in.Name.Name == "Reconcile":
			return ""
		}
		function = p.nameOf(found[0].in)
	}
	return fmt.Sprintf("%s: no Reconcile is near %s", p.path, function)
}

// otherWrites are the writes of a status that bypass Save.
func (p *program) otherWrites(uses []use) []string {
	var found []string
	for _, u := range uses {
		switch name, persists := strings.CutPrefix(u.of, below); {
		case persists && slices.Contains([]string{"Object", "Status", "OwnStatus", "Save"}, name):
			found = append(found, fmt.Sprintf("%s: persist.%s is for contracts/controller: use Save of the scope", u.at, name))
		case !strings.Contains(u.of, "sigs.k8s.io/controller-runtime/pkg/client.SubResource") || strings.HasSuffix(u.of, ".Get") ||
			strings.HasSuffix(u.of, ").SubResource"):
		case u.call == nil || len(u.call.Args) < 2:
			found = append(found, fmt.Sprintf("%s: %s must be called where it is named", u.at, u.of))
		default:
			if kind := kindOf(p.info.Types[u.call.Args[1]].Type); others[p.path] != kind {
				found = append(found, fmt.Sprintf("%s: the status of a %s is written; use Save of the scope", u.at, kind))
			}
		}
	}
	return found
}

// kindOf is the name of the type of an object; what is not one Go type of its own may be any.
func kindOf(object types.Type) string {
	if pointer, ok := object.(*types.Pointer); ok {
		object = pointer.Elem()
	}
	if named, ok := types.Unalias(object).(*types.Named); ok {
		return named.Obj().Name()
	}
	return object.String()
}
