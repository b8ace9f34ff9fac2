package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
)

// suiteVersion changes when rules or cases do.
const suiteVersion = "v0.1.0"

// list is a flag that may be repeated.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

// Set adds a value.
func (l *list) Set(value string) error {
	*l = append(*l, value)
	return nil
}

// options are the flags that static and run have in common.
type options struct {
	profile, level, output, cases string
	rules, skip, versions         list
	keep                          bool
	implementation                report.Implementation
}

func (o *options) flags(set *flag.FlagSet, profile string) {
	set.StringVar(&o.profile, "profile", profile, "the profile: inframachine, bootstrapconfig, provider or core")
	set.StringVar(&o.level, "level", string(conformance.Extended), "core or extended features")
	set.StringVar(&o.output, "output", "yaml", "the format of the report: yaml, json, markdown or junit")
	set.StringVar(&o.cases, "case", "", "run only cases whose names match this regular expression")
	set.Var(&o.rules, "rule", "verify only this rule; may be repeated")
	set.Var(&o.skip, "skip-feature", "name=reason: skip a feature; may be repeated")
	set.Var(&o.versions, "contract", "v1beta1 or v1beta2: verify this version of the contract; the claimed ones if omitted; may be repeated")
	set.BoolVar(&o.keep, "keep", false, "omit the time from the report, so that it can be stored and compared")
	set.StringVar(&o.implementation.Name, "name", "", "the name of the implementation")
	set.StringVar(&o.implementation.Version, "release", "", "the version of the implementation, such as v1.2.3")
	set.StringVar(&o.implementation.Organization, "organization", "", "the organization behind the implementation")
	set.StringVar(&o.implementation.URL, "url", "", "the website of the implementation")
	set.StringVar(&o.implementation.Contact, "contact", "", "the contact for questions")
}

func (o *options) selection() (conformance.Selection, error) {
	selection := conformance.Selection{Level: conformance.Level(o.level), Versions: o.versions, SkipFeatures: map[rules.Feature]string{}}
	profile, found := conformance.ProfileByName(o.profile)
	if !found {
		return selection, errors.Errorf("--profile: there is no profile %q", o.profile)
	}
	selection.Profile = profile
	if selection.Level != conformance.Core && selection.Level != conformance.Extended {
		return selection, errors.Errorf("--level: %q is neither core nor extended", o.level)
	}
	if _, err := report.ParseFormat(o.output); err != nil {
		// Not only after the run: its results would be lost.
		return selection, errors.Wrap(err, "--output")
	}
	for _, version := range o.versions {
		if version != rules.V1Beta1 && version != rules.V1Beta2 {
			return selection, errors.Errorf("--contract: %q is neither v1beta1 nor v1beta2", version)
		}
	}
	for _, id := range o.rules {
		if _, known := rules.ByID(rules.ID(id)); !known {
			return selection, errors.Errorf("--rule: there is no rule %q; `conformance rules` lists them", id)
		}
		selection.Rules = append(selection.Rules, rules.ID(id))
	}
	if o.cases != "" {
		compiled, err := regexp.Compile(o.cases)
		if err != nil {
			return selection, errors.Wrap(err, "--case")
		}
		selection.Cases = compiled
	}
	for _, entry := range o.skip {
		name, reason, _ := strings.Cut(entry, "=")
		feature := rules.Feature(name)
		if !profile.Has(feature, conformance.Extended) || reason == "" {
			return selection, errors.Errorf("--skip-feature: set a feature of the profile and a reason, as in Move=reason, not %q", entry)
		}
		selection.SkipFeatures[feature] = reason
	}
	return selection, nil
}

// filter names in a report the rules and cases to which the run was limited.
func (o *options) filter() string {
	var parts []string
	if len(o.rules) > 0 {
		parts = append(parts, "rules "+strings.Join(o.rules, ", "))
	}
	if o.cases != "" {
		parts = append(parts, "cases "+o.cases)
	}
	return strings.Join(parts, "; ")
}

// finish judges the results, writes the report, and returns the exit code.
func (o *options) finish(out io.Writer, s conformance.Selection, method rules.Method, command string, contracts []string,
	results []report.Result, interrupted bool) (int, error) {
	format, err := report.ParseFormat(o.output)
	if err != nil {
		return exitUsage, errors.Wrap(err, "--output")
	}
	for i, result := range results {
		results[i].Reproduce = fmt.Sprintf("%s --rule %s", command, result.Rule)
	}
	r := &report.Report{
		TypeMeta:       metav1.TypeMeta{APIVersion: report.APIVersion, Kind: report.Kind},
		Implementation: o.implementation, Suite: report.Suite{Version: suiteVersion, Command: command}, Profile: o.profile, Level: o.level,
		ContractVersions: contracts, Methods: []string{string(method)}, Filter: o.filter(), Results: results,
	}
	r.Implementation.Name = cmp.Or(r.Implementation.Name, "unnamed")
	if !o.keep {
		r.Time = &metav1.Time{Time: time.Now().UTC()}
	}
	r.Judge(s.Profile.Core, interrupted)
	data, err := r.Encode(format)
	if err != nil {
		return exitUsage, err
	}
	if _, err := out.Write(data); err != nil {
		return exitUsage, errors.Wrap(err, "write report")
	}
	switch r.Outcome {
	case report.Conformant:
		return exitConformant, nil
	case report.NotConformant:
		return exitNotConformant, nil
	}
	return exitPartial, nil
}

// commandLine repeats a call without its filters; --rule is added to it.
func commandLine(name string, set *flag.FlagSet) string {
	parts := []string{"conformance", name}
	set.Visit(func(f *flag.Flag) {
		if slices.Contains([]string{"rule", "case", "keep", "output"}, f.Name) {
			return
		}
		values := []string{f.Value.String()}
		if several, ok := f.Value.(*list); ok {
			values = *several
		}
		if f.Name == "probe" {
			values[0] = withoutPassword(values[0])
		}
		for _, value := range values {
			parts = append(parts, fmt.Sprintf("--%s=%s", f.Name, quote(value)))
		}
	})
	return strings.Join(parts, " ")
}

// withoutPassword redacts a URL for a report, which is published.
func withoutPassword(address string) string {
	if parsed, err := url.Parse(address); err == nil {
		return parsed.Redacted()
	}
	return address
}

var plain = regexp.MustCompile(`^[A-Za-z0-9@%+=:,./_-]+$`)

// quote quotes a value for a shell.
func quote(value string) string {
	if plain.MatchString(value) {
		return value
	}
	return "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
}
