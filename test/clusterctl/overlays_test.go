package clusterctl

import (
	"os"
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/doccheck"
)

// bases are what components can be added to.
var bases = []string{"core", "providers/aws", "providers/azure", "providers/gcp", "bootstrap/cloudconfig"}

// kustomize builds a kustomization that is written for the test. %CONFIG% is replaced by our directory config.
func (i *installation) kustomize(content string) (manifest string) {
	root, err := controlplane.Root()
	i.Expect(err).NotTo(HaveOccurred())
	config, err := filepath.Rel(filepath.Join(i.dir, "overlay"), filepath.Join(root, "config"))
	i.Expect(err).NotTo(HaveOccurred())
	i.write("overlay/kustomization.yaml", strings.ReplaceAll(content, "%CONFIG%", config))
	return i.run("kubectl kustomize overlay")
}

// documents are the objects of a manifest by kind and name.
func (i *installation) documents(manifest string) map[string]string {
	found := map[string]string{}
	for _, document := range strings.Split(manifest, "\n---\n") {
		object := struct {
			Kind     string
			Metadata struct{ Name string }
		}{}
		i.Expect(yaml.Unmarshal([]byte(document), &object)).To(Succeed())
		found[object.Kind+" "+object.Metadata.Name] = document
	}
	return found
}

// components adds all components to each base: the API server accepts the result, and the Pods as restricted.
func (i *installation) components() {
	directory, err := controlplane.Root()
	i.Expect(err).NotTo(HaveOccurred())
	entries, err := os.ReadDir(filepath.Join(directory, "config/components"))
	i.Expect(err).NotTo(HaveOccurred())
	var all []string
	for _, entry := range entries {
		if entry.IsDir() {
			all = append(all, "- %CONFIG%/components/"+entry.Name())
		}
	}
	i.Expect(all).To(HaveLen(6))
	for _, base := range bases {
		documents := i.documents(i.kustomize("resources: [%CONFIG%/" + base + "]\ncomponents:\n" + strings.Join(all, "\n")))
		name := "millwright-" + filepath.Base(base)
		monitor := documents["ServiceMonitor "+name]
		i.Expect(monitor).
			To(And(ContainSubstring("app.kubernetes.io/name: "+name), ContainSubstring("port: metrics")), "its kind is Prometheus's")
		delete(documents, "ServiceMonitor "+name)
		for _, kind := range []string{"PodDisruptionBudget", "NetworkPolicy", "Service"} {
			i.Expect(documents).To(HaveKey(kind+" "+name), base)
			i.Expect(documents[kind+" "+name]).To(ContainSubstring("app.kubernetes.io/name: "+name), base)
		}
		var manifest []string
		for _, document := range documents {
			manifest = append(manifest, document)
		}
		i.write("components.yaml", strings.Join(manifest, "\n---\n"))
		i.run("kubectl apply --server-side --force-conflicts --dry-run=server -f components.yaml")
		d := &appsv1.Deployment{}
		i.Expect(yaml.Unmarshal([]byte(documents["Deployment "+name]), d)).To(Succeed())
		reader, other := metav1.PartialObjectMetadata{}, metav1.PartialObjectMetadata{}
		i.Expect(documents).To(HaveKey("ClusterRole " + d.Namespace + "-metrics-reader"))
		i.Expect(yaml.Unmarshal([]byte(documents["ClusterRole "+d.Namespace+"-metrics-reader"]), &reader)).To(Succeed())
		i.Expect(yaml.Unmarshal([]byte(documents["ServiceAccount "+name]), &other)).To(Succeed())
		i.Expect(other.Labels).To(And(HaveLen(2), HaveKey(clusterv1.ProviderNameLabel)))
		i.Expect(reader.Labels).To(Equal(other.Labels), "clusterctl removes it with the others")
		i.whatComponentsDo(base, documents, d)
		pod := &corev1.Pod{ObjectMeta: d.Spec.Template.ObjectMeta, Spec: d.Spec.Template.Spec}
		pod.Namespace, pod.Name = d.Namespace, "dry-run"
		i.Expect(i.client.Create(i.t.Context(), pod, client.DryRunAll)).To(Succeed(), base)
	}
}

