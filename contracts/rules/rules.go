// Package rules holds the rules of the contracts between a core and its providers as data: what documents list, what code
// cites, and what the conformance suite verifies. The tables of contracts/*/README.md are written from it.
//
// It depends on the standard library alone, so that any program can import it.
package rules

import "slices"

// ID is the stable number of a rule, such as IM-003. A number is never reused for another rule.
type ID string

// Level is how binding a rule is, as in RFC 2119.
type Level string

// The levels.
const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
	May    Level = "MAY"
)

// Method is how a rule is verified.
type Method string

const (
	// Static needs the manifests alone.
	Static Method = "static"
	// Behavioural needs a management cluster where the implementation runs.
	Behavioural Method = "behavioural"
	// NotYet is a rule that nothing verifies; Rule.Unverified says why.
	NotYet Method = "not yet"
)

// Subject is what a rule is about.
type Subject string

// The subjects, each with a prefix of IDs.
const (
	// Kinds is what all kinds of providers have in common: CV-.
	Kinds Subject = "Kinds"
	// InfraMachine is the infrastructure of a Machine, and its template: IM-, IT-.
	InfraMachine Subject = "InfraMachine"
	// BootstrapConfig is the bootstrap data of a Machine, and its template: BC-, BT-.
	BootstrapConfig Subject = "BootstrapConfig"
	// InfraCluster is the infrastructure of a Cluster: IC-.
	InfraCluster Subject = "InfraCluster"
	// ControlPlane is the control plane of a Cluster: CP-.
	ControlPlane Subject = "ControlPlane"
	// Provider is what clusterctl expects of the release of any provider: PR-.
	Provider Subject = "Provider"
	// Core is what providers may expect of a core: CO-.
	Core Subject = "Core"
)

// The versions of the contract, spelled as in the labels of CRDs.
const (
	V1Beta1 = "v1beta1"
	V1Beta2 = "v1beta2"
)

// Feature groups rules that an implementation has or does not have as a whole. Profiles of the conformance suite are sets of features.
type Feature string

// The features.
const (
	// FeatureContract is what every implementation of the contract has.
	FeatureContract Feature = "Contract"
	// FeatureMove is that objects survive clusterctl move.
	FeatureMove Feature = "Move"
	// FeaturePause is that an implementation does not touch paused objects.
	FeaturePause Feature = "Pause"
	// FeatureTemplates is what templates guarantee.
	FeatureTemplates Feature = "Templates"
	// FeatureFailureDomains is that machines are placed in the requested failure domain.
	FeatureFailureDomains Feature = "FailureDomains"
	// FeatureAddresses is that addresses are reported.
	FeatureAddresses Feature = "Addresses"
	// FeatureConditions is that conditions report why something waits.
	FeatureConditions Feature = "Conditions"
	// FeatureClusterctl is that clusterctl can install, upgrade and remove a release.
	FeatureClusterctl Feature = "Clusterctl"
	// FeatureAutoscalingFromZero is that a template reports the capacity of its machines.
	FeatureAutoscalingFromZero Feature = "AutoscalingFromZero"
	// FeatureInterruptible is that machines which the cloud can reclaim are marked.
	FeatureInterruptible Feature = "Interruptible"
	// FeatureClusterClass is that objects can be created and dry-run by Cluster API's ClusterClass.
	FeatureClusterClass Feature = "ClusterClass"
	// FeatureInPlaceUpdates is that machines are changed without being replaced.
	FeatureInPlaceUpdates Feature = "InPlaceUpdates"
	// FeatureSecurity is that no secret is disclosed, and nothing of others is touched.
	FeatureSecurity Feature = "Security"
	// FeatureMillwright is what goes beyond Cluster API's contract and this core uses.
	FeatureMillwright Feature = "Millwright"
)

// Rule is a guarantee that one side relies on.
type Rule struct {
	ID      ID
	Subject Subject
	Level   Level
	// Versions are the versions of the contract that have the rule.
	Versions []string
	// Feature is the feature that the rule belongs to.
	Feature Feature
	// Text is the rule in one sentence.
	Text string
	// Fields are the fields that it is about, by version where they differ; empty where it is about none.
	Fields string
	// ReliedOn is who relies on it, and for what.
	ReliedOn string
	// Accessor is what reads the fields for a core, as <package of contracts>.<function> or .<type>.<method>; empty if nothing does.
	Accessor string
	// Verified is how the conformance suite verifies it.
	Verified []Method
	// Unverified says why nothing verifies the rule; set if and only if Verified is NotYet alone.
	Unverified string
	// Source is the link to Cluster API's documentation of the rule; empty for rules of FeatureMillwright alone.
	Source string
}

// Has reports whether a version of the contract has the rule.
func (r Rule) Has(version string) bool { return slices.Contains(r.Versions, version) }

// VerifiedBy reports whether the suite verifies the rule by the method.
func (r Rule) VerifiedBy(method Method) bool { return slices.Contains(r.Verified, method) }

// All returns all rules in the order of their subjects and numbers.
func All() []Rule {
	return slices.Concat(kinds, infraMachines, bootstrapConfigs, infraClusters, controlPlanes, providers, cores)
}

// Of returns the rules of some subjects.
func Of(subjects ...Subject) []Rule {
	var found []Rule
	for _, rule := range All() {
		if slices.Contains(subjects, rule.Subject) {
			found = append(found, rule)
		}
	}
	return found
}

// ByID finds a rule.
func ByID(id ID) (Rule, bool) {
	for _, rule := range All() {
		if rule.ID == id {
			return rule, true
		}
	}
	return Rule{}, false
}
