package machinedeployment

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/machines"
	"millwright.dev/test/coretest/workers"
)

func (w *world) reports(kind, reason, message string) func(Gomega) {
	return func(g Gomega) {
		found := meta.FindStatusCondition(w.current().Status.Conditions, kind)
		g.Expect(found).NotTo(BeNil())
		g.Expect(*found).To(And(HaveField("Reason", reason), HaveField("Message", ContainSubstring(message))))
	}
}

func TestBrokenTemplateIsReplacedByAGoodOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Create(w.Template(workers.InfraTemplateKind, "c"))
	w.deployment(3)
	w.start(t)
	w.Eventually(w.running(3))
	stop := w.watchNumbers(4, 3)
	w.machines.setBroken("b")
	w.update(toTemplateB)
	w.Eventually(func(g Gomega) { g.Expect(w.Machines()).To(HaveLen(4)) })
	w.Eventually(
		w.reports(clusterv1.MachineDeploymentRollingOutCondition, clusterv1.MachineDeploymentRollingOutReason, "1 of 3 replicas are up to date"),
	)
	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = "c" })
	w.Eventually(func(g Gomega) {
		w.running(3)(g)
		g.Expect(w.listSets()[0].Spec.Template.Spec.InfrastructureRef.Name).To(Equal("c"))
	})
	stop()
	w.Eventually(w.reports(clusterv1.MachineDeploymentRollingOutCondition, clusterv1.MachineDeploymentNotRollingOutReason, ""))
}

func TestPausedRolloutScalesAndResumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.running(2))
	w.update(func(d *clusterv1.MachineDeployment) {
		d.Spec.Paused = ptr.To(true)
		d.Spec.Replicas = ptr.To[int32](3)
		toTemplateB(d)
	})
	w.Eventually(func(g Gomega) {
		g.Expect(w.listSets()).To(HaveLen(1))
		g.Expect(w.current().Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(3)))
		g.Expect(w.current().Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(0)))
	})
	w.Eventually(w.reports(clusterv1.MachineDeploymentRollingOutCondition, RolloutPausedReason, "infrastructure machine template"))
	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Paused = nil })
	w.Eventually(func(g Gomega) {
		w.running(3)(g)
		g.Expect(w.listSets()[0].Spec.Template.Spec.InfrastructureRef.Name).To(Equal("b"))
	})
}

func TestOnDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2, func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	})
	w.start(t)
	w.Eventually(w.running(2))
	w.update(toTemplateB)
	w.Eventually(func(g Gomega) { g.Expect(w.allSets()).To(HaveLen(2)) })
	before := w.Machines()
	w.G.Expect(before).To(HaveLen(2))
	for i := range before {
		w.G.Expect(direct.Delete(t.Context(), &before[i])).To(Succeed())
		w.Eventually(func(g Gomega) {
			g.Expect(w.Machines()).To(HaveLen(2))
			g.Expect(w.current().Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(i + 1)))
			g.Expect(w.current().Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(2)))
		})
	}
	w.Eventually(w.running(2))
}

// TestUnhealthyOutdatedMachineIsReplacedUnderOnDelete has one that no rollout would ever take.
func TestUnhealthyOutdatedMachineIsReplacedUnderOnDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2, func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.Type = clusterv1.OnDeleteMachineDeploymentStrategyType
	})
	w.start(t)
	w.Eventually(w.running(2))
	w.update(toTemplateB)
	w.Eventually(func(g Gomega) { g.Expect(w.allSets()).To(HaveLen(2)) })
	machines := w.Machines()
	unhealthy, well := machines[0], machines[1]
	before := unhealthy.DeepCopy()
	conditions.Set(
		&unhealthy.Status.Conditions,
		conditions.False(clusterv1.MachineHealthCheckSucceededCondition, "NodeUnhealthy", ""),
		0,
		time.Now(),
	)
	conditions.Set(
		&unhealthy.Status.Conditions,
		conditions.False(clusterv1.MachineOwnerRemediatedCondition, "WaitingForRemediation", ""),
		0,
		time.Now(),
	)
	w.G.Expect(direct.Status().Patch(w.Ctx, &unhealthy, client.MergeFrom(before))).To(Succeed())
	w.Eventually(func(g Gomega) {
		uids := w.uids()
		g.Expect(uids).To(HaveLen(2))
		g.Expect(uids).To(And(HaveKey(string(well.UID)), Not(HaveKey(string(unhealthy.UID)))))
		g.Expect(w.current().Status.UpToDateReplicas).To(HaveValue(BeEquivalentTo(1)))
	})
}

func TestFieldsReachMachinesWithoutARollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(1)
	w.start(t)
	w.Eventually(w.running(1))
	before := w.Machines()[0]
	w.update(func(d *clusterv1.MachineDeployment) {
		d.Spec.Template.Labels["tier"] = "front"
		d.Spec.Template.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](9)
	})
	w.Eventually(func(g Gomega) {
		machines := w.Machines()
		g.Expect(machines).To(HaveLen(1))
		g.Expect(machines[0].UID).To(Equal(before.UID))
		g.Expect(machines[0].Labels).To(HaveKeyWithValue("tier", "front"))
		g.Expect(machines[0].Spec.Deletion.NodeDrainTimeoutSeconds).To(HaveValue(BeEquivalentTo(9)))
	})
}

