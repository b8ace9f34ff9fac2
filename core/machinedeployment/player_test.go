package machinedeployment

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/test/coretest"
	"millwright.dev/test/coretest/workers"
)

// machinePlayer plays the Machine controller: Machines become available, and go when they are deleted.
type machinePlayer struct {
	mu sync.Mutex
	// broken Machines, by template, never become available.
	broken string
	// holding keeps Machines that are being deleted, but for those that are released by name.
	holding  bool
	released map[string]bool
	// idle does nothing for Machines that live.
	idle bool
}

func (p *machinePlayer) setIdle(idle bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = idle
}

func (p *machinePlayer) hold(holding bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.holding, p.released = holding, map[string]bool{}
}

func (p *machinePlayer) release(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.released[name] = true
}

func (p *machinePlayer) holds(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.holding && !p.released[name]
}

// outOfStock is the message of broken Machines.
const outOfStock = "large instances are out of stock"

func (p *machinePlayer) setBroken(template string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.broken = template
}

func (p *machinePlayer) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	machine := &clusterv1.Machine{}
	if err := direct.Get(ctx, request.NamespacedName, machine); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !machine.DeletionTimestamp.IsZero() {
		if p.holds(machine.Name) {
			return ctrl.Result{RequeueAfter: workers.PollInterval}, nil
		}
		return ctrl.Result{}, workers.Release(ctx, direct, machine)
	}
	p.mu.Lock()
	broken, idle := p.broken, p.idle
	p.mu.Unlock()
	if idle || machine.Status.NodeRef.IsDefined() {
		return ctrl.Result{}, nil
	}
	before, now := machine.DeepCopy(), time.Now()
	if broken != "" && p.template(ctx, machine) == broken {
		// As the Machine controller does: the status of its MachineSet, and so what enqueues the deployment, follows from Ready.
		for kind, reason := range map[string]string{clusterv1.MachineInfrastructureReadyCondition: "OutOfStock",
			clusterv1.MachineReadyCondition: clusterv1.MachineNotReadyReason} {
			conditions.Set(&machine.Status.Conditions, conditions.False(kind, reason, outOfStock), machine.Generation, now)
		}
		return ctrl.Result{
				RequeueAfter: workers.PollInterval,
			}, client.IgnoreNotFound(
				direct.Status().Patch(ctx, machine, client.MergeFrom(before)),
			)
	}
	machine.Status.NodeRef = clusterv1.MachineNodeReference{Name: machine.Name}
	conditions.Set(&machine.Status.Conditions, conditions.True(clusterv1.MachineReadyCondition, "Ready", ""), machine.Generation, now)
	conditions.Set(&machine.Status.Conditions, conditions.True(clusterv1.MachineAvailableCondition, "Available", ""), machine.Generation, now)
	return ctrl.Result{}, client.IgnoreNotFound(direct.Status().Patch(ctx, machine, client.MergeFrom(before)))
}

// template is the template that the infrastructure of a Machine was created from.
func (p *machinePlayer) template(ctx context.Context, machine *clusterv1.Machine) string {
	infra := coretest.Object(workers.InfraKind, machine.Namespace, machine.Name)
	_ = wait.PollUntilContextTimeout(ctx, workers.PollInterval, workers.Timeout, true, func(ctx context.Context) (bool, error) {
		return direct.Get(ctx, client.ObjectKeyFromObject(machine), infra) == nil, nil
	})
	return infra.GetAnnotations()[clusterv1.TemplateClonedFromNameAnnotation]
}
