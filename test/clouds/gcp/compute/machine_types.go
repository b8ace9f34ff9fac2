package compute

import (
	"regexp"
	"strconv"
	"strings"
)

// machineTypes are real machine types, as https://cloud.google.com/compute/docs/machine-resource lists them: name, vCPUs, memory in MiB,
// then what the type brings by itself: arm, accelerators (type*count) and local SSDs (ssd*count*GB).
const machineTypes = `
f1-micro 1 614
g1-small 1 1740
e2-micro 2 1024
e2-small 2 2048
e2-medium 2 4096
e2-standard-2 2 8192
e2-standard-4 4 16384
e2-standard-8 8 32768
e2-highmem-4 4 32768
e2-highcpu-8 8 8192
n1-standard-1 1 3840
n1-standard-2 2 7680
n1-standard-4 4 15360
n1-standard-8 8 30720
n1-highmem-8 8 53248
n2-standard-2 2 8192
n2-standard-4 4 16384
n2-standard-8 8 32768
n2-highmem-16 16 131072
n2-standard-80 80 327680
n2d-standard-2 2 8192
n2d-standard-4 4 16384
n2d-standard-96 96 393216
n4-standard-2 2 8192
n4-standard-8 8 32768
n4a-standard-4 4 16384 arm
n4d-standard-4 4 16384
t2d-standard-4 4 16384
t2a-standard-2 2 8192 arm
t2a-standard-4 4 16384 arm
c2-standard-8 8 32768
c2-standard-60 60 245760
c2d-standard-8 8 32768
c3-standard-4 4 16384
c3-standard-8 8 32768
c3-standard-8-lssd 8 32768 ssd*2*375
c3-highmem-88 88 720896
c3-standard-192-metal 192 786432
c3d-standard-8 8 32768
c3d-standard-8-lssd 8 32768 ssd*1*375
c4-standard-4 4 15360
c4-standard-8 8 30720
c4-standard-288-metal 288 1105920
c4a-standard-4 4 16384 arm
c4a-standard-4-lssd 4 16384 arm ssd*1*375
c4a-highmem-96-metal 96 786432 arm
c4d-standard-4 4 15872
h3-standard-88 88 360448
h4d-standard-192 192 737280
m1-megamem-96 96 1468006
m2-ultramem-208 208 6029312
m3-ultramem-32 32 999424
m4-megamem-28 28 380928
x4-megamem-960-metal 960 16777216
z3-highmem-14-standardlssd 14 114688 ssd*1*3000
z3-highmem-44-highlssd 44 360448 ssd*6*3000
z3-highmem-88-highlssd 88 720896 ssd*12*3000
z3-highmem-192-highlssd-metal 192 1572864 ssd*12*6000
a2-highgpu-1g 12 87040 nvidia-tesla-a100*1
a2-highgpu-2g 24 174080 nvidia-tesla-a100*2
a2-ultragpu-1g 12 174080 nvidia-a100-80gb*1 ssd*1*375
a3-highgpu-1g 26 239616 nvidia-h100-80gb*1 ssd*2*375
a3-highgpu-8g 208 1916928 nvidia-h100-80gb*8 ssd*16*375
a3-megagpu-8g 208 1916928 nvidia-h100-mega-80gb*8 ssd*16*375
a3-ultragpu-8g 224 3022848 nvidia-h200-141gb*8 ssd*32*375
a4-highgpu-8g 224 4063232 nvidia-b200*8 ssd*32*375
a4x-highgpu-4g 140 905216 arm nvidia-gb200*4 ssd*4*3000
g2-standard-4 4 16384 nvidia-l4*1
g2-standard-8 8 32768 nvidia-l4*1
g2-standard-24 24 98304 nvidia-l4*2
g4-standard-48 48 184320 nvidia-rtx-pro-6000*1
ct5lp-hightpu-1t 24 49152 ct5lp*1
ct6e-standard-4t 180 737280 ct6e*4
`

// zonesOf are the zones of the types that not all zones have.
var zonesOf = map[string][]string{
	"n2-standard-4":    {"us-central1-a", "us-central1-b"},
	"a2-ultragpu-1g":   {"us-central1-a", "us-central1-c"},
	"a4-highgpu-8g":    {"us-central1-b"},
	"g2-standard-24":   {"us-central1-a", "us-central1-b"},
	"ct6e-standard-4t": {"us-central1-b"},
	"c4d-standard-4":   {"europe-west3-a"},
}

// parseMachineTypes reads the lines of machineTypes.
func parseMachineTypes() (all []MachineType) {
	for line := range strings.Lines(strings.TrimSpace(machineTypes)) {
		words := strings.Fields(line)
		t := MachineType{Name: words[0], Architecture: "X86_64", Zones: zonesOf[words[0]]}
		t.GuestCPUs, t.MemoryMB = number(words[1]), number(words[2])
		for _, word := range words[3:] {
			parts := strings.Split(word, "*")
			switch parts[0] {
			case "arm":
				t.Architecture = "ARM64"
			case "ssd":
				t.LocalSSDs, t.LocalSSDSizeGB = number(parts[1]), number(parts[2])
			default:
				t.Accelerators = append(t.Accelerators, Accelerator{AcceleratorType: parts[0], AcceleratorCount: number(parts[1])})
			}
		}
		all = append(all, t)
	}
	return all
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err) // A mistake in the data above.
	}
	return n
}

// customType is the name of a custom machine type, see
// https://cloud.google.com/compute/docs/instances/creating-instance-with-custom-machine-type.
var customType = regexp.MustCompile(`^(?:([a-z][a-z0-9]+)-)?custom-(\d{1,3})-(\d{3,7})(-ext)?$`)

// custom is the custom machine type of a name; nil if it is none, or of a size that its series does not have.
func custom(name string) *MachineType {
	match := customType.FindStringSubmatch(name)
	if match == nil {
		return nil
	}
	cpus, memory := number(match[2]), number(match[3])
	s := seriesOf(name)
	low, high := s.customMemory[0], s.customMemory[1]
	fits := high > 0 && (cpus%2 == 0 || cpus == 1 && s.name == "n1") && memory%256 == 0 && memory >= low*cpus &&
		(memory <= high*cpus || match[4] != "" && s.name != "e2")
	if !fits {
		return nil
	}
	return &MachineType{Name: name, GuestCPUs: cpus, MemoryMB: memory, Architecture: "X86_64"}
}