func TestInvalidDeploymentReportsWhatToDo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(1, func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy = clusterv1.MachineDeploymentRolloutStrategy{
			Type:          clusterv1.RollingUpdateMachineDeploymentStrategyType,
			RollingUpdate: clusterv1.MachineDeploymentRolloutStrategyRollingUpdate{MaxSurge: ptr.To(intstr.FromString("lots"))},
		}
		d.Spec.Template.Labels = nil
	})
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineDeploymentScalingUpCondition, InvalidSpecReason, `maxSurge "lots"`))
	w.Eventually(
		w.reports(clusterv1.MachineDeploymentScalingUpCondition, InvalidSpecReason, `spec.selector "cluster.x-k8s.io/cluster-name=c,pool=a"`),
	)
	w.G.Expect(w.allSets()).To(BeEmpty())
	w.update(func(d *clusterv1.MachineDeployment) {
		d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = nil
		d.Spec.Template.Labels = map[string]string{"pool": "a"}
	})
	w.Eventually(w.running(1))
}

func TestBlockedSetIsPassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(1, func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.InfrastructureRef.Name = "absent" })
	w.start(t)
	w.Eventually(w.reports(clusterv1.MachineDeploymentScalingUpCondition, machines.BlockedReason, "absent does not exist"))
	w.Create(w.Template(workers.InfraTemplateKind, "absent"))
	w.Eventually(w.running(1))
}

// TestRefusalsOfMachinesArePassedOn has a quota, a policy or a webhook refuse Machines.
func TestRefusalsOfMachinesArePassedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(1)
	var allowed atomic.Bool
	w.start(t, func(inner client.WithWatch) client.Client {
		return interceptor.NewClient(inner, interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
				if _, ok := object.(*clusterv1.Machine); ok && !allowed.Load() {
					return apierrors.NewForbidden(clusterv1.GroupVersion.WithResource("machines").GroupResource(), object.GetName(),
						errors.New("exceeded quota: machines, used: 0, limited: 0"))
				}
				return c.Create(ctx, object, options...)
			},
		})
	})
	w.Eventually(
		w.reports(clusterv1.MachineDeploymentScalingUpCondition, machines.BlockedReason, "exceeded quota: machines, used: 0, limited: 0"),
	)
	allowed.Store(true)
	w.Eventually(w.running(1))
	w.Eventually(w.reports(clusterv1.MachineDeploymentScalingUpCondition, clusterv1.MachineDeploymentNotScalingUpReason, ""))
}

func TestRestartInTheMiddleOfARollout(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(4)
	w.start(t)
	w.Eventually(w.running(4))
	stop := w.watchNumbers(5, 4)
	w.update(toTemplateB)
	for n := range int32(3) {
		w.Eventually(func(g Gomega) {
			g.Expect(w.current().Status.UpToDateReplicas).To(HaveValue(BeNumerically(">", n)))
		})
		w.Stop()
		w.start(t)
	}
	w.Eventually(w.running(4))
	stop()
	w.G.Expect(w.current().Annotations).To(HaveKeyWithValue(clusterv1.RevisionAnnotation, "2"))
}

func TestRolloutAfterIsKeptToTheTime(t *testing.T) {
	w := newWorld(t)
	w.deployment(1)
	w.start(t)
	w.Eventually(w.running(1))
	first := w.listSets()[0].UID
	after := time.Now().Add(2 * time.Second).Truncate(time.Second)
	w.update(func(d *clusterv1.MachineDeployment) { d.Spec.Rollout.After.Time = after })
	w.Eventually(func(g Gomega) {
		w.running(1)(g)
		set := w.listSets()[0]
		g.Expect(set.UID).NotTo(Equal(first))
		g.Expect(set.CreationTimestamp.Time).To(BeTemporally(">=", after), "not before its time")
	})
}

func TestIdleDeploymentCostsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.deployment(2)
	w.start(t)
	w.Eventually(w.running(2))
	version := func() []string {
		set := w.listSets()[0]
		return []string{w.current().ResourceVersion, set.ResourceVersion}
	}
	w.Eventually(func(g Gomega) {
		now := version()
		g.Consistently(version).WithTimeout(time.Second).Should(Equal(now))
	})
	phases := 0
	w.Eventually(func(g Gomega) { // What was on its way when it seemed to be idle is no answer to the phase.
		now := version()
		machine := w.Machines()[0]
		before := machine.DeepCopy()
		phases++
		machine.Status.Phase = []string{"Running", "Provisioned"}[phases%2]
		w.G.Expect(direct.Status().Patch(t.Context(), &machine, client.MergeFrom(before))).To(Succeed())
		g.Consistently(version).WithTimeout(time.Second).Should(Equal(now))
	})
}
