package limit

import (
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// The methods of this file are called with l.mu held.

// bucket returns the bucket of a pair as it is now.
func (l *Limiter) bucket(limitScope string, kind driver.CallKind, now time.Time) *bucket {
	if since := now.Sub(l.swept); since >= sweepEvery || since < 0 {
		l.sweep(now)
	}
	p := pair{limitScope, kind}
	b, ok := l.buckets[p]
	if !ok {
		b = newBucket(l.rates[kind], now)
		b.label = l.label(limitScope)
		l.buckets[p] = b
	}
	b.advance(now)
	b.used = now
	return b
}

// label returns the limit scope as it is in the metrics, which refuse what is no UTF-8.
func (l *Limiter) label(limitScope string) string {
	if l.labels[limitScope] == 0 && len(l.labels) >= maxLabels || !utf8.ValidString(limitScope) {
		return otherLabel
	}
	l.labels[limitScope]++
	return limitScope
}

// sweep drops the places of objects that have not come back for long, and the buckets that a new one would equal.
func (l *Limiter) sweep(now time.Time) {
	l.swept = now
	for _, b := range l.buckets {
		b.advance(now)
	}
	for key, places := range l.places {
		for kind, w := range places {
			if now.Sub(w.due) > keepPlace {
				l.drop(key, kind, w)
			}
		}
	}
	for p, b := range l.buckets {
		if now.Sub(b.used) < idleAfter || !b.unused() {
			continue
		}
		delete(l.buckets, p)
		if b.label != p.scope {
			continue
		}
		if l.labels[p.scope]--; l.labels[p.scope] <= 0 {
			delete(l.labels, p.scope)
		}
	}
}

// drop gives up a place.
func (l *Limiter) drop(key types.NamespacedName, kind driver.CallKind, w *waiter) {
	w.bucket.giveUp(w)
	l.unplace(key, kind)
}

func (l *Limiter) unplace(key types.NamespacedName, kind driver.CallKind) {
	delete(l.places[key], kind)
	if len(l.places[key]) == 0 {
		delete(l.places, key)
	}
}
