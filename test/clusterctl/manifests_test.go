package clusterctl

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	admissionv1 "k8s.io/api/admissionregistration/v1"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
)

// components are the files of a release that are installed, by directory and name.
var components = []string{
	"cluster-api/v0.1.0/core-components.yaml",
	"bootstrap-millwright-cloudconfig/v0.1.0/bootstrap-components.yaml",
	"infrastructure-millwright-aws/v0.1.0/infrastructure-components.yaml",
	"infrastructure-millwright-azure/v0.1.0/infrastructure-components.yaml",
	"infrastructure-millwright-gcp/v0.1.0/infrastructure-components.yaml",
}

// installation is a release that was applied to an API server, where nothing runs.
type installation struct {
	*WithT
	*person
	client sandbox.Client
}

// TestManifests applies a release with kubectl; each claim of the guides about that is a subtest.
func TestManifests(t *testing.T) {
	g := NewWithT(t)
	plane, err := controlplane.Start(t.Context(), controlplane.Options{WithoutControllers: true})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { g.Expect(plane.Stop()).To(Succeed()) })
	c, err := sandbox.ClientFor(plane.Kubeconfig())
	g.Expect(err).NotTo(HaveOccurred())
	p := newPerson(t, plane.Program("kubectl"))
	p.export("KUBECONFIG", p.write("kubeconfig", string(plane.Kubeconfig())))
	release(t, filepath.Join(p.dir, "out", "release"))
	p.run(`cd "$MILLWRIGHT_RELEASE" && sha256sum --quiet --check checksums-v0.1.0.txt`)
	p.run(`cd "$MILLWRIGHT_RELEASE" && grep -q '  ./images/v0.1.0/images.txt$' checksums-v0.1.0.txt`)
	p.run(`cat "$MILLWRIGHT_RELEASE/` + otherProvider + `" && ! grep -q other "$MILLWRIGHT_RELEASE/checksums-v0.1.0.txt"`)
	g.Expect(filepath.Join(p.dir, "out", "release", earlierRun)).NotTo(BeAnExistingFile())
	p.run(`mkdir -p home/.config/cluster-api && cp "$MILLWRIGHT_RELEASE/clusterctl.yaml" home/.config/cluster-api/`)
	for _, file := range components {
		p.run(`kubectl apply --server-side -f "$MILLWRIGHT_RELEASE/` + file + `"`)
	}
	for _, test := range []struct {
		name string
		run  func(*installation)
	}{
		{"PodsAreRestricted", (*installation).podsAreRestricted},
		{"ImagesHaveTheNamesThatWereGiven", (*installation).images},
		{"ApplyLeavesWhatManagersWrite", (*installation).applyLeavesWhatManagersWrite},
		{"OlderOverNewer", (*installation).olderOverNewer},
		{"StaticConformance", (*installation).staticConformance},
		{"Components", (*installation).components},
		{"SecondCore", (*installation).secondCore},
		{"OverlaysNameReleases", (*installation).overlaysNameReleases},
		{"OneNamespace", (*installation).oneNamespace},
		{"WithCertManager", (*installation).withCertManager},
		{"ReleaseOfNoVersion", (*installation).noVersion},
		// Removes the webhooks, which nothing answers.
		{"AClusterThatClusterctlUnpauses", (*installation).unpaused},
		{"TemplatesOfAllClouds", (*installation).templatesOfAllClouds},
	} {
		t.Run(test.name, func(t *testing.T) {
			mine := *p
			mine.t = t
			test.run(&installation{NewWithT(t), &mine, c})
		})
	}
}

// podsAreRestricted has the API server's own admission look at the Pods of each Deployment, in namespaces that enforce the standard.
func (i *installation) podsAreRestricted() {
	deployments := i.deployments()
	i.Expect(deployments).To(HaveLen(len(components)))
	for _, d := range deployments {
		namespace := &corev1.Namespace{}
		i.Expect(i.client.Get(i.t.Context(), client.ObjectKey{Name: d.Namespace}, namespace)).To(Succeed())
		i.Expect(namespace.Labels).To(HaveKeyWithValue("pod-security.kubernetes.io/enforce", "restricted"))
		pod := &corev1.Pod{ObjectMeta: *d.Spec.Template.ObjectMeta.DeepCopy(), Spec: *d.Spec.Template.Spec.DeepCopy()}
		pod.Namespace, pod.Name = d.Namespace, "dry-run"
		i.Expect(i.client.Create(i.t.Context(), pod.DeepCopy(), client.DryRunAll)).To(Succeed(), d.Name)
		pod.Spec.HostNetwork = true
		err := i.client.Create(i.t.Context(), pod, client.DryRunAll)
		i.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "the check can fail: %v", err)
	}
}

