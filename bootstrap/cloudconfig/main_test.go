package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"strings"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
)

// recorder keeps what is logged.
type recorder struct {
	mutex  sync.Mutex
	buffer bytes.Buffer
}

func (r *recorder) Write(p []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.buffer.Write(p)
}

func (r *recorder) text() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.buffer.String()
}

// world is a Cluster with Machines, and what the core would do with them.
type world struct {
	*WithT
	t         *testing.T
	admin     client.Client
	namespace string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	admin, kubeconfig := startManager(t)
	w := &world{WithT: NewWithT(t), t: t, admin: admin}
	w.SetDefaultEventuallyTimeout(2 * time.Minute)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "cloudconfig-"}}
	w.create(ns)
	w.namespace = ns.Name
	w.create(
		&corev1.Secret{ObjectMeta: w.meta("cluster-kubeconfig"), Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": kubeconfig}},
	)
	cluster := &clusterv1.Cluster{ObjectMeta: w.meta("cluster"), Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}}
	w.create(cluster)
	cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	w.Expect(admin.Status().Update(t.Context(), cluster)).To(Succeed())
	return w
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{clusterv1.ClusterNameLabel: "cluster"}}
}

func (w *world) create(object client.Object) {
	w.t.Helper()
	w.Expect(w.admin.Create(w.t.Context(), object)).To(Succeed())
}

func (w *world) names(machine string) nodeaccess.Names {
	return nodeaccess.NamesFor(w.namespace, "cluster", machine)
}

// provision makes a Machine with its CloudConfig and takes it to where its infrastructure exists.
func (w *world) provision(name string) *clusterv1.Machine {
	w.t.Helper()
	machine := &clusterv1.Machine{ObjectMeta: w.meta(name), Spec: clusterv1.MachineSpec{
		ClusterName: "cluster",
		Bootstrap: clusterv1.Bootstrap{
			ConfigRef: clusterv1.ContractVersionedObjectReference{Kind: "CloudConfig", APIGroup: bootstrapv1.GroupVersion.Group, Name: name},
		},
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{Kind: "AWSMachine", APIGroup: "infrastructure.millwright.dev", Name: name},
	}}
	w.create(machine)
	config := &bootstrapv1.CloudConfig{ObjectMeta: w.meta(name)}
	config.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(machine, clusterv1.GroupVersion.WithKind("Machine"))}
	w.create(config)
	w.Eventually(func(g Gomega) {
		g.Expect(w.admin.Get(w.t.Context(), client.ObjectKeyFromObject(config), config)).To(Succeed())
		g.Expect(config.Status.DataSecretName).To(Equal(name))
	}).Should(Succeed())
	machine.Spec.Bootstrap.DataSecretName = ptr.To(name)
	machine.Spec.ProviderID = "aws:///us-east-1a/i-" + name
	w.Expect(w.admin.Update(w.t.Context(), machine)).To(Succeed())
	w.Eventually(func() string { return w.joinToken(name) }).ShouldNot(BeEmpty())
	return machine
}

func (w *world) joinToken(machine string) string {
	secret := &corev1.Secret{}
	if err := w.admin.Get(
		w.t.Context(),
		client.ObjectKey{Namespace: nodeaccess.DefaultNamespace, Name: w.names(machine).Object()},
		secret,
	); err != nil {
		return ""
	}
	return string(secret.Data[node.JoinTokenKey])
}

// ask creates a request for a Node's certificate; the API server may need a moment to know the asker.
func (w *world) ask(as client.Client, request, nodeName string) {
	w.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	w.Expect(err).NotTo(HaveOccurred())
	raw, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + nodeName, Organization: []string{"system:nodes"}},
	}, key)
	w.Expect(err).NotTo(HaveOccurred())
	w.Eventually(func() error {
		return as.Create(w.t.Context(), &certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: w.namespace + "-" + request},
			Spec: certificatesv1.CertificateSigningRequestSpec{
				SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
				Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: raw}),
				Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
			},
		})
	}).Should(Succeed())
}

// decided returns "Approved", "Denied" or nothing.
func (w *world) decided(request string) func() string {
	return func() string {
		csr := &certificatesv1.CertificateSigningRequest{}
		w.Expect(w.admin.Get(w.t.Context(), client.ObjectKey{Name: w.namespace + "-" + request}, csr)).To(Succeed())
		if len(csr.Status.Conditions) == 0 {
			return ""
		}
		return string(csr.Status.Conditions[0].Type)
	}
}

// notes returns the texts of the events on a CloudConfig.
func (w *world) notes(config string) func() string {
	return func() string {
		list := &eventsv1.EventList{}
		w.Expect(w.admin.List(w.t.Context(), list, client.InNamespace(w.namespace))).To(Succeed())
		var out []string
		for _, e := range list.Items {
			if e.Regarding.Name == config {
				out = append(out, e.Note)
			}
		}
		return strings.Join(out, "\n")
	}
}

