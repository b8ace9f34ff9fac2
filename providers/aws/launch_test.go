package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

func TestLaunch(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{Pending: time.Second}})
	f.start()
	f.machine("m", func(m *infrav1.AWSMachine) {
		m.Spec.Tags = map[string]infrav1.TagValue{"team": "blue"}
		size := int32(30)
		m.Spec.RootVolume = &infrav1.Volume{SizeGiB: &size, Type: "gp3"}
	})
	f.Eventually(f.ready("m")).Should(Equal("False InstancePending"))
	m := f.becomesReady("m")

	made := f.instances()
	f.Expect(made).To(HaveLen(1))
	f.Expect(m.Spec.ProviderID).To(Equal("aws:///" + zoneA + "/" + made[0].ID))
	f.Expect(m.Finalizers).To(ContainElement(inframachine.Finalizer))
	f.Expect(m.Status.Ready).To(BeTrue(), "v1beta1 contract")
	f.Expect(m.Status.Initialization.Provisioned).To(HaveValue(BeTrue()), "v1beta2 contract")
	f.Expect(m.Status.FailureDomain).To(Equal(zoneA))
	f.Expect(m.Status.InstanceID).To(Equal(made[0].ID))
	f.Expect(m.Status.InstanceState).To(Equal(driverv1.InstanceRunning))
	f.Expect(m.Status.Addresses).To(ContainElement(clusterv1.MachineAddress{
		Type: clusterv1.MachineInternalIP, Address: made[0].PrivateIPAddress}))
	f.Expect(m.Status.ObservedGeneration).To(Equal(m.Generation))
	f.Expect(f.condition("m", driverv1.InstanceProvisionedCondition)()).To(Equal("True InstanceRunning"))
	f.Expect(f.condition("m", driverv1.PausedCondition)()).To(Equal("False NotPaused"))

	f.Expect(f.calls("RunInstances")).To(Equal(1))
	for _, tags := range []map[string]string{made[0].Tags, f.sim.Volumes()[0].Tags, f.sim.NetworkInterfaces()[0].Tags} {
		f.Expect(tags).To(HaveKeyWithValue(instance.TagOwnerUID, string(m.UID)))
		f.Expect(tags).To(HaveKeyWithValue(instance.TagMachine, f.namespace+"/m"))
		f.Expect(tags).To(HaveKeyWithValue(instance.TagCluster, f.namespace+"/green"))
		f.Expect(tags).To(HaveKeyWithValue("kubernetes.io/cluster/green", "owned"))
		f.Expect(tags).To(HaveKeyWithValue("Name", "m"))
		f.Expect(tags).To(HaveKeyWithValue("team", "blue"))
	}
	f.Eventually(f.events).Should(ContainElements("InstanceLaunched", "InstanceRunning"))
}

// events returns the reasons of the events in the namespace.
func (f *fixture) events() []string {
	list := &eventsv1.EventList{}
	if err := f.client.List(f.ctx, list, client.InNamespace(f.namespace)); err != nil {
		return []string{err.Error()}
	}
	var reasons []string
	for _, e := range list.Items {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

func TestLaunchRequest(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m", func(m *infrav1.AWSMachine) {
		m.Spec.Spot = &infrav1.Spot{MaxPrice: "0.05"}
		m.Spec.UserDataCompression = driverv1.UserDataCompressionGzip
		size := int32(40)
		m.Spec.Volumes = []infrav1.DataVolume{{Device: "/dev/sdf", Volume: infrav1.Volume{SizeGiB: &size}}}
		m.Spec.Metadata = infrav1.InstanceMetadata{HopLimit: new(int32(2))}
	})
	m := f.becomesReady("m")
	f.Expect(m.Status.Interruptible).To(HaveValue(BeTrue()))
	f.Expect(f.instances()[0].Spot).To(BeTrue())
	f.Expect(f.instances()[0].VolumeIDs).To(HaveLen(2))
	for _, c := range f.sim.Calls() {
		if c.Action == "RunInstances" {
			f.Expect(c.Parameters).To(HaveKeyWithValue("MetadataOptions.HttpTokens", "required"))
			f.Expect(c.Parameters).To(HaveKeyWithValue("MetadataOptions.HttpPutResponseHopLimit", "2"))
		}
	}
}

