package chaos

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/safety/overshoot"
)

// past is a history that a test writes, one version after the other.
type past struct {
	*history
	version int
}

func (p *past) stamp(object client.Object, name, owner string) {
	p.version++
	object.SetName(name)
	object.SetUID(types.UID(name))
	object.SetResourceVersion(fmt.Sprint(p.version))
	if owner != "" {
		object.SetOwnerReferences([]metav1.OwnerReference{{UID: types.UID(owner), Controller: ptr.To(true)}})
	}
}

// later lets everything so far be long ago.
func (p *past) later() {
	for i := range p.moments {
		p.moments[i].at = p.moments[i].at.Add(-time.Hour)
	}
}

// acted is the generation that the core reports as acted on, beside that of the spec; the newest unless given.
func acted(generation int64, observed []int64) int64 {
	if len(observed) > 0 {
		return observed[0]
	}
	return generation
}

func (p *past) deployment(replicas int32, surge string, observed ...int64) {
	d := &clusterv1.MachineDeployment{}
	d.Generation = int64(p.version + 1)
	d.Status.ObservedGeneration = acted(d.Generation, observed)
	d.Spec.Replicas = ptr.To(replicas)
	d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.Parse(surge))
	p.stamp(d, "d", "")
	p.add(d, false)
}

func (p *past) set(name string, replicas int32, observed ...int64) {
	s := &clusterv1.MachineSet{}
	s.Generation = int64(p.version + 1)
	s.Status.ObservedGeneration = acted(s.Generation, observed)
	s.Spec.Replicas = ptr.To(replicas)
	p.stamp(s, name, "d")
	p.add(s, false)
}

func (p *past) machine(name, set string, gone bool) {
	m := &clusterv1.Machine{}
	p.stamp(m, name, set)
	p.add(m, gone)
}

func TestHistoryFindsMachinesTooMany(t *testing.T) {
	for _, c := range []struct {
		name  string
		build func(*past)
		want  []string
	}{
		{"as many as wanted", func(p *past) {
			p.set("s", 2)
			p.machine("a", "s", false)
			p.machine("b", "s", false)
			p.machine("a", "s", true)
			p.machine("c", "s", false)
		}, nil},
		{"one too many in a set", func(p *past) {
			p.set("s", 1)
			p.machine("a", "s", false)
			p.machine("b", "s", false)
		}, []string{"MachineSet s: Machine b came as number 2 of at most 1"}},
		{"a Machine that is changed does not come", func(p *past) {
			p.set("s", 1)
			p.machine("a", "s", false)
			p.set("s", 0)
			p.machine("a", "s", false)
		}, nil},
		{"what was wanted a moment ago counts", func(p *past) {
			p.set("s", 1)
			p.set("s", 0)
			p.machine("a", "s", false)
		}, nil},
		{"more than replicas and surge", func(p *past) {
			p.deployment(3, "1")
			p.set("s", 3)
			p.set("t", 2)
			for _, name := range []string{"a", "b", "c"} {
				p.machine(name, "s", false)
			}
			p.machine("e", "t", false)
			p.machine("f", "t", false)
		}, []string{"MachineDeployment d: Machine f came as number 5 of at most 4"}},
		{"a surge in percent is rounded up", func(p *past) {
			p.deployment(3, "10%")
			p.set("s", 4)
			for _, name := range []string{"a", "b", "c", "e"} {
				p.machine(name, "s", false)
			}
		}, nil},
		{"a set that has not acted on its new number yet", func(p *past) {
			p.set("s", 1)
			p.set("s", 0, 1)
			p.later()
			p.machine("a", "s", false)
		}, nil},
		{"a set that has acted on its new number", func(p *past) {
			p.set("s", 1)
			p.set("s", 0)
			p.later()
			p.machine("a", "s", false)
		}, []string{"MachineSet s: Machine a came as number 1 of at most 0"}},
		{"a deployment that has not acted on its new number yet", func(p *past) {
			p.deployment(2, "0")
			p.deployment(1, "0", 1)
			p.set("s", 2)
			p.later()
			p.machine("a", "s", false)
			p.machine("b", "s", false)
		}, nil},
		{"a deployment that has acted, but has not reached its set yet", func(p *past) {
			p.deployment(2, "0")
			p.set("s", 2)
			p.deployment(1, "0")
			p.later()
			p.machine("a", "s", false)
			p.machine("b", "s", false)
		}, nil},
		{"a set that grew after the deployment had acted", func(p *past) {
			p.deployment(2, "0")
			p.deployment(1, "0")
			p.set("s", 2)
			p.later()
			p.machine("a", "s", false)
			p.machine("b", "s", false)
		}, []string{"MachineDeployment d: Machine b came as number 2 of at most 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &past{history: newHistory()}
			c.build(p)
			NewWithT(t).Expect(p.excesses()).To(Equal(c.want))
		})
	}
}

