package machine

import (
	"encoding/json"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// TestPureUpToDate: the condition is of Machines under a MachineDeployment, and reports what keeps one from being up to date.
func TestPureUpToDate(t *testing.T) {
	owned := func(upToDate bool) func(*scope) {
		return func(s *scope) {
			s.machineSet, s.machineDeployment = &clusterv1.MachineSet{}, &clusterv1.MachineDeployment{}
			s.machineDeployment.Spec.Template.Labels = map[string]string{"labels": "reach Machines that exist"}
			if !upToDate {
				s.machineDeployment.Spec.Template.Spec.Version = "v1.36.3"
			}
		}
	}
	after := func(d time.Duration) func(*scope) {
		return func(s *scope) { s.machineDeployment.Spec.Rollout.After = metav1.NewTime(noon.Add(d)) }
	}
	created := func(s *scope) {
		s.machineSet.Annotations = map[string]string{machines.RolloutAfterAnnotation: machines.RolloutAfterRecord(s.machineDeployment, s.Now)}
	}
	behind := func(s *scope) {
		s.Object.Spec.Version, s.Object.Status.NodeInfo = "v1.36.3", &corev1.NodeSystemInfo{KubeletVersion: "v1.35.0"}
	}
	for name, test := range map[string]struct {
		given []func(*scope)
		want  string
		rest  time.Duration
	}{
		"manually":                   {nil, "absent", 0},
		"no MachineSet":              {[]func(*scope){owned(true), func(s *scope) { s.machineSet = nil }}, "absent", 0},
		"no MachineDeployment":       {[]func(*scope){owned(true), func(s *scope) { s.machineDeployment = nil }}, "absent", 0},
		"up to date":                 {[]func(*scope){owned(true)}, "True/UpToDate", 0},
		"a rollout is to come":       {[]func(*scope){owned(true), after(time.Minute)}, "True/UpToDate", time.Minute},
		"a rollout is due":           {[]func(*scope){owned(true), after(0)}, "False/NotUpToDate", 0},
		"a rollout was due":          {[]func(*scope){owned(true), after(-time.Minute)}, "False/NotUpToDate", 0},
		"of the rollout that is due": {[]func(*scope){owned(true), after(0), created}, "True/UpToDate", 0},
		"outdated":                   {[]func(*scope){owned(false)}, "False/NotUpToDate", 0},
		"outdated, updated in place": {[]func(*scope){owned(false), withAnnotation(clusterv1.UpdateInProgressAnnotation)}, "False/NotUpToDate", 0},
		"updated in place":           {[]func(*scope){owned(true), withAnnotation(clusterv1.UpdateInProgressAnnotation)}, "False/Updating", 0},
		"the kubelet is behind":      {[]func(*scope){owned(true), behind}, "True/UpToDate", 0},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			s := judged(test.given...)
			g.Expect(s.setUpToDateCondition().After()).To(Equal(test.rest))
			g.Expect(stateOf(s.Object, "UpToDate")).To(Equal(test.want))
		})
	}
}

// TestNodeInfoThatIsNoText: a Node may report anything, which API servers take over protobuf. In the JSON of a Machine it would be another
// text, and a change at each reconcile.
func TestNodeInfoThatIsNoText(t *testing.T) {
	g := NewWithT(t)
	reported := corev1.NodeSystemInfo{
		KubeletVersion: "v1.36.3",
		OSImage:        "a\xff\xfeb",
		Swap:           &corev1.NodeSwapStatus{Capacity: ptr.To[int64](1)},
	}
	recorded := inJSON(reported)
	written, err := json.Marshal(recorded)
	g.Expect(err).NotTo(HaveOccurred())
	read := &corev1.NodeSystemInfo{}
	g.Expect(json.Unmarshal(written, read)).To(Succeed())
	g.Expect(read).To(Equal(recorded))
	g.Expect(recorded.KubeletVersion).To(Equal("v1.36.3"))
	g.Expect(recorded.Swap).To(Equal(reported.Swap))
	g.Expect(reported.OSImage).To(Equal("a\xff\xfeb"), "the cache's object is left as it is")
}
