// Package scopes has what the scope of every reconcile has: the object as read, the copy that the steps change, and the ways to
// write it. A controller's own scope embeds Base.
//
// A reconcile writes the status once, at its end, by Save. Metadata and spec are written then as well, but for what must be there
// before something else is done, such as a finalizer: that is what Patch is for.
package scopes

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/persist"
)

// StatusRefusedEvent is the reason of the Warning event that has the API server's words when it refuses the status of an object. No
// condition can report that.
const StatusRefusedEvent = "StatusRefused"

// Base is the part of a scope that is the same for all kinds. O is the kind, S the type of its status.
type Base[O client.Object, S any] struct {
	// Original is the object as it was read, or as this reconcile has written it since. Do not change it.
	Original O
	// Object is a copy of Original, which the steps change in memory.
	Object O
	// Now is the time of the whole reconcile.
	Now time.Time
	// Gone is true once the finalizer was removed: there may be no object any more, and no status to write.
	Gone bool

	client   client.Client
	recorder events.EventRecorder
	status   func(O) *S
	shared   bool
	versions *persist.Versions
}

// Writer is how the objects of one kind are written.
type Writer[O client.Object, S any] struct {
	// Client writes.
	Client client.Client
	// Recorder, if set, records the event StatusRefused.
	Recorder events.EventRecorder
	// Status returns the status field of an object.
	Status func(O) *S
	// Shared means that others write the status as well, for example a condition of their own: its patch fails then when the
	// object is not as it was read, since it replaces the whole list of conditions.
	Shared bool
	// Versions, if set, remembers each write.
	Versions *persist.Versions
}

// NewBase begins a reconcile of an object that was read from the cache.
func NewBase[O client.Object, S any](read O, now time.Time, writer Writer[O, S]) Base[O, S] {
	return Base[O, S]{
		Original: read, Object: copyOf(read), Now: now,
		client: writer.Client, recorder: writer.Recorder, status: writer.Status, shared: writer.Shared, versions: writer.Versions,
	}
}

// Key is namespace and name of the object.
func (b *Base[O, S]) Key() client.ObjectKey { return client.ObjectKeyFromObject(b.Original) }

// Request asks for another reconcile of the object.
func (b *Base[O, S]) Request() ctrl.Request { return ctrl.Request{NamespacedName: b.Key()} }

// Deleting is true when the object is being deleted.
func (b *Base[O, S]) Deleting() bool { return !b.Original.GetDeletionTimestamp().IsZero() }

// Patch writes a change of metadata or spec at once; nothing when the change makes no difference. The patch has the resource
// version as read, so that a late writer gets a conflict. Then Original and Object are what the server answers, with the
// status that the steps have made so far; what they have changed in metadata and spec and not written is lost. On error neither
// is changed.
func (b *Base[O, S]) Patch(ctx context.Context, change func(O)) error {
	desired := copyOf(b.Original)
	change(desired)
	if equality.Semantic.DeepEqual(b.Original, desired) {
		return nil
	}
	return b.send(ctx, desired)
}

// PatchLatest is Patch that is sent even when the change makes no difference: success then proves that Original is the latest
// version, on which something depends that must not be done twice.
func (b *Base[O, S]) PatchLatest(ctx context.Context, change func(O)) error {
	desired := copyOf(b.Original)
	change(desired)
	return b.send(ctx, desired)
}

// send patches metadata and spec, and takes over what the server answers.
func (b *Base[O, S]) send(ctx context.Context, desired O) error {
	patch := client.MergeFromWithOptions(b.Original, client.MergeFromWithOptimisticLock{})
	if err := b.client.Patch(ctx, desired, patch); err != nil {
		b.failed(b.Original, err)
		return errors.Wrapf(err, "patching %s", b.name())
	}
	b.wrote(desired)
	b.takeOver(desired)
	return nil
}

// takeOver makes Original and Object what the server has answered, with the status that the steps have made so far.
func (b *Base[O, S]) takeOver(answer O) {
	status := *b.status(b.Object)
	b.Original, b.Object = answer, copyOf(answer)
	*b.status(b.Object) = status
}

// EnsureFinalizer writes the finalizer, unless the object has it.
func (b *Base[O, S]) EnsureFinalizer(ctx context.Context, finalizer string) error {
	return b.Patch(ctx, func(obj O) { controllerutil.AddFinalizer(obj, finalizer) })
}

