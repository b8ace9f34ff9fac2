package node

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"

	"github.com/pkg/errors"
	"sigs.k8s.io/yaml"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/contracts/bootstrapdata"
)

const (
	// MaxUserData is the largest user data that is rendered, in bytes. A Secret holds 1 MiB at most. How much a cloud takes is
	// checked by its infrastructure provider, which compresses the user data where that is needed.
	MaxUserData = 900 << 10
	// Format is the format of the user data as infrastructure providers name it.
	Format = "cloud-config"
)

// UserDataOptions is what a machine has to know before it has downloaded anything.
type UserDataOptions struct {
	// Server is the URL of the target cluster's API server, as the machine reaches it.
	Server string
	// Authority is the certificate authority of that server, in PEM.
	Authority []byte
	// SecretNamespace and SecretName are those of the node's Secret in the target cluster.
	SecretNamespace, SecretName string
	// DownloadToken is the bootstrap token that may read that Secret and nothing else.
	DownloadToken string
	// Files are those of stage Boot.
	Files []File
	// Users are created by cloud-init.
	Users []bootstrapv1.User
}

// cloudConfig is the part of cloud-init's cloud-config that is used here; see the modules "Write
// Files", "Runcmd" and "Users and Groups" in cloud-init's reference.
type cloudConfig struct {
	Users      []any       `json:"users,omitempty"`
	WriteFiles []writeFile `json:"write_files"`
	RunCmd     [][]string  `json:"runcmd"`
}

type writeFile struct {
	Path        string `json:"path"`
	Permissions string `json:"permissions"`
	Encoding    string `json:"encoding,omitempty"`
	Content     string `json:"content"`
}

type user struct {
	Name              string   `json:"name"`
	Groups            []string `json:"groups,omitempty"`
	Sudo              string   `json:"sudo,omitempty"`
	SSHAuthorizedKeys []string `json:"ssh_authorized_keys,omitempty"`
}

// UserData renders the user data. It fails with a *TooLargeError when that exceeds MaxUserData.
func UserData(o UserDataOptions) ([]byte, error) {
	config := cloudConfig{
		WriteFiles: []writeFile{
			{Path: downloaderScript, Permissions: "0700", Content: compact(downloadScript)},
			{Path: unitDirectory + "/" + DownloaderUnit, Permissions: "0644", Content: compact(downloaderUnitFile)},
			{Path: credentialDirectory + "/server", Permissions: "0600", Content: o.Server + "\n"},
			{Path: credentialDirectory + "/ca.crt", Permissions: "0600", Content: string(o.Authority)},
			{Path: credentialDirectory + "/secret", Permissions: "0600", Content: o.SecretNamespace + "/" + o.SecretName + "\n"},
			// A header for curl: a token on a command line could be read by every process.
			{Path: credentialDirectory + "/authorization", Permissions: "0600", Content: "Authorization: Bearer " + o.DownloadToken + "\n"},
		},
		RunCmd: [][]string{
			{"systemctl", "daemon-reload"},
			{"systemctl", "enable", DownloaderUnit},
			{"systemctl", "start", DownloaderUnit},
		},
	}
	for _, f := range o.Files {
		config.WriteFiles = append(config.WriteFiles, bootFile(f))
	}
	if len(o.Users) > 0 {
		// "default" keeps the user that the image comes with.
		config.Users = append(config.Users, "default")
	}
	for _, u := range o.Users {
		config.Users = append(config.Users, user{Name: u.Name, Groups: u.Groups, Sudo: u.Sudo, SSHAuthorizedKeys: u.AuthorizedKeys()})
	}
	body, err := yaml.Marshal(config)
	if err != nil {
		return nil, errors.Wrap(err, "rendering user data")
	}
	data := append([]byte("#cloud-config\n"), body...)
	if len(data) > MaxUserData {
		// The token is a new one at each attempt. Without it the explanation stays the same, so that no condition changes.
		stable := bytes.ReplaceAll(data, []byte(o.DownloadToken), nil)
		return nil, &TooLargeError{What: "the user data", Size: len(data), Limit: MaxUserData, Remedy: bootstrapdata.Explain(stable)}
	}
	return data, nil
}

func bootFile(f File) writeFile {
	if utf8.Valid(f.Content) {
		return writeFile{Path: f.Path, Permissions: f.Mode, Content: string(f.Content)}
	}
	return writeFile{Path: f.Path, Permissions: f.Mode, Encoding: "b64", Content: base64.StdEncoding.EncodeToString(f.Content)}
}
