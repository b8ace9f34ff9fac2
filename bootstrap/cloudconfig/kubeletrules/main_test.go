package kubeletrules_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/testenv"
)

// version is the real kubelet's, which the tests ask.
const version = "v1.36.3"

var env *testenv.Env

func TestMain(m *testing.M) {
	os.Exit(testenv.Main(m, testenv.Options{CRDs: []testenv.CRDs{testenv.CloudConfigCRDs}}, func(e *testenv.Env) (func() error, error) {
		env = e
		return nil, nil
	}))
}

// kubelet runs a command of the real kubelet's code.
func kubelet(t *testing.T, args ...string) (string, error) {
	t.Helper()
	assets, err := controlplane.Assets()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(filepath.Join(assets, "hollow-kubelet"), args...).CombinedOutput()
	return string(out), err
}

// create asks the API server for an object of each kind with spec.kubelet, as kubectl does, and returns the first refusal.
func create(t *testing.T, kubeletSpec map[string]any) error {
	t.Helper()
	c, err := client.New(env.Config, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	spec := map[string]any{"kubelet": kubeletSpec}
	for kind, content := range map[string]map[string]any{
		"CloudConfig": spec, "CloudConfigTemplate": {"template": map[string]any{"spec": spec}},
	} {
		object := &unstructured.Unstructured{Object: map[string]any{"spec": content}}
		object.SetGroupVersionKind(bootstrapv1.GroupVersion.WithKind(kind))
		object.SetNamespace("default")
		object.SetGenerateName("test-")
		strict := client.WithFieldValidation(c, "Strict")
		if err := strict.Create(t.Context(), object.DeepCopy(), client.DryRunAll); err != nil {
			return err
		}
	}
	return nil
}

// parse reads spec.kubelet.
func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var spec map[string]any
	if err := yaml.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return spec
}

// start renders the files of a machine, and reports what the real kubelet says of them.
func start(t *testing.T, kubeletSpec map[string]any) error {
	t.Helper()
	raw, err := json.Marshal(kubeletSpec)
	if err != nil {
		t.Fatal(err)
	}
	options := node.KubeletOptions{NodeName: "n", ProviderID: "aws:///a/i-1", Version: version}
	if err := json.Unmarshal(raw, &options.Spec); err != nil {
		t.Fatal(err)
	}
	config, err := node.KubeletConfigFile(options)
	if err != nil {
		return err
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return startWith(t, path, string(node.KubeletUnitFile(options)))
}

// startWith gives the real kubelet the arguments of a unit, with another file.
func startWith(t *testing.T, config, unit string) error {
	t.Helper()
	args := []string{"check"}
	for line := range strings.Lines(unit) {
		if command, ok := strings.CutPrefix(line, "ExecStart="); ok {
			for _, word := range strings.Fields(command)[1:] {
				args = append(args, strings.Trim(strings.ReplaceAll(word, "/var/lib/kubelet/config.yaml", config), `"`))
			}
		}
	}
	out, err := kubelet(t, args...)
	if err != nil {
		return &kubeletError{out}
	}
	return nil
}

type kubeletError struct{ output string }

func (e *kubeletError) Error() string { return "the kubelet says: " + e.output }

func expectAccepted(t *testing.T, spec map[string]any) {
	t.Helper()
	g := NewWithT(t)
	g.Expect(create(t, spec)).To(Succeed(), "the API server: %v", spec)
	g.Expect(start(t, spec)).To(Succeed(), "the kubelet: %v", spec)
}
