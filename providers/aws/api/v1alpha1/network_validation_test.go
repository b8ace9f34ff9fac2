package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestInvalidNetworks(t *testing.T) {
	for change, want := range map[string]string{
		`securityGroupSelectors: []`:                                   "spec.securityGroupSelectors",
		`securityGroupSelectors: [{}]`:                                 "spec.securityGroupSelectors[0].filters: Required",
		`securityGroupSelectors: [{filters: []}]`:                      "spec.securityGroupSelectors[0].filters",
		`securityGroupSelectors: [{filters: [{name: a, values: []}]}]`: "spec.securityGroupSelectors[0].filters[0].values",
		`interfaceType: trunk`:                                         "spec.interfaceType",
		`interfaceType: efa-only`:                                      "choose efa, and efa-only in extraInterfaces",
		`ipv6: {}`:                                                     "spec.ipv6",
		`ipv6: {count: 0}`:                                             "spec.ipv6.count",
		`ipv6: {primary: true}`:                                        "spec.ipv6: Invalid value: how many? set count",
		`ipv6: {primary: true, prefixCount: 1}`:                        "spec.ipv6.primary: Invalid value: the primary IPv6 address is one of those that count asks for: set count",
		`extraInterfaces: []`:                                          "spec.extraInterfaces",
		`{publicIP: true, extraInterfaces: [{}]}`:                      "spec.publicIP: Invalid value: EC2 gives no public IP address to an instance that is launched with several interfaces",
		`extraInterfaces: [{deviceIndex: 0}]`:                          "spec.extraInterfaces[0].deviceIndex: Invalid value: device 0 of network card 0 is the primary interface",
		`extraInterfaces: [{deviceIndex: 1}, {deviceIndex: 1}]`:        "two interfaces have the same deviceIndex on one network card",
		`extraInterfaces: [{deviceIndex: 2, networkCardIndex: 1}, {networkCardIndex: 1, deviceIndex: 2}]`: "change one of them",
		`extraInterfaces: [{networkCardIndex: 64}]`:                                                       "spec.extraInterfaces[0].networkCardIndex",
		`extraInterfaces: [{interfaceType: ena}]`:                                                         "spec.extraInterfaces[0].interfaceType",
		`extraInterfaces: [{subnet: {}}]`:                                                                 "exactly one of id and filters",
		`extraInterfaces: [{securityGroupIDs: [x]}]`:                                                      "spec.extraInterfaces[0].securityGroupIDs[0]",
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(MatchError(ContainSubstring(want)))
		})
	}
}

func TestValidNetworks(t *testing.T) {
	for _, change := range []string{
		`{securityGroupIDs: null, securityGroupSelectors: [{filters: [{name: "tag:role", values: [nodes]}]}]}`,
		`securityGroupSelectors: [{filters: [{name: group-name, values: [a]}, {name: vpc-id, values: [vpc-1]}]}]`,
		`interfaceType: efa`,
		`ipv6: {count: 2, primary: true, prefixCount: 1}`,
		`ipv6: {prefixCount: 1}`,
		`extraInterfaces: [{}, {deviceIndex: 2}, {networkCardIndex: 1, deviceIndex: 2}, {networkCardIndex: 1, deviceIndex: 0}]`,
		`extraInterfaces: [{subnet: {id: subnet-0a2}, securityGroupIDs: [sg-0a2], interfaceType: efa-only, networkCardIndex: 31}]`,
		`extraInterfaces: [{subnet: {filters: [{name: a, values: [b]}]}}]`,
		`sourceDestCheck: false`,
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(Succeed())
		})
	}
}

func TestExtraInterfacesAreOnTheFirstCardByDefault(t *testing.T) {
	g := NewWithT(t)
	obj := machine(t, `extraInterfaces: [{deviceIndex: 1}]`)
	g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	g.Expect(obj.Object["spec"]).To(HaveKeyWithValue("extraInterfaces",
		[]any{map[string]any{"deviceIndex": int64(1), "networkCardIndex": int64(0)}}))
}
