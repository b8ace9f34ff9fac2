package v1alpha1_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/gomega"
)

// limits of EBS volumes, from the documentation of EbsBlockDevice in EC2's API.
var limits = map[string]struct{ minSize, maxSize, minIOPS, maxIOPS, ratio int }{
	"gp3":      {1, 65536, 3000, 80000, 500},
	"gp2":      {1, 16384, 0, 0, 0},
	"io1":      {4, 16384, 100, 64000, 50},
	"io2":      {4, 65536, 100, 256000, 1000},
	"st1":      {125, 16384, 0, 0, 0},
	"sc1":      {125, 16384, 0, 0, 0},
	"standard": {1, 1024, 0, 0, 0},
}

// What EC2 never makes is refused before a launch: each type at its limits and one beyond, as the root volume and as a further one.
func TestVolume_BeyondLimitsOfItsType_IsRefused(t *testing.T) {
	for kind, l := range limits {
		iops := ""
		if kind == "io1" || kind == "io2" {
			iops = ", iops: 100"
		}
		check := func(fields string, valid bool) {
			t.Helper()
			volume := "type: " + kind + fields
			for _, change := range []string{"volumes: [{device: /dev/sdf, " + volume + "}]", "rootVolume: {" + volume + "}"} {
				t.Run(change, func(t *testing.T) {
					err := c.Create(t.Context(), machine(t, change))
					switch root := change[0] == 'r'; {
					case root && (kind == "st1" || kind == "sc1"):
						NewWithT(t).Expect(err).To(MatchError(ContainSubstring("spec.rootVolume.type: Invalid value: no instance boots from the types st1 and sc1")))
					case valid:
						NewWithT(t).Expect(err).NotTo(HaveOccurred())
					default:
						NewWithT(t).Expect(err).To(MatchError(MatchRegexp(`spec\.(rootVolume|volumes\[0\]).*(GiB|IOPS|iops|sizeGiB)`)))
					}
				})
			}
		}
		for size, valid := range map[int]bool{l.minSize - 1: false, l.minSize: true, l.maxSize: true, l.maxSize + 1: false} {
			if iops != "" {
				check(fmt.Sprintf(", sizeGiB: %d%s", size, iops), valid)
				continue
			}
			check(fmt.Sprintf(", sizeGiB: %d", size), valid)
		}
		if l.maxIOPS == 0 {
			check(", sizeGiB: 200, iops: 3000", false)
			continue
		}
		for n, valid := range map[int]bool{l.minIOPS - 1: false, l.minIOPS: true, l.maxIOPS: true, l.maxIOPS + 1: false} {
			check(fmt.Sprintf(", sizeGiB: 16384, iops: %d", n), valid)
		}
		check(fmt.Sprintf(", sizeGiB: 20, iops: %d", 20*l.ratio), true)
		check(fmt.Sprintf(", sizeGiB: 20, iops: %d", 20*l.ratio+1), false)
	}
}

// Throughput, prices and device names that EC2 refuses whatever else is in the request.
func TestSpec_AlwaysRefusedByEC2_IsRefused(t *testing.T) {
	for change, want := range map[string]string{
		`rootVolume: {type: gp3, throughputMiBps: 751}`:                           "at most 0.25 MiB/s for each of the IOPS",
		`rootVolume: {type: gp3, iops: 4000, throughputMiBps: 1001}`:              "lower throughputMiBps, or raise iops",
		`rootVolume: {type: gp3, throughputMiBps: 124}`:                           "spec.rootVolume.throughputMiBps",
		`volumes: [{device: /dev/nonsense, sizeGiB: 1}]`:                          "choose one of /dev/sd[b-z]",
		`volumes: [{device: /dev/sda1, sizeGiB: 1}]`:                              "spec.volumes[0].device",
		`volumes: [{device: /dev/xvda, sizeGiB: 1}]`:                              "spec.volumes[0].device",
		`volumes: [{device: /dev/sdf16, sizeGiB: 1}]`:                             "spec.volumes[0].device",
		`volumes: [{device: /dev/xvdea, sizeGiB: 1}]`:                             "spec.volumes[0].device",
		`volumes: [{device: /dev/nvme1n1, sizeGiB: 1}]`:                           "spec.volumes[0].device",
		`spot: {maxPrice: "0"}`:                                                   "EC2 sells no capacity for 0",
		`spot: {maxPrice: "0.000"}`:                                               "EC2 sells no capacity for 0",
		`terminationProtection: true`:                                             "EC2 protects no spot instances",
		`capacityReservation: {preference: open}`:                                 "spot instances run in no Capacity Reservation",
		`placement: {tenancy: host}`:                                              "spot instances do not run on Dedicated Hosts",
		`{publicIP: true, extraInterfaces: [{}]}`:                                 "remove publicIP or extraInterfaces",
		`extraInterfaces: [{deviceIndex: 1}, {deviceIndex: 1}]`:                   "change one of them",
		`{spot: null, placement: {tenancy: host, groupName: g}}`:                  "no instances on Dedicated Hosts into placement groups",
		`tags: {"` + longKey + `": x}`:                                            "a tag key has 1 to 128 characters",
		`cpuOptions: {coreCount: 1}`:                                              "EC2 takes coreCount and threadsPerCore together",
		`ipv6: {primary: true, prefixCount: 1}`:                                   "set count",
		`{spot: null, capacityReservation: {id: cr-1, preference: open}}`:         "capacity-reservations-only",
		`interfaceType: efa-only`:                                                 "the primary interface carries",
		`volumes: [{device: /dev/sdf, sizeGiB: 4, type: io2, iops: 4001}]`:        "spec.volumes[0].iops",
		`volumes: [{device: /dev/sdf, type: sc1, sizeGiB: 124, encrypted: true}]`: "spec.volumes[0].sizeGiB",
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(MatchError(ContainSubstring(want)))
		})
	}
	for _, change := range []string{
		`rootVolume: {type: gp3, throughputMiBps: 750}`, `rootVolume: {type: gp3, iops: 8000, throughputMiBps: 2000}`,
		`rootVolume: {type: gp3, sizeGiB: 1, iops: 3000}`, `rootVolume: {type: standard}`, `spot: {maxPrice: "0.0001"}`,
		`volumes: [{device: /dev/xvdb, sizeGiB: 1}, {device: /dev/xvddx, sizeGiB: 1}, {device: /dev/sdz, sizeGiB: 1}, {device: sdg15, sizeGiB: 1}]`,
		`volumes: [{device: /dev/xvdaa, sizeGiB: 1}, {device: xvdaz, sizeGiB: 1}, {device: /dev/xvdcz, sizeGiB: 1}]`,
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(Succeed())
		})
	}
}

var longKey = fmt.Sprintf("%0129d", 1)
