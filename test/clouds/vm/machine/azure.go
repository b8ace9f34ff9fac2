package machine

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pkg/errors"
)

const (
	// environmentFile is what Azure's provisioning medium has for Linux.
	environmentFile = "ovf-env.xml"
	// instanceDocument is what cloud-init reads from IMDS.
	instanceDocument = "/metadata/instance?api-version=2021-08-01&extended=true"
)

// azure is a machine in Azure: it has a metadata service, which answers requests with a header, and a medium with custom data.
// See https://docs.cloud-init.io/en/latest/reference/datasources/azure.html.
type azure struct {
	metadata
	media string
}

type azureDocument struct {
	Compute struct {
		Name     string `json:"name"`
		UserData string `json:"userData"`
	} `json:"compute"`
}

// document is retried for a short time only, as the token of EC2 is.
func (a *azure) document(ctx context.Context) (*azureDocument, error) {
	var text string
	var err error
	for range 10 {
		if text, err = a.do(ctx, http.MethodGet, instanceDocument, "Metadata", "true"); err == nil && text != "" {
			break
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err == nil && text == "" {
		err = errors.New("it does not know this machine")
	}
	if err != nil {
		return nil, errors.Wrap(err, "asking the metadata service for the instance")
	}
	out := &azureDocument{}
	return out, errors.Wrap(json.Unmarshal([]byte(text), out), "reading the instance's metadata")
}

func (a *azure) id(ctx context.Context) (string, error) {
	document, err := a.document(ctx)
	if err != nil {
		return "", err
	}
	return document.Compute.Name, nil
}

// userData is the custom data of the medium, and only if there is none the user data of the metadata service, as in cloud-init. The medium
// is ejected.
func (a *azure) userData(ctx context.Context) (string, error) {
	encoded, err := a.customData()
	if err != nil {
		return "", err
	}
	if err := os.RemoveAll(a.media); err != nil {
		return "", errors.Wrap(err, "ejecting the provisioning medium")
	}
	if encoded == "" {
		document, err := a.document(ctx)
		if err != nil {
			return "", err
		}
		encoded = document.Compute.UserData
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	return string(raw), errors.Wrap(err, "decoding the custom data")
}

func (a *azure) customData() (string, error) {
	raw, err := os.ReadFile(filepath.Join(a.media, environmentFile))
	if err != nil {
		return "", errors.Wrap(err, "reading the provisioning medium")
	}
	var environment struct {
		CustomData string `xml:"ProvisioningSection>LinuxProvisioningConfigurationSet>CustomData"`
	}
	return environment.CustomData, errors.Wrap(xml.Unmarshal(raw, &environment), "reading "+environmentFile)
}
