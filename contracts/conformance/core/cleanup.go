package core

import (
	"cmp"
	"context"
	stderrors "errors"
	"strings"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance/behaviour"
	"millwright.dev/contracts/version"
)

// noFinalizers is a patch that removes all finalizers.
const noFinalizers = `{"metadata":{"finalizers":null}}`

// cleanup removes what a run has created.
type cleanup struct {
	env *Env
	// stop ends the renewal of the run's Lease; nil if there is none.
	stop      func()
	namespace *corev1.Namespace
}

// run removes everything, also when ctx has ended.
func (c *cleanup) run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.env.Timeouts.Cleanup.Duration)
	defer cancel()
	var failures []error
	if c.env.Namespace != "" {
		failures = append(failures, c.objects(ctx))
	}
	if c.stop != nil {
		c.stop()
		// Before the kinds: of two runs that end at once, the last one must see that it is the last.
		failures = append(failures, c.delete(ctx, c.env.lease()))
		failures = append(failures, c.until(ctx, func() (bool, error) { return true, kinds(ctx, c.env) }))
	}
	if c.namespace != nil {
		failures = append(failures, c.delete(ctx, c.namespace))
	}
	return errors.Wrapf(stderrors.Join(failures...), "removing what the run has created: see the label %s=%s", behaviour.LabelRun, c.env.Run)
}

// order is the order in which kinds are deleted: those whose controllers create others first.
func order() []schema.GroupVersionKind {
	kinds := []schema.GroupVersionKind{
		clusterv1.GroupVersion.WithKind("MachineDeployment"), clusterv1.GroupVersion.WithKind("MachineSet"),
		clusterv1.GroupVersion.WithKind("Machine"), clusterv1.GroupVersion.WithKind("Cluster"),
	}
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		for _, kind := range []string{machineKind, configKind, infraKind, planeKind} {
			gv := groupVersion(contract)
			kinds = append(kinds, gv.WithKind(kind), gv.WithKind(kind+clusterv1.TemplateSuffix))
		}
	}
	return append(kinds, corev1.SchemeGroupVersion.WithKind("Secret"), corev1.SchemeGroupVersion.WithKind("Pod"),
		corev1.SchemeGroupVersion.WithKind("Node"), storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"))
}

// delete deletes an object without waiting for its end.
func (c *cleanup) delete(ctx context.Context, object client.Object) error {
	return c.until(ctx, func() (bool, error) { return true, client.IgnoreNotFound(c.env.Client.Delete(ctx, object)) })
}

// until repeats a step until it is done. A failed request may succeed a moment later, and objects could be left otherwise, so it is
// retried for as long as a core may take to react.
func (c *cleanup) until(ctx context.Context, step func() (done bool, err error)) error {
	retryUntil := time.Now().Add(c.env.Timeouts.React.Duration)
	for {
		done, err := step()
		switch {
		case err == nil && done, err != nil && time.Now().After(retryUntil):
			return err
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

// objects deletes what the run has created. No real infrastructure belongs to it, so that finalizers that block too long are removed.
func (c *cleanup) objects(ctx context.Context) error {
	deadline := time.Now().Add(c.env.Timeouts.React.Duration / 2)
	return c.until(ctx, func() (bool, error) {
		left := 0
		var failures []error
		for _, kind := range order() {
			found, err := c.sweep(ctx, kind, time.Now().After(deadline))
			left += found
			failures = append(failures, err)
		}
		return left == 0, stderrors.Join(failures...)
	})
}

// sweep deletes the objects of a kind, and returns how many there were.
func (c *cleanup) sweep(ctx context.Context, kind schema.GroupVersionKind, late bool) (int, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	namespace := client.InNamespace(c.env.Namespace)
	if kind.Kind == "Node" || kind.Kind == "VolumeAttachment" {
		namespace = ""
	}
	if err := c.env.Client.List(ctx, list, namespace); err != nil {
		if meta.IsNoMatchError(err) {
			return 0, nil // None can exist: the kinds were not installed.
		}
		return 0, errors.Wrapf(err, "listing %s", kind.Kind)
	}
	found := 0
	var failures []error
	for i := range list.Items {
		if strings.HasPrefix(list.Items[i].GetName(), c.env.prefix()) {
			found++
			failures = append(failures, c.remove(ctx, &list.Items[i], late))
		}
	}
	return found, stderrors.Join(failures...)
}

func (c *cleanup) remove(ctx context.Context, object *unstructured.Unstructured, late bool) error {
	mine := strings.HasSuffix(object.GroupVersionKind().Group, "standin.conformance.millwright.dev")
	if object.GetDeletionTimestamp() == nil {
		var options []client.DeleteOption
		if object.GetKind() == "Pod" {
			options = append(options, client.GracePeriodSeconds(0))
		}
		if err := c.env.Client.Delete(ctx, object, options...); client.IgnoreNotFound(err) != nil {
			return err
		}
	}
	if (mine || late) && len(object.GetFinalizers()) > 0 {
		patch := client.RawPatch(types.MergePatchType, []byte(noFinalizers))
		return client.IgnoreNotFound(c.env.Client.Patch(ctx, object, patch))
	}
	return nil
}
