package ec2

import (
	"bytes"
	_ "embed"
	"encoding/csv"
	"strconv"
	"strings"
)

// instanceTypesCSV has real instance types with what they support: the pages of the instance families in
// https://docs.aws.amazon.com/ec2/latest/instancetypes/, and https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/volume_limits.html
// for attachments. Spot prices are made up.
//
//go:embed instance_types.csv
var instanceTypesCSV []byte

// defaultInstanceTypes reads the table.
func defaultInstanceTypes() []InstanceType {
	rows, err := csv.NewReader(bytes.NewReader(instanceTypesCSV)).ReadAll()
	if err != nil {
		panic(err) // It is part of the program.
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	var types []InstanceType
	for _, row := range rows[1:] {
		types = append(types, instanceTypeOf(func(name string) string { return row[column[name]] }))
	}
	return types
}

func instanceTypeOf(get func(string) string) InstanceType {
	number := func(text string) int {
		n, _ := strconv.Atoi(text)
		return n
	}
	features := strings.Fields(get("features"))
	has := func(feature string) bool { return contains(features, feature) }
	attachments, kind, _ := strings.Cut(get("attachments"), " ")
	t := InstanceType{
		Name: get("name"), Architecture: get("arch"), Hypervisor: get("hypervisor"),
		VCPUs: number(get("vcpus")), MemoryMiB: number(get("memoryMiB")),
		MaxInterfaces: number(get("interfaces")), AddressesPerInterface: number(get("addresses")), NetworkCards: number(get("cards")),
		EFA: number(get("efa")), Attachments: number(attachments), Dedicated: kind == "dedicated",
		Burstable: get("name")[0] == 't' && !strings.HasPrefix(get("name"), "trn"), NoENA: has("no-ena"), Spot: has("spot"),
		ClusterGroup: has("cluster"), TPM: has("tpm"), HostOnly: has("host-only"), SEVSNP: has("sev-snp"), NestedVirtualization: has("nested"),
	}
	t.SpotPrice, _ = strconv.ParseFloat(get("spot"), 64)
	if maker, name, ok := strings.Cut(get("gpu"), " "); ok {
		t.GPU = &GPU{Manufacturer: maker, Name: name, Count: number(get("gpus")), MemoryMiB: number(get("gpuMiB"))}
	}
	return t
}

// bootModes are those that a type boots images in, see https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-type-boot-mode.html.
func (t *InstanceType) bootModes() []string {
	switch {
	case t.Architecture == "arm64":
		return []string{"uefi"}
	case t.Hypervisor == "nitro" || t.Hypervisor == "":
		return []string{"legacy-bios", "uefi"}
	}
	return []string{"legacy-bios"}
}

// usageClasses are how a type is sold.
func (t *InstanceType) usageClasses() []string {
	if t.Spot {
		return []string{"on-demand", "spot"}
	}
	return []string{"on-demand"}
}

// strategies are the placement groups that take a type, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html.
func (t *InstanceType) strategies() []string {
	switch {
	case t.HostOnly:
		return nil
	case t.ClusterGroup:
		return []string{"cluster", "partition", "spread"}
	}
	return []string{"partition", "spread"}
}

// quotaGroup is the group of families whose processors are counted together, see
// https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html. Empty is the standard group.
func quotaGroup(instanceType string) string {
	family, _, _ := strings.Cut(instanceType, ".")
	for _, prefix := range []string{"inf", "trn", "dl", "hpc", "vt", "mac", "u"} {
		if rest, ok := strings.CutPrefix(family, prefix); ok && rest != "" && (rest[0] == '-' || rest[0] >= '0' && rest[0] <= '9') {
			if prefix == "vt" {
				return "g"
			}
			return prefix
		}
	}
	switch family[:1] {
	case "f", "g", "p", "x":
		return family[:1]
	}
	return ""
}

// defaultGroupQuotas leave room for some instances of each group.
func defaultGroupQuotas() map[string]VCPUQuotas {
	quotas := map[string]VCPUQuotas{}
	for group, vcpus := range map[string]int{
		"f": 48, "g": 256, "p": 384, "x": 128, "inf": 64, "trn": 256, "dl": 96, "hpc": 192, "u": 448, "mac": 64,
	} {
		quotas[group] = VCPUQuotas{OnDemand: vcpus, Spot: vcpus}
	}
	return quotas
}
