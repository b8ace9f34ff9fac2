package manifests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// version is the one that is pinned.
func (i implementation) version() string {
	if _, version, found := strings.Cut(i.module, "@"); found {
		return version
	}
	return ours
}

// file is the name of its reports, without ending.
func (i implementation) file() string { return i.name + "-" + i.version() }

// kept is where its manifests stay, from the root of the repository.
func (i implementation) kept() string { return "out/conformance/" + i.file() }

// metadataModule is the module that has metadata.yaml.
func (i implementation) metadataModule() string {
	if i.metadata != "" {
		return i.metadata
	}
	return i.module
}

// recipe are the commands that write the manifests into a directory without this repository.
func (i implementation) recipe() string {
	if i.module == "" {
		return fmt.Sprintf("make release VERSION=%s\n", ours)
	}
	path := func(module string) string { return `"$(go mod download -json ` + module + ` | jq -r .Dir)"` }
	out := fmt.Sprintf("mkdir %s\nexport GOFLAGS=-mod=mod\n", i.file())
	out += fmt.Sprintf("go run sigs.k8s.io/kustomize/kustomize/v5@v5.8.1 build %s/%s >%s/%s\n", path(i.module), i.config, i.file(), i.components)
	out += fmt.Sprintf("cp %s/metadata.yaml %s/\n", path(i.metadataModule()), i.file())
	if i.templates != "" {
		out += fmt.Sprintf("cp %s/%s %s/\n", path(i.module), i.templates, i.file())
	}
	return out
}

// gather lays out the files of a release in a directory, as clusterctl would find them. The kept directory is recreated.
func (i implementation) gather(g *gatherer) error {
	dir := filepath.Join(g.root, i.kept())
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	from, metadata := filepath.Join(g.release, i.config, ours), ""
	templates := filepath.Join(from, i.templates)
	if i.module == "" {
		metadata = filepath.Join(from, "metadata.yaml")
		if err := copyTo(dir, filepath.Join(from, i.components)); err != nil {
			return err
		}
	} else {
		module, err := g.module(i.module)
		if err != nil {
			return err
		}
		holder, err := g.module(i.metadataModule())
		if err != nil {
			return err
		}
		metadata, templates = filepath.Join(holder, "metadata.yaml"), filepath.Join(module, i.templates)
		components, err := run(g.root, g.kustomize, "build", filepath.Join(module, i.config))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, i.components), components, 0o644); err != nil {
			return err
		}
	}
	files := []string{metadata}
	if i.templates != "" {
		found, err := filepath.Glob(templates)
		if err != nil || len(found) == 0 {
			return fmt.Errorf("%s: no templates %s: %w", i.name, templates, err)
		}
		files = append(files, found...)
	}
	return copyTo(dir, files...)
}

func copyTo(dir string, files ...string) error {
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// gatherer finds the manifests of implementations.
type gatherer struct {
	// root is the repository, release the releases that were built from it, and scratch a directory that belongs to no module.
	root, release, scratch, kustomize string
	modules                           map[string]string
}

// module downloads a module and returns its directory, which is only read.
func (g *gatherer) module(module string) (string, error) {
	if dir, known := g.modules[module]; known {
		return dir, nil
	}
	out, err := run(g.scratch, "go", "mod", "download", "-json", module)
	if err != nil {
		return "", err
	}
	answer := struct{ Dir string }{}
	if err := json.Unmarshal(out, &answer); err != nil || answer.Dir == "" {
		return "", fmt.Errorf("go mod download %s: no directory: %w", module, err)
	}
	g.modules[module] = answer.Dir
	return answer.Dir, nil
}

// run returns what a command prints.
func run(dir, name string, args ...string) ([]byte, error) {
	cmd := exec.Command(name, args...)
	stderr := &bytes.Buffer{}
	cmd.Dir, cmd.Stderr = dir, stderr
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, stderr)
	}
	return out, nil
}
