package main

import (
	"fmt"
	"strconv"

	"github.com/go-logr/logr"
	cadvisorapi "github.com/google/cadvisor/info/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
	evictionapi "k8s.io/kubernetes/pkg/kubelet/eviction/api"
	"k8s.io/utils/cpuset"
)

// checkManagers creates the kubelet's managers of topology, CPUs and memory, which refuse options and reservations that do not fit, on a
// machine that is large enough for any. The kubelet's container manager does the same, in this order.
func checkManagers(config *kubeletconfig.KubeletConfiguration) error {
	machine := largeMachine()
	cpus, err := cpuset.Parse(config.ReservedSystemCPUs)
	if err != nil {
		return err
	}
	reserved, err := reservation(config, machine, cpus)
	if err != nil {
		return err
	}
	topology, err := topologymanager.NewManager(machine.Topology, config.TopologyManagerPolicy, config.TopologyManagerScope,
		config.TopologyManagerPolicyOptions)
	if err != nil {
		return err
	}
	if _, err := cpumanager.NewManager(logr.Discard(), config.CPUManagerPolicy, config.CPUManagerPolicyOptions,
		config.CPUManagerReconcilePeriod.Duration, machine, cpus, reserved, "", topology); err != nil {
		return err
	}
	_, err = memorymanager.NewManager(logr.Discard(), config.MemoryManagerPolicy, machine, reserved, config.ReservedMemory, "", topology)
	return err
}

// largeMachine has two NUMA nodes, each with a socket of 64 cores and 128 CPUs.
func largeMachine() *cadvisorapi.MachineInfo {
	const nodes, cores = 2, 64
	machine := &cadvisorapi.MachineInfo{
		NumCores: 2 * nodes * cores, NumPhysicalCores: nodes * cores, NumSockets: nodes, MemoryCapacity: 1 << 42,
	}
	for n := range nodes {
		node := cadvisorapi.Node{Id: n, Memory: machine.MemoryCapacity / nodes, Distances: []uint64{10, 10}}
		for c := range cores {
			id := n*cores + c
			node.Cores = append(node.Cores, cadvisorapi.Core{Id: id, SocketID: n, Threads: []int{id, id + nodes*cores}})
		}
		machine.Topology = append(machine.Topology, node)
	}
	return machine
}

// reservation is what the kubelet keeps from pods: kubeReserved, systemReserved and the hard eviction threshold of memory.
func reservation(
	config *kubeletconfig.KubeletConfiguration, machine *cadvisorapi.MachineInfo, cpus cpuset.CPUSet,
) (corev1.ResourceList, error) {
	kube, system := config.KubeReserved, config.SystemReserved
	if cpus.Size() > 0 { // It wins over the CPUs of both.
		kube, system = without(kube, "cpu"), without(system, "cpu")
		system["cpu"] = strconv.Itoa(cpus.Size())
	}
	sums := map[corev1.ResourceName]resource.Quantity{}
	for _, amounts := range []map[string]string{kube, system} {
		for key, value := range amounts {
			quantity, err := resource.ParseQuantity(value)
			if err != nil {
				return nil, fmt.Errorf("%s of %s: %w", value, key, err)
			}
			sum := sums[corev1.ResourceName(key)]
			sum.Add(quantity)
			sums[corev1.ResourceName(key)] = sum
		}
	}
	thresholds, err := eviction.ParseThresholdConfig(nil, config.EvictionHard, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	capacity := resource.NewQuantity(int64(machine.MemoryCapacity), resource.BinarySI)
	for _, threshold := range thresholds {
		if threshold.Signal == evictionapi.SignalMemoryAvailable {
			sum := sums[corev1.ResourceMemory]
			sum.Add(*evictionapi.GetThresholdQuantity(threshold.Value, capacity))
			sums[corev1.ResourceMemory] = sum
		}
	}
	reserved := corev1.ResourceList{}
	for key, sum := range sums {
		if !sum.IsZero() {
			reserved[key] = sum
		}
	}
	return reserved, nil
}

func without(amounts map[string]string, name string) map[string]string {
	rest := map[string]string{}
	for key, value := range amounts {
		if key != name {
			rest[key] = value
		}
	}
	return rest
}
