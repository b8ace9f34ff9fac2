package drain

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	pkgerrors "github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	policyv1client "k8s.io/client-go/kubernetes/typed/policy/v1"
	storagev1client "k8s.io/client-go/kubernetes/typed/storage/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/utils/ptr"
)

// cordonPatch makes a Node of one UID unschedulable; for any other Node the API server refuses it.
const cordonPatch = `{"metadata":{"uid":%q},"spec":{"unschedulable":true}}`

// target is a target cluster: its clients and what the drains in it share.
type target struct {
	// source is the configuration that it was created from.
	source  *rest.Config
	http    *http.Client
	core    corev1client.CoreV1Interface
	storage storagev1client.StorageV1Interface
	policy  policyv1client.PolicyV1Interface
	meta    metadata.Interface
	// These are read while a drain needs them.
	attachments *collection[attachment]
	volumes     *collection[persistentVolume]
	budgets     *collection[budget]
	namespaces  *collection[metadataOnly]
	daemonSets  *collection[metadataOnly]
	// users counts the drains that hold it; guarded by Drainer.mu.
	users int
}

// newTarget makes the clients for a configuration, without sending anything.
func newTarget(source *rest.Config) (*target, error) {
	config := rest.CopyConfig(source)
	// A timeout of the whole client would cut watches; each other request has its own.
	config.Timeout = 0
	config.Wrap(newPace)
	config.RateLimiter = flowcontrol.NewTokenBucketRateLimiter(qps, burst)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, pkgerrors.Wrap(err, "failed to create an HTTP client for the target cluster")
	}
	meta, err := metadata.NewForConfigAndClient(metadata.ConfigFor(config), httpClient)
	if err != nil {
		return nil, pkgerrors.Wrap(err, "failed to create a metadata client for the target cluster")
	}
	config.ContentConfig.ContentType = runtime.ContentTypeProtobuf
	config.ContentConfig.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	t := &target{source: source, http: httpClient, meta: meta}
	var errs [3]error
	t.core, errs[0] = corev1client.NewForConfigAndClient(config, httpClient)
	t.storage, errs[1] = storagev1client.NewForConfigAndClient(config, httpClient)
	t.policy, errs[2] = policyv1client.NewForConfigAndClient(config, httpClient)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, pkgerrors.Wrap(err, "failed to create a client for the target cluster")
	}
	t.attachments, t.volumes, t.budgets = newAttachments(t), newVolumes(t), newBudgets(t)
	t.namespaces, t.daemonSets = newNamespaces(t), newDaemonSets(t)
	return t, nil
}

// leave ends what a drain has had the target cluster read.
func (t *target) leave(n *nodeDrain) {
	t.attachments.leave(n)
	t.volumes.leave(n)
	t.budgets.leave(n)
	t.namespaces.leave(n)
	t.daemonSets.leave(n)
}

// close ends what is read and lets go of idle connections.
func (t *target) close() {
	t.attachments.stop()
	t.volumes.stop()
	t.budgets.stop()
	t.namespaces.stop()
	t.daemonSets.stop()
	utilnet.CloseIdleConnectionsFor(t.http.Transport)
}

// cordon makes exactly this Node unschedulable.
func (t *target) cordon(ctx context.Context, node string, uid types.UID) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return t.core.RESTClient().Patch(types.MergePatchType).Resource("nodes").Name(node).
		Body(fmt.Appendf(nil, cordonPatch, uid)).MaxRetries(0).Do(ctx).Error()
}

// evict asks for the eviction of exactly this pod, not of a successor with the same name. It does not repeat
// the request by itself where the server asks to retry later: that would hold the place of other pods.
func (t *target) evict(ctx context.Context, pod *Pod, graceSeconds *int64) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return t.core.RESTClient().Post().Namespace(pod.Key.Namespace).Resource("pods").Name(pod.Key.Name).
		SubResource("eviction").Body(&policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Key.Namespace, Name: pod.Key.Name},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: graceSeconds,
			Preconditions:      &metav1.Preconditions{UID: &pod.UID},
		},
	}).MaxRetries(0).Do(ctx).Error()
}

// deletePod deletes exactly this pod, without grace period.
func (t *target) deletePod(ctx context.Context, pod *Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &pod.UID}}
	return t.core.Pods(pod.Key.Namespace).Delete(ctx, pod.Key.Name, options)
}

// detach deletes a VolumeAttachment, upon which the volume is detached.
func (t *target) detach(ctx context.Context, a attachment) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &a.UID}}
	return t.storage.VolumeAttachments().Delete(ctx, a.Name, options)
}

// podsOf lists and watches the pods of one Node, which the API server has indexed by Node. It reports each
// failure, and each success after one with nil.
func (t *target) podsOf(node string, report func(error)) *cache.ListWatch {
	selector := fields.OneTermEqualSelector("spec.nodeName", node).String()
	ofNode := func(options *metav1.ListOptions) { options.FieldSelector = selector }
	pods := t.core.Pods(corev1.NamespaceAll)
	return listWatch(
		func(ctx context.Context, options metav1.ListOptions) (*corev1.PodList, error) {
			ofNode(&options)
			return pods.List(ctx, options)
		},
		func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			ofNode(&options)
			return pods.Watch(ctx, options)
		}, report)
}
