package rewatch

import "time"

// Delays returns the first n delays between the attempts of one request.
func Delays(n int) []time.Duration {
	backoff, list := delays(), make([]time.Duration, n)
	for i := range list {
		list[i] = backoff.Step()
	}
	return list
}

// Limits sets the limits until the function that it returns is called.
func Limits(list, watch time.Duration) (restore func()) {
	formerList, formerWatch := listLimit, watchGrace
	listLimit, watchGrace = list, watch
	return func() { listLimit, watchGrace = formerList, formerWatch }
}
