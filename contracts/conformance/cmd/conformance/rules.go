package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/pkg/errors"

	"millwright.dev/contracts/rules"
)

// listRules prints the rules, one a line.
func listRules(args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("conformance rules", flag.ContinueOnError)
	set.SetOutput(stderr)
	if err := parse(set, args); err != nil {
		return err
	}
	out := tabwriter.NewWriter(stdout, 0, 8, 2, ' ', 0)
	for _, rule := range rules.All() {
		var methods []string
		for _, method := range rule.Verified {
			methods = append(methods, string(method))
		}
		_, _ = fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", rule.ID, rule.Level, rule.Feature, strings.Join(methods, ", "), rule.Text)
	}
	return errors.Wrap(out.Flush(), "list rules")
}
