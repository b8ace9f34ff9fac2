package inframachine

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// takeBack has an object that was never launched take over the instance that its spec names, if that was launched for an object of this
// name that no longer exists: after a restore from a backup, anyone who recreates the object gives it the provider ID. Everything that
// proves it is in the cloud, where only those can write who have rights there; nothing is written there.
func (r *Reconciler[M]) takeBack(ctx context.Context, s *scope[M], instance driver.Instance) outcome.Outcome {
	attempt, why := s.heir(instance)
	if attempt > 0 && !r.isOwned(s) {
		attempt, why = 0, "no Machine owns this object and refers to it"
	}
	if attempt == 0 {
		return r.isForeign(s, driver.NewTerminalError("Observe", "", &foreignError{
			instance: instance.ID, mark: r.cloud.Mark(s.handle), why: why,
		}))
	}
	record := launchRecord{
		UID: instance.OwnerUID, Attempt: attempt, Name: instance.Name, FailureDomain: instance.FailureDomain,
		InstanceType: instance.InstanceType, Market: instance.Market, Lineage: instance.Lineage,
	}
	if err := s.writeRecord(ctx, record, nil); err != nil {
		return outcome.FromError(errors.Wrapf(err, "recording the adoption of %s", instance.ProviderID))
	}
	s.handle = r.handleOf(s.Object, s.launched, nil)
	r.backoff.forget(s.Key())
	adoptions.WithLabelValues(r.Kind).Inc()
	s.events.Normal(adoptedEvent, "Adopt", "Instance %s belongs to this object now: it was launched for an object of this name that is gone",
		instance.ID)
	return outcome.Continue()
}

// isOwned returns whether a Machine owns the object and refers to it.
func (r *Reconciler[M]) isOwned(s *scope[M]) bool {
	return s.owner != nil && s.owner.DeletionTimestamp.IsZero() && r.refersTo(s.owner, s)
}

// heir returns the attempt of the launch of the instance if the object may take it back; else 0, and why it may not,
// if it could have been meant to.
//
// The name of the mark is the object's, so no other object ever was its owner. The token follows from that name, from the UID of the
// mark and the attempt, and so the instance was launched for that object and is not a copy. The lineage has the UID of the Cluster: other
// management clusters may have objects of the same names, and one that was moved there has been given another lineage.
func (s *scope[M]) heir(instance driver.Instance) (attempt int, why string) {
	untouched := launchRecord{UID: s.Object.GetUID(), Attempt: 1}
	lineage, marked := driver.ParseLineage(instance.Lineage)
	uid := instance.OwnerUID
	attempt, launched := attemptOf(instance.Token, s.Key().String(), uid)
	switch {
	case s.launched != untouched:
		return 0, "" // It has a launch of its own, and the instance has lost its mark.
	case uid == "" || !(driver.Handle{OwnerUID: uid, Owner: s.handle.Owner}).Owns(instance):
		return 0, "it was not launched for an object of this namespace and name"
	case !launched:
		return 0, "it carries the mark of such an object, and was not launched for it"
	case s.cluster == nil:
		return 0, "the Cluster of this object does not exist"
	case !marked:
		return 0, "it has no lineage, so that it may be another management cluster's"
	case lineage.Cluster != types.UID(strings.ToLower(string(s.cluster.UID))):
		return 0, fmt.Sprintf("it was launched in a Cluster with another UID (%s), perhaps of another management cluster", lineage.Cluster)
	case hasEnded(instance.State) || instance.State == driverv1.InstanceTerminating:
		return 0, fmt.Sprintf("it is %s", instance.State)
	}
	return attempt, ""
}

// attemptOf returns of which attempt to launch an object's instance a token is; ok is false if it is of none.
func attemptOf(token, owner string, uid types.UID) (attempt int, ok bool) {
	attempt, err := strconv.Atoi(token[strings.LastIndexByte(token, '-')+1:])
	return attempt, err == nil && attempt >= 1 && driver.Token(owner, uid, attempt) == token
}
