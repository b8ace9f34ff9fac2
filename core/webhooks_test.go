package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/admission/certificates"
	"millwright.dev/core/machines"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/coretest"
	"millwright.dev/test/testenv"
)

// webhookDocuments are the objects in a manifest of the webhooks.
func webhookDocuments(t *testing.T, name string) []*unstructured.Unstructured {
	t.Helper()
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(testenv.Root(), "config/core/webhook", name))
	g.Expect(err).NotTo(HaveOccurred())
	decoder := utilyaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(object)
		if err == io.EOF { //nolint:errorlint // The decoder says so.
			return objects
		}
		g.Expect(err).NotTo(HaveOccurred())
		objects = append(objects, object)
	}
}

// TestManifestsOfWebhooks: what is installed is what the code serves, by name.
func TestManifestsOfWebhooks(t *testing.T) {
	g := NewWithT(t)
	s := certificateSettings(ownNamespace)
	service := webhookDocuments(t, "service.yaml")[0]
	g.Expect(service.GetName() + "." + service.GetNamespace() + ".svc").To(Equal(s.Names[0]))
	for _, name := range []string{"mutating.yaml", "validating.yaml"} {
		configuration := webhookDocuments(t, name)[0]
		g.Expect(configuration.GetName()).To(Equal(s.Configuration))
		g.Expect(configuration.GetAnnotations()).
			To(HaveKeyWithValue(certificates.Annotation, s.Secret.Name), "in whatever namespace the core is installed")
		hooks, _, err := unstructured.NestedSlice(configuration.Object, "webhooks")
		g.Expect(err).NotTo(HaveOccurred())
		for _, hook := range hooks {
			found, _, err := unstructured.NestedMap(hook.(map[string]any), "clientConfig", "service")
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(found).To(And(HaveKeyWithValue("name", service.GetName()), HaveKeyWithValue("namespace", service.GetNamespace())))
		}
	}
	for _, object := range webhookDocuments(t, "rbac.yaml") {
		rules, _, err := unstructured.NestedSlice(object.Object, "rules")
		g.Expect(err).NotTo(HaveOccurred())
		for _, rule := range rules {
			r := rule.(map[string]any)
			if verbs := r["verbs"].([]any); len(verbs) > 1 || verbs[0] != "create" {
				g.Expect(r["resourceNames"]).NotTo(BeEmpty(), "rights on named objects alone: %v", r)
			}
			if names, ok := r["resourceNames"].([]any); ok && fmt.Sprint(r["resources"]) == "[customresourcedefinitions]" {
				g.Expect(names).To(ConsistOf(toAny(s.CRDs)...))
			}
		}
	}
	patch, err := os.ReadFile(filepath.Join(testenv.Root(), "config/core/webhook/crd_conversion.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(patch)).To(ContainSubstring(strings.ReplaceAll(certificates.Annotation, "/", "~1")))
	g.Expect(string(patch)).To(ContainSubstring("value: " + s.Secret.Name + "\n"))
}

func toAny(texts []string) []any {
	var all []any
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// TestWithAndWithoutWebhooks takes a MachineDeployment that leaves everything open to Running Machines, once with the
// webhooks and once without. The Machines must be the same, and nothing may write without end.
func TestWithAndWithoutWebhooks(t *testing.T) {
	with, without := machinesOf(t, true), machinesOf(t, false)
	NewWithT(t).Expect(with).To(Equal(without))
}

func machinesOf(t *testing.T, webhooks bool) []string {
	t.Helper()
	g, ctx := NewWithT(t), t.Context()
	server := startServer
	if webhooks {
		server = startServerAlone // They change the CRDs and the rights of the core.
	}
	env, c := server(t)
	port := 0
	if webhooks {
		var err error
		port, err = controlplane.FreePort()
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(env.InstallWebhooks(ctx, port)).To(Succeed())
	}
	sent := &coretest.Requests{}
	started := func(string) {}
	if webhooks {
		complete := grantWebhooks(t, c)
		started = func(health string) {
			neverReadyWithoutCertificate(t, sent, health)
			complete()
		}
	}
	stop := runCoreUntil(t, c, kubeconfigOf(t, sent, env, "core"), started, fmt.Sprintf("--webhook-port=%d", port))
	defer stop()

	createOpenDeployment(t, c, kubeconfigOf(t, sent, env, "target"))
	machines := &clusterv1.MachineList{}
	g.Eventually(func(g Gomega) {
		g.Expect(c.List(ctx, machines)).To(Succeed())
		g.Expect(machines.Items).To(HaveLen(3), "the lower limit of the autoscaler")
		for _, machine := range machines.Items {
			g.Expect(machine.Status.Phase).To(Equal("Running"))
		}
	}).WithTimeout(2 * timeout).Should(Succeed())
	invalid := machines.Items[0].DeepCopy()
	invalid.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: "invalid"}
	invalid.Spec.Version = "v1"
	g.Expect(c.Create(ctx, invalid, client.DryRunAll) != nil).To(Equal(webhooks), "the test has both ways")

	settled := len(sent.Writes(""))
	g.Eventually(func() bool {
		before := settled
		settled = len(sent.Writes(""))
		return before == settled
	}).WithTimeout(timeout).WithPolling(3*time.Second).Should(BeTrue(), "writes end")
	g.Expect(c.List(ctx, machines)).To(Succeed())
	var all []string
	for i := range machines.Items {
		all = append(all, anonymous(t, &machines.Items[i]))
	}
	return all
}

// neverReadyWithoutCertificate: the webhooks are installed, and the core has tried to make the Secret with their certificate, which it may
// not. It lives, is not ready, and says that it is because of the webhooks.
func neverReadyWithoutCertificate(t *testing.T, sent *coretest.Requests, health string) {
	t.Helper()
	g := NewWithT(t)
	secrets := func() int { return len(sent.Writes("/secrets")) }
	g.Eventually(secrets).WithTimeout(timeout).Should(BeNumerically(">", 0), "a certificate is tried to be made")
	tried := secrets()
	g.Eventually(secrets).WithTimeout(timeout).Should(BeNumerically(">", tried), "and again, since it was refused")
	g.Eventually(func() int { return status(health + "/healthz") }).WithTimeout(timeout).Should(Equal(200))
	response, err := http.Get(health + "/readyz")
	g.Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	g.Expect(response.StatusCode).To(Equal(500))
	body, err := io.ReadAll(response.Body)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(body)).To(ContainSubstring("[-]webhooks failed"))
}

// createOpenDeployment creates a Cluster and a MachineDeployment that says no more than it must.
func createOpenDeployment(t *testing.T, c client.Client, kubeconfig []byte) {
	t.Helper()
	g := NewWithT(t)
	named := func(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "default", Name: name} }
	config, machine := coretest.Kind(coretest.Config, version.V1Beta2), coretest.Kind(coretest.Machine, version.V1Beta2)
	deployment := &clusterv1.MachineDeployment{ObjectMeta: named("d"), Spec: clusterv1.MachineDeploymentSpec{
		ClusterName: "c",
		Template: clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
			ClusterName: "c", Version: "1.36.3", InfrastructureRef: coretest.Ref(machine+"Template", "t"),
			Bootstrap: clusterv1.Bootstrap{ConfigRef: coretest.Ref(config+"Template", "t")},
		}},
	}}
	deployment.Annotations = map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "3", clusterv1.AutoscalerMaxSizeAnnotation: "9"}
	secret := &corev1.Secret{ObjectMeta: named("c-kubeconfig"), Data: map[string][]byte{"value": kubeconfig}}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	// Without webhooks the schema asks for a selector; an empty one says nothing.
	raw := &unstructured.Unstructured{}
	content, err := json.Marshal(deployment)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(json.Unmarshal(content, &raw.Object)).To(Succeed())
	raw.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineDeployment"))
	g.Expect(unstructured.SetNestedMap(raw.Object, map[string]any{}, "spec", "selector")).To(Succeed())
	for _, obj := range []client.Object{
		secret, &clusterv1.Cluster{ObjectMeta: named("c"), Spec: clusterv1.ClusterSpec{Paused: new(bool)}},
		coretest.Template(config, "default", "t"), coretest.Template(machine, "default", "t"), raw,
	} {
		g.Eventually(func() error { return c.Create(t.Context(), obj) }).WithTimeout(timeout).Should(Succeed(), "%s", obj.GetName())
	}
}

