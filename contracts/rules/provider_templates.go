package rules

// templateFileRules are the rest of PR-: templates of clusters and ClusterClasses of a release.
var templateFileRules = []Rule{
	{
		ID: "PR-031", Level: Should, Feature: FeatureClusterctl, Verified: static,
		Text:     "A release of an infrastructure provider has templates of clusters.",
		ReliedOn: "`clusterctl generate cluster`",
		Source:   clusterctlPage + "provider-repositories",
	},
	{
		ID: "PR-032", Level: Must, Feature: FeatureClusterctl, Verified: static,
		Text:     "Templates of clusters lie beside the components and are named `cluster-template.yaml`, and `cluster-template-<flavor>.yaml` where there are others.",
		ReliedOn: "`clusterctl generate cluster --flavor`",
		Source:   clusterctlPage + "workload-cluster-templates",
	},
	{
		ID: "PR-033", Level: Must, Feature: FeatureClusterctl, Verified: static,
		Text:     "A template of a cluster has no Namespace.",
		ReliedOn: "clusterctl, for which the target namespace exists",
		Source:   clusterctlPage + "workload-cluster-templates",
	},
	{
		ID: "PR-034", Level: Must, Feature: FeatureClusterctl, Verified: static,
		Text:     "All objects of a template of a cluster are in one namespace.",
		Fields:   "`metadata.namespace`",
		ReliedOn: "clusterctl, which sets the namespace of all of them",
		Source:   clusterctlPage + "workload-cluster-templates",
	},
	{
		ID: "PR-035", Level: Should, Feature: FeatureClusterctl, Verified: static,
		Text:     "A template of a cluster uses the variables that flags of clusterctl set, where it needs such values: NAMESPACE, CLUSTER_NAME, KUBERNETES_VERSION, CONTROL_PLANE_MACHINE_COUNT, WORKER_MACHINE_COUNT.",
		ReliedOn: "people who use the flags of `clusterctl generate cluster`",
		Source:   clusterctlPage + "common-variables",
	},
	{
		ID: "PR-036", Level: Should, Feature: FeatureClusterctl, Verified: static,
		Text:     "Everything that objects of a template of a cluster refer to is in the template.",
		ReliedOn: "people, whose cluster would never get ready",
		Source:   clusterctlPage + "links-to-external-objects",
	},
	{
		ID: "PR-037", Level: Should, Feature: FeatureClusterctl, Verified: notYet,
		Text:       "Templates of clusters and their variables are documented.",
		ReliedOn:   "people who choose one",
		Unverified: forReaders,
		Source:     clusterctlPage + "workload-cluster-templates",
	},
	{
		ID: "PR-038", Level: May, Feature: FeatureClusterClass, Verified: static,
		Text:     "A release of an infrastructure provider has ClusterClasses.",
		ReliedOn: "people who make clusters from classes",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-039", Level: Must, Feature: FeatureClusterClass, Verified: static,
		Text:     "A ClusterClass lies beside the components in a file named `clusterclass-<name>.yaml`, after the ClusterClass in it.",
		ReliedOn: "`clusterctl generate cluster`, which adds it to clusters that use it",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-040", Level: Must, Feature: FeatureClusterClass, Verified: static,
		Text:     "The file of a ClusterClass has no Namespace.",
		ReliedOn: "clusterctl, for which the target namespace exists",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-041", Level: Should, Feature: FeatureClusterClass, Verified: static,
		Text:     "References in a ClusterClass have no namespace.",
		Fields:   "`spec` of the ClusterClass",
		ReliedOn: "people, who choose the namespace",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-042", Level: Should, Feature: FeatureClusterClass, Verified: static,
		Text:     "Objects in the file of a ClusterClass have no namespace.",
		Fields:   "`metadata.namespace`",
		ReliedOn: "people, who choose the namespace",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-043", Level: Should, Feature: FeatureClusterClass, Verified: static,
		Text:     "No object is in the files of two ClusterClasses.",
		ReliedOn: "people, whose change of one class would change clusters of another",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-044", Level: Should, Feature: FeatureClusterClass, Verified: static,
		Text:     "The file of a ClusterClass has no variables of clusterctl.",
		ReliedOn: "clusters that share it: a ClusterClass has variables of its own",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-045", Level: Should, Feature: FeatureClusterClass, Verified: notYet,
		Text:       "ClusterClasses are documented.",
		ReliedOn:   "people who choose one",
		Unverified: forReaders,
		Source:     clusterctlPage + "clusterclass-definitions",
	},
}
