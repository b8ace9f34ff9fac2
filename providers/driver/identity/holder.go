package identity

// Holder is whose credentials a cloud says that they are.
type Holder struct {
	// Account is what the cloud counts and separates by: an account, a subscription, a project.
	Account string
	// Principal is who calls, in the cloud's own terms.
	Principal string
}
