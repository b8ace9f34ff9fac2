package manifests

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright.dev/test/controlplane"
)

// TestReportsAreOfOurManifests: what the reports of our own releases say is what the suite finds in the manifests of this tree. Those of
// others are of modules that do not change.
func TestReportsAreOfOurManifests(t *testing.T) {
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	g := &gatherer{root: t.TempDir(), release: filepath.Join(t.TempDir(), "release")}
	touchAll(t, filepath.Join(root, "config"))
	t.Setenv("TAG", ours)
	t.Setenv("REGISTRY", "")
	if out, err := run(root, filepath.Join(root, "config/release.sh"), kubectlKustomize(t), ours, g.release); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	found := 0
	for _, i := range implementations {
		if i.module != "" {
			continue
		}
		found++
		if err := i.gather(g); err != nil {
			t.Fatal(err)
		}
		r, err := i.judge(g.root)
		if err != nil {
			t.Fatal(err)
		}
		fresh := t.TempDir()
		if err := i.write(fresh, r); err != nil {
			t.Fatal(err)
		}
		for _, ending := range []string{".yaml", ".md"} {
			kept := read(t, filepath.Join(root, reports, i.file()+ending))
			if now := read(t, filepath.Join(fresh, i.file()+ending)); now != kept {
				t.Errorf("%s/%s%s is not what the suite finds now: make conformance-static\n%s", reports, i.file(), ending, firstChange(kept, now))
			}
		}
	}
	if found != 5 {
		t.Errorf("%d of our releases were checked", found)
	}
}

// touchAll reads all files of a directory: go test reuses a cached result unless a file has changed that the test itself has read.
func touchAll(t *testing.T, directory string) {
	t.Helper()
	err := filepath.WalkDir(directory, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			_, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// kubectlKustomize is a program that builds as kustomize does, by the kubectl that every test has.
func kubectlKustomize(t *testing.T) string {
	t.Helper()
	assets, err := controlplane.Assets()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kustomize")
	script := "#!/bin/sh\n[ \"$1\" = build ] && exec '" + filepath.Join(assets, "kubectl") + "' kustomize \"$2\"\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// firstChange is the first line that differs, of both.
func firstChange(kept, now string) string {
	was, is := strings.Split(kept, "\n"), strings.Split(now, "\n")
	for n := range is {
		if n >= len(was) {
			return "+ " + is[n]
		}
		if was[n] != is[n] {
			return "- " + was[n] + "\n+ " + is[n]
		}
	}
	return "- " + was[len(is)]
}
