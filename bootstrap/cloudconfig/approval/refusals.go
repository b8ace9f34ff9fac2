package approval

import (
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// refusalWindow is the time in which there is one event at most about requests of a machine that fail one rule. Who holds a
// token of a machine in a target cluster makes as many requests there as it likes.
const refusalWindow = 10 * time.Minute

// refusals bounds the events about refused requests. It is in memory: after a restart there may be one event more. Nil bounds nothing.
type refusals struct {
	mu sync.Mutex
	// last has what was recorded about each machine within the last window.
	last map[refusalKey]*refusal
	// pruned is when entries were last removed.
	pruned time.Time
}

type refusalKey struct {
	config client.ObjectKey
	rule   string
}

type refusal struct {
	// recorded is when the last event was.
	recorded time.Time
	// suppressed is how many there were none for since.
	suppressed int
}

// due reports whether to record an event now, and how many were suppressed since the one before.
func (r *refusals) due(config client.ObjectKey, rule string, now time.Time) (suppressed int, due bool) {
	if r == nil {
		return 0, true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := refusalKey{config, rule}
	last, known := r.last[key]
	if known && now.Sub(last.recorded) < refusalWindow {
		last.suppressed++
		return 0, false
	}
	if known {
		suppressed = last.suppressed
	}
	if r.last == nil {
		r.last = map[refusalKey]*refusal{}
	}
	r.last[key] = &refusal{recorded: now}
	if now.Sub(r.pruned) >= refusalWindow {
		// What was suppressed is reported with the next event, if there is one within another window.
		maps.DeleteFunc(r.last, func(_ refusalKey, old *refusal) bool { return now.Sub(old.recorded) >= 2*refusalWindow })
		r.pruned = now
	}
	return suppressed, true
}

// ruleOf names the rule that a request fails. It takes no part of the reason that the request has set, or there would be as many rules
// as requests.
func ruleOf(signer, reason string) string {
	if signer == certificatesv1.KubeletServingSignerName {
		return signer
	}
	if quoted := strings.IndexAny(reason, "\":"); quoted >= 0 {
		reason = reason[:quoted]
	}
	return signer + "/" + reason
}

// refuse adds an event that a request is not approved, unless there was one about the same machine just before.
func (r *Reconciler) refuse(s *subject, csr *certificatesv1.CertificateSigningRequest, reason string) {
	suppressed, due := r.refusals.due(client.ObjectKeyFromObject(s.config), ruleOf(csr.Spec.SignerName, reason), time.Now())
	if !due {
		return
	}
	more := ""
	if suppressed > 0 {
		more = fmt.Sprintf(" (%d more since the last event)", suppressed)
	}
	s.events.About(csr, corev1.EventTypeWarning, bootstrapv1.CertificateRequestRefusedReason, "Approve",
		"CertificateSigningRequest %s for %s is not approved%s: %s", csr.Name, csr.Spec.SignerName, more, reason)
}