func (i *installation) deployments() []appsv1.Deployment {
	list := &appsv1.DeploymentList{}
	i.Expect(i.client.List(i.t.Context(), list, client.HasLabels{clusterv1.ProviderNameLabel})).To(Succeed())
	return list.Items
}

// applyLeavesWhatManagersWrite: the core's authority and the rules that Kubernetes gathers are not in the manifests.
func (i *installation) applyLeavesWhatManagersWrite() {
	ctx := i.t.Context()
	hooks, role := &admissionv1.ValidatingWebhookConfiguration{}, &rbacv1.ClusterRole{}
	key, gathered := client.ObjectKey{Name: "millwright-core"}, client.ObjectKey{Name: "millwright-system-core-aggregated"}
	authority := i.authority()
	i.Expect(i.client.Get(ctx, key, hooks)).To(Succeed())
	for n := range hooks.Webhooks {
		hooks.Webhooks[n].ClientConfig.CABundle = authority
	}
	i.Expect(i.client.Update(ctx, hooks, client.FieldOwner("millwright-core-certificates"))).To(Succeed())
	i.Expect(i.client.Get(ctx, gathered, role)).To(Succeed())
	role.Rules = []rbacv1.PolicyRule{{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"get"}}}
	i.Expect(i.client.Update(ctx, role, client.FieldOwner("clusterrole-aggregation-controller"))).To(Succeed())
	i.run(`kubectl apply --server-side -f "$MILLWRIGHT_RELEASE/` + components[0] + `"`)
	i.Expect(i.client.Get(ctx, key, hooks)).To(Succeed())
	for n := range hooks.Webhooks {
		i.Expect(hooks.Webhooks[n].ClientConfig.CABundle).To(Equal(authority))
	}
	i.Expect(i.client.Get(ctx, gathered, role)).To(Succeed())
	i.Expect(role.Rules).To(HaveLen(1))
}

// authority is some certificate authority.
func (i *installation) authority() []byte {
	config := i.run(`kubectl config view --raw -o jsonpath='{.clusters[0].cluster.certificate-authority-data}' | base64 -d`)
	return []byte(config)
}

// olderOverNewer applies a release that has more, and then the previous one again.
func (i *installation) olderOverNewer() {
	content, err := os.ReadFile(filepath.Join(i.dir, "out", "release", components[0]))
	i.Expect(err).NotTo(HaveOccurred())
	newer := strings.NewReplacer(
		":v0.1.0\n", ":v0.2.0\n",
		"        - --leader-elect\n", "        - --leader-elect\n        - --new-flag\n",
		"  - additionalPrinterColumns:\n", "  - additionalPrinterColumns:\n    - {name: New, type: string, jsonPath: .metadata.name}\n",
	).Replace(string(content))
	i.Expect(newer).NotTo(Equal(string(content)))
	i.write("newer.yaml", newer)
	get := func() *appsv1.Deployment {
		d := &appsv1.Deployment{}
		i.Expect(i.client.Get(i.t.Context(), client.ObjectKey{Namespace: "millwright-system", Name: "millwright-core"}, d)).To(Succeed())
		return d
	}
	before := get().Spec
	i.run(`kubectl apply --server-side -f newer.yaml`)
	i.Expect(get().Spec.Template.Spec.Containers[0].Args).To(ContainElement("--new-flag"))
	i.run(`kubectl apply --server-side -f "$MILLWRIGHT_RELEASE/` + components[0] + `"`)
	i.Expect(get().Spec).To(Equal(before))
	i.Expect(i.run(`kubectl get crd machines.cluster.x-k8s.io -o yaml`)).NotTo(ContainSubstring("name: New"))
}

