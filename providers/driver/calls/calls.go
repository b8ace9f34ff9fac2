// Package calls counts and times the calls that providers make to the APIs of clouds.
package calls

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/providers/driver"
)

var (
	total = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "millwright_cloud_calls_total",
		Help: "Number of calls to the cloud's API, by action and result: ok or the class of the error. Each page of a list is a call; " +
			"repetitions by an SDK within one call are not counted.",
	}, []string{"cloud", "location", "action", "result"})

	seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name:    "millwright_cloud_call_seconds",
		Help:    "Time from a call to the cloud's API to its answer.",
		Buckets: prometheus.ExponentialBuckets(0.01, 2, 12),
	}, []string{"cloud", "location", "action"})
)

func init() {
	metrics.Registry.MustRegister(total, seconds)
}

// maxLocations is how many locations of a cloud have metrics of their own: users write them into specs.
const maxLocations = 200

// locations are those of each cloud that have metrics of their own.
var locations = struct {
	sync.Mutex
	of map[string]map[string]bool
}{of: map[string]map[string]bool{}}

// label returns the location as a label: "other" for those that come after the first maxLocations.
func label(cloud, location string) string {
	locations.Lock()
	defer locations.Unlock()
	known := locations.of[cloud]
	if known == nil {
		known = map[string]bool{}
		locations.of[cloud] = known
	}
	if !known[location] && len(known) >= maxLocations {
		return "other"
	}
	known[location] = true
	return location
}

// Record counts a call that has ended. location is the part of the cloud that it was made to: a region, project or
// subscription; the first 200 of a cloud have metrics of their own, the rest count as "other". action is the cloud's name of the call.
// err is nil or the classified error.
func Record(cloud, location, action string, took time.Duration, err error) {
	result, location := "ok", label(cloud, location)
	if err != nil {
		result = string(driver.ClassOf(err))
	}
	total.WithLabelValues(cloud, location, action, result).Inc()
	seconds.WithLabelValues(cloud, location, action).Observe(took.Seconds())
}