// RemoveFinalizer removes the finalizer, and sets Gone. Then Original and Object are what the server answers, as with Patch: they
// have the finalizers of others, if there are any. That the object is gone already is no error; Original has the finalizer then.
func (b *Base[O, S]) RemoveFinalizer(ctx context.Context, finalizer string) error {
	desired := copyOf(b.Original)
	if controllerutil.RemoveFinalizer(desired, finalizer) {
		patch := client.MergeFromWithOptions(b.Original, client.MergeFromWithOptimisticLock{})
		err := b.client.Patch(ctx, desired, patch)
		if persist.IgnoreGone(err) != nil {
			b.failed(b.Original, err)
			return errors.Wrapf(err, "removing the finalizer of %s", b.name())
		}
		b.released(desired, err == nil)
	}
	b.Gone = true
	return nil
}

// released takes in that the object has no finalizer of this controller any more. Without answer it does not exist.
func (b *Base[O, S]) released(desired O, answered bool) {
	switch {
	case len(desired.GetFinalizers()) > 0 && answered:
		b.wrote(desired)
	case b.versions != nil:
		b.versions.Released(b.Original)
	}
	if answered {
		b.takeOver(desired)
	}
}

// Save writes what the steps have changed in metadata and spec, has setStatus derive the status, and writes that: in this order,
// since conditions name the generation that they are about. Each is one patch at most, and none when nothing has changed.
//
// When the API server refuses metadata or spec (see persist.Refusal), Object has those of Original again, setStatus gets the
// refusal to report it, and the status is written all the same; the refusal is returned too. On another error nothing further is
// written: a reconcile that reads again will do better. setStatus returns false when there is no status to write. An object that
// no longer exists needs none, and is no error.
func (b *Base[O, S]) Save(ctx context.Context, setStatus func(refused error) bool) (persist.Written, error) {
	var written persist.Written
	base, failure := persist.Object(ctx, b.client, b.Original, b.Object, b.status)
	b.failed(b.Original, failure)
	if failure != nil && persist.Refusal(failure) == "" {
		return written, b.unlessGone(failure)
	}
	written.Object = base.GetResourceVersion() != b.Original.GetResourceVersion()
	if written.Object {
		b.wrote(base)
	}
	if !setStatus(failure) {
		return written, failure
	}
	write := persist.OwnStatus[O, S]
	if b.shared {
		write = persist.Status[O, S]
	}
	var err error
	if written.Status, err = write(ctx, b.client, base, b.Object, b.status); err != nil {
		b.failed(base, err)
		b.warnRefusedStatus(err)
		err = b.unlessGone(err)
	}
	if written.Status {
		b.wrote(b.Object)
	}
	if failure != nil && err != nil {
		return written, kerrors.NewAggregate([]error{failure, err})
	}
	return written, cmp.Or(failure, err)
}

// warnRefusedStatus records that the API server refuses the status. Repetitions are counted in one event.
func (b *Base[O, S]) warnRefusedStatus(err error) {
	if refusal := persist.Refusal(err); refusal != "" && b.recorder != nil {
		b.recorder.Eventf(b.Original, nil, corev1.EventTypeWarning, StatusRefusedEvent, "WriteStatus", "%s", refusal)
	}
}

// unlessGone returns nil for the error that there is no such object any more.
func (b *Base[O, S]) unlessGone(err error) error {
	if persist.Gone(err) {
		b.Gone = true
		return nil
	}
	return err
}

func (b *Base[O, S]) wrote(obj O) {
	if b.versions != nil {
		b.versions.Wrote(obj)
	}
}

// failed takes in that a write failed, if it did, and what was to be changed by it.
func (b *Base[O, S]) failed(before O, err error) {
	if b.versions != nil {
		b.versions.Failed(before, err)
	}
}

func (b *Base[O, S]) name() string { return persist.NameOf(b.Original) }

func copyOf[O client.Object](obj O) O {
	copied, ok := obj.DeepCopyObject().(O)
	if !ok {
		// The generated DeepCopyObject returns its own type.
		panic(fmt.Sprintf("%T is not copied to its own type", obj))
	}
	return copied
}
