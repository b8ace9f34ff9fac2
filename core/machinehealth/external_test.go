package machinehealth_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// externally has a MachineHealthCheck remediate by requests of a stand-in kind.
func externally(c *clusterv1.MachineHealthCheck) {
	c.Spec.Remediation.TemplateRef = clusterv1.MachineHealthCheckRemediationTemplateReference{
		Kind: workers.InfraTemplateKind, Name: "remedy", APIVersion: coretest.Group + "/v1",
	}
}

func (w *world) request(name string) (*unstructured.Unstructured, bool) {
	found := coretest.Object(workers.InfraKind, w.Namespace, name)
	err := direct.Get(w.Ctx, client.ObjectKeyFromObject(found), found)
	w.G.Expect(client.IgnoreNotFound(err)).To(Succeed())
	return found, err == nil
}

// TestExternalRemediation: each unhealthy Machine has a request, although those of others exist or have another owner; a healthy one
// has none. The owner is not asked.
func TestExternalRemediation(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"a", "b", "c"} {
		w.machine(name, "False")
	}
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	foreign := coretest.Object(workers.InfraKind, w.Namespace, "b")
	w.Create(foreign)
	w.start()
	w.check("workers", externally)
	w.becomes("a", external, waiting)
	w.becomes("c", external, waiting)
	w.becomes("b", external, "False/"+clusterv1.MachineExternallyRemediatedRemediationRequestCreationFailedReason)
	w.becomes("a", succeeded, ill)
	w.G.Expect(w.conditionOf("a", owner)).To(BeEmpty())
	request, ok := w.request("a")
	w.G.Expect(ok).To(BeTrue())
	w.G.Expect(request.GetLabels()).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, workers.ClusterName))
	w.G.Expect(request.GetOwnerReferences()).To(ConsistOf(And(HaveField("Kind", "Machine"), HaveField("Name", "a"))))

	// The one of another owner goes, and its Machine gets one.
	w.G.Expect(direct.Delete(w.Ctx, foreign)).To(Succeed())
	w.becomes("b", external, waiting)

	w.reports("a", "True", 0)
	w.becomes("a", succeeded, well)
	w.becomes("a", external, "")
	w.Eventually(func(g Gomega) {
		_, ok := w.request("a")
		g.Expect(ok).To(BeFalse())
	})
	_, ok = w.request("c")
	w.G.Expect(ok).To(BeTrue())
	w.atRest()
}

// TestAForeignRequestIsNotDeleted, though it has the name of a Machine that is healthy again.
func TestAForeignRequestIsNotDeleted(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "True")
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.Create(coretest.Object(workers.InfraKind, w.Namespace, "a"))
	w.status("a", func(s *clusterv1.MachineStatus) {
		s.Conditions = append(
			s.Conditions,
			metav1.Condition{Type: external, Status: "False", Reason: "WaitingForRemediation", LastTransitionTime: metav1.Now()},
		)
	})
	w.start()
	w.check("workers", externally)
	w.becomes("a", succeeded, well)
	w.becomes("a", external, "")
	_, ok := w.request("a")
	w.G.Expect(ok).To(BeTrue())
}

// TestAMissingRemediationTemplate is reported on the Machines and the MachineHealthCheck, with what to do; once it is there, it is used.
func TestAMissingRemediationTemplate(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "False")
	w.start()
	w.check("workers", externally)
	const missing = "False/" + clusterv1.MachineExternallyRemediatedRemediationTemplateNotFoundReason
	w.becomes("a", external, missing)
	w.counts("workers", 1, 0, 0, missing)
	c := meta.FindStatusCondition(w.current("workers").Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	w.G.Expect(c.Message).To(And(ContainSubstring("remedy"), ContainSubstring("create it or correct spec.remediation.templateRef")))
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.becomes("a", external, waiting)
	w.counts("workers", 1, 0, 0, "True/RemediationAllowed")
}

// TestACrashAfterTheRequest: it was created and the Machine does not say so yet. The next process takes it for its own.
func TestACrashAfterTheRequest(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "False")
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.refuse = func(verb string, object client.Object) error {
		if _, ok := object.(*clusterv1.Machine); ok && verb == "status" {
			return errors.New("the process has ended")
		}
		return nil
	}
	w.start()
	w.check("workers", externally)
	var first *unstructured.Unstructured
	w.Eventually(func(g Gomega) {
		request, ok := w.request("a")
		g.Expect(ok).To(BeTrue())
		first = request
	})
	w.Stop()
	w.refuse = nil
	w.start()
	w.becomes("a", external, waiting)
	again, _ := w.request("a")
	w.G.Expect(again.GetUID()).To(Equal(first.GetUID()))
}

// TestARefusedRequest is reported in the API server's words, and the other targets get theirs.
func TestARefusedRequest(t *testing.T) {
	w := newWorld(t)
	w.machine("a", "False")
	w.machine("b", "False")
	w.Create(w.Template(workers.InfraTemplateKind, "remedy"))
	w.refuse = func(verb string, object client.Object) error {
		if verb == "create" && object.GetName() == "a" {
			return apierrors.NewForbidden(schema.GroupResource{Group: coretest.Group}, "a", errors.New("quota exceeded"))
		}
		return nil
	}
	w.start()
	w.check("workers", externally)
	w.becomes("b", external, waiting)
	w.Eventually(func(g Gomega) {
		m := &clusterv1.Machine{}
		g.Expect(direct.Get(w.Ctx, w.key("a"), m)).To(Succeed())
		c := meta.FindStatusCondition(m.Status.Conditions, external)
		g.Expect(c).NotTo(BeNil())
		g.Expect(c.Message).To(ContainSubstring("quota exceeded"))
	})
}
