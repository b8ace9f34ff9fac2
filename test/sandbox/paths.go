package sandbox

import (
	"fmt"
	"os"
	"path/filepath"

	"millwright.dev/test/controlplane"
)

// paths are the files in the repository that a sandbox needs, all of them made by make.
type paths struct {
	root string
}

// needed are files with the make target that makes them.
var needed = []struct{ file, target string }{
	{"bin/core", "build"},
	{"bin/aws", "build"},
	{"bin/cloudconfig", "build"},
	{"bin/ec2-simulator", "build"},
	{"bin/sim-machine", "build"},
	{coreManifest, "manifests"},
	{coreManifestWithoutWebhooks, "manifests"},
	{"out/infrastructure-aws/infrastructure-components.yaml", "manifests"},
	{"out/bootstrap-cloudconfig/bootstrap-components.yaml", "manifests"},
	{"out/target/target-components.yaml", "manifests"},
}

func findPaths() (*paths, error) {
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	p := &paths{root: root}
	for _, n := range needed {
		if _, err := os.Stat(p.file(n.file)); err != nil {
			return nil, fmt.Errorf("%s is missing: run `make %s`", n.file, n.target)
		}
	}
	return p, nil
}

// file is the path of a file in the repository.
func (p *paths) file(name string) string { return filepath.Join(p.root, filepath.FromSlash(name)) }
