package driver

import "errors"

// Incomplete is the error of a list that lacks what is in some failure domains, which did not answer, and is whole otherwise. List and
// ListLeftovers return it with what there is in the others; a caller that takes it for any other error concludes nothing at all, which is
// safe. A list that may lack anything else fails with another error.
type Incomplete struct {
	// Missing are the failure domains, as Instance.FailureDomain has them; one at least.
	Missing []string
	// Err is why they are missing.
	Err error
}

// NewIncomplete returns the error of a list that lacks failure domains.
func NewIncomplete(missing []string, err error) *Incomplete {
	return &Incomplete{Missing: missing, Err: err}
}

// Error returns the message of the cause, which names what is missing.
func (e *Incomplete) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *Incomplete) Unwrap() error { return e.Err }

// AsIncomplete returns the Incomplete in an error; nil if there is none, or one that does not say what is missing.
func AsIncomplete(err error) *Incomplete {
	var incomplete *Incomplete
	if errors.As(err, &incomplete) && len(incomplete.Missing) > 0 {
		return incomplete
	}
	return nil
}
