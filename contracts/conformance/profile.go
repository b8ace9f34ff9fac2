package conformance

import (
	"slices"

	"millwright.dev/contracts/rules"
)

// Profile is a set of rules: those of some subjects, by features. Core features are what every implementation
// is expected to have; extended ones may be skipped, with a reason in the report.
type Profile struct {
	Name string
	// Purpose is a sentence on what it is for.
	Purpose        string
	Subjects       []rules.Subject
	Core, Extended []rules.Feature
}

var (
	contractFeatures = []rules.Feature{rules.FeatureContract, rules.FeatureTemplates, rules.FeaturePause, rules.FeatureSecurity}
	extraFeatures    = []rules.Feature{
		rules.FeatureMove, rules.FeatureFailureDomains, rules.FeatureAddresses, rules.FeatureConditions, rules.FeatureClusterctl,
		rules.FeatureAutoscalingFromZero, rules.FeatureInterruptible, rules.FeatureClusterClass, rules.FeatureMillwright,
	}
)

// The profiles.
var (
	// InfraMachineProfile is for infrastructure providers.
	InfraMachineProfile = Profile{
		Name: "inframachine", Purpose: "infrastructure providers: machines, their templates, and the release",
		Subjects: []rules.Subject{rules.Kinds, rules.InfraMachine, rules.InfraCluster, rules.Provider},
		Core:     contractFeatures, Extended: extraFeatures,
	}
	// BootstrapConfigProfile is for bootstrap providers.
	BootstrapConfigProfile = Profile{
		Name: "bootstrapconfig", Purpose: "bootstrap providers: bootstrap data, their templates, and the release",
		Subjects: []rules.Subject{rules.Kinds, rules.BootstrapConfig, rules.Provider},
		Core:     contractFeatures, Extended: extraFeatures,
	}
	// ProviderProfile is for providers of any kinds, and for those that have several.
	ProviderProfile = Profile{
		Name: "provider", Purpose: "providers of any kind, by their manifests: every contract kind that they have, and the release",
		Subjects: []rules.Subject{
			rules.Kinds, rules.InfraMachine, rules.BootstrapConfig, rules.InfraCluster, rules.ControlPlane, rules.Provider,
		},
		Core: contractFeatures, Extended: extraFeatures,
	}
	// CoreProfile is for cores.
	CoreProfile = Profile{
		Name: "core", Purpose: "cores: what providers may expect of them",
		Subjects: []rules.Subject{rules.Core},
		Core:     contractFeatures, Extended: extraFeatures,
	}
)

// Profiles returns all profiles.
func Profiles() []Profile {
	return []Profile{InfraMachineProfile, BootstrapConfigProfile, ProviderProfile, CoreProfile}
}

// ProfileByName finds a profile.
func ProfileByName(name string) (Profile, bool) {
	profiles := Profiles()
	if i := slices.IndexFunc(profiles, func(p Profile) bool { return p.Name == name }); i >= 0 {
		return profiles[i], true
	}
	return Profile{}, false
}

// Has reports whether the profile has the feature at the level.
func (p Profile) Has(feature rules.Feature, level Level) bool {
	return slices.Contains(p.Core, feature) || level == Extended && slices.Contains(p.Extended, feature)
}
