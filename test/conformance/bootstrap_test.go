package conformance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/cores"
	"millwright.dev/test/testenv"
)

// kubeadmTool is Cluster API's bootstrap provider for kubeadm.
var kubeadmTool = cores.Tool{
	Directory: "test/interop/upstream", Module: "sigs.k8s.io/cluster-api", Package: "sigs.k8s.io/cluster-api/bootstrap/kubeadm",
	Name: "upstream-bootstrap-kubeadm",
}

// kubeadmFindings are the rules that it does not keep, as docs/conformance/findings.md says; others fail the test.
var kubeadmFindings = []rules.ID{"BC-004"}

// waitsOfKubeadm leave time for what it does on events of other objects, after which it reconciles again in 10 s or more.
const waitsOfKubeadm = `
apiVersion: conformance.millwright.dev/v1alpha1
kind: Timeouts
provision: 60s
react: 20s
delete: 30s
quiet: 3s
poll: 100ms
cleanup: 60s
`

// TestBootstrapKubeadm: Cluster API's bootstrap provider, built from its module, with its conversion and admission, keeps every rule but
// for those findings, under both versions of the contract.
func TestBootstrapKubeadm(t *testing.T) {
	if !*upstreamFlag {
		t.Skip("takes minutes of building: make conformance-bootstrap")
	}
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	path, release, err := cores.BuildTool(t.Context(), root, kubeadmTool, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	module, err := cores.ModuleDirectory(t.Context(), root, kubeadmTool)
	if err != nil {
		t.Fatal(err)
	}
	p := &kubeadm{path: path, dir: filepath.Join(t.TempDir(), "bootstrap"), ctx: context.WithoutCancel(t.Context())}
	if *logsFlag != "" {
		p.dir = filepath.Join(*logsFlag, "bootstrap")
	}
	if err := p.install(t, module); err != nil {
		t.Fatal(err)
	}
	if err := p.start(); err != nil {
		t.Fatal(err)
	}
	defer func() { p.running.Stop() }()
	options := conformance.RunOptions{
		Selection: conformance.Selection{Profile: conformance.BootstrapConfigProfile, Level: conformance.Extended},
		Sample:    kubeadmSample(t), Timeouts: []byte(waitsOfKubeadm), Log: t.Output(),
		Restart: func(context.Context) error { p.running.Kill(); return p.start() },
	}
	if *ruleFlag != "" {
		options.Selection.Rules = []rules.ID{rules.ID(*ruleFlag)}
	}
	results, err := behaviour.BootstrapConfig(t.Context(), env.Config, options)
	if err != nil {
		t.Error(err)
	}
	for _, r := range results {
		if r.Status == report.Fail && !slices.Contains(kubeadmFindings, r.Rule) {
			t.Errorf("%s %s is a finding to be written up, or a fault of the suite: %+v", r.Rule, r.ContractVersion, r.Failures)
		}
	}
	save(t, "make conformance-bootstrap", conformance.BootstrapConfigProfile,
		report.Implementation{Name: "bootstrap-kubeadm", Version: release}, results)
}

// kubeadm is the provider as a process.
type kubeadm struct {
	ctx       context.Context
	path, dir string
	port      int
	running   *cores.Running
}

// start runs it on the port where the API server looks for its webhooks.
func (p *kubeadm) start() error {
	kubeconfig := filepath.Join(p.dir, "kubeconfig")
	if err := os.WriteFile(kubeconfig, env.Kubeconfig, 0o600); err != nil {
		return err
	}
	var err error
	p.running, err = cores.Start(p.ctx, cores.Core{Name: kubeadmTool.Name, Role: "bootstrap provider", Path: p.path}, cores.Options{
		Kubeconfig: kubeconfig, Dir: p.dir, WebhookPort: p.port,
		Env: []string{"POD_NAMESPACE=default", "POD_NAME=kubeadm", "POD_UID=kubeadm", "POD_IP=127.0.0.1"},
	})
	return err
}

// install creates the provider's definitions and webhooks, served on a port of this machine.
func (p *kubeadm) install(t *testing.T, module string) error {
	t.Helper()
	var err error
	if p.port, err = controlplane.FreePort(); err != nil {
		return err
	}
	if err := cores.EnsureCertificate(filepath.Join(p.dir, "webhook")); err != nil {
		return err
	}
	authority, err := os.ReadFile(filepath.Join(p.dir, "webhook", "tls.crt"))
	if err != nil {
		return err
	}
	config := filepath.Join(module, "bootstrap/kubeadm/config")
	options := envtest.CRDInstallOptions{Paths: []string{filepath.Join(config, "crd/bases")}, ErrorIfPathMissing: true}
	if err := envtest.ReadCRDFiles(&options); err != nil {
		return err
	}
	for _, crd := range options.CRDs {
		crd.Labels = map[string]string{version.Label(version.V1Beta1): "v1beta1", version.Label(version.V1Beta2): "v1beta2"}
		crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ConversionReviewVersions: []string{"v1"},
				ClientConfig: &apiextensionsv1.WebhookClientConfig{
					URL: ptr.To(fmt.Sprintf("https://localhost:%d/convert", p.port)), CABundle: authority,
				},
			},
		}
	}
	if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: options.CRDs}); err != nil {
		return err
	}
	return p.admit(t, filepath.Join(config, "webhook/manifests.yaml"), authority)
}

// admit creates the provider's admission webhooks, until the test ends.
func (p *kubeadm) admit(t *testing.T, manifest string, authority []byte) error {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := admissionv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(env.Config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	content, err := os.ReadFile(manifest)
	if err != nil {
		return err
	}
	for _, text := range strings.Split(string(content), "\n---\n") {
		var document map[string]any
		if err := yaml.Unmarshal([]byte(text), &document); err != nil {
			return err
		}
		testenv.ByURL(document, p.port)
		if content, err = yaml.Marshal(document); err != nil {
			return err
		}
		object, err := trusted(document["kind"], content, authority)
		if err != nil {
			return err
		}
		object.SetName("kubeadm")
		if err := c.Create(t.Context(), object); err != nil {
			return err
		}
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), object) })
	}
	return nil
}

// trusted reads the configuration of webhooks, with the authority by which the API server knows them.
func trusted(kind any, content, authority []byte) (client.Object, error) {
	if kind == "MutatingWebhookConfiguration" {
		object := &admissionv1.MutatingWebhookConfiguration{}
		err := yaml.UnmarshalStrict(content, object)
		for i := range object.Webhooks {
			object.Webhooks[i].ClientConfig.CABundle = authority
		}
		return object, err
	}
	object := &admissionv1.ValidatingWebhookConfiguration{}
	err := yaml.UnmarshalStrict(content, object)
	for i := range object.Webhooks {
		object.Webhooks[i].ClientConfig.CABundle = authority
	}
	return object, err
}

func kubeadmSample(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("samples", "bootstrap-kubeadm.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(env.Config.Host)
	if address.Host == "" {
		address, err = url.Parse("https://" + env.Config.Host)
	}
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig, err := json.Marshal(string(env.Kubeconfig))
	if err != nil {
		t.Fatal(err)
	}
	return []byte(strings.NewReplacer("${HOST}", address.Hostname(), "${PORT}", address.Port(), "${KUBECONFIG}", string(kubeconfig),
		"${CA}", base64.StdEncoding.EncodeToString(env.Config.CAData)).Replace(string(content)))
}
