package clusterctl

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/childprocess"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/sandbox"
	"millwright.dev/test/scale/cores"
)

// certManager are cert-manager's controllers: see the main package in that directory.
var certManager = cores.Tool{
	Directory: "test/interop/certmanager", Module: "github.com/cert-manager/cert-manager", Package: ".", Name: "cert-manager",
}

// certificate is the Secret of the core's variant for cert-manager.
var certificate = client.ObjectKey{Namespace: "millwright-system", Name: "millwright-core-webhook-cert-manager"}

// swap is a fixture with cert-manager's controllers and Cluster API's core.
type swap struct {
	*life
	root string
	// module is Cluster API's.
	module string
}

// TestSwapTheCore: with cert-manager's own controllers, this core gets a certificate and its renewal; then Cluster API's core replaces it
// and is replaced by it, both with their manifests, webhooks and conversion, while machines on a simulated EC2 run; each scales the
// MachineDeployment up, and neither replaces a machine.
func TestSwapTheCore(t *testing.T) {
	root, err := controlplane.Root()
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	upstream, err := cores.BuildUpstream(t.Context(), root, t.Output())
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	s := &swap{root: root, life: newLife(t, sandbox.Options{Programs: map[string]string{"cluster-api-controller": upstream.Path}})}
	s.module, err = cores.ModuleDirectory(t.Context(), root, clusterctl)
	s.Expect(err).NotTo(HaveOccurred())
	s.startCertManager()

	release(t, filepath.Join(s.dir, "out", "release"))
	s.page("quickstart.md", "The release")
	s.page("install.md", "With the real cert-manager")
	s.page("quickstart.md", "AWS", "The managers", "The cluster", "The machines")
	s.served("millwright-system/millwright-core-webhook")
	s.renewed()
	nodes := s.nodes()
	s.Expect(nodes).To(HaveLen(2))

	s.export("CAPI", s.coreOfUpstream())
	s.page("swap-the-core.md", "Back")
	s.Expect(s.hosts[s.from].Programs()).To(ContainElement(ContainSubstring("cluster-api-controller")))
	s.Expect(s.hosts[s.from].Programs()).NotTo(ContainElement(ContainSubstring("millwright-core")))
	s.served("capi-system/capi-serving-cert")
	s.grown(3, nodes)

	// As clusterctl leaves it: an apply by another field manager does not remove the annotation.
	s.run(
		`kubectl annotate crd --field-manager clusterctl --overwrite -l cluster.x-k8s.io/provider=cluster-api cert-manager.io/inject-ca-from=capi-system/capi-serving-cert`,
	)
	nodes = s.nodes()
	s.page("swap-the-core.md", "To Millwright")
	s.Expect(s.hosts[s.from].Programs()).NotTo(ContainElement(ContainSubstring("cluster-api-controller")))
	s.served("")
	s.grown(4, nodes)
	s.Expect(s.launches()).To(Equal(4))

	s.page("uninstall.md", "First the machines")
	s.Eventually(s.live).Should(BeEmpty())
	for cluster, host := range s.hosts {
		restarts, failures := host.Restarts()
		s.Expect(restarts).To(BeZero(), "%s: %v", cluster.Name(), failures)
	}
}

// startCertManager installs cert-manager's kinds and runs its controllers, until the test ends.
func (s *swap) startCertManager() {
	path, version, err := cores.BuildTool(s.ctx, s.root, certManager, s.t.Output())
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Logf("cert-manager %s", version)
	module, err := cores.ModuleDirectory(s.ctx, s.root, certManager)
	s.Expect(err).NotTo(HaveOccurred())
	s.run(`kubectl apply --server-side -f "` + module + `/deploy/crds"`)
	s.established("--all")
	process, err := childprocess.Start(context.WithoutCancel(s.ctx), childprocess.Spec{
		Name: "cert-manager", Path: path, Args: []string{"--kubeconfig=" + filepath.Join(s.dir, "from")}, CleanEnv: true,
		Env: []string{"HOME=" + s.dir}, Dir: s.dir, Log: filepath.Join(s.sandbox.LogDir(), "cert-manager.log"),
	})
	s.Expect(err).NotTo(HaveOccurred())
	s.t.Cleanup(process.Kill)
}

