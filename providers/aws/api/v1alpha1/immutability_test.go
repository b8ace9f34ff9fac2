package v1alpha1_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// onHardware is what the spec valid becomes with the fields that do not go with spot.
const onHardware = `
spot: null
identityRef: {name: a}
fallbackInstanceTypes: [m5a.large]
marketType: OnDemand
capacityReservation: {preference: open}
placement: {groupName: a}
cpuOptions: {coreCount: 1, threadsPerCore: 1}
terminationProtection: true
securityGroupSelectors: [{filters: [{name: a, values: [b]}]}]
ipv6: {count: 1}
interfaceType: efa
extraInterfaces: [{interfaceType: efa-only, networkCardIndex: 1}]
sourceDestCheck: false
`

// others are another value for each field, as valid for itself as the one that it replaces.
const others = `
identityRef: {name: b}
region: eu-west-1
instanceType: m5.xlarge
fallbackInstanceTypes: [m6i.large]
ami: {id: ami-0a2}
subnets: [{id: subnet-0a2}]
securityGroupIDs: [sg-0a2]
iamInstanceProfile: other
keyName: other
publicIP: true
rootVolume: {sizeGiB: 30}
volumes: [{device: /dev/sdg, sizeGiB: 1}]
tags: {team: red}
spot: {maxPrice: "0.06"}
marketType: CapacityBlock
capacityReservation: {id: cr-0a2}
placement: {groupName: b}
cpuOptions: {amdSevSnp: true}
terminationProtection: false
securityGroupSelectors: [{filters: [{name: a, values: [c]}]}]
ipv6: {prefixCount: 1}
interfaceType: interface
extraInterfaces: [{deviceIndex: 1}]
sourceDestCheck: true
metadata: {tokens: Optional}
userDataCompression: None
launchTimeoutSeconds: 700
`

var requiredFields = map[string]bool{"region": true, "instanceType": true, "ami": true, "subnets": true}

// fieldsOf are the fields that the definition of AWSMachines has below spec.
func fieldsOf(t *testing.T) map[string]any {
	t.Helper()
	def, err := definition(t.Context(), "awsmachines")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	versions, _, err := unstructured.NestedSlice(def.Object, "spec", "versions")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	fields, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return fields
}

// TestEveryFieldButProviderIDIsImmutable changes, removes and adds each field that the definition has.
func TestEveryFieldButProviderIDIsImmutable(t *testing.T) {
	g := NewWithT(t)
	another := map[string]any{}
	g.Expect(yaml.Unmarshal([]byte(others), &another)).To(Succeed())
	untried := fieldsOf(t)
	delete(untried, "providerID")
	for _, change := range []string{``, onHardware} {
		obj := machine(t, change)
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
		for field := range obj.Object["spec"].(map[string]any) {
			g.Expect(another).To(HaveKey(field), "this test must try each field")
			delete(untried, field)
			changed := obj.DeepCopy()
			g.Expect(unstructured.SetNestedField(changed.Object, another[field], "spec", field)).To(Succeed())
			g.Expect(c.Update(t.Context(), changed)).To(MatchError(ContainSubstring(field+" is immutable")), "change %s", field)

			removed := obj.DeepCopy()
			unstructured.RemoveNestedField(removed.Object, "spec", field)
			want := ContainSubstring(field + " is immutable")
			if requiredFields[field] {
				want = ContainSubstring(field + ": Required")
			}
			g.Expect(c.Update(t.Context(), removed)).To(MatchError(want), "remove %s", field)
		}
	}
	g.Expect(untried).To(BeEmpty(), "fields of the definition that no spec of this test has")

	bare := machine(
		t,
		`{securityGroupIDs: null, iamInstanceProfile: null, keyName: null, publicIP: null, rootVolume: null, volumes: null, tags: null, spot: null}`,
	)
	g.Expect(c.Create(t.Context(), bare)).To(Succeed())
	for field, value := range another {
		if _, ok := bare.Object["spec"].(map[string]any)[field]; ok {
			continue
		}
		added := bare.DeepCopy()
		g.Expect(unstructured.SetNestedField(added.Object, value, "spec", field)).To(Succeed())
		g.Expect(c.Update(t.Context(), added)).To(MatchError(ContainSubstring(field+" is immutable")), "add %s", field)
	}
}

// TestApplyingAgainChangesNothing: server-side apply of what was applied before, as a dry run or not, meets no rule of immutability.
func TestApplyingAgainChangesNothing(t *testing.T) {
	g := NewWithT(t)
	for name, change := range map[string]string{"applied-spot": ``, "applied-hardware": onHardware} {
		applied := func() *unstructured.Unstructured {
			obj := machine(t, change)
			obj.SetGenerateName("")
			obj.SetName(name)
			return obj
		}
		apply := func(options ...client.ApplyOption) error {
			options = append(options, client.FieldOwner("test"))
			return c.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied()), options...)
		}
		g.Expect(apply()).To(Succeed())
		g.Expect(apply(client.DryRunAll)).To(Succeed())
		g.Expect(apply()).To(Succeed())
		obj := applied()
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		g.Expect(obj.GetGeneration()).To(BeEquivalentTo(1))
	}
}
