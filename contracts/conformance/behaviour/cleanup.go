package behaviour

import (
	"cmp"
	"context"
	stderrors "errors"
	"slices"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// noFinalizers is a patch that removes all finalizers.
const noFinalizers = `{"metadata":{"finalizers":null}}`

// cleanup removes what a run has created: the provider's objects first, then the other objects of the sample in reverse order, and Secrets
// last: what the provider needs to delete an object, such as credentials, exists until the object is gone.
type cleanup struct {
	env       *Env
	kinds     []schema.GroupVersionKind
	once      []*unstructured.Unstructured
	namespace *corev1.Namespace
	// stop ends the renewal of the run's Lease; nil if there is none.
	stop func()
}

func newCleanup(env *Env) *cleanup { return &cleanup{env: env} }

// run removes everything, also when ctx has ended: an interrupted run must leave no machines.
func (c *cleanup) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.env.Timeouts.Cleanup.Duration)
	defer cancel()
	var failures []error
	note := func(err error) { failures = append(failures, err) }
	if c.env.Namespace == "" {
		return nil
	}
	for _, kind := range c.kinds {
		note(c.subjects(ctx, kind))
		template := kind.GroupVersion().WithKind(kind.Kind + "Template")
		if err := c.all(ctx, template); !meta.IsNoMatchError(err) {
			note(err)
		}
	}
	note(c.machines(ctx))
	for _, kind := range c.perCluster() {
		note(c.subjects(ctx, kind))
	}
	for _, object := range slices.Backward(c.once) {
		if !isSecret(object) {
			note(c.ended(ctx, func(ctx context.Context) ([]unstructured.Unstructured, error) { return c.same(ctx, object) }))
		}
	}
	note(c.all(ctx, clusterv1.GroupVersion.WithKind("Cluster")))
	note(c.credentials(ctx))
	if c.stop != nil {
		c.stop()
		note(client.IgnoreNotFound(c.env.Client.Delete(ctx, c.env.life(nil).Lease())))
	}
	if c.namespace != nil {
		note(client.IgnoreNotFound(c.env.Client.Delete(ctx, c.namespace)))
	}
	return errors.Wrapf(stderrors.Join(failures...), "removing what the run has created: see the label %s=%s", LabelRun, c.env.Run)
}

// credentials deletes the Secrets: those of the run, those that a provider has created, and those of a sample in other namespaces.
func (c *cleanup) credentials(ctx context.Context) error {
	failures := []error{c.all(ctx, corev1.SchemeGroupVersion.WithKind("Secret")), c.providerSecrets(ctx)}
	for _, object := range slices.Backward(c.once) {
		if isSecret(object) {
			failures = append(failures, client.IgnoreNotFound(c.env.Client.Delete(ctx, object)))
		}
	}
	return stderrors.Join(failures...)
}

func isSecret(object *unstructured.Unstructured) bool {
	return object.GroupVersionKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
}

// perCluster returns the kinds of the sample's objects for each Cluster, in reverse order, as later ones may depend on earlier ones.
func (c *cleanup) perCluster() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for _, document := range slices.Backward(c.env.Sample.perCluster) {
		object, err := decode(document)
		if err == nil && object != nil && !isSecret(object) && !slices.Contains(kinds, object.GroupVersionKind()) {
			kinds = append(kinds, object.GroupVersionKind())
		}
	}
	return kinds
}

// same returns the object if it still exists, and is not another one of the same name.
func (c *cleanup) same(ctx context.Context, object *unstructured.Unstructured) ([]unstructured.Unstructured, error) {
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(object.GroupVersionKind())
	err := c.env.Client.Get(ctx, client.ObjectKeyFromObject(object), now)
	if apierrors.IsNotFound(err) || err == nil && now.GetUID() != object.GetUID() {
		return nil, nil
	}
	return []unstructured.Unstructured{*now}, errors.Wrapf(err, "reading %s %s", object.GetKind(), object.GetName())
}

func (c *cleanup) list(ctx context.Context, kind schema.GroupVersionKind) ([]unstructured.Unstructured, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	err := c.env.Client.List(ctx, list, client.InNamespace(c.env.Namespace), client.MatchingLabels{LabelRun: c.env.Run})
	return list.Items, errors.Wrapf(err, "listing %s", kind.Kind)
}

// subjects deletes the objects of a kind, and waits until they are gone.
func (c *cleanup) subjects(ctx context.Context, kind schema.GroupVersionKind) error {
	return c.ended(ctx, func(ctx context.Context) ([]unstructured.Unstructured, error) {
		objects, err := c.list(ctx, kind)
		if meta.IsNoMatchError(err) {
			return nil, nil // None can exist.
		}
		return objects, err
	})
}

// ended deletes objects of a provider and waits until they are gone. What is not gone in time loses its
// finalizers, since the namespace could not be deleted otherwise, and is reported. A refused request may be accepted a moment later, and
// a machine could be left otherwise, so it is retried for a while.
func (c *cleanup) ended(ctx context.Context, list func(context.Context) ([]unstructured.Unstructured, error)) error {
	deadline, retryUntil := time.Now().Add(c.env.Timeouts.Delete.Duration), time.Now().Add(c.env.Timeouts.React.Duration)
	resumed := map[types.UID]bool{}
	for {
		objects, err := list(ctx)
		if err == nil {
			err = c.end(ctx, objects, resumed)
		}
		switch {
		case err != nil && time.Now().After(retryUntil), err == nil && len(objects) == 0:
			return err
		case err == nil && time.Now().After(deadline):
			return c.removeFinalizers(ctx, objects)
		case err == nil:
			retryUntil = time.Now().Add(c.env.Timeouts.React.Duration)
		}
		select {
		case <-ctx.Done():
			return cmp.Or(err, ctx.Err())
		case <-time.After(c.env.Timeouts.Poll.Duration):
		}
	}
}

