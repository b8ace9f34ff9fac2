package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// policy refuses writes until it is lifted, as a ValidatingAdmissionPolicy or RBAC do.
type policy struct{ lifted atomic.Bool }

func (p *policy) refusal() error {
	if p.lifted.Load() {
		return nil
	}
	return apierrors.NewForbidden(schema.GroupResource{Resource: "awsmachines"}, "m", errors.New("the policy of a test denied the request"))
}

func recordsLaunch(patch string) bool { return strings.Contains(patch, inframachine.LaunchAnnotation) }

// A write that is refused at any step looked like nothing at all: the object stayed as it was, and only the log had the reason.
func TestARefusedWriteIsReported(t *testing.T) {
	for name, test := range map[string]struct {
		refuses  func(patch string) bool
		fault    simapi.Fault
		deleting bool
		launches int
	}{
		"the record before the launch": {refuses: recordsLaunch},
		"the record after a refused launch": {fault: apiFault("VcpuLimitExceeded", 1), launches: 1,
			refuses: func(patch string) bool {
				return recordsLaunch(patch) && !strings.Contains(patch, "firstCall")
			}},
		"the provider ID":              {refuses: recordsProviderID, launches: 1},
		"the end of a short launch":    {refuses: func(patch string) bool { return strings.Contains(patch, `"providerID":null`) }, fault: endsForLackOfCapacity(1), launches: 1},
		"the removal of the finalizer": {refuses: func(patch string) bool { return strings.Contains(patch, `"finalizers":null`) }, deleting: true, launches: 1},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			if test.fault.Action != "" {
				f.sim.AddFault(test.fault)
			}
			p := &policy{}
			f.intercept.Patch = patchFault(test.refuses, p.refusal)
			// What is said may be said for moments, until the launch is tried again.
			said := make(chan int, 100)
			f.intercept.SubResourcePatch = func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch,
				opts ...client.SubResourcePatchOption) error {
				if data, err := patch.Data(obj); err == nil && strings.Contains(string(data), driverv1.RefusedByAPIServerReason) &&
					strings.Contains(string(data), "the policy of a test denied the request") {
					select {
					case said <- f.calls("RunInstances"):
					default:
					}
				}
				return c.SubResource(name).Patch(ctx, obj, patch, opts...)
			}
			f.start()
			f.machine("m")
			if test.deleting {
				f.becomesReady("m")
				f.delete("m")
			}
			f.Eventually(said).Should(Receive(Equal(test.launches)))

			p.lifted.Store(true)
			if test.deleting {
				f.Eventually(f.gone("m")).Should(BeTrue())
				return
			}
			f.touch("m")
			f.becomesReady("m")
			f.Expect(f.live()).To(Equal(1))
		})
	}
}

// TestLaunch_RecordRejected_BacksOffAndStaysReported: the record before the launch is rejected for long. Nothing is launched, the wait for
// a slot does not hide the reason, an event names it, and the provider does not ask twice a second.
func TestLaunch_RecordRejected_BacksOffAndStaysReported(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.backoff = func(driver.Class, int) time.Duration { return time.Hour }
	p := &policy{}
	var attempts atomic.Int32
	f.intercept.Patch = patchFault(func(patch string) bool {
		if strings.Contains(patch, inframachine.LaunchAnnotation) {
			attempts.Add(1)
			return true
		}
		return false
	}, p.refusal)
	f.start()
	f.machine("m")
	reported := func() string { return f.ready("m")() + ": " + f.messages["m"] }
	rejected := And(HavePrefix("False RefusedByAPIServer"), ContainSubstring("the policy of a test denied the request"))
	f.Eventually(reported).Should(rejected)
	f.touch("m")
	f.Consistently(reported).WithTimeout(2 * time.Second).Should(rejected)
	f.Expect(attempts.Load()).To(BeEquivalentTo(1), "attempts before the wait is over")
	f.Expect(f.calls("RunInstances")).To(BeZero())

	p.lifted.Store(true)
	f.clock.step(2 * time.Hour)
	f.touch("m")
	f.becomesReady("m")
	f.Expect(f.live()).To(Equal(1))
}

// The wait after a quota is long, and the refusal was replaced by the quota at once: no user could see what to correct.
func TestARefusedRecordStaysReported(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.backoff = func(driver.Class, int) time.Duration { return time.Hour }
	f.sim.AddFault(apiFault("VcpuLimitExceeded", 1))
	p := &policy{}
	f.intercept.Patch = patchFault(func(patch string) bool {
		return recordsLaunch(patch) && !strings.Contains(patch, "firstCall")
	}, p.refusal)
	f.start()
	f.machine("m")
	f.Eventually(func() string { return f.ready("m")() + ": " + f.messages["m"] }).Should(And(
		HavePrefix("False RefusedByAPIServer"),
		ContainSubstring(
			"the policy of a test denied the request",
		),
		ContainSubstring("VcpuLimitExceeded"),
	), "as long as the launch is not tried again")
	p.lifted.Store(true)
	f.clock.step(2 * time.Hour)
	f.touch("m")
	f.becomesReady("m")
	f.Expect(f.live()).To(Equal(1))
}

// Where the status itself is refused, nothing else can report it.
func TestARefusedStatusIsAnEvent(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	p := &policy{}
	f.intercept.SubResourcePatch = func(ctx context.Context, c client.Client, name string, obj client.Object, patch client.Patch,
		opts ...client.SubResourcePatchOption) error {
		if err := p.refusal(); err != nil {
			return err
		}
		return c.SubResource(name).Patch(ctx, obj, patch, opts...)
	}
	f.start()
	f.machine("m")
	f.Eventually(f.events).Should(ContainElement("StatusRefused"))
	p.lifted.Store(true)
	f.touch("m")
	f.becomesReady("m")
	f.Expect(f.live()).To(Equal(1))
}

// Anyone who may write Machines and no Secrets had the kubeconfig of the Cluster handed to a machine of theirs.
func TestAKubeconfigIsNoBootstrapData(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.cluster(true)
	f.secret("green-kubeconfig")
	f.awsMachine("m", f.ownerMachine("m", "m", false))
	f.nameData("m", "green-kubeconfig")
	f.Eventually(f.ready("m")).Should(Equal("False BootstrapDataRefused"))
	f.Expect(f.calls("RunInstances")).To(BeZero())

	secret := &corev1.Secret{}
	f.Expect(f.client.Get(f.ctx, client.ObjectKey{Namespace: f.namespace, Name: "green-kubeconfig"}, secret)).To(Succeed())
	base := secret.DeepCopy()
	secret.OwnerReferences = append(secret.OwnerReferences, ownedByBootstrapConfig())
	f.Expect(f.client.Patch(f.ctx, secret, client.MergeFrom(base))).To(Succeed())
	f.touch("m")
	f.becomesReady("m") // what a bootstrap provider wrote for a config of such a name
}