// oneNamespace: providers that share a namespace have no object in common but that.
func (i *installation) oneNamespace() {
	owner := map[string]string{}
	for _, provider := range []string{"--core cluster-api", "--bootstrap millwright-cloudconfig", "--infrastructure millwright-aws",
		"--infrastructure millwright-azure", "--infrastructure millwright-gcp"} {
		manifest := i.run(`clusterctl generate provider ` + provider + ` --target-namespace together`)
		i.write("together.yaml", manifest)
		names := i.run(`kubectl create --dry-run=client -f together.yaml -o name`)
		for _, name := range strings.Split(strings.TrimSpace(names), "\n") {
			i.Expect(owner[name]).To(BeEmpty(), "%s is in %s too", name, provider)
			if name != "namespace/together" {
				owner[name] = provider
			}
		}
		i.run(`kubectl apply --server-side --force-conflicts -f together.yaml`)
	}
	i.Expect(len(owner)).To(BeNumerically(">", 40))
	accounts := &corev1.ServiceAccountList{}
	i.Expect(i.client.List(i.t.Context(), accounts, client.InNamespace("together"), client.HasLabels{clusterv1.ProviderNameLabel})).
		To(Succeed())
	i.Expect(accounts.Items).To(HaveLen(len(components)))
}

// withCertManager: the variant requests a certificate of the namespace that it is in, by kinds that the stub has.
func (i *installation) withCertManager() {
	i.run(`kubectl apply --server-side -f "$MILLWRIGHT_RELEASE/cert-manager/v0.0.1/cert-manager.yaml"`)
	i.established("issuers.cert-manager.io certificates.cert-manager.io")
	i.run(`sed -i s/core-components.yaml/core-components-cert-manager.yaml/ home/.config/cluster-api/clusterctl.yaml`)
	manifest := i.run(`clusterctl generate provider --core cluster-api --target-namespace certified`)
	i.run(`sed -i s/core-components-cert-manager.yaml/core-components.yaml/ home/.config/cluster-api/clusterctl.yaml`)
	i.Expect(manifest).To(ContainSubstring("millwright-core-webhook.certified.svc"))
	i.Expect(strings.Count(manifest, "cert-manager.io/inject-ca-from: certified/millwright-core-webhook")).To(Equal(11))
	i.Expect(manifest).NotTo(ContainSubstring("trust-from"))
	i.write("certified.yaml", manifest)
	i.run(`kubectl create namespace certified && kubectl apply --server-side --force-conflicts --dry-run=server -f certified.yaml`)
}

// noVersion: what clusterctl or a registry would not find is not created, and a release leaves alone what is not its own.
func (i *installation) noVersion() {
	root, err := controlplane.Root()
	i.Expect(err).NotTo(HaveOccurred())
	release := `"` + root + `/config/release.sh" kustomize `
	for command, want := range map[string]string{
		release + `latest "$PWD/none"`:                          "VERSION=v0.1.0",
		release + `v01.1.0 "$PWD/none"`:                         "VERSION=v0.1.0",
		release + `v0.1.0-.. "$PWD/none"`:                       "VERSION=v0.1.0",
		release + `v0.1.0-rc..1 "$PWD/none"`:                    "VERSION=v0.1.0",
		`TAG='a&b' ` + release + `v0.1.0 "$PWD/none"`:           "TAG='a&b'",
		`REGISTRY='a|e date' ` + release + `v0.1.0 "$PWD/none"`: "REGISTRY='a|e date'",
		`REGISTRY=a.io//b ` + release + `v0.1.0 "$PWD/none"`:    "REGISTRY='a.io//b'",
		`REGISTRY=team ` + release + `v0.1.0 "$PWD/none"`:       "no registry's domain",
		`REGISTRY=team/a.io ` + release + `v0.1.0 "$PWD/none"`:  "no registry's domain",
		`REGISTRY=a.io/Team ` + release + `v0.1.0 "$PWD/none"`:  "REGISTRY='a.io/Team'",
		`ONLY='core aws' ` + release + `v0.1.0 "$PWD/none"`:     "ONLY='core aws'",
	} {
		said, err := i.try(command)
		i.Expect(err).To(HaveOccurred(), command)
		i.Expect(said).To(ContainSubstring(want))
		i.Expect(filepath.Join(i.dir, "none")).NotTo(BeADirectory())
	}
}

// images: the registry and the version, in each manifest and in the notes.
func (i *installation) images() {
	for _, d := range i.deployments() {
		i.Expect(d.Spec.Template.Spec.Containers[0].Image).To(MatchRegexp(`^registry\.example\.com/team/` + d.Name + `:v0\.1\.0$`))
	}
	notes := i.run(`cat "$MILLWRIGHT_RELEASE/release-notes-v0.1.0.md"`)
	i.Expect(notes).To(ContainSubstring("`registry.example.com/team/millwright-gcp:v0.1.0`"))
	i.Expect(notes).To(ContainSubstring("For linux/amd64, linux/arm64; their digests are in `images/v0.1.0/images.txt`"))
}
