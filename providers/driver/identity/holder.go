package identity

import "context"

// Holder is whose credentials a cloud says that they are.
type Holder struct {
	// Account is what the cloud counts and separates by: an account, a subscription, a project.
	Account string
	// Principal is who calls, in the cloud's own terms.
	Principal string
}

// VerifyAccount asks the cloud with verify whether credentials are of the account that an identity has had so far, and returns what changed
// makes of the two where they are of another one: there, all machines would seem to be gone. It asks nothing while no account is known.
func VerifyAccount(
	ctx context.Context, known string, verify func(context.Context) (Holder, error), changed func(was, is string) error,
) error {
	if known == "" {
		return nil
	}
	holder, err := verify(ctx)
	if err != nil {
		return err
	}
	if holder.Account != known {
		return changed(known, holder.Account)
	}
	return nil
}
