package health

import "time"

// Confirmation is what is known of a Machine that has waited for its turn to be replaced.
type Confirmation struct {
	// Done means that it was found unhealthy a short while ago, by what the API server of its target cluster says of its Node or for a reason
	// that is not its Node's, or that this core does not judge it.
	Done bool
	// Why is what keeps that from being found out; "" while there is still time for an answer.
	Why string
	// After is how soon to ask again.
	After time.Duration
}
