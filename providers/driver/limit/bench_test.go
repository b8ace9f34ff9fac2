package limit

import (
	"testing"
	"time"
)

// A thousand machines and more may wait at once: what each of them costs stays small beside a reconcile.
func BenchmarkAdmitWhile10000Wait(b *testing.B) {
	r := newRig(&testing.T{}, one(2, 5))
	for i := range 10000 {
		r.Admit("r", create, numbered(i))
	}
	for b.Loop() {
		r.passes(time.Millisecond)
		r.Admit("r", create, numbered(9999))
	}
}
