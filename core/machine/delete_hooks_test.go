package machine

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestHooksAreCountedAndNamed(t *testing.T) {
	const prefix = clusterv1.PreDrainDeleteHookAnnotationPrefix
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	began := metav1.NewTime(now.Add(-time.Hour))
	tests := []struct {
		name        string
		annotations map[string]string
		status      *clusterv1.MachineDeletionStatus
		want        string
	}{
		{name: "none", annotations: map[string]string{"example.com/other": "x", clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/x": ""}},
		{
			name:        "one without an owner, from now",
			annotations: map[string]string{prefix + "/backup": ""},
			want:        "Waiting since 2026-11-20T12:00:00Z for 1 pre-drain hook, whose owner must remove the annotation: " + prefix + "/backup",
		},
		{
			name:        "several, sorted, with owners, since before",
			annotations: map[string]string{prefix + "/b": "backup-controller", prefix + "/a": ""},
			status:      &clusterv1.MachineDeletionStatus{WaitForPreDrainHookStartTime: began},
			want: "Waiting since 2026-11-20T11:00:00Z for 2 pre-drain hooks, whose owner must remove the annotation: " + prefix + "/a, " +
				prefix + "/b (backup-controller)",
		},
		{
			name:        "a value that is no name",
			annotations: map[string]string{prefix + "/a": strings.Repeat("x", 1000)},
			want: "Waiting since 2026-11-20T12:00:00Z for 1 pre-drain hook, whose owner must remove the annotation: " + prefix + "/a (" +
				strings.Repeat(
					"x",
					maxHookOwner,
				) + ")",
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			m := &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Annotations: test.annotations},
				Status:     clusterv1.MachineStatus{Deletion: test.status},
			}
			s := &scope{Base: base{Now: now, Original: m, Object: m.DeepCopy()}}
			end := (&Reconciler{}).preDrainHooks(t.Context(), s)
			g.Expect(end.Finished()).To(Equal(test.want == ""))
			g.Expect(end.After()).To(BeZero(), "the removal of an annotation is an event")
			g.Expect(s.progress.message).To(Equal(test.want))
			if test.want != "" {
				g.Expect(s.progress.reason).To(Equal(clusterv1.MachineDeletingWaitingForPreDrainHookReason))
				g.Expect(s.Object.Status.Deletion.WaitForPreDrainHookStartTime.IsZero()).To(BeFalse())
			}
		})
	}
}
