package standin

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/conformance/probe"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/contracts/version"
)

// machines reconciles StandInMachines.
type machines struct {
	reconciler
	cloud *Cloud
}

// AddMachine adds the controller of StandInMachines under a version of the contract.
func AddMachine(mgr ctrl.Manager, contract version.Contract, cloud *Cloud, switches Switches) error {
	// Not from the cache: the stand-in must break rules by its switches alone.
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	r := &machines{cloud: cloud, reconciler: reconciler{
		Switches: switches, client: direct, contract: contract, kind: VersionOf(contract).WithKind("StandInMachine"), memory: map[string]string{},
		rules: about{byCluster: "IM-026", byAnnotation: "IM-027", condition: "IM-028", resumes: "IM-029", has: "IM-007", current: "IM-016"},
	}}
	return r.setup(mgr, "standin-machine", r)
}

// Reconcile implements reconcile.Reconciler.
func (r *machines) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.read(ctx, request.NamespacedName)
	if o == nil || err != nil {
		if err == nil && r.breaks("IM-032") {
			r.cloud.end(r.cloud.with(request.Name))
		}
		return reconcile.Result{}, err
	}
	wait, err := r.reconcile(ctx, o)
	if err == nil {
		err = o.save(ctx)
	}
	if conflict(err) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	return reconcile.Result{RequeueAfter: wait}, err
}

func (r *machines) reconcile(ctx context.Context, o *object) (time.Duration, error) {
	cluster, err := r.cluster(ctx, o)
	if err != nil {
		return 0, err
	}
	if left, err := r.pause(ctx, o, cluster); left || err != nil {
		return 0, err
	}
	machine, err := r.owner(ctx, o, r.breaks("IM-001"))
	if err != nil {
		return 0, err
	}
	waits := r.waitsFor(machine, cluster)
	if o.GetDeletionTimestamp() != nil {
		return r.end(o, waits)
	}
	if r.breaks("IM-025") {
		addFinalizer(o)
	}
	if waits != "" {
		r.ready(o, metav1.ConditionFalse, "Waiting", "waits for "+waits)
		return 0, nil
	}
	return r.provision(ctx, o, machine)
}

// waitsFor is the precondition that is missing for a machine to be launched.
func (r *machines) waitsFor(machine *clusterv1.Machine, cluster *clusterv1.Cluster) string {
	switch {
	case machine == nil:
		return "its owner"
	case cluster == nil && !r.breaks("IM-020"):
		return "its Cluster"
	case machine.Spec.Bootstrap.DataSecretName == nil && !r.breaks("IM-018"):
		return "its bootstrap data"
	case cluster != nil && !ptr.Deref(cluster.Status.Initialization.InfrastructureProvisioned, false) && !r.breaks("IM-019"):
		return "the infrastructure of its Cluster"
	}
	return ""
}

// end terminates the machine, and removes the object's finalizer when it is gone.
func (r *machines) end(o *object, waits string) (time.Duration, error) {
	if waits != "" && r.breaks("IM-025") {
		return again, nil
	}
	left := r.cloud.with(o.GetName())
	if r.breaks("IM-009") && o.reason(clusterv1.ReadyCondition) != "Deleting" {
		// It breaks this rule alone: the deletion is reported before the object is gone.
		r.ready(o, metav1.ConditionFalse, "Deleting", "the machine is being terminated")
		return again, nil
	}
	if r.breaks("IM-009") {
		left = nil // The machine is never terminated.
	}
	r.cloud.end(left)
	if len(left) > 0 {
		r.ready(o, metav1.ConditionFalse, "Deleting", "the machine is being terminated")
		return again, nil
	}
	o.SetFinalizers(slices.DeleteFunc(o.GetFinalizers(), func(name string) bool { return name == finalizer }))
	return 0, nil
}

func addFinalizer(o *object) {
	if !slices.Contains(o.GetFinalizers(), finalizer) {
		o.SetFinalizers(append(o.GetFinalizers(), finalizer))
	}
}

// provision launches the machine, and reports it.
func (r *machines) provision(ctx context.Context, o *object, machine *clusterv1.Machine) (time.Duration, error) {
	if !r.breaks("IM-021") {
		addFinalizer(o)
		if err := o.save(ctx); err != nil {
			return 0, err
		}
	}
	vm, fresh := r.ensure(o, machine)
	if !vm.Running {
		r.ready(o, metav1.ConditionFalse, "Waiting", "the machine starts")
		return again, nil
	}
	if err := r.report(ctx, o, vm, fresh, machine); err != nil {
		return 0, err
	}
	// With IM-021 broken, only now: too late to be of use.
	addFinalizer(o)
	return 0, nil
}

// ensure finds the machine of the object or launches it. fresh is true if this process has launched it.
func (r *machines) ensure(o *object, machine *clusterv1.Machine) (vm probe.Machine, fresh bool) {
	name, uid := o.GetName(), string(o.GetUID())
	zone := machine.Spec.FailureDomain
	if zone == "" || r.breaks("IM-022") {
		zone = Zones[0]
	}
	known := r.cloud.with(name)
	switch {
	case len(known) == 0,
		r.breaks("IM-030") && len(r.cloud.with(uid)) == 0,
		r.breaks("IM-024") && r.recall("vm/"+name) == "",
		r.breaks("IM-023") && o.GetAnnotations()[touched] != r.recall("touched/"+uid):
		r.remember("vm/"+name, "launched")
		r.remember("fresh/"+uid, "true")
		r.remember("touched/"+uid, o.GetAnnotations()[touched])
		return r.cloud.launch(zone, name, uid), true
	}
	vm = known[0]
	if own := r.cloud.with(uid); r.breaks("IM-030") {
		vm = own[0]
	}
	return vm, r.recall("fresh/"+uid) != ""
}

// report writes what the contract requires.
func (r *machines) report(ctx context.Context, o *object, vm probe.Machine, fresh bool, machine *clusterv1.Machine) error {
	touches := o.GetAnnotations()[touched]
	provisioned := inframachine.At(r.contract).ProvisionedPath()
	if r.breaks("IM-002") && !o.is(provisioned...) {
		o.set(true, provisioned...)
		if err := o.save(ctx); err != nil {
			return err
		}
	}
	id := vm.ProviderID
	if r.breaks("IM-012") && touches != "" {
		id += "-" + touches
	}
	o.set(id, "spec", "providerID")
	if !r.breaks("IM-003") {
		o.set(!r.breaks("IM-011") || touches == "", provisioned...)
	}
	domain := vm.FailureDomain
	if r.breaks("IM-005") {
		domain += "-wrong"
	}
	o.set(domain, "status", "failureDomain")
	kind := "InternalIP"
	if r.breaks("IM-014") {
		kind = "Internal"
	}
	if !r.breaks("IM-004") && (fresh || !r.breaks("IM-031")) {
		o.set([]any{map[string]any{"type": kind, "address": "10.0.0.1"}}, "status", "addresses")
	}
	message := "the machine runs"
	if r.breaks("IM-033") {
		secret := &corev1.Secret{}
		key := client.ObjectKey{Namespace: o.GetNamespace(), Name: ptr.Deref(machine.Spec.Bootstrap.DataSecretName, "")}
		if err := r.client.Get(ctx, key, secret); err == nil {
			message += " with " + string(secret.Data["value"])
		}
	}
	r.ready(o, metav1.ConditionTrue, "Running", message)
	return nil
}
