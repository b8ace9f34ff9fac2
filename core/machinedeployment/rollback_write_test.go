package machinedeployment

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// TestRollbackIsOneWrite: the template comes back and the annotation goes at once, or neither; only what was done is an event; what
// cannot be done is one event, however often it is looked at.
func TestRollbackIsOneWrite(t *testing.T) {
	refused := conditions.True(clusterv1.MachineDeploymentRollingOutCondition, RollbackRevisionNotFoundReason, "")
	const unknown, back = "Warning RollbackRevisionNotFound ", "Normal RolledBack Rolled back to revision "
	rolling := conditions.True(clusterv1.MachineDeploymentRollingOutCondition, clusterv1.MachineDeploymentRollingOutReason, "")
	for name, test := range map[string]struct {
		asked    string
		reported *metav1.Condition
		refusal  error
		template string
		event    string
		patches  int
	}{
		"nothing is asked for":      {template: "t"},
		"the previous revision":     {asked: "0", template: "u", event: back + "1", patches: 1},
		"the write is refused":      {asked: "0", refusal: errors.New("not before Monday"), template: "t", patches: 1},
		"a revision that is gone":   {asked: "7", template: "t", event: unknown + "Revision 7"},
		"while it rolls out":        {asked: "7", reported: &rolling, template: "t", event: unknown + "Revision 7"},
		"that is reported":          {asked: "7", reported: &refused, template: "t"},
		"a revision that is found":  {asked: "1", reported: &refused, template: "u", event: back + "1", patches: 1},
		"the current one":           {asked: "2", template: "t", event: back + "2", patches: 1},
		"what is no revision":       {asked: "x", template: "t", event: unknown + "annotation " + RollbackToAnnotation + ` "x"`},
		"an annotation without any": {asked: " ", template: "t", event: unknown + "annotation"},
	} {
		t.Run(name, func(t *testing.T) {
			g, recorder := NewWithT(t), events.NewFakeRecorder(3)
			s := rollout(nil, nil, func(s *scope) {
				if s.Original.Status.Conditions = nil; test.reported != nil {
					s.Original.Status.Conditions = []metav1.Condition{since(time.Minute, *test.reported)}
				}
				if test.asked != "" {
					s.deployment.Annotations = map[string]string{RollbackToAnnotation: test.asked}
				}
			})
			r, patches := stored(t, s, test.refusal)
			r.Recorder = recorder
			end := r.rollBack(t.Context(), s)
			g.Expect(*patches).To(Equal(test.patches))
			if test.event != "" {
				g.Expect(recorder.Events).To(Receive(HavePrefix(test.event)))
			}
			g.Expect(recorder.Events).To(BeEmpty())
			if test.refusal != nil {
				g.Expect(end.Err()).To(MatchError(And(ContainSubstring("rolling back"), ContainSubstring("not before Monday"))))
			} else {
				g.Expect(end.Err()).NotTo(HaveOccurred())
			}
			object := &clusterv1.MachineDeployment{}
			g.Expect(r.Client.Get(t.Context(), s.Key(), object)).To(Succeed())
			g.Expect(object.Spec.Template.Spec.InfrastructureRef.Name).To(Equal(test.template))
			stays := test.asked != "" && (test.patches == 0 || test.refusal != nil)
			_, is := object.Annotations[RollbackToAnnotation]
			g.Expect(is).To(Equal(stays))
			g.Expect(s.rollbackRefused != "").To(Equal(stays && test.refusal == nil))
		})
	}
}

// TestRollbackTargetOfTheFirstRevision: there is nothing before it.
func TestRollbackTargetOfTheFirstRevision(t *testing.T) {
	for name, sets := range map[string][]*clusterv1.MachineSet{
		"no set":        nil,
		"its set":       {setOf("one", "t", 3, time.Hour, "1")},
		"one to adopt":  {setOf("one", "t", 3, time.Hour, "1"), setOf("adopted", "u", 0, time.Hour, "")},
		"one like that": {setOf("one", "t", 3, time.Hour, "2"), setOf("twin", "t", 0, 2*time.Hour, "1")},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, refused := rollbackTarget(valid(), sets, "0")
			g.Expect(found).To(BeNil())
			g.Expect(refused).To(HavePrefix("There is no previous revision"))
		})
	}
}

// TestRestoreCopies: the set is of the cache, and is not to be changed through the deployment.
func TestRestoreCopies(t *testing.T) {
	g := NewWithT(t)
	from := clusterv1.MachineSpec{Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("s")}}
	to := clusterv1.MachineSpec{}
	restore(&to, &from)
	*to.Bootstrap.DataSecretName = "other"
	g.Expect(from.Bootstrap.DataSecretName).To(HaveValue(Equal("s")))
}