// The whole provider, with the permissions of its manifests and no others, on a real API server.
func TestTheLifeOfAMachine(t *testing.T) {
	w := newWorld(t)
	machine := w.provision("one")
	w.provision("two")
	one, two := w.joinToken("one"), w.joinToken("two")

	// The second machine asks for the first one's name, and is left without an answer.
	w.ask(withToken(t, two), "impostor", "one")
	w.Eventually(w.notes("two")).Should(ContainSubstring("is not approved: it asks for \"system:node:one\""))
	w.Expect(w.decided("impostor")()).To(BeEmpty())

	w.ask(withToken(t, one), "first", "one")
	w.Eventually(w.decided("first")).Should(Equal("Approved"))
	w.ask(withToken(t, one), "second", "one")
	w.Eventually(w.notes("one")).Should(ContainSubstring("another request was approved for this Machine before"))
	w.Expect(w.decided("second")()).To(BeEmpty())

	// A Node of the second machine's name exists that is not its own.
	w.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "two"}, Spec: corev1.NodeSpec{ProviderID: "aws:///us-east-1a/i-other"}})
	w.ask(withToken(t, two), "taken", "two")
	w.Eventually(w.notes("two")).Should(ContainSubstring("a Node two exists that is not of this Machine"))
	w.Expect(w.decided("taken")()).To(BeEmpty())

	machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: "one"}
	w.Expect(w.admin.Status().Update(t.Context(), machine)).To(Succeed())
	w.Eventually(func() string { return w.joinToken("one") }).Should(BeEmpty())

	w.ask(asNode(t, "one"), "renewal", "one")
	w.Eventually(w.decided("renewal")).Should(Equal("Approved"))
	w.ask(asNode(t, "stranger"), "stranger", "stranger")
	w.ask(asNode(t, "one"), "renewal-2", "one")
	w.Eventually(w.decided("renewal-2")).Should(Equal("Approved"))
	w.Expect(w.decided("stranger")()).To(BeEmpty(), "what is not ours is left alone")

	w.expectRequestToOutliveItsToken("three")
	w.expectTheRealKubeletToJoinAfterItsTokenHasExpired("four")

	for _, name := range []string{"one", "two", "three", "four"} {
		w.Expect(w.admin.Delete(t.Context(), &bootstrapv1.CloudConfig{ObjectMeta: w.meta(name)})).To(Succeed())
		w.Eventually(func() bool {
			return apierrors.IsNotFound(w.admin.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, &bootstrapv1.CloudConfig{}))
		}).Should(BeTrue())
		left := &corev1.SecretList{}
		w.Expect(w.admin.List(t.Context(), left, client.MatchingLabels{nodeaccess.HashLabel: w.names(name).Hash})).To(Succeed())
		w.Expect(left.Items).To(BeEmpty())
	}
	for _, secret := range []string{one, two} {
		_, secret, _ = strings.Cut(secret, ".")
		w.Expect(logged.text()).NotTo(ContainSubstring(secret), "the log has a token")
		w.Expect(w.notes("one")()+w.notes("two")()).NotTo(ContainSubstring(secret), "an event has a token")
	}
	w.Expect(logged.text()).NotTo(ContainSubstring("is forbidden"), "a permission is missing")
}

// expectRequestToOutliveItsToken has a kubelet ask while no approver runs. Its token expires and is deleted; it does not ask again.
func (w *world) expectRequestToOutliveItsToken(name string) {
	w.t.Helper()
	w.provision(name)
	token := w.joinToken(name)
	w.pause(true)
	// The approver learns of it by the watch that this condition follows from.
	w.Eventually(func(g Gomega) []metav1.Condition {
		config := &bootstrapv1.CloudConfig{}
		g.Expect(w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, config)).To(Succeed())
		return config.Status.Conditions
	}).Should(ContainElement(And(HaveField("Type", bootstrapv1.PausedCondition), HaveField("Status", metav1.ConditionTrue))))
	w.ask(withToken(w.t, token), "late", name)
	id, _, _ := strings.Cut(token, ".")
	w.Expect(w.admin.Delete(w.t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceSystem, Name: nodeaccess.TokenSecretName(id),
	}})).To(Succeed())
	w.Expect(w.decided("late")()).To(BeEmpty(), "the Cluster is paused")
	w.pause(false)
	w.Eventually(func() string { return w.joinToken(name) }).ShouldNot(Equal(token), "it is given another token")
	w.Eventually(w.decided("late")).Should(Equal("Approved"))
}

func (w *world) pause(on bool) {
	w.t.Helper()
	cluster := &clusterv1.Cluster{}
	w.Expect(w.admin.Get(w.t.Context(), client.ObjectKey{Namespace: w.namespace, Name: "cluster"}, cluster)).To(Succeed())
	cluster.Spec.Paused = ptr.To(on)
	w.Expect(w.admin.Update(w.t.Context(), cluster)).To(Succeed())
}