// anonymous is a Machine without what is made by chance.
func anonymous(t *testing.T, machine *clusterv1.Machine) string {
	t.Helper()
	g := NewWithT(t)
	content, err := json.Marshal(map[string]any{
		"labels": machine.Labels, "annotations": machine.Annotations, "finalizers": machine.Finalizers, "spec": machine.Spec,
	})
	g.Expect(err).NotTo(HaveOccurred())
	return strings.NewReplacer(machine.Name, "MACHINE", machine.Labels[clusterv1.MachineSetNameLabel], "SET",
		machine.Labels[clusterv1.MachineDeploymentUniqueLabel], "HASH",
		machine.Labels[machines.CreatorLabel], "UID").Replace(string(content))
}

// runCore runs the core with the providers that are ready at once, and waits until it is ready.
func runCore(t *testing.T, c client.Client, kubeconfig []byte, arguments ...string) (stop func()) {
	t.Helper()
	return runCoreUntil(t, c, kubeconfig, func(string) {}, arguments...)
}

// runCoreUntil calls started, with the URL of the core's health checks, before it waits until the core is ready.
func runCoreUntil(t *testing.T, c client.Client, kubeconfig []byte, started func(health string), arguments ...string) (stop func()) {
	t.Helper()
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(path, kubeconfig, 0o600)).To(Succeed())
	t.Setenv("KUBECONFIG", path)
	health, err := controlplane.FreePort()
	g.Expect(err).NotTo(HaveOccurred())
	o := newOptions()
	o.severalInProcess = true
	g.Expect(o.parse(pflag.NewFlagSet("core", pflag.ContinueOnError), append([]string{
		fmt.Sprintf("--health-addr=127.0.0.1:%d", health), "--diagnostics-address=0",
	}, arguments...))).To(Succeed())
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- run(ctx, o) }()
	go func() { done <- coretest.Instant(ctx, c, "default", version.V1Beta2) }()
	url := fmt.Sprintf("http://127.0.0.1:%d", health)
	started(url)
	g.Eventually(func() int { return status(url + "/readyz") }).WithTimeout(timeout).Should(Equal(200))
	// Times of creation are in whole seconds: for all that the core knows, a Cluster of the second in which it started is older, and
	// nothing in it is replaced for the grace. What the test creates is to be younger.
	time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
	return func() {
		cancel()
		g.Expect(<-done).To(Succeed())
		g.Expect(<-done).To(Succeed())
	}
}

// grantWebhooks gives the user core the rights that are installed with the webhooks, but first none to write Secrets; complete gives that.
func grantWebhooks(t *testing.T, c client.Client) (complete func()) {
	t.Helper()
	g := NewWithT(t)
	complete = func() {}
	for _, object := range webhookDocuments(t, "rbac.yaml") {
		if strings.HasSuffix(object.GetKind(), "Binding") {
			subjects := []any{map[string]any{"apiGroup": rbacv1.GroupName, "kind": "User", "name": "core"}}
			g.Expect(unstructured.SetNestedSlice(object.Object, subjects, "subjects")).To(Succeed())
		}
		if object.GetKind() == "Role" {
			rules, _, err := unstructured.NestedSlice(object.Object, "rules")
			g.Expect(err).NotTo(HaveOccurred())
			reads := map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"get", "list", "watch"}}
			g.Expect(unstructured.SetNestedSlice(object.Object, []any{reads}, "rules")).To(Succeed())
			complete = func() {
				g.Expect(unstructured.SetNestedSlice(object.Object, rules, "rules")).To(Succeed())
				g.Expect(c.Update(t.Context(), object)).To(Succeed())
			}
		}
		g.Expect(c.Create(t.Context(), object)).To(Succeed())
	}
	return complete
}
