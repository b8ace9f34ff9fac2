package approval

// Reasons of the conditions that this provider gives CertificateSigningRequests.
const (
	// approvedReason means that a request is a Machine's; the message names it.
	approvedReason = "MillwrightApproved"
	// supersededReason means that a request was denied because its machine has made a later one.
	supersededReason = "MillwrightSuperseded"
)
