package manifests

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/static"
	"millwright.dev/test/controlplane"
)

var kustomize = flag.String(
	"kustomize",
	"",
	"build manifests with this program, and write docs/conformance/static, as make conformance-static does",
)

// suite is the version of the suite; the command conformance says the same.
const suite = "v0.1.0"

// TestReports gathers the manifests of all implementations, runs the suite on them, and writes the reports and their table.
func TestReports(t *testing.T) {
	if *kustomize == "" {
		t.Skip("downloads modules: make conformance-static")
	}
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	g := &gatherer{
		root:      root,
		release:   filepath.Join(t.TempDir(), "release"),
		scratch:   t.TempDir(),
		kustomize: *kustomize,
		modules:   map[string]string{},
	}
	t.Setenv("TAG", ours)
	if out, err := run(root, filepath.Join(root, "config/release.sh"), *kustomize, ours, g.release); err != nil {
		t.Fatalf("%s: %v", out, err)
	}
	var table []row
	for _, i := range implementations {
		if err := i.gather(g); err != nil {
			t.Fatal(err)
		}
		r, err := i.judge(root)
		if err != nil {
			t.Fatal(err)
		}
		if i.module == "" && r.Summary.Failed > 0 {
			t.Errorf("%s: %d rules failed", i.file(), r.Summary.Failed)
		}
		if err := i.write(filepath.Join(root, reports), r); err != nil {
			t.Fatal(err)
		}
		table = append(table, rowOf(i, r))
	}
	if err := writeTable(filepath.Join(root, index), table); err != nil {
		t.Fatal(err)
	}
}

// judge runs the suite on the manifests that are kept below root.
func (i implementation) judge(root string) (*report.Report, error) {
	bundle, err := static.Load(filepath.Join(root, i.kept()))
	if err != nil {
		return nil, err
	}
	bundle.Release = i.version()
	r := &report.Report{
		TypeMeta:       metav1.TypeMeta{APIVersion: report.APIVersion, Kind: report.Kind},
		Implementation: report.Implementation{Name: i.name, Version: i.version(), Organization: i.organization},
		Suite:          report.Suite{Version: suite, Command: "make conformance-static"}, Level: string(conformance.Extended),
		Methods: []string{"static"},
	}
	var names []string
	for _, profile := range i.profiles {
		selection := conformance.Selection{Profile: profile, Level: conformance.Extended}
		results := static.Run(bundle, selection)
		for n := range results {
			results[n].Reproduce = fmt.Sprintf("%s --rule %s", i.command(i.kept(), profile), results[n].Rule)
		}
		r.Results = append(r.Results, results...)
		r.ContractVersions = append(r.ContractVersions, versions(results)...)
		names = append(names, profile.Name)
	}
	r.Profile = strings.Join(names, " and ")
	r.Judge(i.profiles[0].Core, false)
	return r, nil
}

// versions are those that were checked: a release without kinds of a contract has none.
func versions(results []report.Result) []string {
	found := []string{}
	for _, result := range results {
		if result.ContractVersion != "" && !slices.Contains(found, result.ContractVersion) {
			found = append(found, result.ContractVersion)
		}
	}
	slices.Sort(found)
	return found
}

// command checks manifests in a directory with the command line.
func (i implementation) command(dir string, profile conformance.Profile) string {
	return fmt.Sprintf("go run ./contracts/conformance/cmd/conformance static --components %s --name %s --release %s --profile %s", dir, i.name,
		i.version(), profile.Name)
}

// write leaves the report in YAML and in Markdown.
func (i implementation) write(dir string, r *report.Report) error {
	for format, ending := range map[report.Format]string{report.YAML: ".yaml", report.Markdown: ".md"} {
		content, err := r.Encode(format)
		if err != nil {
			return err
		}
		if format == report.Markdown {
			content = append(content, i.reproduce()...)
		}
		if err := os.WriteFile(filepath.Join(dir, i.file()+ending), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// reproduce is the end of a report.
func (i implementation) reproduce() string {
	out := "\n## How to reproduce\n\nIn this repository, `make conformance-static` writes all reports and leaves the manifests in `" + i.kept() +
		"`, where the commands above find them.\n\n"
	if i.module == "" {
		return out + "The manifests are those of a release:\n\n```sh\n" + i.recipe() + "```\n"
	}
	out += "The manifests are what kustomize makes of the module `" + i.module +
		"`. A published release has other images and may pull them in another way. " +
		"Without this repository's Makefile, with Go and jq, in a new directory:\n\n```sh\n" + i.recipe() + "```\n\nand then, here:\n\n```sh\n"
	for _, profile := range i.profiles {
		out += i.command("path/to/"+i.file(), profile) + " --output markdown\n"
	}
	return out + "```\n"
}
