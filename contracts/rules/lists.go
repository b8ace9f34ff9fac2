package rules

import "slices"

// Rules of each subject, in the order of their numbers. A new rule goes to the end of the list of its prefix, with the next number.
var (
	kinds            = about(Kinds, kindRules)
	infraMachines    = about(InfraMachine, machineFacts, machineConduct, machineTemplates)
	bootstrapConfigs = about(BootstrapConfig, bootstrapFacts, bootstrapConduct, bootstrapTemplates)
	infraClusters    = about(InfraCluster, clusterRules)
	controlPlanes    = about(ControlPlane, planeFacts, planeConduct)
	providers        = about(Provider, releaseRules, templateFileRules)
	cores            = about(Core, coreMachineRules, coreClusterRules)
)

// How rules are verified.
var (
	static      = []Method{Static}
	behavioural = []Method{Behavioural}
	bothWays    = []Method{Static, Behavioural}
	notYet      = []Method{NotYet}
)

// Why rules are not verified.
const (
	noClusterProfile = "The suite has no profile that plays the core for an InfraCluster."
	noPlaneProfile   = "The suite has no profile that plays the core for a ControlPlane."
	noUpdater        = "The suite plays no Update Extension."
	forReaders       = "It is about documentation."
)

// older is the version of rules that only the older contract has.
var older = []string{V1Beta1}

// newer is the version of rules that the older contract does not have.
var newer = []string{V1Beta2}

// about sets what all rules of the lists have in common.
func about(subject Subject, lists ...[]Rule) []Rule {
	list := slices.Concat(lists...)
	for i := range list {
		list[i].Subject = subject
		if list[i].Versions == nil {
			list[i].Versions = []string{V1Beta1, V1Beta2}
		}
	}
	return list
}

// book is the address of Cluster API's book.
const book = "https://cluster-api.sigs.k8s.io/"

// Pages of the book that rules come from.
const (
	machinePage    = book + "developer/providers/contracts/infra-machine#"
	bootstrapPage  = book + "developer/providers/contracts/bootstrap-config#"
	clusterPage    = book + "developer/providers/contracts/infra-cluster#"
	planePage      = book + "developer/providers/contracts/control-plane#"
	clusterctlPage = book + "developer/providers/contracts/clusterctl#"
	practicePage   = book + "developer/providers/best-practices"
	securityPage   = book + "developer/providers/security-guidelines"
	instancesPage  = book + "developer/core/support-multiple-instances"
	templatesPage  = book + "tasks/updating-machine-templates"
	deletionPage   = book + "tasks/automated-machine-management/machine_deletions"
	ownersPage     = book + "reference/api/owner-references"
	metadataPage   = book + "reference/api/metadata-propagation"
	labelsPage     = book + "reference/api/labels-and-annotations"
	machineCore    = book + "developer/core/controllers/machine"
	clusterCore    = book + "developer/core/controllers/cluster"
	spotProposal   = "https://github.com/kubernetes-sigs/cluster-api/blob/main/docs/proposals/20200330-spot-instances.md"
	labelsProposal = "https://github.com/kubernetes-sigs/cluster-api/blob/main/docs/proposals/20220927-labels-and-annotations-sync-between-machine-and-nodes.md"
	inPlaceNotes   = "https://github.com/kubernetes-sigs/cluster-api/blob/main/docs/proposals/20240807-in-place-updates.md"
)
