package machines

import (
	"fmt"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

func TestVersionsOf(t *testing.T) {
	g := NewWithT(t)
	of := func(version string) *clusterv1.Machine {
		machine := &clusterv1.Machine{}
		if version != "no Node" {
			machine.Status.NodeInfo = &corev1.NodeSystemInfo{KubeletVersion: version}
		}
		return machine
	}
	g.Expect(VersionsOf([]*clusterv1.Machine{of("v1.36.1"), of("no Node"), of("v1.35.9"), of(""), of("v1.36.1")})).
		To(Equal([]clusterv1.StatusVersion{
			{Version: "v1.35.9", Replicas: 1}, {Version: "v1.36.1", Replicas: 2},
		}), "in an order that stays, or each reconcile would write the status")
	var many []*clusterv1.Machine
	for i := range 150 {
		many = append(many, of(fmt.Sprintf("v1.%03d.0", i)))
	}
	g.Expect(VersionsOf(many)).To(HaveLen(100), "the API server refuses more")
	g.Expect(VersionsOf(nil)).To(BeEmpty())
}

func TestCounted(t *testing.T) {
	g := NewWithT(t)
	ready := conditions.True(clusterv1.MachineReadyCondition, "Ready", "")
	available := conditions.True(clusterv1.MachineAvailableCondition, "Available", "")
	deleted, updated := named("deleted", ready, available), named("updated", ready, available)
	deleted[0].DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	updated[0].Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	all := slices.Concat(named("new"), named("a b", ready), named("c d e", ready, available), deleted, updated, named("f", available))
	gotReady, gotAvailable := Serving(all)
	g.Expect(gotReady).To(BeEquivalentTo(5))
	g.Expect(gotAvailable).To(BeEquivalentTo(4))
	for name, test := range map[string]struct {
		status  clusterv1.MachineSetStatus
		counted bool
	}{
		"no numbers yet":         {clusterv1.MachineSetStatus{}, true},
		"these":                  {clusterv1.MachineSetStatus{Replicas: ptr.To[int32](9), ReadyReplicas: ptr.To[int32](5), AvailableReplicas: ptr.To[int32](4)}, true},
		"another total":          {clusterv1.MachineSetStatus{Replicas: ptr.To[int32](8), ReadyReplicas: ptr.To[int32](5), AvailableReplicas: ptr.To[int32](4)}, false},
		"others are ready":       {clusterv1.MachineSetStatus{Replicas: ptr.To[int32](9), ReadyReplicas: ptr.To[int32](4), AvailableReplicas: ptr.To[int32](4)}, false},
		"others are available":   {clusterv1.MachineSetStatus{Replicas: ptr.To[int32](9), ReadyReplicas: ptr.To[int32](5), AvailableReplicas: ptr.To[int32](5)}, false},
		"another total alone":    {clusterv1.MachineSetStatus{Replicas: ptr.To[int32](8)}, false},
		"none ready, as written": {clusterv1.MachineSetStatus{ReadyReplicas: ptr.To[int32](0)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(Counted(&clusterv1.MachineSet{Status: test.status}, all)).To(Equal(test.counted))
		})
	}
}

func TestPointers(t *testing.T) {
	g := NewWithT(t)
	items := []clusterv1.Machine{*named("a")[0], *named("b")[0]}
	got := Pointers(items)
	g.Expect(got).To(HaveLen(2))
	for i := range items {
		g.Expect(got[i]).To(BeIdenticalTo(&items[i]))
	}
}
