package v1alpha1_test

import (
	"fmt"
	"os"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/test/testenv"
)

var c client.Client

func TestMain(m *testing.M) {
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	env, err := testenv.Start(testenv.Options{CRDs: []testenv.CRDs{testenv.AWSCRDs}})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	if c, err = client.New(env.Config, client.Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// valid is a spec that uses the fields that go together; each case changes it.
const valid = `
region: us-east-1
instanceType: m5.large
ami: {id: ami-0a1}
subnets: [{id: subnet-0a1}]
securityGroupIDs: [sg-0a1]
iamInstanceProfile: node
keyName: me
publicIP: false
rootVolume: {sizeGiB: 20, type: gp3, iops: 3000, throughputMiBps: 125, encrypted: true, kmsKeyID: alias/k}
volumes: [{device: /dev/sdf, sizeGiB: 10}]
tags: {team: blue}
spot: {maxPrice: "0.05"}
metadata: {tokens: Required, hopLimit: 2}
userDataCompression: Gzip
launchTimeoutSeconds: 600
`

// machine makes an AWSMachine whose spec has the fields of valid, replaced by those of change; a field
// that is null in change is left out.
func machine(t *testing.T, change string) *unstructured.Unstructured {
	t.Helper()
	spec, changes := map[string]any{}, map[string]any{}
	for text, into := range map[string]*map[string]any{valid: &spec, change: &changes} {
		if err := yaml.Unmarshal([]byte(text), into); err != nil {
			t.Fatal(err)
		}
	}
	for field, value := range changes {
		if value == nil {
			delete(spec, field)
			continue
		}
		spec[field] = value
	}
	return object("AWSMachine", map[string]any{"spec": spec})
}

func object(kind string, content map[string]any) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{Object: content}
	obj.SetGroupVersionKind(schema.GroupVersionKind{Group: infrav1.GroupVersion.Group, Version: infrav1.GroupVersion.Version, Kind: kind})
	obj.SetNamespace(metav1.NamespaceDefault)
	obj.SetGenerateName("m-")
	return obj
}

func TestInvalidSpecs(t *testing.T) {
	for change, want := range map[string]string{
		`region: null`:                       "region: Required",
		`region: mars`:                       "spec.region",
		`instanceType: null`:                 "instanceType: Required",
		`instanceType: large`:                "spec.instanceType",
		`ami: {}`:                            "exactly one of id, ssmParameter and filters",
		`ami: {id: img-1}`:                   "spec.ami.id",
		`ami: {id: ami-0a1, owners: [self]}`: "owners must be set with filters",
		`ami: {filters: [{name: name, values: [x]}]}`:                                      "owners must be set with filters",
		`ami: {id: ami-0a1, owners: [self], filters: [{name: name, values: [x]}]}`:         "exactly one of id, ssmParameter and filters",
		`ami: {owners: [anybody], filters: [{name: name, values: [x]}]}`:                   "spec.ami.owners[0]",
		`ami: {owners: [self], filters: [{name: name, values: []}]}`:                       "spec.ami.filters[0].values",
		`ami: {owners: [self], filters: [{name: n, values: [x]}, {name: n, values: [y]}]}`: "Duplicate value",
		`subnets: []`:            "spec.subnets",
		`subnets: [{}]`:          "exactly one of id and filters",
		`subnets: [{id: net-1}]`: "spec.subnets[0].id",
		`subnets: [{id: subnet-1, filters: [{name: a, values: [b]}]}]`:               "exactly one of id and filters",
		`securityGroupIDs: [default]`:                                                "spec.securityGroupIDs[0]",
		`securityGroupIDs: [sg-1, sg-1]`:                                             "Duplicate value",
		`rootVolume: {}`:                                                             "spec.rootVolume",
		`rootVolume: {sizeGiB: 0}`:                                                   "spec.rootVolume.sizeGiB",
		`rootVolume: {type: floppy}`:                                                 "spec.rootVolume.type",
		`rootVolume: {type: gp2, iops: 3000}`:                                        "iops can be set for",
		`rootVolume: {iops: 3000}`:                                                   "iops can be set for",
		`rootVolume: {type: io2}`:                                                    "need iops",
		`rootVolume: {type: io2, iops: 3000, throughputMiBps: 125}`:                  "throughputMiBps can be set for",
		`rootVolume: {type: gp3, iops: 50}`:                                          "spec.rootVolume.iops",
		`rootVolume: {type: gp3, throughputMiBps: 5000}`:                             "spec.rootVolume.throughputMiBps",
		`rootVolume: {kmsKeyID: k}`:                                                  "kmsKeyID needs encrypted",
		`rootVolume: {kmsKeyID: k, encrypted: false}`:                                "kmsKeyID needs encrypted",
		`volumes: [{device: /dev/sdf}]`:                                              "set sizeGiB, or snapshotID",
		`volumes: [{device: /dev/sda, sizeGiB: 1}]`:                                  "spec.volumes[0].device",
		`volumes: [{device: /dev/sdf, sizeGiB: 1}, {device: /dev/sdf, sizeGiB: 2}]`:  "Duplicate value",
		`volumes: [{device: /dev/sdf, sizeGiB: 1}, {device: sdf, sizeGiB: 2}]`:       "spec.volumes: Invalid value: two volumes have names of the same device",
		`volumes: [{device: /dev/sdf, sizeGiB: 1}, {device: /dev/xvdf, sizeGiB: 2}]`: "give each a device with a letter of its own",
		`volumes: [{device: xvdba, sizeGiB: 1}, {device: /dev/xvdba, sizeGiB: 2}]`:   "names of the same device",
		`tags: {Name: x}`:                                                            "set by the provider",
		`tags: {MachineName: x}`:                                                     "set by the provider",
		`tags: {"aws:x": x}`:                                                         "reserved by AWS: remove them from tags",
		`tags: {"AWS:x": x}`:                                                         "reserved by AWS",
		`tags: {"kubernetes.io/cluster/c": owned}`:                                   "set by the provider",
		`tags: {"infrastructure.millwright.dev/owner-uid": x}`:                       "set by the provider",
		`tags: {"sigs.k8s.io/cluster-api-provider-aws/cluster/c": owned}`:            "spec.tags: Invalid value: tags that begin with sigs.k8s.io/cluster-api-provider-aws/",
		`tags: {"sigs.k8s.io/cluster-api-provider-aws/role": node}`:                  "mark instances of other controllers",
		`tags: {"kubernetes.io/role/node": "1"}`:                                     "mark instances of other controllers",
		`tags: {"karpenter.sh/nodepool": default}`:                                   "remove them from tags",
		`tags: {}`:                      "spec.tags",
		`spot: {maxPrice: cheap}`:       "spec.spot.maxPrice",
		`metadata: {tokens: Sometimes}`: "spec.metadata.tokens",
		`metadata: {hopLimit: 0}`:       "spec.metadata.hopLimit",
		`metadata: {hopLimit: 65}`:      "spec.metadata.hopLimit",
		`userDataCompression: Zip`:      "spec.userDataCompression",
		`launchTimeoutSeconds: 5`:       "spec.launchTimeoutSeconds",
		`providerID: ""`:                "spec.providerID",
	} {
		t.Run(change, func(t *testing.T) {
			err := c.Create(t.Context(), machine(t, change))
			NewWithT(t).Expect(err).To(MatchError(ContainSubstring(want)))
		})
	}
}

func TestValidSpecs(t *testing.T) {
	for _, change := range []string{
		``,
		`ami: {owners: [self, "123456789012"], filters: [{name: name, values: ["node-*"]}]}`,
		`subnets: [{filters: [{name: "tag:role", values: [nodes]}]}]`,
		`{securityGroupIDs: null, iamInstanceProfile: null, keyName: null, publicIP: null, rootVolume: null, volumes: null, tags: null, spot: null, metadata: null, userDataCompression: null, launchTimeoutSeconds: null}`,
		`rootVolume: {sizeGiB: 8}`,
		`rootVolume: {type: io2, iops: 64000}`,
		`spot: {}`,
		`region: us-gov-west-1`,
		`instanceType: u-6tb1.56xlarge`,
		`tags: {"example.com/cost-centre": ""}`,
		`tags: {"kubernetes.io/os": linux, "sigs.k8s.io/team": blue, "awsome": x}`,
		`volumes: [{device: /dev/sdf, sizeGiB: 1}, {device: sdg, sizeGiB: 2}, {device: /dev/xvdh, sizeGiB: 1}, {device: xvdba, sizeGiB: 1}]`,
		`userDataCompression: Auto`,
		`userDataCompression: None`,
	} {
		t.Run(change, func(t *testing.T) {
			NewWithT(t).Expect(c.Create(t.Context(), machine(t, change))).To(Succeed())
		})
	}
}

func TestDefaults(t *testing.T) {
	g := NewWithT(t)
	obj := machine(t, `{metadata: null, userDataCompression: null, launchTimeoutSeconds: null}`)
	g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	spec := obj.Object["spec"]
	g.Expect(spec).To(HaveKeyWithValue("metadata", map[string]any{"tokens": "Required", "hopLimit": int64(1)}))
	g.Expect(spec).To(HaveKeyWithValue("userDataCompression", "Auto"))
	g.Expect(spec).To(HaveKeyWithValue("launchTimeoutSeconds", int64(1200)))

	obj = machine(t, `metadata: {hopLimit: 2}`)
	g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	g.Expect(obj.Object["spec"]).To(HaveKeyWithValue("metadata", map[string]any{"tokens": "Required", "hopLimit": int64(2)}))
}

func TestProviderIDIsSetOnce(t *testing.T) {
	g := NewWithT(t)
	obj := machine(t, ``)
	g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	set := func(id string) error {
		if id == "" {
			unstructured.RemoveNestedField(obj.Object, "spec", "providerID")
		} else if err := unstructured.SetNestedField(obj.Object, id, "spec", "providerID"); err != nil {
			return err
		}
		return c.Update(t.Context(), obj)
	}
	g.Expect(set("aws:///us-east-1a/i-1")).To(Succeed())
	g.Expect(set("aws:///us-east-1a/i-2")).To(MatchError(ContainSubstring("providerID is immutable once set")))
	g.Expect(set("")).To(MatchError(ContainSubstring("spec.providerID cannot be removed")))

	status := func(ready bool, state string) {
		t.Helper()
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		g.Expect(unstructured.SetNestedMap(obj.Object, map[string]any{"ready": ready, "instanceState": state}, "status")).To(Succeed())
		g.Expect(c.Status().Update(t.Context(), obj)).To(Succeed())
	}
	for _, state := range []string{"Pending", "Terminating", "Missing"} {
		status(false, state)
		g.Expect(set("")).To(MatchError(ContainSubstring("cannot be removed")), state)
	}
	status(true, "Terminated")
	g.Expect(set("")).To(MatchError(ContainSubstring("cannot be removed")), "it has run")
	status(false, "Terminated")
	g.Expect(set("aws:///us-east-1a/i-2")).To(MatchError(ContainSubstring("immutable")), "not exchanged in one step")
	status(false, "Terminated")
	g.Expect(set("")).To(Succeed())
	g.Expect(set("aws:///us-east-1a/i-2")).To(Succeed())
}

func TestTemplate(t *testing.T) {
	g := NewWithT(t)
	template := func(change string) *unstructured.Unstructured { return template(t, change) }
	g.Expect(c.Create(t.Context(), template(`providerID: aws:///a/i-1`))).To(MatchError(ContainSubstring("cannot be set in a template")))
	g.Expect(c.Create(t.Context(), template(`tags: {Name: x}`))).To(MatchError(ContainSubstring("set by the provider")))
	g.Expect(c.Create(t.Context(), template(`tags: {"kubernetes.io/role/node": "1"}`))).
		To(MatchError(ContainSubstring("mark instances of other controllers")))
	g.Expect(c.Create(t.Context(), template(`volumes: [{device: /dev/sdf, sizeGiB: 1}, {device: sdf, sizeGiB: 2}]`))).
		To(MatchError(ContainSubstring("same device")))
	g.Expect(c.Create(t.Context(), template(``))).To(Succeed())
}

// template is one of machines like machine.
func template(t *testing.T, change string) *unstructured.Unstructured {
	spec := machine(t, change).Object["spec"]
	return object("AWSMachineTemplate", map[string]any{"spec": map[string]any{"template": map[string]any{
		"metadata": map[string]any{"labels": map[string]any{"a": "b"}}, "spec": spec,
	}}})
}
