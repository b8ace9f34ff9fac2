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
func Limits(list, open, watch time.Duration) (restore func()) {
	formerList, formerOpen, formerWatch := listLimit, openLimit, watchGrace
	listLimit, openLimit, watchGrace = list, open, watch
	return func() { listLimit, openLimit, watchGrace = formerList, formerOpen, formerWatch }
}
