package kubeletrules

import (
	"fmt"
	"maps"
	"slices"
)

const (
	truePattern = `^(1|t|T|TRUE|true|True)$`
	static      = `!has(self.memoryManagerPolicy) || self.memoryManagerPolicy != 'Static' || `
	// hardEviction is the threshold of memory.available: a kubelet without evictionHard, and with mergeDefaultEvictionSettings, has 100Mi.
	hardEviction = `(has(self.evictionHard) && 'memory.available' in self.evictionHard ? self.evictionHard['memory.available'] : ` +
		`!has(self.evictionHard) || has(self.mergeDefaultEvictionSettings) && self.mergeDefaultEvictionSettings ? '100Mi' : '0')`
)

// bytesOf returns the expression of how much memory a reservation has.
func bytesOf(reservation string) string {
	return fmt.Sprintf(`(has(self.%s) && 'memory' in self.%s ? quantity(self.%s['memory']).asApproximateFloat() : 0.0)`,
		reservation, reservation, reservation)
}

// cpuOf returns the expression that a reservation has CPUs.
func cpuOf(reservation string) string {
	return fmt.Sprintf(`has(self.%s) && 'cpu' in self.%s && quantity(self.%s['cpu']).isGreaterThan(quantity('0'))`,
		reservation, reservation, reservation)
}

// managerRules are about the managers of CPUs, memory and topology. A kubelet creates them when it starts, and ends if options or
// reservations do not fit: NewManager in pkg/kubelet/cm/{cpumanager,memorymanager,topologymanager} of Kubernetes.
var managerRules = []crossRule{
	{`!has(self.cpuManagerPolicy) || self.cpuManagerPolicy != 'static' || (has(self.reservedSystemCPUs) && self.reservedSystemCPUs != '')` +
		` || ` + cpuOf("kubeReserved") + ` || ` + cpuOf("systemReserved"),
		"cpuManagerPolicy static needs CPU in kubeReserved or systemReserved, or reservedSystemCPUs"},
	{`!has(self.cpuManagerPolicyOptions) || size(self.cpuManagerPolicyOptions) == 0 || ` +
		`(has(self.cpuManagerPolicy) && self.cpuManagerPolicy == 'static')`,
		"cpuManagerPolicyOptions need cpuManagerPolicy static: set it, or remove the options"},
	{`!has(self.cpuManagerPolicyOptions) || [['full-pcpus-only', 'distribute-cpus-across-cores'], ` +
		`['distribute-cpus-across-numa', 'distribute-cpus-across-cores'], ` +
		`['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-cores'], ` +
		`['prefer-align-cpus-by-uncorecache', 'distribute-cpus-across-numa']].all(p, !p.all(o, o in self.cpuManagerPolicyOptions && ` +
		`self.cpuManagerPolicyOptions[o].matches('` + truePattern + `')))`,
		"cpuManagerPolicyOptions must not combine distribute-cpus-across-cores with full-pcpus-only, distribute-cpus-across-numa or " +
			"prefer-align-cpus-by-uncorecache, nor the last two"},
	{`!has(self.cpuManagerPolicyOptions) || !('align-by-socket' in self.cpuManagerPolicyOptions) || ` +
		`!self.cpuManagerPolicyOptions['align-by-socket'].matches('` + truePattern + `') || ` +
		`!has(self.topologyManagerPolicy) || self.topologyManagerPolicy != 'single-numa-node'`,
		"cpuManagerPolicyOptions must not have align-by-socket with topologyManagerPolicy single-numa-node: remove one of them"},
	{static + `(has(self.reservedMemory) && size(self.reservedMemory) > 0)`,
		"memoryManagerPolicy Static needs reservedMemory"},
	{static + `!has(self.reservedMemory) || self.reservedMemory.all(r, r.limits.all(k, k == 'memory'))`,
		"memoryManagerPolicy Static takes no huge pages in reservedMemory, since no kubelet can reserve them: remove them"},
	{static + `!has(self.evictionHard) || !('memory.available' in self.evictionHard) || ` +
		`!self.evictionHard['memory.available'].endsWith('%')`,
		"memoryManagerPolicy Static needs evictionHard memory.available as an amount, such as 100Mi: reservedMemory must have the same"},
	{static + `!has(self.reservedMemory) || ` + hardEviction + `.endsWith('%') || ` +
		`self.reservedMemory.map(r, 'memory' in r.limits ? quantity(r.limits['memory']).asApproximateFloat() : 0.0).sum() == ` +
		bytesOf("kubeReserved") + ` + ` + bytesOf("systemReserved") + ` + quantity(` + hardEviction + `).asApproximateFloat()`,
		"memoryManagerPolicy Static needs as much memory in reservedMemory, over all NUMA nodes, as kubeReserved, systemReserved and " +
			"evictionHard memory.available (default 100Mi) have together"},
	{`!has(self.topologyManagerPolicyOptions) || self.topologyManagerPolicyOptions.all(k, k == 'max-allowable-numa-nodes' ? ` +
		`self.topologyManagerPolicyOptions[k].matches('^([89]|[1-9][0-9]{1,3})$') : ` +
		`self.topologyManagerPolicyOptions[k].matches('` + boolPattern + `'))`,
		"topologyManagerPolicyOptions: max-allowable-numa-nodes is a number of 8 or more, prefer-closest-numa-nodes true or false"},
}

// optionGates are the feature gates that options of the managers need, in versions of the kubelet up to the one that is named.
var optionGates = map[string]map[string]struct{ gate, last string }{
	"cpuManagerPolicyOptions": {
		"align-by-socket":                  {"CPUManagerPolicyAlphaOptions", "1.36"},
		"distribute-cpus-across-cores":     {"CPUManagerPolicyAlphaOptions", "1.36"},
		"distribute-cpus-across-numa":      {"CPUManagerPolicyBetaOptions", "1.36"},
		"prefer-align-cpus-by-uncorecache": {"CPUManagerPolicyBetaOptions", "1.35"},
		"strict-cpu-reservation":           {"CPUManagerPolicyBetaOptions", "1.34"},
	},
	"topologyManagerPolicyOptions": {
		"max-allowable-numa-nodes": {"TopologyManagerPolicyBetaOptions", "1.34"},
	},
}

// checkOptions returns the option of a manager whose feature gate is off.
func checkOptions(config, given map[string]any, index int) *Problem {
	for _, field := range slices.Sorted(maps.Keys(optionGates)) {
		options, _ := config[field].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(options)) {
			needed, ok := optionGates[field][name]
			if ok && index <= slices.Index(Versions, needed.last) && !enabled(given, needed.gate, index) {
				return &Problem{field + "." + name, fmt.Sprintf("needs the feature gate %s, which is off in version %s: set it in featureGates",
					needed.gate, Versions[index])}
			}
		}
	}
	return nil
}
