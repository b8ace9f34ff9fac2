package instance_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"k8s.io/utils/ptr"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
	"millwright.dev/providers/gcp/instance"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// TestLife from the launch to the moment when nothing is left, with the calls that it takes.
func TestLife(t *testing.T) {
	f := newFixture(t, compute.Options{})
	l := launch(zoneA, "one", 1)
	h := f.accepted(l)
	for _, expected := range []string{"", "PROVISIONING", "STAGING"} {
		i := f.observe(h)
		f.Expect(i.Err).NotTo(HaveOccurred())
		f.Expect(i.Value).To(And(HaveField("State", driverv1.InstancePending), HaveField("StateCode", expected), HaveField("ProviderID", "")))
		f.Expect(h.Owns(i.Value)).To(BeTrue())
		f.clock.Step(time.Second)
	}
	i := f.observe(h).Value
	f.Expect(i).To(And(
		HaveField("State", driverv1.InstanceRunning),
		HaveField("ProviderID", "gce://"+project+"/"+zoneA+"/one"),
		HaveField("Token", l.Token),
		HaveField(
			"FailureDomain",
			zoneA,
		),
		HaveField("InstanceType", "e2-standard-2"),
		HaveField("Lineage", "u_e_1"),
		HaveField("Interruptible", false),
		HaveField("Addresses", []clusterv1.MachineAddress{{Type: clusterv1.MachineInternalIP, Address: "10.128.0.2"}}),
	))
	f.Expect(i.LaunchTime).NotTo(BeZero())
	listed, err := f.List(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(listed).To(ConsistOf(i))
	disks := f.cloud.Disks(project)
	f.Expect(disks).To(HaveLen(1))
	f.Expect(disks[0].Labels).To(And(HaveKeyWithValue(instance.LabelOwnerUID, "uid-one"), HaveKeyWithValue("team", "blue")))

	h.ProviderID = i.ProviderID
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceStopping))
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0].Value).To(HaveLen(1), "its disk, which goes with it")
	f.settle()
	f.class(f.observe(h).Err, driver.ClassNotFound)
	f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassNotFound)
	f.Expect(f.Cleanup(f.ctx, scope, []driver.Handle{h})[0]).To(Equal(driver.Answer[[]string]{}))
	f.Expect(f.count("instances.insert")).To(Equal(1))
	f.Expect(f.count("zoneOperations.get")).To(Equal(2), "as long as there was no instance, and for its deletion")
}

// TestARepeatedLaunch gets the operation of the first, also when its answer was lost.
func TestARepeatedLaunch(t *testing.T) {
	f := newFixture(t, compute.Options{})
	l := launch(zoneA, "one", 1)
	f.fault(simulator.Fault{Action: "instances.insert", Count: 1, Cut: simulator.CutAfter})
	_, err := f.Create(f.ctx, l)
	f.class(err, driver.ClassUnknown)
	lost := handle(l, "")
	f.Expect(f.observe(lost).Value.State).To(Equal(driverv1.InstancePending), "the operation is found by the request ID")
	f.Expect(f.accepted(l)).To(Equal(f.accepted(l)))
	f.Expect(f.cloud.Instances(project)).To(HaveLen(1))
	_, err = f.Create(f.ctx, launch(zoneA, "one", 2))
	f.class(err, driver.ClassConflict)
}

func TestPlaces(t *testing.T) {
	f := newFixture(t, compute.Options{})
	l := launch(zoneA, "one", 1)
	places, err := f.Places(f.ctx, l)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(places).To(HaveLen(4))
	f.Expect(places[3]).
		To(Equal(driver.Candidate{Rank: 1, Placement: driver.Placement{ID: zoneB, FailureDomain: zoneB, InstanceType: "e2-standard-4"},
			Subnet: "the default network in us-central1"}))
	l.Object.Spec.Subnetwork = "https://www.googleapis.com/compute/v1/projects/p/regions/us-central1/subnetworks/s"
	places, err = f.Places(f.ctx, l)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(places).To(HaveEach(HaveField("Subnet", "projects/p/regions/us-central1/subnetworks/s")))
	l.FailureDomain, l.Object.Spec.ProvisioningModel = zoneB, infrav1.ProvisioningModelSpot
	places, err = f.Places(f.ctx, l)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(places).To(HaveEach(And(HaveField("ID", zoneB), HaveField("Market", "spot"))))
	f.Expect(places).To(HaveLen(2))
	l.FailureDomain = "us-central1-f"
	_, err = f.Places(f.ctx, l)
	f.class(err, driver.ClassTerminal)
	f.Expect(f.count("")).To(BeZero())
}