// Watches of different kinds are not in step; versions are.
func TestHistoryIsOrderedByVersion(t *testing.T) {
	g := NewWithT(t)
	p := &past{history: newHistory()}
	p.set("s", 0)
	p.set("s", 1)
	p.machine("a", "s", false)
	p.moments[0], p.moments[2] = p.moments[2], p.moments[0]
	g.Expect(p.excesses()).To(BeEmpty())
}

// marked is a Machine that the run creates for a set, which has too many then.
func (p *past) marked(name, set string) {
	m := &clusterv1.Machine{}
	m.Annotations = map[string]string{surplusAnnotation: ""}
	p.stamp(m, name, set)
	p.add(m, false)
}

// What the run creates itself is no excess; what the core adds to it is one, as soon as it must know.
func TestHistoryKnowsWhatTheRunHasCreated(t *testing.T) {
	g := NewWithT(t)
	p := &past{history: newHistory()}
	p.set("s", 1)
	p.marked("x", "s")
	p.machine("a", "s", false)
	p.marked("y", "s")
	g.Expect(p.excesses()).To(BeEmpty())
	p.machine("b", "s", false)
	g.Expect(p.excesses()).To(Equal([]string{"MachineSet s: Machine b came as number 2 of at most 1"}))

	p = &past{history: newHistory()}
	p.set("s", 1)
	p.marked("x", "s")
	p.later()
	p.machine("a", "s", false)
	g.Expect(p.excesses()).To(Equal([]string{"MachineSet s: Machine a came as number 2 of at most 1"}))
	p.machine("x", "s", true)
	overshoots, made := p.freezes()
	g.Expect([]int{overshoots, made}).To(Equal([]int{0, 1}))
}

func TestHistoryFindsMachinesThatCameInAFreeze(t *testing.T) {
	freeze := func(p *past, value string) {
		d := &clusterv1.MachineDeployment{}
		if value != "" {
			d.Labels = map[string]string{overshoot.FrozenLabel: value}
		}
		p.stamp(d, "d", "")
		p.add(d, false)
	}
	for _, c := range []struct {
		name  string
		build func(*past)
		found int
	}{
		{"without a freeze", func(p *past) { p.later(); p.machine("a", "s", false) }, 0},
		{"right after it began", func(p *past) { freeze(p, freezeByHand); p.machine("a", "s", false) }, 0},
		{"long after it began", func(p *past) { freeze(p, freezeByHand); p.later(); p.machine("a", "s", false) }, 1},
		{"once it has ended", func(p *past) { freeze(p, freezeByHand); p.later(); freeze(p, ""); p.machine("a", "s", false) }, 0},
		{"a Machine of the run", func(p *past) { freeze(p, overshoot.Overshoot); p.later(); p.marked("a", "s") }, 0},
		{"a Machine that was there", func(p *past) {
			p.machine("a", "s", false)
			freeze(p, freezeByHand)
			p.later()
			p.machine("a", "s", false)
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := &past{history: newHistory()}
			p.set("s", 2)
			c.build(p)
			NewWithT(t).Expect(p.createdInFreeze()).To(HaveLen(c.found))
		})
	}
}
