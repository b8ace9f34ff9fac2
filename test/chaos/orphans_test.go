package chaos

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/orphans"
)

// An instance that has ended counts if its object is there and not being deleted, and only the provider can have terminated it.
func TestGuard(t *testing.T) {
	instance := machine{id: "i", providerID: "p", owner: "u"}
	for _, c := range []struct {
		name   string
		before func(*guard)
		now    []machine
		claims map[types.UID]string
		found  bool
	}{
		{"it still runs", nil, []machine{instance}, map[types.UID]string{"u": "m"}, false},
		{"it has ended, and its object is there", nil, nil, map[types.UID]string{"u": "m"}, true},
		{"it has ended with its object", nil, nil, map[types.UID]string{}, false},
		{"it has ended, and another object is there", nil, nil, map[types.UID]string{"v": "m"}, false},
		{"an action has terminated it", func(g *guard) { g.excuse("p") }, nil, map[types.UID]string{"u": "m"}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			g, watch := NewWithT(t), newGuard()
			watch.look([]machine{instance})
			if c.before != nil {
				c.before(watch)
			}
			watch.look(c.now)
			// The API server may not answer at once.
			watch.look(c.now)
			watch.judge(c.claims)
			g.Expect(watch.violations()).To(HaveLen(map[bool]int{true: 1}[c.found]))
		})
	}
}

func TestWhatAProviderReports(t *testing.T) {
	g := NewWithT(t)
	log := `I1127 events.go:54] "No object claims what the cloud lists" id="i-1" providerID="aws:///z/i-1" assessment="Frozen"
I1127 events.go:54] "No object claims what the cloud lists" id="i-2" providerID="aws:///z/i-2" assessment="Unproven"
I1127 events.go:60] "The cloud deletes what no object claims" id="i-3" providerID="aws:///z/i-3"
I1127 events.go:54] "No object claims what the cloud lists" id="i-1" providerID="aws:///z/i-1" assessment="OtherInstallation"
`
	g.Expect(assessments(log)).To(Equal(map[string]orphans.Assessment{
		"aws:///z/i-1": orphans.OtherInstallation, "aws:///z/i-2": orphans.Unproven,
	}))
}

func TestUnclaimed(t *testing.T) {
	g := NewWithT(t)
	object := &infrav1.AWSMachine{}
	object.UID, object.Name = "u", "m"
	mine, other := machine{id: "mine", name: "m", owner: "u"}, machine{id: "other", name: "m", owner: "before"}
	s := &state{infra: []driver.Object{object}, instances: []machine{mine, other}}
	g.Expect(s.unclaimed()).To(Equal([]machine{other}))
	g.Expect(s.takesName(other)).To(BeTrue())
	g.Expect(s.takesName(mine)).To(BeFalse())
	object.Spec.ProviderID = "aws:///z/i-9"
	g.Expect(s.takesName(other)).To(BeFalse(), "it has an instance of its own")
}
