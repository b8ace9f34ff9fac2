package clusterctl

import (
	"path/filepath"
	"strings"

	. "github.com/onsi/gomega"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/static"
	"millwright.dev/contracts/rules"
)

// notForUs are rules that do not apply to some of our releases, and why; a rule is named alone or with the directory of a release.
var notForUs = map[string]string{
	"PR-038": "no release has a ClusterClass: topologies are Cluster API's",
	"PR-039": "no release has a ClusterClass", "PR-040": "no release has a ClusterClass", "PR-041": "no release has a ClusterClass",
	"PR-042": "no release has a ClusterClass", "PR-043": "no release has a ClusterClass", "PR-044": "no release has a ClusterClass",
	"PR-009 cluster-api": "a core has no kinds that others' contracts are about",
	"PR-020 cluster-api": "the name of a core has no prefix",
	"BC-005":             "failures of the older contract are reported by conditions",
	"IM-015":             "the failure domain is that of the Machine",
}

// forInfrastructure are rules of templates of clusters, which other providers do not release.
var forInfrastructure = []string{"PR-031", "PR-032", "PR-033", "PR-034", "PR-035", "PR-036"}

// staticConformance: releases keep every rule that manifests show; only rules that do not apply are skipped.
func (i *installation) staticConformance() {
	for _, file := range components {
		path := filepath.Join(i.dir, "out", "release", file)
		templates, err := filepath.Glob(filepath.Join(filepath.Dir(path), "cluster*.yaml"))
		i.Expect(err).NotTo(HaveOccurred())
		source := static.Source{
			Components: []string{path}, Metadata: filepath.Join(filepath.Dir(path), "metadata.yaml"), Templates: templates,
			Release: "v0.1.0", Whole: true,
		}
		bundle, err := source.Load()
		i.Expect(err).NotTo(HaveOccurred())
		provider, _, _ := strings.Cut(file, "/")
		i.keepsAll(provider, bundle, conformance.ProviderProfile, 20)
		if provider == "cluster-api" {
			i.keepsAll(provider, bundle, conformance.CoreProfile, 1)
		}
	}
}

func (i *installation) keepsAll(provider string, bundle *static.Bundle, profile conformance.Profile, least int) {
	passed := 0
	for _, result := range static.Run(bundle, conformance.Selection{Profile: profile, Level: conformance.Extended}) {
		id := string(result.Rule)
		switch result.Status {
		case report.Pass:
			passed++
		case report.Skip:
			infrastructure := strings.HasPrefix(provider, "infrastructure-")
			why := notForUs[id] + notForUs[id+" "+provider]
			for _, rule := range forInfrastructure {
				if !infrastructure && rule == id {
					why = "it is no infrastructure provider"
				}
			}
			i.Expect(why).NotTo(BeEmpty(), "%s: %s (%s) %s %s is skipped: %s", provider, id, result.Level, result.Object,
				result.ContractVersion, result.Reason)
		default:
			i.Expect(result.Failures).To(BeEmpty(), "%s: %s (%s) %s %s", provider, id, result.Level, result.Object, result.ContractVersion)
			i.Expect(result.Status).To(Equal(report.Pass), "%s: %s", provider, id)
		}
	}
	i.Expect(passed).To(BeNumerically(">=", least), provider)
	for id := range notForUs {
		rule, _, _ := strings.Cut(id, " ")
		_, known := rules.ByID(rules.ID(rule))
		i.Expect(known).To(BeTrue(), "%s is no rule", rule)
	}
}
