package persist

import "github.com/prometheus/client_golang/prometheus/testutil"

// ExpiredWaits is what the counter of waits without success has for a kind.
func ExpiredWaits(kind string) float64 { return testutil.ToFloat64(expiredWaits.WithLabelValues(kind)) }