// TestSpecs: Compute Engine takes what each field asks for, and does it.
func TestSpecs(t *testing.T) {
	const shared = "projects/shared-network/regions/us-central1/subnetworks/"
	for name, c := range map[string]struct {
		change func(*infrav1.GCPMachineSpec)
		holds  func(*fixture, compute.Instance)
	}{
		"network": {func(s *infrav1.GCPMachineSpec) {
			s.Subnetwork, s.StackType, s.PublicIP, s.CanIPForward = shared+"nodes", infrav1.StackTypeDual, ptr.To(true), ptr.To(true)
			s.AliasIPRanges, s.NetworkTags = []infrav1.AliasIPRange{{IPCIDRRange: "/24", SecondaryRange: "pods"}}, []string{"node"}
		}, func(f *fixture, i compute.Instance) {
			f.Expect(i.NetworkInterfaces[0].AliasIPRanges).To(HaveLen(1))
			f.Expect(i.NetworkInterfaces[0].Subnetwork).To(HaveSuffix(shared + "nodes"))
			f.Expect(i.Tags.Items).To(Equal([]string{"node"}))
			f.Expect(i.CanIPForward).To(BeTrue())
		}},
		"disks": {func(s *infrav1.GCPMachineSpec) {
			s.MachineType = "m1-megamem-96"
			s.BootDisk = &infrav1.Disk{Type: "pd-ssd", SizeGiB: ptr.To[int32](30), KMSKeyName: "projects/p/locations/l/keyRings/r/cryptoKeys/k"}
			s.Disks = []infrav1.Disk{{Type: "local-ssd"}, {Type: "hyperdisk-balanced", SizeGiB: ptr.To[int32](100),
				ProvisionedIOPS: ptr.To[int32](4000)}}
		}, func(f *fixture, i compute.Instance) {
			f.Expect(i.Disks).To(HaveLen(3))
			f.Expect(i.Disks).To(HaveEach(HaveField("AutoDelete", true)))
			f.Expect(i.Disks[1].Type).To(Equal("SCRATCH"))
			disks := f.cloud.Disks(project)
			f.Expect(disks).To(HaveLen(2))
			f.Expect(disks).To(HaveEach(HaveField("Labels", HaveKeyWithValue(instance.LabelOwnerUID, "uid-one"))))
			f.Expect(disks[0]).To(And(HaveField("SizeGB", BeEquivalentTo(30)), HaveField("Type", HaveSuffix("/pd-ssd")),
				HaveField("DiskEncryptionKey.KMSKeyName", HaveSuffix("/k")), HaveField("SourceImage", "projects/images/global/images/family/node")))
			f.Expect(disks[1].ProvisionedIOPS).To(BeEquivalentTo(4000))
		}},
		"spot": {func(s *infrav1.GCPMachineSpec) { s.ProvisioningModel = infrav1.ProvisioningModelSpot }, func(f *fixture, i compute.Instance) {
			f.Expect(*i.Scheduling).To(And(HaveField("InstanceTerminationAction", "DELETE"), HaveField("OnHostMaintenance", "TERMINATE")))
		}},
		"accelerators": {func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.Accelerators = "n1-standard-4", []infrav1.Accelerator{{Type: "nvidia-tesla-t4", Count: 2}}
		},
			func(f *fixture, i compute.Instance) {
				f.Expect(i.GuestAccelerators[0].AcceleratorCount).To(Equal(2))
				f.Expect(i.Scheduling.OnHostMaintenance).To(Equal("TERMINATE"))
			}},
		"security": {func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.Shielded, s.ConfidentialType = "n2d-standard-2", &infrav1.Shielded{SecureBoot: ptr.To(true)}, "SEV"
			s.ServiceAccount, s.DeletionProtection = &infrav1.ServiceAccount{Email: "node@p.iam.gserviceaccount.com"}, ptr.To(true)
		}, func(f *fixture, i compute.Instance) {
			f.Expect(*i.ShieldedInstanceConfig).To(Equal(compute.ShieldedConfig{EnableSecureBoot: true, EnableVTPM: true,
				EnableIntegrityMonitoring: true}))
			f.Expect(i.ConfidentialInstanceConfig.ConfidentialInstanceType).To(Equal("SEV"))
			f.Expect(i.ServiceAccounts[0].Scopes).To(Equal([]string{"https://www.googleapis.com/auth/cloud-platform"}))
			f.Expect(i.DeletionProtection).To(BeTrue())
		}},
		"SEV_SNP": {func(s *infrav1.GCPMachineSpec) { s.MachineType, s.ConfidentialType = "n2d-standard-2", "SEV_SNP" },
			func(f *fixture, i compute.Instance) {
				f.Expect(i.MinCPUPlatform).To(Equal("AMD Milan"))
				f.Expect(i.Scheduling.OnHostMaintenance).To(Equal("TERMINATE"))
			}},
		"SEV that migrates": {func(s *infrav1.GCPMachineSpec) {
			s.MachineType, s.ConfidentialType, s.OnHostMaintenance = "n2d-standard-2", "SEV", "MIGRATE"
		}, func(f *fixture, i compute.Instance) {
			f.Expect(i.MinCPUPlatform).To(Equal("AMD Milan"))
		}},
		"reservation and image": {func(s *infrav1.GCPMachineSpec) {
			s.Reservation = &infrav1.Reservation{Affinity: infrav1.ReservationAffinitySpecific, Name: "r"}
			s.Image, s.Metadata = infrav1.ImageReference{Project: "images", Name: "node-v1-36-2"}, map[string]infrav1.MetadataValue{"a": "b"}
		}, func(f *fixture, i compute.Instance) {
			f.Expect(*i.ReservationAffinity).To(Equal(compute.Affinity{
				ConsumeReservationType: "SPECIFIC_RESERVATION", Key: "compute.googleapis.com/reservation-name", Values: []string{"r"}}))
			f.Expect(i.Metadata.Items).To(Equal([]compute.MetadataItem{{Key: "a", Value: "b"}, {Key: "user-data", Value: "#cloud-config\n"}}))
			f.Expect(f.cloud.Disks(project)[0].SourceImage).To(Equal("projects/images/global/images/node-v1-36-2"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, compute.Options{})
			f.running(launch(zoneA, "one", 1, c.change))
			c.holds(f, f.cloud.Instances(project)[0])
		})
	}
}