// served is true when the core's webhooks refuse with their message, conversion is answered, and cert-manager, if it has issued the
// certificate, has published the authority.
func (s *swap) served(certificate string) {
	s.t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	s.Eventually(func(g Gomega) {
		g.Expect(s.from.Client.Get(s.ctx, client.ObjectKey{Name: "machines.cluster.x-k8s.io"}, definition)).To(Succeed())
		if certificate == "" {
			g.Expect(definition.Annotations).NotTo(HaveKey("cert-manager.io/inject-ca-from"))
		} else {
			g.Expect(definition.Annotations).To(HaveKeyWithValue("cert-manager.io/inject-ca-from", certificate))
		}
		output, err := s.try(`kubectl get machines.v1beta1.cluster.x-k8s.io -o name`)
		g.Expect(err).NotTo(HaveOccurred(), "conversion: %s", output)
		output, err = s.try(
			`kubectl patch machinedeployment ` + deployment + ` --type merge -p '{"spec":{"selector":{"matchLabels":{"none":"matches"}}}}'`,
		)
		g.Expect(err).To(HaveOccurred())
		g.Expect(output).To(And(ContainSubstring("spec."), MatchRegexp("(?i)selector|immutable"), Not(ContainSubstring("x509"))))
	}).Should(Succeed())
}

// renewed has cert-manager issue another certificate, as it does before one expires, and expects the core to serve it without a restart.
func (s *swap) renewed() {
	secret := &corev1.Secret{}
	s.Expect(s.from.Client.Get(s.ctx, certificate, secret)).To(Succeed())
	s.Expect(secret.Annotations).To(HaveKeyWithValue("cert-manager.io/certificate-name", "millwright-core-webhook"), "cert-manager created it")
	before := secret.Data["tls.crt"]
	s.Expect(s.from.Client.Delete(s.ctx, secret)).To(Succeed())
	s.Eventually(func(g Gomega) {
		again, hooks := &corev1.Secret{}, &admissionv1.ValidatingWebhookConfiguration{}
		g.Expect(s.from.Client.Get(s.ctx, certificate, again)).To(Succeed())
		g.Expect(again.Data["tls.crt"]).NotTo(Or(BeEmpty(), Equal(before)))
		g.Expect(s.from.Client.Get(s.ctx, client.ObjectKey{Name: "millwright-core"}, hooks)).To(Succeed())
		g.Expect(hooks.Webhooks).NotTo(BeEmpty())
		for i := range hooks.Webhooks {
			// Beside the old one, as long as that is valid.
			published := bytes.Contains(hooks.Webhooks[i].ClientConfig.CABundle, bytes.TrimSpace(again.Data["ca.crt"]))
			g.Expect(published).To(BeTrue(), "the authority of the new one is published")
		}
	}).Should(Succeed())
	s.served("millwright-system/millwright-core-webhook")
	restarts, failures := s.hosts[s.from].Restarts()
	s.Expect(restarts).To(BeZero(), "%v", failures)
}

// coreOfUpstream is the manifest of Cluster API's core, rendered from its module with the variables' defaults.
func (s *swap) coreOfUpstream() string {
	s.run(
		`kubectl kustomize "` + s.module + `/core/config/default" >capi.template && clusterctl generate yaml --from capi.template >capi.yaml`,
	)
	content, err := os.ReadFile(filepath.Join(s.dir, "capi.yaml"))
	s.Expect(err).NotTo(HaveOccurred())
	// A process outside of a container finds the certificate by the flag, and no namespace for its lease.
	const argument = "        - --leader-elect\n"
	s.Expect(bytes.Count(content, []byte(argument))).To(Equal(1))
	const outside = "        - --leader-elect=false\n        - --webhook-cert-dir=/tmp/k8s-webhook-server/serving-certs\n"
	content = bytes.Replace(content, []byte(argument), []byte(outside), 1)
	return s.write("capi.yaml", string(content))
}

// grown has the active core create one more machine, and expects the existing ones to stay.
func (s *swap) grown(to int, nodes []string) {
	s.t.Helper()
	began := time.Now()
	s.run(`kubectl scale machinedeployment ` + deployment + ` --replicas ` + string(rune('0'+to)))
	s.Eventually(func() []clusterv1.Machine { return s.machines(s.from) }).
		Should(And(HaveLen(to), HaveEach(HaveField("Status.Phase", "Running"))))
	after := s.nodes()
	s.Expect(after).To(HaveLen(to))
	for _, node := range nodes {
		s.Expect(slices.Contains(after, node)).To(BeTrue(), "no machine was replaced")
	}
	s.t.Logf("one more machine after %s", time.Since(began).Round(time.Second))
}
