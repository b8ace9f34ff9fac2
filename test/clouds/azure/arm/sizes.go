package arm

import (
	"cmp"
	_ "embed" // For the table.
	"encoding/csv"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// sizesTable are sizes of virtual machines as the list of resource SKUs reports them in a large region, see
// https://learn.microsoft.com/rest/api/compute/resource-skus/list and https://learn.microsoft.com/azure/virtual-machines/sizes. Letters of
// features: Premium disks, Accelerated networking, Ephemeral OS disk, Ultra disks, encryption at Host, Low priority (Spot), generations 1
// and 2, t where trusted launch is disabled.
//
//go:embed sizes.csv
var sizesTable string

// Size is a size of virtual machines.
type Size struct {
	Name, Family, Architecture string
	// CPUs count for quotas; AvailableCPUs are those of the machine, fewer where the size is constrained.
	CPUs, AvailableCPUs int
	MemoryGiB           float64
	GPUs                int
	// DataDisks and Interfaces are how many there may be.
	DataDisks, Interfaces int
	// CacheGiB, TempGiB and NVMeGiB are where an ephemeral OS disk may be.
	CacheGiB, TempGiB, NVMeGiB int32
	// Controllers are SCSI, NVMe or both; Generations V1, V2 or both.
	Controllers, Generations []string
	// Confidential is SNP or TDX; empty where there are no confidential machines.
	Confidential string
	// Zones that have it; all when nil.
	Zones []string
	// What else it has.
	Ephemeral, AcceleratedNetworking, Premium, Ultra, EncryptionAtHost, Spot, NoTrustedLaunch bool
}

// price is what an hour costs as a Spot Virtual Machine, in US dollars.
func (s *Size) price() float64 { return 0.005 * float64(s.CPUs) }

// defaultSizes reads the table.
func defaultSizes() []Size {
	rows, err := csv.NewReader(strings.NewReader(sizesTable)).ReadAll()
	if err != nil {
		panic(err) // It is part of the program.
	}
	var sizes []Size
	for _, row := range rows[1:] {
		number := func(i int) int {
			n, err := strconv.Atoi(row[i])
			if err != nil {
				panic(fmt.Sprintf("%s: %v", row[0], err))
			}
			return n
		}
		memory, err := strconv.ParseFloat(row[5], 64)
		if err != nil {
			panic(err)
		}
		has := func(feature string) bool { return strings.Contains(row[9], feature) }
		size := Size{
			Name: row[0], Family: row[1], Architecture: row[2], CPUs: number(3), AvailableCPUs: number(4), MemoryGiB: memory, GPUs: number(6),
			DataDisks: number(7), Interfaces: number(8), CacheGiB: int32(number(10)), TempGiB: int32(number(11)), NVMeGiB: int32(number(12)),
			Controllers: strings.Split(row[13], ";"), Confidential: row[14], Premium: has("P"), AcceleratedNetworking: has("A"),
			Ephemeral: has("E"), Ultra: has("U"), EncryptionAtHost: has("H"), Spot: has("L"), NoTrustedLaunch: has("t"),
		}
		for _, generation := range []string{"1", "2"} {
			if has(generation) {
				size.Generations = append(size.Generations, "V"+generation)
			}
		}
		if row[15] != "" {
			size.Zones = strings.Split(row[15], ";")
		}
		sizes = append(sizes, size)
	}
	return sizes
}

// skuItem is an entry of the list of resource SKUs.
func (s *Server) skuItem(size Size) map[string]any {
	zones := size.Zones
	if zones == nil {
		zones = s.options.Catalog.Zones
	}
	capabilities := []map[string]string{}
	add := func(name string, value any) {
		text := fmt.Sprint(value)
		if b, ok := value.(bool); ok {
			text = map[bool]string{true: "True", false: "False"}[b]
		}
		capabilities = append(capabilities, map[string]string{"name": name, "value": text})
	}
	add("vCPUs", size.CPUs)
	add("vCPUsAvailable", cmp.Or(size.AvailableCPUs, size.CPUs))
	add("MemoryGB", size.MemoryGiB)
	add("CpuArchitectureType", size.Architecture)
	add("MaxDataDiskCount", size.DataDisks)
	add("MaxNetworkInterfaces", size.Interfaces)
	add("PremiumIO", size.Premium)
	add("AcceleratedNetworkingEnabled", size.AcceleratedNetworking)
	add("EphemeralOSDiskSupported", size.Ephemeral)
	add("EncryptionAtHostSupported", size.EncryptionAtHost)
	add("LowPriorityCapable", size.Spot)
	add("HyperVGenerations", strings.Join(size.Generations, ","))
	add("MaxResourceVolumeMB", int64(size.TempGiB)<<10)
	if slices.Contains(size.Controllers, "NVMe") {
		add("DiskControllerTypes", strings.Join(size.Controllers, ", "))
	}
	if size.CacheGiB > 0 {
		add("CachedDiskBytes", int64(size.CacheGiB)<<30)
	}
	if size.NVMeGiB > 0 {
		add("NvmeDiskSizeInMiB", int64(size.NVMeGiB)<<10)
	}
	if size.Confidential != "" {
		add("ConfidentialComputingType", size.Confidential)
	}
	if size.NoTrustedLaunch {
		add("TrustedLaunchDisabled", true)
	}
	if size.GPUs > 0 {
		add("GPUs", size.GPUs)
	}
	details := []any{}
	if size.Ultra {
		available := []any{map[string]string{"name": "UltraSSDAvailable", "value": "True"}}
		details = append(details, map[string]any{"name": zones, "capabilities": available})
	}
	return map[string]any{
		"resourceType": "virtualMachines", "name": size.Name, "family": size.Family, "locations": []string{s.options.Catalog.Location},
		"locationInfo": []any{map[string]any{"location": s.options.Catalog.Location, "zones": zones, "zoneDetails": details}},
		"capabilities": capabilities, "restrictions": []any{},
	}
}
