package main

import (
	"flag"
	"io"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/contracts/conformance/static"
	"millwright.dev/contracts/rules"
)

// roles are the values of --kind.
var roles = map[string]rules.Subject{
	"inframachine": rules.InfraMachine, "bootstrapconfig": rules.BootstrapConfig, "infracluster": rules.InfraCluster,
	"controlplane": rules.ControlPlane, "none": "",
}

// runStatic verifies manifests.
func runStatic(args []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	set := flag.NewFlagSet("conformance static", flag.ContinueOnError)
	set.SetOutput(stderr)
	o := options{}
	o.flags(set, "provider")
	var components, templates, kinds list
	set.Var(&components, "components", "a file of components, - for standard input, or the directory of a release; may be repeated")
	set.Var(&templates, "templates", "a cluster template or a ClusterClass; may be repeated")
	metadata := set.String("metadata", "", "the file metadata.yaml")
	set.Var(&kinds, "kind", "Kind=inframachine, bootstrapconfig, infracluster, "+
		"controlplane or none: the role of a kind, where its name does not show it; may be repeated")
	if err := parse(set, args); err != nil {
		return exitUsage, err
	}
	if len(components) == 0 {
		return exitUsage, errors.New("set --components, the file that clusterctl installs")
	}
	selection, err := o.selection()
	if err != nil {
		return exitUsage, err
	}
	bundle, err := load(components, templates, *metadata, stdin)
	if err != nil {
		return exitUsage, err
	}
	bundle.Release = o.implementation.Version
	bundle.Roles = map[string]rules.Subject{}
	for _, entry := range kinds {
		kind, name, _ := strings.Cut(entry, "=")
		role, known := roles[name]
		if !known {
			return exitUsage, errors.Errorf("--kind: %q is not Kind=role with one of the roles that -h lists", entry)
		}
		bundle.Roles[kind] = role
	}
	if unknown := bundle.Unknown(); len(unknown) > 0 {
		return exitUsage, errors.Errorf("--kind: the components define no kind %s: set spec.names.kind of a CRD", strings.Join(unknown, ", "))
	}
	results := static.Run(bundle, selection)
	return o.finish(stdout, selection, rules.Static, commandLine("static", set), static.Contracts(bundle, selection), results, false)
}

func load(components, templates []string, metadata string, stdin io.Reader) (*static.Bundle, error) {
	bundle, err := static.LoadFrom(stdin, components...)
	if err != nil {
		return nil, err
	}
	more, err := static.Source{Templates: templates, Metadata: metadata, Stdin: stdin}.Files()
	if err != nil {
		return nil, err
	}
	bundle.Templates = append(bundle.Templates, more.Templates...)
	bundle.Classes = append(bundle.Classes, more.Classes...)
	if more.Metadata != nil {
		bundle.Metadata = more.Metadata
	}
	return bundle, nil
}

// parse allows no arguments besides flags.
func parse(set *flag.FlagSet, args []string) error {
	if err := set.Parse(args); err != nil {
		return errors.Wrap(err, set.Name())
	}
	if set.NArg() > 0 {
		return errors.Errorf("%s: unexpected argument %q; use flags", set.Name(), set.Arg(0))
	}
	return nil
}
