package rules

// bootstrapConduct are the rest of BC-: what the provider does.
var bootstrapConduct = []Rule{
	{
		ID: "BC-019", Level: Must, Feature: FeatureContract, Verified: behavioural,
		Text:     "The provider creates no bootstrap data while the Cluster of the object does not exist.",
		Fields:   "`metadata.labels[cluster.x-k8s.io/cluster-name]`",
		ReliedOn: "clusterctl move and restores, which create objects one after another",
		Source:   bootstrapPage + "behavior",
	},
	{
		ID: "BC-020", Level: Must, Feature: FeatureContract, Verified: behavioural,
		Text:     "There is one data Secret for an object, however often it is reconciled, and its data do not change once BC-002 is true.",
		ReliedOn: "infrastructure providers, which may read it at any time",
		Source:   bootstrapPage + "behavior",
	},
	{
		ID: "BC-021", Level: Must, Feature: FeatureContract, Verified: behavioural,
		Text:     "A restart of the provider, at any moment, loses no data and creates no second Secret.",
		ReliedOn: "users who upgrade a provider",
		Source:   bootstrapPage + "behavior",
	},
	{
		ID: "BC-022", Level: Should, Feature: FeaturePause, Verified: behavioural,
		Text:     "While the Cluster is paused, the provider neither creates nor changes nor deletes anything for the object.",
		Fields:   "`spec.paused` of the Cluster",
		ReliedOn: "clusterctl move, and users who repair something",
		Source:   bootstrapPage + "bootstrapconfig-pausing",
	},
	{
		ID: "BC-023", Level: Should, Feature: FeaturePause, Verified: behavioural,
		Text:     "While the object carries the annotation `cluster.x-k8s.io/paused`, the provider neither creates nor changes nor deletes anything for it.",
		Fields:   "`metadata.annotations[cluster.x-k8s.io/paused]`",
		ReliedOn: "users who repair something",
		Source:   bootstrapPage + "bootstrapconfig-pausing",
	},
	{
		ID: "BC-024", Level: Should, Feature: FeaturePause, Verified: behavioural,
		Text:     "The condition Paused is True while the object is paused, and False otherwise.",
		Fields:   "`status.conditions[Paused]`",
		ReliedOn: "clusterctl move and users, who see by it that the provider has stopped",
		Accessor: "bootstrapconfig.Accessor.Paused",
		Source:   bootstrapPage + "bootstrapconfig-pausing",
	},
	{
		ID: "BC-025", Level: Should, Feature: FeaturePause, Verified: behavioural,
		Text:     "When a pause ends, the provider continues with the object without another change.",
		Fields:   "`spec.paused` of the Cluster, `metadata.annotations[cluster.x-k8s.io/paused]`",
		ReliedOn: "clusterctl move, which ends a pause and changes nothing else",
		Source:   bootstrapPage + "bootstrapconfig-pausing",
	},
	{
		ID: "BC-026", Level: Must, Feature: FeatureMove, Verified: behavioural,
		Text:     "An object that is recreated with the spec and metadata of one that had a data Secret, but without its status, adopts that Secret unchanged.",
		Fields:   "`status.dataSecretName`",
		ReliedOn: "clusterctl move, and restores from backups",
		Source:   clusterctlPage + "move",
	},
	{
		ID: "BC-027", Level: Should, Feature: FeatureMove, Verified: behavioural,
		Text:     "The whole status can be rebuilt from spec, metadata and Secrets.",
		Fields:   "`status`",
		ReliedOn: "clusterctl move, which copies no status",
		Source:   clusterctlPage + "move",
	},
	{
		ID: "BC-028", Level: Must, Feature: FeatureSecurity, Verified: behavioural,
		Text:     "No bootstrap data and no credentials appear in conditions, events, labels or annotations.",
		Fields:   "`status`, `metadata`, Events",
		ReliedOn: "all users: far more of them may read those than Secrets",
		Source:   securityPage,
	},
	{
		ID: "BC-029", Level: Should, Versions: newer, Feature: FeatureInPlaceUpdates, Verified: notYet,
		Text:       "The provider leaves in-place changes to the Update Extension, and does not change the data.",
		ReliedOn:   "Update Extensions",
		Unverified: noUpdater,
		Source:     bootstrapPage + "bootstrapconfig-support-for-in-place-changes",
	},
	{
		ID: "BC-030", Level: Should, Versions: newer, Feature: FeatureInPlaceUpdates, Verified: notYet,
		Text:       "Validation accepts changes of the fields that can be changed in place.",
		ReliedOn:   "Update Extensions and the core, which write the new spec",
		Unverified: noUpdater,
		Source:     bootstrapPage + "bootstrapconfig-support-for-in-place-changes",
	},
}

// bootstrapTemplates are BT-.
var bootstrapTemplates = []Rule{
	{
		ID: "BT-001", Level: Must, Feature: FeatureTemplates, Verified: static,
		Text:     "The kind has a template kind, named `<kind>Template`.",
		Fields:   "`spec.names.kind` of the CRD",
		ReliedOn: "the core, which derives the kind that it creates from the template's",
		Accessor: "template.KindOf",
		Source:   bootstrapPage + "bootstrapconfigtemplate-bootstrapconfigtemplatelist-resource-definition",
	},
	{
		ID: "BT-002", Level: Must, Feature: FeatureTemplates, Verified: static,
		Text:     "The spec of a bootstrap config is in `spec.template.spec`, an object whose fields the spec of the kind has as well.",
		Fields:   "`spec.template.spec`",
		ReliedOn: "the core, which creates a bootstrap config from it",
		Accessor: "template.Clone",
		Source:   bootstrapPage + "bootstrapconfigtemplate-bootstrapconfigtemplatelist-resource-definition",
	},
	{
		ID: "BT-003", Level: Should, Feature: FeatureTemplates, Verified: static,
		Text:     "Labels and annotations for bootstrap configs are in `spec.template.metadata`.",
		Fields:   "`spec.template.metadata.labels`, `spec.template.metadata.annotations`",
		ReliedOn: "the core, which copies them",
		Accessor: "template.Clone",
		Source:   bootstrapPage + "bootstrapconfigtemplate-bootstrapconfigtemplatelist-resource-definition",
	},
	{
		ID: "BT-004", Level: May, Feature: FeatureTemplates, Verified: behavioural,
		Text:     "A change of `spec.template.spec` is refused.",
		Fields:   "`spec.template.spec`",
		ReliedOn: "users who expect that a change of a template changes machines",
		Source:   bootstrapPage + "bootstrapconfigtemplate-support-for-ssa-dry-run",
	},
	{
		ID: "BT-005", Level: Must, Feature: FeatureClusterClass, Verified: behavioural,
		Text:     "Where BT-004 refuses changes, a dry run with server-side apply is accepted from an object with the annotation `topology.cluster.x-k8s.io/dry-run`.",
		Fields:   "`metadata.annotations[topology.cluster.x-k8s.io/dry-run]`",
		ReliedOn: "the topology controller, which finds out that way what would change",
		Source:   bootstrapPage + "bootstrapconfigtemplate-support-for-ssa-dry-run",
	},
	{
		ID: "BT-006", Level: Must, Feature: FeatureClusterClass, Verified: behavioural,
		Text:     "That annotation has no effect on requests that are not dry runs.",
		Fields:   "`metadata.annotations[topology.cluster.x-k8s.io/dry-run]`",
		ReliedOn: "those who rely on BT-004",
		Source:   bootstrapPage + "bootstrapconfigtemplate-support-for-ssa-dry-run",
	},
}
