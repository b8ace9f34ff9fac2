package e2e

import (
	"path"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/test/sandbox"
)

// unmoved is how long a claim must change nothing, once the core has seen it.
const unmoved = 5 * time.Second

// TestAMachineThatClaimsToBeAnother is the whole attack from a compromised machine A, with only what A was given: the download
// token in its user data. It gets A's certificate, registers Node A with the provider ID of Machine B, which has not joined,
// and gains nothing.
func TestAMachineThatClaimsToBeAnother(t *testing.T) {
	w := sharedWorld(t, "claims")
	w.neverJoin()
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(2))).To(Succeed())
	w.Eventually(w.machines).Should(HaveLen(2))
	machines := w.machines()
	a, b := &machines[0], &machines[1]
	namesA, namesB := w.namesOf(a), w.namesOf(b)
	downloadA, _ := w.awaitTokens(namesA)
	downloadB, joinB := w.awaitTokens(namesB)
	w.reread(b)
	w.Expect(b.Spec.ProviderID).NotTo(BeEmpty())

	attacker := w.identityFromToken(downloadA, namesA, a.Name)
	w.Expect(attacker.Create(w.ctx, request(t, "claims-forged", b.Name))).To(Satisfy(forbidden), "a certificate is for one Node")
	w.Expect(attacker.Create(w.ctx, nodeOf(b.Name, b.Spec.ProviderID))).To(Satisfy(forbidden))
	stolen := nodeOf(a.Name, b.Spec.ProviderID)
	w.Expect(attacker.Create(w.ctx, stolen)).To(Succeed(), "a kubelet chooses the provider ID that it registers with")
	t.Cleanup(func() { w.remove(stolen) })

	w.expectClaimNamed(b, stolen)
	w.Consistently(func(g Gomega) {
		w.reread(b)
		g.Expect(b.Status.NodeRef.IsDefined()).To(BeFalse(), "Machine B is not linked with Node A")
		g.Expect(attacker.Get(w.ctx, key(namesB.Object()), &corev1.Secret{})).To(Satisfy(forbidden))
		download, join := w.awaitTokens(namesB)
		g.Expect([]string{download, join}).To(Equal([]string{downloadB, joinB}), "B keeps its tokens")
	}).WithTimeout(unmoved).Should(Succeed())

	w.Expect(w.sandbox.GiveKubelet(path.Base(b.Spec.ProviderID))).To(Succeed())
	w.expectJoined(b)
	w.expectClaimNamed(b, stolen)
	w.expectOnlyNode(namesB, b.Name)
	w.Expect(attacker.Get(w.ctx, key(namesB.Object()), &corev1.Secret{})).To(Satisfy(forbidden))

	w.Expect(w.scenario.DeleteMachines(w.ctx)).To(Succeed())
	w.Eventually(func() error { return w.target.Get(w.ctx, client.ObjectKey{Name: b.Name}, &corev1.Node{}) }).
		Should(MatchError(ContainSubstring("not found")), "B is deleted with its own Node")
	w.Expect(w.target.Get(w.ctx, client.ObjectKeyFromObject(stolen), stolen)).To(Succeed())
	w.Expect(stolen.DeletionTimestamp).To(BeNil(), "and Node A, which belongs to no Machine, is left alone")
	w.Expect(stolen.Spec.Unschedulable).To(BeFalse())
	w.Expect(stolen.Annotations).NotTo(HaveKey(clusterv1.MachineAnnotation))
}

func (w *world) namesOf(m *clusterv1.Machine) nodeaccess.Names {
	return nodeaccess.NamesFor(w.namespace, sandbox.SampleCluster, m.Name)
}

func (w *world) reread(m *clusterv1.Machine) {
	w.t.Helper()
	w.Expect(w.control.Get(w.ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
}

// remove deletes what the test has created in the target cluster, also when its context is done.
func (w *world) remove(obj client.Object) {
	w.t.Helper()
	w.Expect(client.IgnoreNotFound(w.target.Delete(suite.ctx, obj))).To(Succeed())
}

// nodeOf is what a kubelet registers and reports.
func nodeOf(name, providerID string) *corev1.Node {
	ready := corev1.NodeCondition{
		Type:              corev1.NodeReady,
		Status:            corev1.ConditionTrue,
		Reason:            "KubeletReady",
		LastHeartbeatTime: metav1.Now(),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{ProviderID: providerID},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{ready}},
	}
}

// identityFromToken does what a machine does to join: with the token in its user data it reads its Secret, with the one that it
// finds there it requests the certificate of its Node. The client has that certificate.
func (w *world) identityFromToken(download string, names nodeaccess.Names, name string) sandbox.Client {
	w.t.Helper()
	secret := &corev1.Secret{}
	w.Expect(w.clientOf(download).Get(w.ctx, key(names.Object()), secret)).To(Succeed())
	asked, private := requestWithKey(w.t, "join-"+name, name)
	w.Expect(w.clientOf(string(secret.Data[node.JoinTokenKey])).Create(w.ctx, asked)).To(Succeed())
	w.t.Cleanup(func() { w.remove(asked) })
	w.awaitCertificate(asked)
	return w.certified(asked, private)
}

// certified is a client with the certificate that was issued for a request.
func (w *world) certified(issued *certificatesv1.CertificateSigningRequest, private []byte) sandbox.Client {
	w.t.Helper()
	anonymous, err := w.sandbox.Target.TokenKubeconfig("")
	w.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.Load(anonymous)
	w.Expect(err).NotTo(HaveOccurred())
	for user := range config.AuthInfos {
		config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: issued.Status.Certificate, ClientKeyData: private}
	}
	kubeconfig, err := clientcmd.Write(*config)
	w.Expect(err).NotTo(HaveOccurred())
	c, err := sandbox.ClientFor(kubeconfig)
	w.Expect(err).NotTo(HaveOccurred())
	return c
}

// expectClaimNamed waits until the Machine reports which Node claims its provider ID and is ignored.
func (w *world) expectClaimNamed(m *clusterv1.Machine, claiming *corev1.Node) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		w.reread(m)
		g.Expect(m.Status.Conditions).To(ContainElement(And(
			HaveField("Type", clusterv1.MachineNodeReadyCondition),
			HaveField("Message", ContainSubstring("Node %s claims the provider ID %s and is ignored", claiming.Name, m.Spec.ProviderID)))))
	}).Should(Succeed())
}

// expectJoined waits until the Machine is Ready with a Node of its own name, and its tokens are gone.
func (w *world) expectJoined(m *clusterv1.Machine) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		w.reread(m)
		g.Expect(m.Status.NodeRef.Name).To(Equal(m.Name))
		g.Expect(m.Status.Conditions).To(ContainElement(And(
			HaveField("Type", clusterv1.MachineReadyCondition), HaveField("Status", metav1.ConditionTrue))))
	}).Should(Succeed())
	w.expectNode(m)
	w.expectNoTokens(m)
}

// expectOnlyNode makes sure that only one Node can read a machine's Secret.
func (w *world) expectOnlyNode(names nodeaccess.Names, name string) {
	w.t.Helper()
	w.Eventually(func() ([]rbacv1.Subject, error) {
		binding := &rbacv1.RoleBinding{}
		err := w.target.Get(w.ctx, key(names.Object()), binding)
		return binding.Subjects, err
	}).Should(ConsistOf(rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:node:" + name}))
}
