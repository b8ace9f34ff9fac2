package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"millwright.dev/test/controlplane"
)

// paths are the files in the repository that a sandbox needs, all of them built by make.
type paths struct {
	root string
}

// file is one with the make target that builds it.
type file struct{ name, target string }

// needed are those that every sandbox needs.
var needed = []file{
	{"bin/core", "build"},
	{"bin/cloudconfig", "build"},
	{"bin/sim-machine", "build"},
	{coreManifest, "manifests"},
	{coreManifestWithoutWebhooks, "manifests"},
	{"out/bootstrap-cloudconfig/bootstrap-components.yaml", "manifests"},
	{"out/target/target-components.yaml", "manifests"},
}

func findPaths(clouds []*Cloud, images bool) (*paths, error) {
	root, err := controlplane.Root()
	if err != nil {
		return nil, err
	}
	p := &paths{root: root}
	all := slices.Clone(needed)
	for _, c := range clouds {
		all = append(all, file{"bin/" + c.Name, "build"}, file{c.simulatorFile, "build"}, file{c.manifest(), "manifests"})
	}
	if images {
		all = append(all, file{"bin/container", "build"}, file{"out/test-images/images.txt", "test-images"})
	}
	for _, n := range all {
		if _, err := os.Stat(p.file(n.name)); err != nil {
			return nil, fmt.Errorf("%s is missing: run `make %s`", n.name, n.target)
		}
	}
	return p, nil
}

// file is the path of a file in the repository.
func (p *paths) file(name string) string { return filepath.Join(p.root, filepath.FromSlash(name)) }