// TestUserDataThatIsNoText is handed over in base64, and the largest that the kit hands in fits.
func TestUserDataThatIsNoText(t *testing.T) {
	f := newFixture(t, compute.Options{})
	l := launch(zoneA, "one", 1)
	l.UserData = []byte(strings.Repeat("\xff", f.Traits().UserDataLimit))
	f.running(l)
	items := f.cloud.Instances(project)[0].Metadata.Items
	f.Expect(items[1]).To(Equal(compute.MetadataItem{Key: "user-data-encoding", Value: "base64"}))
}

// TestDisksOfOtherAttempts are not those of this one, since Compute Engine would attach what has the name.
func TestDisksOfOtherAttempts(t *testing.T) {
	names := map[string]bool{}
	for attempt := range 3 {
		f := newFixture(t, compute.Options{})
		l := launch(zoneA, "one", attempt)
		l.Name = strings.Repeat("x", 63)
		f.running(l)
		name := f.cloud.Disks(project)[0].Name
		f.Expect(len(name)).To(BeNumerically("<=", 63))
		names[name] = true
	}
	NewWithT(t).Expect(names).To(HaveLen(3))
}

func TestStates(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.running(launch(zoneA, "one", 1))
	for status, expected := range map[string]driverv1.InstanceState{
		"RUNNING": driverv1.InstanceRunning, "SUSPENDING": driverv1.InstanceStopping, "SUSPENDED": driverv1.InstanceStopped,
		"TERMINATED": driverv1.InstanceStopped, "REPAIRING": driverv1.InstanceStopping, "STAGING": driverv1.InstancePending,
		"PROVISIONING": driverv1.InstancePending, "PENDING_STOP": driverv1.InstanceStopping, "SOMETHING_NEW": driverv1.InstancePending,
	} {
		f.Expect(f.cloud.SetStatus(project, zoneA, "one", status)).To(Succeed())
		f.Expect(f.observe(h).Value.State).To(Equal(expected), status)
		listed, err := f.List(f.ctx, scope)
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(listed[0].ProviderID).To(Equal(h.ProviderID), "one that has run is certain, whatever it does: %s", status)
	}
}

