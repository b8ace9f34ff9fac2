// Command schema puts the rules about kubelets into CRDs that have been generated from Go types.
//
// usage: schema <file of a CRD>:<path of spec.kubelet, with dots>...
package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/pkg/errors"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"millwright.dev/bootstrap/cloudconfig/kubeletrules"
)

func main() {
	for _, arg := range os.Args[1:] {
		file, path, _ := strings.Cut(arg, ":")
		if err := apply(file, strings.Split(path, ".")); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

func apply(file string, path []string) error {
	content, err := os.ReadFile(file)
	if err != nil {
		return errors.Wrap(err, "reading the CRD")
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(content, &crd); err != nil {
		return errors.Wrapf(err, "parsing %s", file)
	}
	for i := range crd.Spec.Versions {
		if err := descend(crd.Spec.Versions[i].Schema.OpenAPIV3Schema, path); err != nil {
			return errors.Wrap(err, file)
		}
	}
	object := struct {
		apiextensionsv1.CustomResourceDefinition `json:",inline"`
		// Status is left out: the API server sets it.
		Status *struct{} `json:"status,omitempty"`
	}{CustomResourceDefinition: crd}
	out, err := yaml.Marshal(object)
	if err != nil {
		return errors.Wrapf(err, "rendering %s", file)
	}
	return errors.Wrap(os.WriteFile(file, append([]byte("---\n"), out...), 0o644), "writing the CRD")
}

// descend changes the schema at the path below a schema.
func descend(parent *apiextensionsv1.JSONSchemaProps, path []string) error {
	if len(path) == 0 {
		kubeletrules.Apply(parent)
		return nil
	}
	child, ok := parent.Properties[path[0]]
	if !ok {
		return errors.Errorf("has no field %s", path[0])
	}
	if err := descend(&child, path[1:]); err != nil {
		return err
	}
	parent.Properties[path[0]] = child
	return nil
}
