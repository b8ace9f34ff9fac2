package rewatch

import "time"

// Limits sets the limits until the function that it returns is called.
func Limits(list, watch time.Duration) (restore func()) {
	formerList, formerWatch := listLimit, watchGrace
	listLimit, watchGrace = list, watch
	return func() { listLimit, watchGrace = formerList, formerWatch }
}
