package session

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	corev1 "k8s.io/api/core/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// The parts of credentials, as fromData and fromFile name them.
const (
	accessKeyID     = "access key ID"
	secretAccessKey = "secret access key"
	sessionToken    = "session token"
)

// dataKeys are the keys of a Secret that credentials are read from: those of the environment, and those of Cluster API's own provider.
var dataKeys = map[string]string{
	"AWS_ACCESS_KEY_ID": accessKeyID, "AWS_SECRET_ACCESS_KEY": secretAccessKey, "AWS_SESSION_TOKEN": sessionToken,
	"AccessKeyID": accessKeyID, "SecretAccessKey": secretAccessKey, "SessionToken": sessionToken,
}

// fileKey is the key of a Secret with a file of one profile.
const fileKey = "credentials"

// regionKeys are often beside credentials in Secrets; they are not used.
var regionKeys = []string{"AWS_REGION", "AWS_DEFAULT_REGION", "region"}

// fileSettings are what such a file may have. Everything else that the SDK knows makes it read files, run programs or call addresses
// that anyone who writes the Secret chooses, from the provider's process.
var fileSettings = map[string]string{
	"aws_access_key_id": accessKeyID, "aws_secret_access_key": secretAccessKey, "aws_session_token": sessionToken,
}

// dangerous are settings that are refused by their names, and what they would do. Others are refused by the number of their line, since
// what stands there may be part of a key.
var dangerous = map[string]string{
	"credential_process":            "it runs a program",
	"credential_source":             "it takes credentials of the provider's process",
	"source_profile":                "it takes credentials of another profile",
	"role_arn":                      "roles are given in spec.assumeRoles",
	"external_id":                   "roles are given in spec.assumeRoles",
	"mfa_serial":                    "no MFA code can be entered here: use a key that needs none",
	"web_identity_token_file":       "it reads a file; tokens are given in spec.webIdentity",
	"ca_bundle":                     "it reads a file, and decides whom the provider trusts",
	"endpoint_url":                  "it calls another address than that of AWS",
	"services":                      "it calls another address than that of AWS",
	"sso_session":                   "endpoints other than that of STS are not allowed",
	"sso_start_url":                 "endpoints other than that of STS are not allowed",
	"sso_account_id":                "endpoints other than that of STS are not allowed",
	"sso_role_name":                 "endpoints other than that of STS are not allowed",
	"sso_region":                    "endpoints other than that of STS are not allowed",
	"login_session":                 "it reads files of the provider's process",
	"ec2_metadata_service_endpoint": "it calls another address than that of AWS",
}

// fromSecret returns the credentials that a Secret has. Errors have nothing of its values.
func fromSecret(secret *corev1.Secret) (aws.Credentials, error) {
	parts, err := partsOf(secret)
	if err != nil {
		return aws.Credentials{}, err
	}
	for _, part := range []string{accessKeyID, secretAccessKey} {
		if parts[part] == "" {
			return aws.Credentials{}, invalid("Secret %s has no %s: give AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a file of one profile under "+
				"the key %s", secret.Name, part, fileKey)
		}
	}
	for part, form := range forms {
		if value := parts[part]; value != "" && (!form.MatchString(value) || len(value) > maxPart) {
			return aws.Credentials{}, invalid("the %s in Secret %s is malformed: check that it is whole and not encoded twice",
				part, secret.Name)
		}
	}
	return aws.Credentials{
		AccessKeyID: parts[accessKeyID], SecretAccessKey: parts[secretAccessKey], SessionToken: parts[sessionToken],
		Source: "Secret " + secret.Name,
	}, nil
}

// forms only keep out what is no key. An access key ID of AWS has at least 16 characters (STS, accessKeyIdType), but what stands in for AWS
// takes shorter ones, such as "test".
var forms = map[string]*regexp.Regexp{
	accessKeyID:     regexp.MustCompile(`^[A-Za-z0-9_]{3,128}$`),
	secretAccessKey: regexp.MustCompile(`^[!-~]+$`),
	sessionToken:    regexp.MustCompile(`^[!-~]+$`),
}

// maxPart is how many bytes a part may have; AWS gives no limit for session tokens.
const maxPart = 16384

func partsOf(secret *corev1.Secret) (map[string]string, error) {
	parts := map[string]string{}
	for key, value := range secret.Data {
		part, known := dataKeys[key]
		switch {
		case known && parts[part] != "":
			return nil, invalid("Secret %s has the %s twice: remove one of the keys", secret.Name, part)
		case known:
			parts[part] = strings.TrimSpace(string(value))
		case key != fileKey && !slices.Contains(regionKeys, key):
			return nil, notAllowed("Secret %s has the key %q, which is not allowed beside credentials: remove it", secret.Name, key)
		}
	}
	file, given := secret.Data[fileKey]
	if !given {
		return parts, nil
	}
	if len(parts) > 0 {
		return nil, invalid("Secret %s has the key %s and keys of single values: remove one of both", secret.Name, fileKey)
	}
	return partsOfFile(secret.Name, file)
}

// partsOfFile reads a file of one profile.
func partsOfFile(name string, file []byte) (map[string]string, error) {
	parts, profiles := map[string]string{}, 0
	lines := bufio.NewScanner(bytes.NewReader(file))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		if line[0] == '[' {
			if profiles++; profiles > 1 {
				return nil, notAllowed("the file in Secret %s has a second profile in line %d: leave one", name, n)
			}
			continue
		}
		setting, value, _ := strings.Cut(line, "=")
		setting = strings.ToLower(strings.TrimSpace(setting))
		part, allowed := fileSettings[setting]
		switch {
		case dangerous[setting] != "":
			return nil, notAllowed("the file in Secret %s has the setting %s in line %d, which is not allowed (%s): remove it",
				name, setting, n, dangerous[setting])
		case !allowed:
			return nil, notAllowed("the file in Secret %s has something else in line %d than aws_access_key_id, aws_secret_access_key and "+
				"aws_session_token, which alone are allowed: remove it", name, n)
		case parts[part] != "":
			return nil, invalid("the file in Secret %s has the %s a second time in line %d: remove one", name, part, n)
		}
		parts[part] = strings.TrimSpace(value)
	}
	if lines.Err() != nil {
		return nil, invalid("the file in Secret %s has a line that is too long for credentials", name)
	}
	return parts, nil
}

func invalid(format string, args ...any) error {
	return identity.NewInvalid(driverv1.CredentialsInvalidReason, fmt.Sprintf(format, args...))
}

func notAllowed(format string, args ...any) error {
	return identity.NewInvalid(driverv1.CredentialsNotAllowedReason, fmt.Sprintf(format, args...))
}
