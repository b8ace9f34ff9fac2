package rules

// templateFileRules are the rest of PR-: cluster templates and ClusterClasses of a release.
var templateFileRules = []Rule{
	{
		ID: "PR-031", Level: Should, Feature: FeatureClusterctl, Verified: static,
		Text:     "A release of an infrastructure provider has cluster templates.",
		ReliedOn: "`clusterctl generate cluster`",
		Source:   clusterctlPage + "provider-repositories",
	},
	{
		ID: "PR-032", Level: Must, Feature: FeatureClusterctl, Verified: static,
		Text:     "Cluster templates are in the directory of the components and named `cluster-template.yaml`, further ones `cluster-template-<flavor>.yaml`.",
		ReliedOn: "`clusterctl generate cluster --flavor`",
		Source:   clusterctlPage + "workload-cluster-templates",
	},
	{
		ID: "PR-033", Level: Must, Feature: FeatureClusterctl, Verified: static,
		Text:     "A cluster template has no Namespace.",
		ReliedOn: "clusterctl, for which the target namespace exists",
		Source:   clusterctlPage + "workload-cluster-templates",
	},
	{
		ID: "PR-034", Level: Must, Feature: FeatureClusterctl, Verified: static,
		Text:     "All objects of a cluster template are in one namespace.",
		Fields:   "`metadata.namespace`",
		ReliedOn: "clusterctl, which sets the namespace of all of them",
		Source:   clusterctlPage + "workload-cluster-templates",
	},
	{
		ID: "PR-035", Level: Should, Feature: FeatureClusterctl, Verified: static,
		Text:     "A cluster template uses the variables that flags of clusterctl set, where it needs such values: NAMESPACE, CLUSTER_NAME, KUBERNETES_VERSION, CONTROL_PLANE_MACHINE_COUNT, WORKER_MACHINE_COUNT.",
		ReliedOn: "users of the flags of `clusterctl generate cluster`",
		Source:   clusterctlPage + "common-variables",
	},
	{
		ID: "PR-036", Level: Should, Feature: FeatureClusterctl, Verified: static,
		Text:     "Everything that objects of a cluster template refer to is in the template.",
		ReliedOn: "users, whose cluster would never become ready",
		Source:   clusterctlPage + "links-to-external-objects",
	},
	{
		ID: "PR-037", Level: Should, Feature: FeatureClusterctl, Verified: notYet,
		Text:       "Cluster templates and their variables are documented.",
		ReliedOn:   "users who choose one",
		Unverified: forReaders,
		Source:     clusterctlPage + "workload-cluster-templates",
	},
	{
		ID: "PR-038", Level: May, Feature: FeatureClusterClass, Verified: static,
		Text:     "A release of an infrastructure provider has ClusterClasses.",
		ReliedOn: "users who create clusters from classes",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-039", Level: Must, Feature: FeatureClusterClass, Verified: static,
		Text:     "A ClusterClass is in the directory of the components, in a file named `clusterclass-<name>.yaml` after it.",
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
		ReliedOn: "users, who choose the namespace",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-042", Level: Should, Feature: FeatureClusterClass, Verified: static,
		Text:     "Objects in the file of a ClusterClass have no namespace.",
		Fields:   "`metadata.namespace`",
		ReliedOn: "users, who choose the namespace",
		Source:   clusterctlPage + "clusterclass-definitions",
	},
	{
		ID: "PR-043", Level: Should, Feature: FeatureClusterClass, Verified: static,
		Text:     "No object is in the files of two ClusterClasses.",
		ReliedOn: "users, whose change of one class would change clusters of another",
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
		ReliedOn:   "users who choose one",
		Unverified: forReaders,
		Source:     clusterctlPage + "clusterclass-definitions",
	},
}
