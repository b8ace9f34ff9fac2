package chaos

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// TestLost: a preserved Machine that is deleted is reported, unless an action has released or deleted it.
func TestLost(t *testing.T) {
	for name, c := range map[string]struct {
		preserve string
		labelled bool
		deleted  bool
		atOnce   bool
		lost     bool
	}{
		"preserved":                  {preserve: "now", labelled: true, lost: true},
		"preserved, deleted at once": {preserve: "when-failed", labelled: true, atOnce: true, lost: true},
		"released":                   {preserve: "false", labelled: true},
		"deleted manually":           {preserve: "now", labelled: true, deleted: true},
		"asked for, not yet of that": {preserve: "now"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			p := &past{history: newHistory()}
			m := &clusterv1.Machine{}
			p.stamp(m, "m", "cluster")
			m.Annotations = map[string]string{machines.PreserveAnnotation: c.preserve}
			if c.labelled {
				m.Labels = map[string]string{machines.PreservedLabel: "d"}
			}
			p.add(m, false)
			if !c.atOnce {
				now := metav1.Now()
				m.DeletionTimestamp = &now
				p.stamp(m, "m", "cluster")
				p.add(m, false)
			}
			p.stamp(m, "m", "cluster")
			p.add(m, true)
			want := 0
			if c.lost {
				want = 1
			}
			g.Expect(p.lost(map[types.UID]bool{"m": c.deleted})).To(HaveLen(want))
			g.Expect(p.preserved() == 1).To(Equal(c.labelled && c.preserve != "false"))
		})
	}
}
