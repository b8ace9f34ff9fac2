package inframachine

import (
	"context"
	"encoding/json"
	"regexp"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/shortage"
)

// LaunchAnnotation holds the record of the launch as JSON. It is an annotation because clusterctl
// move carries annotations to the other cluster and drops status, and gives the object a new UID: a
// token that could not be carried would launch a second instance there. Not to be edited.
const LaunchAnnotation = "infrastructure.millwright.dev/launch"

// What the record says gets into requests to the cloud. These keep out what filters take for a pattern, such as *, and what a path
// takes for its parts.
var (
	validUID       = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)
	validName      = regexp.MustCompile(`^([a-z]([a-z0-9-]{0,126}[a-z0-9])?)?$`)
	validOperation = regexp.MustCompile(`^([0-9A-Za-z_-][0-9A-Za-z._-]{0,255})?$`)
)

// launchRecord is what must be known of a launch after a crash. It is written before each call of
// Create, so that a call whose answer is lost is repeated with the same token and placement, and
// after each call that certainly created no instance.
type launchRecord struct {
	// UID that the object had at its first launch. Instances are marked with it.
	UID types.UID `json:"uid,omitempty"`
	// Attempt counts from 1.
	Attempt int `json:"attempt,omitempty"`
	// Name of the instance, where the cloud finds instances by names; the same in all attempts. Empty before the first was placed.
	Name string `json:"name,omitempty"`
	// Placement, FailureDomain, InstanceType and Market of the attempt; empty before it was placed.
	Placement     string `json:"placement,omitempty"`
	FailureDomain string `json:"failureDomain,omitempty"`
	InstanceType  string `json:"instanceType,omitempty"`
	Market        string `json:"market,omitempty"`
	// Lineage that what the attempt launches carries; empty if there was none to be had.
	Lineage string `json:"lineage,omitempty"`
	// Operation by which the cloud continues with a launch that it has accepted and that shows no certain instance yet.
	Operation string `json:"operation,omitempty"`
	// Failed is the class of the failure of a launch that the cloud had accepted. What is left of it is cleaned up before the next attempt.
	Failed driver.Class `json:"failed,omitempty"`
	// FirstCall and LastCall are when Create was first and last called in this attempt with an outcome
	// that is not known; once the instance is recorded, LastCall is when the cloud answered with it. Both are unset while it
	// is certain that the attempt has created no instance.
	FirstCall *time.Time `json:"firstCall,omitempty"`
	LastCall  *time.Time `json:"lastCall,omitempty"`
	// Ended counts the earlier attempts that the cloud had accepted and that failed before an instance ran.
	Ended int `json:"ended,omitempty"`
}

// token of the attempt. owner is namespace/name of the object.
func (r launchRecord) token(owner string) string { return driver.Token(owner, r.UID, r.Attempt) }

// clockTolerance is how far ahead of the clock a record may be: its times are rounded up, and clocks differ a little.
const clockTolerance = 5 * time.Second

// corrected returns the record without times in the future, which nothing can have seen: they are forged, or of a process whose
// clock was ahead, and whatever waits for them would wait for long. changed is true if there were some.
func (r launchRecord) corrected(now time.Time) (record launchRecord, changed bool) {
	now = now.UTC().Truncate(time.Second)
	for _, t := range []**time.Time{&r.FirstCall, &r.LastCall} {
		if *t != nil && (*t).After(now.Add(clockTolerance)) {
			*t, changed = &now, true
		}
	}
	return r, changed
}

// outstanding returns whether an instance may exist that has not been recorded.
func (r launchRecord) outstanding() bool { return r.LastCall != nil }

// called returns the record to be persisted before a call at now.
func (r launchRecord) called(now time.Time, p driver.Placement) launchRecord {
	now = now.UTC().Truncate(time.Second)
	r.Placement, r.FailureDomain, r.InstanceType, r.Market = p.ID, p.FailureDomain, p.InstanceType, p.Market
	if r.FirstCall == nil {
		r.FirstCall = &now
	}
	r.LastCall = &now
	return r
}

// placement is where the attempt goes.
func (r launchRecord) placement() driver.Placement {
	return driver.Placement{ID: r.Placement, FailureDomain: r.FailureDomain, InstanceType: r.InstanceType, Market: r.Market}
}

// accepted returns the record to be persisted once the cloud has accepted the launch, without a certain instance yet.
func (r launchRecord) accepted(now time.Time, operation string) launchRecord {
	r = r.answered(now)
	r.Operation = operation
	return r
}