// whatComponentsDo: each of them does in a cluster what its page says.
func (i *installation) whatComponentsDo(base string, documents map[string]string, d *appsv1.Deployment) {
	budget, policy, service := &policyv1.PodDisruptionBudget{}, &networkingv1.NetworkPolicy{}, &corev1.Service{}
	for kind, object := range map[string]any{"PodDisruptionBudget": budget, "NetworkPolicy": policy, "Service": service} {
		i.Expect(yaml.Unmarshal([]byte(documents[kind+" "+d.Name]), object)).To(Succeed())
	}
	pod := &d.Spec.Template
	i.Expect(d.Spec.Replicas).To(HaveValue(BeEquivalentTo(2)))
	i.Expect(budget.Spec.MaxUnavailable.IntValue()).To(Equal(1), base)
	i.Expect(pod.Spec.PriorityClassName).To(Equal("system-cluster-critical"), base)
	var spread []string
	for _, constraint := range pod.Spec.TopologySpreadConstraints {
		spread = append(spread, constraint.TopologyKey+" "+string(constraint.WhenUnsatisfiable))
		i.Expect(constraint.MatchLabelKeys).To(ContainElement("app.kubernetes.io/name"), base)
	}
	i.Expect(spread).To(ConsistOf("topology.kubernetes.io/zone ScheduleAnyway", "kubernetes.io/hostname ScheduleAnyway"), base)
	ports := map[string]int{}
	for _, port := range pod.Spec.Containers[0].Ports {
		ports[port.Name] = int(port.ContainerPort)
	}
	i.Expect(ports).To(HaveKey("metrics"))
	i.Expect(service.Spec.Ports).To(ConsistOf(And(HaveField("Name", "metrics"), HaveField("TargetPort", intstr.FromString("metrics")))))
	for _, selector := range []map[string]string{budget.Spec.Selector.MatchLabels, policy.Spec.PodSelector.MatchLabels,
		service.Spec.Selector} {
		i.Expect(labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels))).To(BeTrue(), "%s: %v", base, selector)
	}
	i.Expect(policy.Spec.PolicyTypes).To(Equal([]networkingv1.PolicyType{networkingv1.PolicyTypeIngress}), "what goes out is not limited")
	i.Expect(policy.Spec.Ingress).To(HaveLen(2))
	webhooks, metrics := policy.Spec.Ingress[0], policy.Spec.Ingress[1]
	i.Expect(metrics.Ports).To(ConsistOf(HaveField("Port.IntVal", BeEquivalentTo(ports["metrics"]))), base)
	i.Expect(metrics.From).To(ConsistOf(HaveField("NamespaceSelector.MatchLabels", Equal(map[string]string{"metrics": "enabled"}))))
	i.Expect(webhooks.From).To(BeEmpty(), "API servers are anywhere")
	if base == "core" {
		i.Expect(ports).To(HaveKey("webhook"))
		i.Expect(webhooks.Ports).To(ConsistOf(HaveField("Port.IntVal", BeEquivalentTo(ports["webhook"]))))
	}
}

// secondCore shares no object with the first one but its kinds, which it leaves out.
func (i *installation) secondCore() {
	first, second := i.documents(
		i.kustomize("resources: [%CONFIG%/core]"),
	), i.documents(
		i.kustomize("resources: [%CONFIG%/overlays/second-core]"),
	)
	for name, document := range second {
		i.Expect(first).NotTo(HaveKey(name))
		if strings.HasPrefix(name, "ClusterRole") || strings.HasPrefix(name, "Namespace") {
			// By its label and the beginning of its name clusterctl would remove it with the first core, as would deletions by label.
			i.Expect(document).NotTo(ContainSubstring("clusterctl.cluster.x-k8s.io"), name)
		}
		i.Expect(name).NotTo(HavePrefix("CustomResourceDefinition"))
	}
	i.Expect(second).To(HaveKey("Deployment millwright-core-second"))
	i.Expect(second["Deployment millwright-core-second"]).To(ContainSubstring("image: registry.millwright.dev/millwright-core:v0.1.0"))
	i.run("kubectl create namespace millwright-second; kubectl apply --server-side --dry-run=server -f - <<<\"$(kubectl kustomize overlay)\"")
}

// overlaysNameReleases: what the pages show can be applied as it is shown, since its images are those of a release.
func (i *installation) overlaysNameReleases() {
	for _, cloud := range []string{"aws", "azure", "gcp"} {
		shoot := i.documents(i.kustomize("resources: [%CONFIG%/overlays/mcm/shoot/" + cloud + "]"))["Deployment millwright"]
		for _, manager := range []string{"core", cloud} {
			i.Expect(shoot).To(ContainSubstring("image: registry.millwright.dev/millwright-" + manager + ":v0.1.0"))
		}
	}
	shown := 0
	for _, fragment := range doccheck.Read(i.t, "docs/guides/install.md").Fragments(i.t, "Your own settings") {
		if !strings.Contains(fragment, "- ../millwright/config/") {
			continue
		}
		shown++
		manifest := i.kustomize(strings.ReplaceAll(fragment, "../millwright/config", "%CONFIG%"))
		i.Expect(manifest).To(ContainSubstring("image: registry.example.com/team/millwright-core:v0.1.0"))
		i.Expect(manifest).NotTo(MatchRegexp("image: .*:dev"))
	}
	i.Expect(shown).To(Equal(1))
}
