package manager

import (
	"path/filepath"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver/identity"
)

// IdentityOptions are the flags of a provider that has an identity kind.
type IdentityOptions struct {
	// Required is true if machines without an identity get nothing.
	Required bool
	// Unused is true if no identity is read or written: objects that name one get nothing.
	Unused bool
	// TokenDirectories are where identities may name files with tokens.
	TokenDirectories []string
}

// addFlags adds the flags.
func (o *IdentityOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.Required, "require-identity", o.Required,
		"Call the cloud for machines and templates that name an identity only, and never with the credentials of this process for others.")
	fs.BoolVar(&o.Unused, "without-identities", o.Unused,
		"Read and write no identities: call the cloud with the credentials of this process alone, and not for machines and templates that name an identity.")
	fs.StringSliceVar(&o.TokenDirectories, "identity-token-directories", o.TokenDirectories,
		"Directories below which identities may name files with tokens; absolute paths. Never the tokens for the API server of this cluster.")
}

// validate refuses directories that would allow every file, or none, and flags that together leave no credentials.
func (o *IdentityOptions) validate() error {
	if o.Required && o.Unused {
		return errors.New("--require-identity and --without-identities exclude each other: nothing could be called. Remove one")
	}
	for _, directory := range o.TokenDirectories {
		if !filepath.IsAbs(directory) || filepath.Clean(directory) == "/" {
			return errors.Errorf("--identity-token-directories has %q: give the absolute path of a directory below the root", directory)
		}
	}
	return nil
}

// Guard decides which objects may use identities of a kind. Without --namespace it looks for the users of one in all namespaces, which
// a manager of one namespace may not list.
func (o *Options) Guard(reader client.Reader, kind string, newIdentity func() identity.Object) *identity.Guard {
	return &identity.Guard{
		Reader: reader, Kind: kind, Required: o.Identities.Required, Unused: o.Identities.Unused, Namespace: o.Namespace, New: newIdentity,
	}
}