// end ends the pauses of objects, and deletes those that are not being deleted.
func (c *cleanup) end(ctx context.Context, objects []unstructured.Unstructured, resumed map[types.UID]bool) error {
	var failures []error
	for i := range objects {
		object := &objects[i]
		if uid := object.GetUID(); !resumed[uid] {
			err := c.resume(ctx, object)
			failures = append(failures, err)
			resumed[uid] = err == nil
		}
		if object.GetDeletionTimestamp() == nil {
			failures = append(failures, deleteSeen(ctx, c.env.Client, object.GroupVersionKind(), client.ObjectKeyFromObject(object)))
		}
	}
	return stderrors.Join(failures...)
}

// resume ends all pauses of an object, and of its Cluster, whose name may differ.
func (c *cleanup) resume(ctx context.Context, object *unstructured.Unstructured) error {
	key := client.ObjectKey{Namespace: object.GetNamespace(), Name: object.GetLabels()[clusterv1.ClusterNameLabel]}
	if key.Name != "" && key.Name != object.GetName() {
		if err := client.IgnoreNotFound(setPaused(ctx, c.env.Client, key, false)); err != nil {
			return err
		}
	}
	return resume(ctx, c.env.Client, object.GroupVersionKind(), object.GetNamespace(), object.GetName())
}

func (c *cleanup) removeFinalizers(ctx context.Context, objects []unstructured.Unstructured) error {
	for i := range objects {
		c.env.logf("%s %s was not gone within %s; its finalizers are removed, check whether anything of it is left",
			objects[i].GetKind(), objects[i].GetName(), c.env.Timeouts.Delete.Duration)
		patch := client.RawPatch(types.MergePatchType, []byte(noFinalizers))
		if err := client.IgnoreNotFound(c.env.Client.Patch(ctx, &objects[i], patch)); err != nil {
			return err
		}
	}
	return nil
}

// machines deletes the Machines of the run: those that were deleted before have the finalizer of the core that the suite plays.
func (c *cleanup) machines(ctx context.Context) error {
	kind := clusterv1.GroupVersion.WithKind("Machine")
	objects, err := c.list(ctx, kind)
	if err != nil {
		return err
	}
	for i := range objects {
		patch := client.RawPatch(types.MergePatchType, []byte(noFinalizers))
		if err := c.env.Client.Patch(ctx, &objects[i], patch); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	return c.all(ctx, kind)
}

// all deletes what the run has created of a kind.
func (c *cleanup) all(ctx context.Context, kind schema.GroupVersionKind) error {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return c.env.Client.DeleteAllOf(ctx, object, client.InNamespace(c.env.Namespace), client.MatchingLabels{LabelRun: c.env.Run})
}

// providerSecrets deletes the Secrets that a provider has created for the run's objects. So does garbage collection, where it runs.
func (c *cleanup) providerSecrets(ctx context.Context) error {
	list := &corev1.SecretList{}
	if err := c.env.Client.List(ctx, list, client.InNamespace(c.env.Namespace)); err != nil {
		return errors.Wrap(err, "listing Secrets")
	}
	ours := func(name string) bool { return strings.HasPrefix(name, prefix(c.env.Run)) }
	for i := range list.Items {
		secret := &list.Items[i]
		owned := slices.ContainsFunc(secret.OwnerReferences, func(o metav1.OwnerReference) bool { return ours(o.Name) })
		if !owned && !ours(secret.Name) && !ours(secret.Labels[clusterv1.ClusterNameLabel]) {
			continue
		}
		if err := client.IgnoreNotFound(c.env.Client.Delete(ctx, secret)); err != nil {
			return errors.Wrap(err, "deleting a Secret")
		}
	}
	return nil
}

// refuseCore refuses to run beside a core: both would write the same objects.
func (e *Env) refuseCore(ctx context.Context) error {
	w := &world{Env: e, ctx: ctx, id: e.name()}
	cluster := &clusterv1.Cluster{ObjectMeta: w.meta()}
	cluster.Spec.ClusterNetwork.ServiceDomain = "cluster.local"
	cluster.Spec.Paused = ptr.To(false)
	if err := e.Client.Create(ctx, cluster); err != nil {
		return errors.Wrap(err, "creating a Cluster")
	}
	for end := time.Now().Add(e.Timeouts.Quiet.Duration); time.Now().Before(end); {
		if err := e.Client.Get(ctx, w.key(), cluster); err != nil {
			return errors.Wrap(err, "reading a Cluster")
		}
		if len(cluster.Finalizers) > 0 || cluster.Status.Phase != "" {
			return errors.New("a core reconciles Clusters here, which the suite does itself: stop it, for example by scaling its Deployment to 0")
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(e.Timeouts.Poll.Duration):
		}
	}
	return nil
}