func TestLaunchesOfATemplateShareLookups(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	search := func(m *infrav1.AWSMachine) {
		m.Spec.AMI = infrav1.AMIReference{Owners: []string{"self"},
			Filters: []infrav1.Filter{{Name: "name", Values: []string{"millwright-node-*"}}}}
		m.Spec.Subnets = []infrav1.SubnetReference{{ID: subnetA}, {ID: subnetB}}
	}
	names := []string{"m1", "m2", "m3", "m4"}
	for _, name := range names {
		f.machine(name, search)
	}
	for _, name := range names {
		f.becomesReady(name)
	}
	f.Expect(f.instances()).To(HaveLen(4))
	f.Expect(f.calls("RunInstances")).To(Equal(4))
	f.Expect(f.calls("DescribeImages")).To(Equal(1))
	f.Expect(f.calls("DescribeSubnets")).To(Equal(2), "one for each subnet")
}

func TestFailureDomainChoosesTheSubnet(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.cluster(true)
	f.secret("m")
	owner := f.ownerMachine("m", "m", true)
	base := owner.DeepCopy()
	owner.Spec.FailureDomain = "us-east-1b"
	f.Expect(f.client.Patch(f.ctx, owner, client.MergeFrom(base))).To(Succeed())
	f.awsMachine("m", owner, func(m *infrav1.AWSMachine) {
		m.Spec.Subnets = []infrav1.SubnetReference{{ID: subnetA}, {ID: subnetB}}
	})
	m := f.becomesReady("m")
	f.Expect(m.Status.FailureDomain).To(Equal("us-east-1b"))
	f.Expect(f.instances()[0].SubnetID).To(Equal(subnetB))
}

func TestCAPA4192And2794AnIdleProviderIsQuiet(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.InventorySlow = time.Hour
	f.start()
	f.machine("m1")
	f.machine("m2")
	f.becomesReady("m1")
	before := f.becomesReady("m2").ResourceVersion
	changes := 0
	f.Eventually(func(g Gomega) { // the last fast list may still be on its way
		f.sim.ClearCalls()
		cluster := f.cluster(true)
		base := cluster.DeepCopy()
		changes++
		cluster.Labels = map[string]string{"changes": strconv.Itoa(changes)}
		cluster.Annotations = cluster.Labels
		g.Expect(f.client.Patch(f.ctx, cluster, client.MergeFrom(base))).To(Succeed())
		g.Consistently(func() int { return len(f.sim.Calls()) }, "500ms").Should(BeZero(), "nor does a change of the Cluster ask for anything")
	}).Should(Succeed())
	m, err := f.get("m2")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.ResourceVersion).To(Equal(before), "nothing is written when nothing changes")
}

func TestWritesOfALaunch(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{Pending: time.Second}})
	var patches, statusPatches atomic.Int32
	f.intercept.Patch = patchFault(func(string) bool { patches.Add(1); return false }, nil)
	f.intercept.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, obj client.Object, patch client.Patch,
		opts ...client.SubResourcePatchOption) error {
		statusPatches.Add(1)
		return c.SubResource(sub).Patch(ctx, obj, patch, opts...)
	}
	f.start()
	f.machine("m")
	f.becomesReady("m")
	f.Expect(patches.Load()).To(Equal(int32(2)), "the launch record with the finalizer, and the provider ID")
	f.Expect(statusPatches.Load()).To(Equal(int32(2)), "pending, running")
}

func TestMissingBootstrapSecret(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	owner := f.ownerMachine("other", "other", true)
	f.awsMachine("other", owner)
	f.Eventually(f.ready("other")).Should(Equal("False WaitingForBootstrapData"))
	f.secret("other")
	f.touch("other")
	f.becomesReady("other")
}

func TestEmptyBootstrapSecret(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.cluster(true)
	secret := &corev1.Secret{}
	secret.Namespace, secret.Name = f.namespace, "m"
	f.Expect(f.client.Create(f.ctx, secret)).To(Succeed())
	f.awsMachine("m", f.ownerMachine("m", "m", true))
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForBootstrapData"))
	f.Expect(f.calls("RunInstances")).To(BeZero())
}
