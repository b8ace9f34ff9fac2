package rules

// Rules of each subject, in the order of their numbers.
var (
	kinds, infraMachines, bootstrapConfigs, infraClusters, controlPlanes, providers, cores []Rule
)
