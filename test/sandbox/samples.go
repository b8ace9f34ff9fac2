package sandbox

import (
	"context"
	"os"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	// samples has what is common to all clouds beside what is for AWS.
	samples = "config/samples/aws/"
	// SampleCluster is the name of the Cluster in the samples.
	SampleCluster = "sample"
	// SampleDeployment is the name of the MachineDeployment in the samples for AWS.
	SampleDeployment = "workers"

	// The ServiceAccount of out/target, whose token a Cluster's kubeconfig carries.
	targetNamespace, targetAccount = "kube-system", "millwright-target"
)

// sampleFiles in the order in which they are applied.
func (s *Sandbox) sampleFiles() []string {
	files := []string{samples + "cluster.yaml", samples + "cloudconfigtemplate.yaml"}
	for _, c := range s.Clouds {
		files = append(files, c.sample(c.templateFile()), c.sample("machinedeployment.yaml"))
	}
	return files
}

// ApplySamples applies config/samples into the namespace: the Cluster with its kubeconfig Secret, and for each cloud
// the templates and the MachineDeployment. Each edit may change an object before it is created.
func (s *Sandbox) ApplySamples(ctx context.Context, namespace string, edits ...func(*unstructured.Unstructured)) error {
	if err := s.CreateKubeconfigSecret(ctx, namespace, SampleCluster); err != nil {
		return err
	}
	for _, file := range s.sampleFiles() {
		objects, err := readObjects(s.paths.file(file))
		if err != nil {
			return err
		}
		for _, object := range objects {
			object.SetNamespace(namespace)
			for _, edit := range edits {
				edit(object)
			}
		}
		if err := create(ctx, s.Control.Client, objects); err != nil {
			return err
		}
	}
	return nil
}

// Sample reads one object of config/samples/aws, to build another from it.
func (s *Sandbox) Sample(file, namespace string) (*unstructured.Unstructured, error) {
	return s.sampleOf(samples+file, namespace)
}

// SampleTemplate reads the sample of a cloud's machine template.
func (s *Sandbox) SampleTemplate(c *Cloud, namespace string) (*unstructured.Unstructured, error) {
	return s.sampleOf(c.sample(c.templateFile()), namespace)
}

func (s *Sandbox) sampleOf(file, namespace string) (*unstructured.Unstructured, error) {
	objects, err := readObjects(s.paths.file(file))
	if err != nil {
		return nil, err
	}
	if len(objects) != 1 {
		return nil, errors.Errorf("%s holds %d objects, not one", file, len(objects))
	}
	objects[0].SetNamespace(namespace)
	return objects[0], nil
}

// CreateKubeconfigSecret creates the Secret by which the managers reach the target cluster, from the
// documented template, with a token of the ServiceAccount that out/target installs.
func (s *Sandbox) CreateKubeconfigSecret(ctx context.Context, namespace, cluster string) error {
	kubeconfig, err := s.TargetKubeconfig(ctx)
	if err != nil {
		return err
	}
	template, err := os.ReadFile(s.paths.file(samples + "kubeconfig-secret.yaml.tmpl"))
	if err != nil {
		return errors.Wrap(err, "reading the template of the kubeconfig Secret")
	}
	indented := strings.ReplaceAll(strings.TrimSpace(string(kubeconfig)), "\n", "\n    ")
	objects, err := decodeObjects([]byte(strings.ReplaceAll(string(template), "${KUBECONFIG}", indented)))
	if err != nil {
		return errors.Wrap(err, "filling in the template of the kubeconfig Secret")
	}
	for _, object := range objects {
		object.SetNamespace(namespace)
		object.SetName(cluster + "-kubeconfig")
		object.SetLabels(map[string]string{"cluster.x-k8s.io/cluster-name": cluster})
	}
	return create(ctx, s.Control.Client, objects)
}

// TargetKubeconfig is the kubeconfig that a Cluster's Secret carries.
func (s *Sandbox) TargetKubeconfig(ctx context.Context) ([]byte, error) {
	return s.Target.ServiceAccountKubeconfig(ctx, targetNamespace, targetAccount)
}

// FromTemplate builds an object of the kind from a template's spec.template.spec, as a user would who
// writes a Machine manually.
func FromTemplate(template *unstructured.Unstructured, kind, name string) (*unstructured.Unstructured, error) {
	spec, found, err := unstructured.NestedMap(template.Object, "spec", "template", "spec")
	if err != nil || !found {
		return nil, errors.Errorf("%s %s has no spec.template.spec", template.GetKind(), template.GetName())
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetAPIVersion(template.GetAPIVersion())
	object.SetKind(kind)
	object.SetNamespace(template.GetNamespace())
	object.SetName(name)
	return object, nil
}