// failed returns the record to be persisted once a launch has failed that the cloud had accepted.
func (r launchRecord) failed(class driver.Class) launchRecord {
	r.Failed = class
	return r
}

// answered returns the record to be persisted with the instance. The time is rounded up: the grace that runs from it is
// never short.
func (r launchRecord) answered(now time.Time) launchRecord {
	if r.LastCall == nil {
		return r
	}
	now = now.UTC().Truncate(time.Second).Add(time.Second)
	r.LastCall = &now
	return r
}

// rejected returns the record to be persisted after a call that created no instance.
func (r launchRecord) rejected() launchRecord {
	r.FirstCall, r.LastCall = nil, nil
	return r
}

// next returns the record of the attempt after one that was rejected: a new token and place.
func (r launchRecord) next() launchRecord {
	return launchRecord{UID: r.UID, Name: r.Name, Attempt: r.Attempt + 1, Ended: r.Ended}
}

// afterEnded returns the record of the attempt after one that the cloud had accepted and that failed before an instance ran.
func (r launchRecord) afterEnded() launchRecord {
	r = r.next()
	r.Ended++
	return r
}

// after returns the record to be persisted after a call failed. uncertain is true if an earlier call of
// the same attempt had an unknown outcome.
//
// A refusal proves that this call created no instance, and nothing about an earlier one: limits and
// permissions are checked before tokens. After a quota the next attempt may be of another type. Only a lack of capacity proves both,
// since a token that has
// made an instance returns it; even that counts only when the instance would have shown up by now.
func (r launchRecord) after(err error, uncertain bool, now time.Time, grace time.Duration) launchRecord {
	switch driver.ClassOf(err) {
	case driver.ClassCapacity:
		if !uncertain || r.FirstCall == nil || !now.Before(r.FirstCall.Add(grace)) {
			return r.next()
		}
	case driver.ClassQuota:
		if !uncertain && shortage.IsShortage(err) {
			return r.next() // With another type, if there is one.
		}
		if !uncertain {
			return r.rejected()
		}
	case driver.ClassThrottle, driver.ClassAuth, driver.ClassTerminal, driver.ClassUnresolved,
		driver.ClassConflict, driver.ClassRefused:
		if !uncertain {
			return r.rejected()
		}
	case driver.ClassNotFound, driver.ClassUnknown:
	}
	return r
}

// readRecord returns the object's record; for an object that was never launched, that of a first
// attempt that has not been placed.
func readRecord(obj client.Object) (launchRecord, error) {
	text, ok := obj.GetAnnotations()[LaunchAnnotation]
	if !ok {
		return launchRecord{UID: obj.GetUID(), Attempt: 1}, nil
	}
	var r launchRecord
	if err := json.Unmarshal([]byte(text), &r); err != nil {
		return launchRecord{}, errors.Wrapf(err, "annotation %s", LaunchAnnotation)
	}
	if !validUID.MatchString(string(r.UID)) || r.Attempt < 1 {
		return launchRecord{}, errors.Errorf("annotation %s: uid or attempt is missing or invalid", LaunchAnnotation)
	}
	if !validName.MatchString(r.Name) || !validOperation.MatchString(r.Operation) {
		return launchRecord{}, errors.Errorf("annotation %s: name or operation is invalid", LaunchAnnotation)
	}
	if _, ok := driver.ParseLineage(r.Lineage); !ok && r.Lineage != "" {
		return launchRecord{}, errors.Errorf("annotation %s: lineage is invalid", LaunchAnnotation)
	}
	return r, nil
}

// encode returns the record as the value of its annotation.
func (r launchRecord) encode() (string, error) {
	text, err := json.Marshal(r)
	return string(text), errors.Wrap(err, "encoding the launch record")
}

// putRecord sets the annotation of an object to a record.
func putRecord(obj client.Object, text string) {
	annotations := obj.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[LaunchAnnotation] = text
	obj.SetAnnotations(annotations)
}

// correctRecord takes times in the future out of the launch record, once and permanently: a wait that began at the present whenever
// it is looked at would never end.
func (r *Reconciler[M]) correctRecord(ctx context.Context, s *scope[M]) outcome.Outcome {
	record, changed := s.launched.corrected(s.Now)
	if !changed {
		return outcome.Continue()
	}
	if err := s.writeRecord(ctx, record, nil); err != nil {
		return outcome.FromError(err)
	}
	return outcome.Continue()
}
