package standin

import (
	"context"
	"crypto/rand"
	"encoding/hex"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/version"
)

// labelConfig is on a Secret of a StandInConfig, with its name.
const labelConfig = Group + "/config"

// configs reconciles StandInConfigs.
type configs struct{ reconciler }

// AddConfig adds the controller of StandInConfigs under a version of the contract.
func AddConfig(mgr ctrl.Manager, contract version.Contract, switches Switches) error {
	direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return err
	}
	r := &configs{reconciler{
		Switches: switches, client: direct, contract: contract, kind: VersionOf(contract).WithKind("StandInConfig"), memory: map[string]string{},
		rules: about{byCluster: "BC-022", byAnnotation: "BC-023", condition: "BC-024", resumes: "BC-025", has: "BC-004", current: "BC-015"},
	}}
	return r.setup(mgr, "standin-config", r)
}

// Reconcile implements reconcile.Reconciler.
func (r *configs) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	o, err := r.read(ctx, request.NamespacedName)
	if o == nil || err != nil {
		return reconcile.Result{}, err
	}
	if err = r.reconcile(ctx, o); err == nil {
		err = o.save(ctx)
	}
	if conflict(err) || apierrors.IsAlreadyExists(err) {
		return reconcile.Result{RequeueAfter: again}, nil
	}
	return reconcile.Result{}, err
}

func (r *configs) reconcile(ctx context.Context, o *object) error {
	if o.GetDeletionTimestamp() != nil {
		return nil
	}
	cluster, err := r.cluster(ctx, o)
	if err != nil {
		return err
	}
	if left, err := r.pause(ctx, o, cluster); left || err != nil {
		return err
	}
	machine, err := r.owner(ctx, o, r.breaks("BC-001"))
	if err != nil {
		return err
	}
	switch {
	case machine == nil:
		r.ready(o, metav1.ConditionFalse, "Waiting", "waits for its owner")
		return nil
	case cluster == nil && !r.breaks("BC-019"):
		r.ready(o, metav1.ConditionFalse, "Waiting", "waits for its Cluster")
		return nil
	}
	secret, taken, err := r.data(ctx, o)
	if err != nil {
		return err
	}
	return r.report(ctx, o, secret, taken)
}

// data finds the Secret or creates it; taken is true if it existed before the status reported it.
func (r *configs) data(ctx context.Context, o *object) (secret *corev1.Secret, taken bool, err error) {
	list := &corev1.SecretList{}
	if err := r.client.List(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingLabels{labelConfig: o.GetName()}); err != nil {
		return nil, false, err
	}
	fresh := !o.is(bootstrapconfig.At(r.contract).DataSecretCreatedPath()...)
	if len(list.Items) == 0 {
		secret = r.newSecret(o)
		r.remember("created/"+o.GetName(), "true")
		return secret, false, r.client.Create(ctx, secret)
	}
	secret = &list.Items[0]
	touches := o.GetAnnotations()[touched]
	switch {
	case r.breaks("BC-026") && fresh && r.recall("uid/"+o.GetName()) != string(o.GetUID()),
		r.breaks("BC-021") && !fresh && r.recall("created/"+o.GetName()) == "",
		r.breaks("BC-020") && touches != "" && touches != r.recall("touched/"+o.GetName()):
		r.remember("touched/"+o.GetName(), touches)
		r.remember("created/"+o.GetName(), "true")
		secret.Data = r.newSecret(o).Data
		err = r.client.Update(ctx, secret)
	}
	return secret, fresh && r.recall("uid/"+o.GetName()) != string(o.GetUID()), err
}

// newSecret returns a Secret whose data contain a token, a new one each time.
func (r *configs) newSecret(o *object) *corev1.Secret {
	random := make([]byte, 11)
	_, _ = rand.Read(random)
	token := hex.EncodeToString(random)[:6] + "." + hex.EncodeToString(random)[6:22]
	r.remember("uid/"+o.GetName(), string(o.GetUID()))
	name := o.GetName()
	if r.breaks("BC-014") {
		name += "-" + token[:6]
	}
	data := "#cloud-config\nruncmd:\n- join " + token + "\n"
	if !r.breaks("BC-017") {
		data += "- touch /run/cluster-api/bootstrap-success.complete\n"
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: name, Labels: map[string]string{labelConfig: o.GetName()},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(o, r.kind)},
		},
		Type: clusterv1.ClusterSecretType, Data: map[string][]byte{"value": []byte(data), "format": []byte("cloud-config")},
	}
	if !r.breaks("BC-009") {
		secret.Labels[clusterv1.ClusterNameLabel] = o.GetLabels()[clusterv1.ClusterNameLabel]
	}
	if r.breaks("BC-006") {
		secret.Data["userdata"] = secret.Data["value"]
		delete(secret.Data, "value")
	}
	if r.breaks("BC-010") {
		secret.OwnerReferences[0].Controller = nil
	}
	if r.breaks("BC-011") {
		secret.Type = corev1.SecretTypeOpaque
	}
	if r.breaks("BC-012") {
		delete(secret.Data, "format")
	}
	return secret
}

// report writes what the contract requires.
func (r *configs) report(ctx context.Context, o *object, secret *corev1.Secret, taken bool) error {
	created := bootstrapconfig.At(r.contract).DataSecretCreatedPath()
	touches := o.GetAnnotations()[touched]
	if r.breaks("BC-003") && !o.is(created...) {
		o.set(true, created...)
		if err := o.save(ctx); err != nil {
			return err
		}
	}
	o.set(secret.Name, "status", "dataSecretName")
	if !r.breaks("BC-002") {
		o.set(!r.breaks("BC-013") || touches == "", created...)
	}
	message := "the data exist"
	if r.breaks("BC-028") {
		message = string(secret.Data["value"])
	}
	if taken && r.breaks("BC-027") {
		r.remember("lost/"+string(o.GetUID()), "true")
	}
	if r.recall("lost/"+string(o.GetUID())) == "" {
		r.ready(o, metav1.ConditionTrue, "Made", message)
	}
	return nil
}
