package inframachine

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity/identitytest"
)

// The collector calls the cloud in the name of namespaces; it may use no identity that these may not.
func TestTheCollectorMayUseWhatItsNamespacesMay(t *testing.T) {
	g := NewWithT(t)
	id := &identitytest.Identity{ObjectMeta: metav1.ObjectMeta{Name: "id"}}
	id.CommonSpec().AllowedNamespaces = &driverv1.AllowedNamespaces{Names: []string{"ns"}}
	id.CommonStatus().Conditions = []metav1.Condition{{
		Type: driverv1.IdentityReadyCondition, Status: metav1.ConditionTrue, Reason: "Ready", LastTransitionTime: metav1.Now(),
	}}
	m := &testMachine{}
	m.Namespace, m.Name = "ns", "m"
	r, server, _ := newGuarded(t, m, id)
	scope := driver.Scope{Identity: "id", Location: "here"}
	g.Expect(r.mayUse(t.Context(), scope, "ns")).To(BeTrue())
	g.Expect(r.mayUse(t.Context(), scope, "else")).To(BeFalse())
	g.Expect(r.mayUse(t.Context(), driver.Scope{Identity: "another", Location: "here"}, "ns")).To(BeFalse(), "it does not exist")
	g.Expect(r.mayUse(t.Context(), driver.Scope{Location: "here"}, "ns")).To(BeTrue(), "the process's own credentials")
	g.Expect(r.mayUse(t.Context(), scope, "")).To(BeFalse(), "no namespace with a Cluster")
	for _, namespace := range []string{"else", "ns"} {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "green"}}
		g.Expect(server.Create(t.Context(), cluster)).To(Succeed())
		g.Expect(r.mayUse(t.Context(), scope, "")).To(Equal(namespace == "ns"))
	}
	r.Identities.Required = true
	g.Expect(r.mayUse(t.Context(), driver.Scope{Location: "here"}, "ns")).To(BeFalse(), "the process's own credentials are for no namespace")
}
