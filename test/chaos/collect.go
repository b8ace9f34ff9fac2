package chaos

import (
	"context"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// collect deletes what only the garbage collector of Kubernetes can: objects whose creation took effect when their
// Machine was being deleted or gone, because the request was late, and Secrets whose config is gone. A real collector
// would hide what the core itself leaves behind.
func (r *run) collect(ctx context.Context, s *state) error {
	machines, configs := sets.New[types.UID](), sets.New[types.UID]()
	for i := range s.machines.Items {
		machines.Insert(s.machines.Items[i].UID)
	}
	var orphans []client.Object
	consider := func(object client.Object) {
		owner := metav1.GetControllerOf(object)
		if owner == nil || machines.Has(owner.UID) {
			return
		}
		if r.forced[owner.UID] != "" {
			orphans = append(orphans, object)
			return
		}
		if end, ended := r.history.ended(owner.UID); ended && !object.GetCreationTimestamp().Time.Before(end) {
			orphans = append(orphans, object)
		}
	}
	for _, m := range s.infra {
		consider(m)
	}
	for i := range s.configs.Items {
		configs.Insert(s.configs.Items[i].UID)
		consider(&s.configs.Items[i])
	}
	for i := range s.secrets.Items {
		if owner := metav1.GetControllerOf(&s.secrets.Items[i]); owner != nil && !configs.Has(owner.UID) {
			orphans = append(orphans, &s.secrets.Items[i])
		}
	}
	for _, m := range s.strays() {
		orphans = append(orphans, m)
	}
	for _, object := range orphans {
		if !object.GetDeletionTimestamp().IsZero() {
			continue
		}
		r.note("collect %T %s, whose owner is gone", object, object.GetName())
		if err := client.IgnoreNotFound(r.plane.direct.Delete(ctx, object)); err != nil {
			return errors.Wrapf(err, "collecting %T %s", object, object.GetName())
		}
	}
	return r.collectForced(ctx, s)
}

// ended is when the deletion of an object began, to the second.
func (h *history) ended(uid types.UID) (time.Time, bool) {
	for _, m := range h.inOrder() {
		if m.uid == uid && !m.ended.IsZero() {
			return m.ended, true
		}
	}
	return time.Time{}, false
}
