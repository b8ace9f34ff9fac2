package session

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxToken is how long a token may be: see WebIdentityToken of AssumeRoleWithWebIdentity.
const maxToken = 20000

// kubernetesTokens is where the token is by which the provider itself speaks to the API server of its cluster. It is handed to nobody else.
const kubernetesTokens = "/var/run/secrets/kubernetes.io"

// tokenFile is a file with a token, below one of the directories that are allowed. It implements stscreds.IdentityTokenRetriever.
type tokenFile struct {
	path        string
	directories []string
}

// GetIdentityToken reads the file, which may have been rotated. It neither follows links out of the directory, nor waits for anything that
// is no regular file. Its errors do not have the content.
func (f tokenFile) GetIdentityToken() ([]byte, error) {
	directory, err := f.directory()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, invalid("spec.webIdentity.tokenFile: the directory %s cannot be opened in the provider's container: mount the token there", directory)
	}
	defer root.Close() //nolint:errcheck // It was only read.
	relative, err := filepath.Rel(directory, filepath.Clean(f.path))
	if err != nil {
		return nil, invalid("spec.webIdentity.tokenFile: %s is no path", f.path)
	}
	if isBelow(f.path, kubernetesTokens) {
		return nil, notAllowed("spec.webIdentity.tokenFile: %s leads to %s, which no identity may use", f.path, kubernetesTokens)
	}
	info, err := root.Stat(relative)
	if err != nil || !info.Mode().IsRegular() {
		return nil, invalid("spec.webIdentity.tokenFile: %s is no file below %s in the provider's container: mount the token there", f.path, directory)
	}
	file, err := root.Open(relative)
	if err != nil {
		return nil, invalid("spec.webIdentity.tokenFile: %s cannot be read in the provider's container", f.path)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxToken+1))
	token := strings.TrimSpace(string(content))
	if err != nil || len(token) < 4 || len(token) > maxToken {
		return nil, invalid("spec.webIdentity.tokenFile: %s has no token, of 4 to %d characters", f.path, maxToken)
	}
	return []byte(token), nil
}

// directory returns which of the allowed directories the file is below.
func (f tokenFile) directory() (string, error) {
	path := filepath.Clean(f.path)
	if !below(path, kubernetesTokens) {
		for _, directory := range f.directories {
			if below(path, filepath.Clean(directory)) {
				return filepath.Clean(directory), nil
			}
		}
	}
	allowed := slices.Clone(f.directories)
	slices.Sort(allowed)
	return "", notAllowed("spec.webIdentity.tokenFile: %s is not below a directory that is allowed "+
		"(--identity-token-directories: %s; never %s)", f.path, strings.Join(allowed, ", "), kubernetesTokens)
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
