package testenv

import (
	"embed"
	"io/fs"
	"path"
	"strings"

	"github.com/pkg/errors"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"millwright.dev/config"
	"millwright.dev/test/clouds/example"
)

// CRDs names a directory of custom resource definitions, relative to the root of the repository.
type CRDs string

// The directories that `make generate` fills.
const (
	CoreCRDs        CRDs = "config/core/crd/generated"
	AWSCRDs         CRDs = "config/providers/aws/crd"
	GCPCRDs         CRDs = "config/providers/gcp/crd"
	AzureCRDs       CRDs = "config/providers/azure/crd"
	CloudConfigCRDs CRDs = "config/bootstrap/cloudconfig/crd"
	ExampleCRDs     CRDs = "test/clouds/example/provider/config/crd"
)

// sources have the directories, by those that they are compiled into.
var sources = map[string]embed.FS{"config/": config.CRDs, "test/clouds/example/": example.CRDs}

// Definitions are what the directory had when the test program was compiled.
func (c CRDs) Definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	for prefix, source := range sources {
		if directory, found := strings.CutPrefix(string(c), prefix); found {
			definitions, err := decode(source, directory)
			if err == nil && len(definitions) == 0 {
				err = errors.New("it has none")
			}
			return definitions, errors.Wrapf(err, "the CRDs of %s, see make generate", c)
		}
	}
	return nil, errors.Errorf("the CRDs of %s are not compiled in", c)
}

func decode(source embed.FS, directory string) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	files, err := fs.Glob(source, path.Join(directory, "*.yaml"))
	if err != nil {
		return nil, errors.WithStack(err)
	}
	var definitions []*apiextensionsv1.CustomResourceDefinition
	for _, file := range files {
		text, err := source.ReadFile(file)
		if err != nil {
			return nil, errors.WithStack(err)
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(text, definition); err != nil {
			return nil, errors.Wrap(err, file)
		}
		if definition.Kind == "CustomResourceDefinition" { // and not kustomize's
			definitions = append(definitions, definition)
		}
	}
	return definitions, nil
}
