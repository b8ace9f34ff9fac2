package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"

	"github.com/pkg/errors"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// manifest is an install manifest: the objects that are applied, and the Deployment, which is not: a process with its
// ServiceAccount and its flags replaces it.
type manifest struct {
	objects    []*unstructured.Unstructured
	deployment *appsv1.Deployment
}

func readManifest(path string) (*manifest, error) {
	objects, err := readObjects(path)
	if err != nil {
		return nil, err
	}
	m := &manifest{}
	for _, object := range objects {
		if object.GetKind() != "Deployment" {
			m.objects = append(m.objects, object)
			continue
		}
		content, err := object.MarshalJSON()
		if err != nil {
			return nil, errors.Wrapf(err, "reading the Deployment in %s", path)
		}
		m.deployment = &appsv1.Deployment{}
		if err := json.Unmarshal(content, m.deployment); err != nil {
			return nil, errors.Wrapf(err, "reading the Deployment in %s", path)
		}
	}
	// What others refer to comes first; the rest stays in its order.
	slices.SortStableFunc(m.objects, func(a, b *unstructured.Unstructured) int { return rank(a) - rank(b) })
	return m, nil
}

func rank(object *unstructured.Unstructured) int {
	switch object.GetKind() {
	case "Namespace":
		return 0
	case "CustomResourceDefinition":
		return 1
	case "ServiceAccount":
		return 2
	default:
		return 3
	}
}

// readObjects reads all documents of a YAML file.
func readObjects(path string) ([]*unstructured.Unstructured, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, errors.Wrap(err, "reading a manifest")
	}
	objects, err := decodeObjects(content)
	return objects, errors.Wrapf(err, "reading %s", path)
}

func decodeObjects(content []byte) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	var objects []*unstructured.Unstructured
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &object.Object); err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}

// CreateFrom creates the objects of a YAML file, after the edits; those that exist are left as they are.
func CreateFrom(ctx context.Context, client Client, path string, edits ...func(*unstructured.Unstructured)) error {
	objects, err := readObjects(path)
	if err != nil {
		return err
	}
	for _, object := range objects {
		for _, edit := range edits {
			edit(object)
		}
	}
	return create(ctx, client, objects)
}

// create creates the objects; those that exist are left as they are.
func create(ctx context.Context, client Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		err := client.Create(ctx, object.DeepCopy())
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return errors.Wrapf(err, "creating %s %s", object.GetKind(), object.GetName())
		}
	}
	return nil
}
