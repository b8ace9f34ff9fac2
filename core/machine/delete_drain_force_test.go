package machine

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestForced(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	node := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, since time.Duration) func(*scope) {
		return func(s *scope) {
			s.node = &corev1.Node{
				Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: kind, Status: status, LastTransitionTime: ago(since)}}},
			}
		}
	}
	drainingFor := func(d time.Duration) func(*scope) {
		return func(s *scope) {
			s.Object.Status.Deletion = &clusterv1.MachineDeletionStatus{NodeDrainStartTime: ago(d)}
		}
	}
	volumesFor := func(d time.Duration) func(*scope) {
		return func(s *scope) { s.Object.Status.Deletion.WaitForNodeVolumeDetachStartTime = ago(d) }
	}
	timeout := func(seconds int32) func(*scope) {
		return func(s *scope) { s.Object.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To(seconds) }
	}
	marked := func(annotation, label string) func(*scope) {
		return func(s *scope) {
			s.Object.Annotations = map[string]string{ForceDeletionAnnotation: annotation}
			s.Object.Labels = map[string]string{ForceDeletionLabel: label}
		}
	}
	never := func(s *scope) { s.options.DrainTimeout = -1 }
	tests := map[string]struct {
		given  []func(*scope)
		forced bool
		rest   time.Duration
	}{
		"nothing":                          {},
		"the annotation":                   {given: []func(*scope){marked("true", "")}, forced: true},
		"the annotation says no":           {given: []func(*scope){marked("false", "")}},
		"the annotation says nothing":      {given: []func(*scope){marked("", "perhaps")}},
		"MCM's label":                      {given: []func(*scope){marked("", "True")}, forced: true},
		"ready":                            {given: []func(*scope){node(corev1.NodeReady, corev1.ConditionTrue, time.Hour)}},
		"not ready for long":               {given: []func(*scope){node(corev1.NodeReady, corev1.ConditionFalse, 5*time.Minute)}, forced: true},
		"unreachable for long":             {given: []func(*scope){node(corev1.NodeReady, corev1.ConditionUnknown, time.Hour)}, forced: true},
		"not ready for a while":            {given: []func(*scope){node(corev1.NodeReady, corev1.ConditionFalse, time.Minute)}, rest: 4 * time.Minute},
		"read-only for long":               {given: []func(*scope){node(readonlyFilesystem, corev1.ConditionTrue, time.Hour)}, forced: true},
		"writable":                         {given: []func(*scope){node(readonlyFilesystem, corev1.ConditionFalse, time.Hour)}},
		"another condition":                {given: []func(*scope){node(corev1.NodeDiskPressure, corev1.ConditionTrue, time.Hour)}},
		"within the default":               {given: []func(*scope){drainingFor(time.Hour)}, rest: time.Hour},
		"after the default":                {given: []func(*scope){drainingFor(2 * time.Hour)}, forced: true},
		"within the own timeout":           {given: []func(*scope){drainingFor(time.Minute), timeout(90)}, rest: 30 * time.Second},
		"after the own timeout":            {given: []func(*scope){drainingFor(time.Minute), timeout(60)}, forced: true},
		"no timeout of its own":            {given: []func(*scope){drainingFor(1000 * time.Hour), timeout(0)}},
		"no timeout by the flag":           {given: []func(*scope){drainingFor(1000 * time.Hour), never}},
		"its own counts, not the flag":     {given: []func(*scope){drainingFor(time.Hour), never, timeout(60)}, forced: true},
		"the earlier of two":               {given: []func(*scope){drainingFor(time.Hour), node(corev1.NodeReady, corev1.ConditionFalse, time.Minute)}, rest: 4 * time.Minute},
		"only volumes are waited for":      {given: []func(*scope){drainingFor(150 * time.Minute), volumesFor(time.Hour)}},
		"volumes after a forced drain":     {given: []func(*scope){drainingFor(3 * time.Hour), volumesFor(time.Hour)}, forced: true},
		"not begun, as behind a hook":      {given: []func(*scope){timeout(1)}},
		"the annotation before everything": {given: []func(*scope){drainingFor(time.Hour), marked("true", "")}, forced: true, rest: time.Hour},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := &scope{Base: base{Now: now, Object: &clusterv1.Machine{}}}
			for _, set := range test.given {
				set(s)
			}
			got := s.forced()
			g.Expect(got.cause != "").To(Equal(test.forced), got.cause)
			g.Expect(got.rest).To(Equal(test.rest))
		})
	}
}

func TestVolumesTimeout(t *testing.T) {
	now := time.Now()
	for name, test := range map[string]struct {
		own   *int32
		flag  time.Duration
		since time.Duration
		want  bool
	}{
		"not begun":            {own: ptr.To[int32](1)},
		"within":               {own: ptr.To[int32](60), since: 30 * time.Second},
		"after":                {own: ptr.To[int32](60), since: time.Minute, want: true},
		"0 means no limit":     {own: ptr.To[int32](0), since: 1000 * time.Hour},
		"unset, within":        {since: time.Hour},
		"unset, after":         {since: 2 * time.Hour, want: true},
		"unset, without limit": {flag: -1, since: 1000 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{Base: base{Now: now, Object: &clusterv1.Machine{}}, options: Options{DrainTimeout: test.flag}}
			s.Object.Spec.Deletion.NodeVolumeDetachTimeoutSeconds = test.own
			if test.since > 0 {
				s.Object.Status.Deletion = &clusterv1.MachineDeletionStatus{WaitForNodeVolumeDetachStartTime: metav1.NewTime(now.Add(-test.since))}
			}
			NewWithT(t).Expect(s.volumesTimedOut()).To(Equal(test.want))
		})
	}
}