// TestManyHandles cost one call, and one that leads to nothing spoils no other's answer.
func TestManyHandles(t *testing.T) {
	f := newFixture(t, compute.Options{})
	handles := []driver.Handle{
		f.running(launch(zoneA, "one", 1)),
		f.running(launch(zoneB, "two", 1)),
		{ProviderID: "nonsense"},
		{ProviderID: "gce://other-project/" + zoneA + "/one"},
	}
	f.cloud.ClearCalls()
	answers := f.Observe(f.ctx, scope, handles)
	f.Expect(f.count("")).To(Equal(1))
	f.Expect(answers[0].Value.ProviderID).To(Equal(handles[0].ProviderID))
	f.Expect(answers[1].Value.FailureDomain).To(Equal(zoneB))
	f.class(answers[2].Err, driver.ClassNotFound)
	f.class(answers[3].Err, driver.ClassNotFound)
	f.cloud.ClearCalls()
	f.class(f.Observe(f.ctx, scope, handles[2:3])[0].Err, driver.ClassNotFound)
	f.Expect(f.count("")).To(BeZero(), "an empty filter would be everything")
}

// TestSpotTakenBack is distinguished from one that a user has stopped.
func TestSpotTakenBack(t *testing.T) {
	f := newFixture(t, compute.Options{})
	stays := func(s *infrav1.GCPMachineSpec) {
		s.ProvisioningModel, s.InstanceTerminationAction = infrav1.ProvisioningModelSpot, infrav1.InstanceTerminationActionStop
	}
	taken, stopped := f.running(launch(zoneA, "taken", 1, stays)), f.running(launch(zoneA, "stopped", 1, stays))
	f.Expect(f.observe(taken).Value).To(And(HaveField("Interruptible", true), HaveField("Interrupted", false), HaveField("Market", "spot")))
	f.Expect(f.count("globalOperations.aggregatedList")).To(BeZero(), "nothing has stopped")
	f.Expect(f.cloud.Preempt(project, zoneA, "taken")).To(Succeed())
	f.Expect(f.cloud.SetStatus(project, zoneA, "stopped", "TERMINATED")).To(Succeed())
	f.settle()
	f.Expect(f.observe(taken).Value).To(And(HaveField("Interrupted", true), HaveField("State", driverv1.InstanceStopped)))
	f.Expect(f.observe(stopped).Value).To(And(HaveField("Interrupted", false), HaveField("State", driverv1.InstanceStopped)))
}

// TestDeletionProtection: without lifting it, the deletion is refused until a user acts.
func TestDeletionProtection(t *testing.T) {
	f := newFixture(t, compute.Options{})
	l := launch(zoneA, "one", 1, func(s *infrav1.GCPMachineSpec) { s.DeletionProtection = ptr.To(true) })
	h := f.running(l)
	f.Expect(f.Protected(l.Object)).To(BeTrue())
	f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassTerminal)
	f.Expect(f.Unprotect(f.ctx, scope, h)).To(Succeed())
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
}
