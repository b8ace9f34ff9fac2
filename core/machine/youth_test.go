package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// TestYouthEndsWhateverTheClocksShow: the time of birth is the API server's. However far this process's clock is from that,
// an object that never comes is soon reported.
func TestYouthEndsWhateverTheClocksShow(t *testing.T) {
	for name, behind := range map[string]time.Duration{
		"one clock": 0, "behind by a moment": time.Second, "behind": 5 * time.Minute, "far behind": 24 * time.Hour, "ahead": -time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			created := time.Unix(1e9, 0)
			machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
			start := created.Add(-behind)
			silence := time.Duration(0)
			now := start
			for range 100 {
				s := &scope{Base: base{Now: now, Original: machine}}
				rest, silent := s.youth(clusterv1.MachineInfrastructureReadyCondition)
				if rest <= 0 {
					break
				}
				if silent > 0 {
					silence += silent
					now = now.Add(silent)
					continue
				}
				conditions.Set(&machine.Status.Conditions,
					conditions.False(clusterv1.MachineInfrastructureReadyCondition, BeingCreatedReason, ""), 1, now)
				now = now.Add(rest)
			}
			conditions.Set(&machine.Status.Conditions,
				conditions.False(clusterv1.MachineInfrastructureReadyCondition, clusterv1.ObjectDoesNotExistReason, ""), 1, now)
			rest, _ := (&scope{Base: base{Now: now, Original: machine}}).youth(clusterv1.MachineInfrastructureReadyCondition)
			g.Expect(rest).To(BeNumerically("<=", 0), "it does not come back")
			g.Expect(silence).To(BeNumerically("<=", creationSettling))
			g.Expect(now.Sub(start)).To(BeNumerically("<=", creationGrace+creationSettling))
		})
	}
}
