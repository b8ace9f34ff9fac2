// Package tokenfile reads the tokens that identities exchange for credentials, from files whose names tenants may have chosen.
package tokenfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// maxToken is how long a token may be: what AssumeRoleWithWebIdentity takes; other clouds take less.
const maxToken = 20000

// kubernetesTokens is where the token is by which the provider itself speaks to the API server of its cluster. It is handed to nothing
// else.
const kubernetesTokens = "/var/run/secrets/kubernetes.io"

// File is a file with a token, below one of the directories that are allowed.
type File struct {
	// Field that names the file, for messages, for example spec.webIdentity.tokenFile.
	Field string
	// Path of the file.
	Path string
	// Directories that are allowed: --identity-token-directories.
	Directories []string
}

// Read reads the file, which may have been rotated. It neither follows links out of the directory, nor waits for anything that is no
// regular file. Its errors are identity.Invalid and do not have the content.
func (f File) Read() ([]byte, error) {
	directory, err := f.directory()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, f.invalid("the directory %s cannot be opened in the provider's container: mount the token there", directory)
	}
	defer root.Close() //nolint:errcheck // It was only read.
	relative, err := filepath.Rel(directory, filepath.Clean(f.Path))
	if err != nil {
		return nil, f.invalid("%s is not a path", f.Path)
	}
	if isBelow(f.Path, kubernetesTokens) {
		return nil, f.notAllowed("%s leads to %s, which no identity may use", f.Path, kubernetesTokens)
	}
	info, err := root.Stat(relative)
	if err != nil || !info.Mode().IsRegular() {
		return nil, f.invalid("%s is not a file below %s in the provider's container: mount the token there", f.Path, directory)
	}
	file, err := root.Open(relative)
	if err != nil {
		return nil, f.invalid("%s cannot be read in the provider's container", f.Path)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	token := strings.TrimSpace(string(content))
	if err != nil || len(token) < 4 || len(token) > maxToken {
		return nil, f.invalid("%s has no token, of 4 to %d characters", f.Path, maxToken)
	}
	return []byte(token), nil
}

// directory returns which of the allowed directories the file is below.
func (f File) directory() (string, error) {
	path := filepath.Clean(f.Path)
	if !below(path, kubernetesTokens) {
		for _, directory := range f.Directories {
			if below(path, filepath.Clean(directory)) {
				return filepath.Clean(directory), nil
			}
		}
	}
	allowed := slices.Clone(f.Directories)
	slices.Sort(allowed)
	return "", f.notAllowed("%s is not below a directory that is allowed (--identity-token-directories: %s; never %s)",
		f.Path, strings.Join(allowed, ", "), kubernetesTokens)
}

func (f File) invalid(format string, args ...any) error {
	return identity.NewInvalid(driverv1.CredentialsInvalidReason, f.Field+": "+fmt.Sprintf(format, args...))
}

func (f File) notAllowed(format string, args ...any) error {
	return identity.NewInvalid(driverv1.CredentialsNotAllowedReason, f.Field+": "+fmt.Sprintf(format, args...))
}

// isBelow returns whether a file that exists is below a directory, under whatever name: /var/run is a link to /run in most images.
func isBelow(path, directory string) bool {
	file, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false // There is no such file, so nothing is read.
	}
	directory, err = filepath.EvalSymlinks(directory)
	return err == nil && below(file, directory)
}

func below(path, directory string) bool {
	return filepath.IsAbs(directory) && strings.HasPrefix(path, strings.TrimSuffix(directory, "/")+"/")
}
