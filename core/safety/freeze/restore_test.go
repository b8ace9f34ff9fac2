package freeze

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestASuspectedRestore holds for its grace, or until a user has looked.
func TestASuspectedRestore(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * time.Hour)
	w.examined(cluster, "Nodes without Machines: n1")
	w.examined(other, "")
	w.clock.Step(DefaultRestoreGrace - 1)
	state := w.Frozen(cluster)
	g.Expect(state.Reason).To(Equal(RestoreSuspectedReason))
	g.Expect(state.Message).To(And(ContainSubstring("Nodes without Machines: n1"), ContainSubstring(UnfreezeAnnotation)))
	g.Expect(w.Frozen(other).Active()).To(BeFalse())
	w.examined(cluster, "Nodes without Machines: n1, n2")
	g.Expect(w.Frozen(cluster).Since).To(Equal(state.Since), "what is found later prolongs nothing")
	w.clock.Step(1)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
}

// versioned is a lease of which only the version is known; "" for none.
func versioned(version string) *coordinationv1.Lease {
	if version == "" {
		return nil
	}
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
}

// TestTheManagementClusterIsSetBack while the core runs.
func TestTheManagementClusterIsSetBack(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	p := &Probe{Freezer: w.Freezer, Clock: w.clock}
	for _, version := range []string{"900", "1000", "1000", "1001"} {
		p.compare(t.Context(), versioned(version))
		g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	}
	p.compare(t.Context(), versioned("999"))
	state := w.Frozen(cluster)
	g.Expect(state.Reason).To(Equal(RestoreSuspectedReason))
	g.Expect(state.Message).To(ContainSubstring("its resourceVersion went back from 1001 to 999"))
	g.Expect(w.changes).To(Equal([]client.ObjectKey{{}}))
}
