package credentials

import (
	"bytes"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// secretKeys are the keys of a Secret that a file of credentials is read from: that of this provider's own Secret, and that of Cluster
// API's provider.
var secretKeys = []string{"credentials.json", "credentials"}

// serviceAccountKey is the key of a service account.
type serviceAccountKey struct {
	email, keyID string
	privateKey   []byte
}

// fromSecret is what a Secret has: a key, and perhaps an account that is impersonated with it.
type fromSecret struct {
	key         serviceAccountKey
	impersonate *impersonation
}

// What the fields of a file of credentials may have. Anyone who writes the Secret may be a tenant; addresses of their choice would be sent
// what gives access, and files and programs would be those of the provider's process. Fields that name one are compared with Google's
// own and then not used: see Endpoints. https://cloud.google.com/docs/authentication/external/externally-sourced-credentials.
var (
	emailForm      = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,127}@[a-z0-9.-]{1,127}\.gserviceaccount\.com$`)
	keyIDForm      = regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`)
	impersonateURL = regexp.MustCompile(`^https://iamcredentials\.googleapis\.com/v1/projects/-/serviceAccounts/([^/:]+):generateAccessToken$`)
	tokenURIs      = []string{
		DefaultOAuth2 + "/token", "https://accounts.google.com/o/oauth2/token", "https://www.googleapis.com/oauth2/v4/token",
	}
	universes  = []string{"googleapis.com"}
	plainField = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
)

// unused are fields of key files that say nothing that is needed.
var unused = []string{
	"project_id", "client_id", "auth_uri", "auth_provider_x509_cert_url", "client_x509_cert_url", "quota_project_id",
}

// refused are fields that are refused with what they would do; other unknown ones are refused by their names.
var refused = map[string]string{
	"credential_source":           "it reads a file of the provider, runs a program or calls an address: use spec.workloadIdentity",
	"token_url":                   "tokens are exchanged as spec.workloadIdentity sets",
	"token_info_url":              "it would send tokens to an address",
	"revoke_url":                  "it would send tokens to an address",
	"refresh_token":               "credentials of a person are not used: give the key of a service account",
	"client_secret":               "credentials of a person are not used: give the key of a service account",
	"ca_cert_path":                "it would read a file of the provider",
	"workforce_pool_user_project": "credentials of a person are not used: give the key of a service account",
}

// readSecret returns the credentials that a Secret has. Errors have nothing of its values.
func readSecret(secret *corev1.Secret) (fromSecret, error) {
	found := slices.Sorted(maps.Keys(secret.Data))
	if len(found) != 1 || !slices.Contains(secretKeys, found[0]) {
		return fromSecret{}, invalid("Secret %s has %d keys: give one, credentials.json, with the key file of a service account", secret.Name, len(found))
	}
	f, err := fieldsOf("Secret "+secret.Name, secret.Data[found[0]])
	if err != nil {
		return fromSecret{}, err
	}
	switch kind, err := f.text("type"); {
	case err != nil:
		return fromSecret{}, err
	case kind == "service_account":
		key, err := f.serviceAccount()
		return fromSecret{key: key}, err
	case kind == "impersonated_service_account":
		return f.impersonatedServiceAccount()
	default:
		return fromSecret{}, f.otherType(kind)
	}
}

// fields are those of one object of a file of credentials.
type fields struct {
	// where it is, for messages.
	where string
	raw   map[string]json.RawMessage
}

// fieldsOf reads an object, whose field names count as they are written: the decoding of a struct would take Token_URI for token_uri.
func fieldsOf(where string, content []byte) (fields, error) {
	f := fields{where: where}
	decoder := json.NewDecoder(bytes.NewReader(content))
	if err := decoder.Decode(&f.raw); err != nil || f.raw == nil {
		return f, invalid("%s is not a JSON object: give the key file of a service account as it was downloaded", where)
	}
	if _, err := decoder.Token(); err != io.EOF {
		return f, invalid("%s has something after its JSON object: remove it", where)
	}
	return f, nil
}

// text returns a field that has to be a text.
func (f fields) text(name string) (string, error) {
	var v string
	if err := json.Unmarshal(f.raw[name], &v); err != nil || v == "" {
		return "", invalid("%s: field %s is missing, or is not a string: give the whole key file of a service account", f.where, name)
	}
	return v, nil
}

// only refuses fields that are not in a list, and addresses and domains that are not Google's.
func (f fields) only(names ...string) error {
	for _, name := range slices.Sorted(maps.Keys(f.raw)) {
		switch {
		case name == "universe_domain":
			if err := f.oneOf(name, universes); err != nil {
				return err
			}
		case slices.Contains(names, name), slices.Contains(unused, name):
		case refused[name] != "":
			return notAllowed("%s: field %s is not allowed (%s)", f.where, f.path(name), refused[name])
		case plainField.MatchString(name):
			return notAllowed("%s: field %s is not allowed here: remove it", f.where, name)
		default:
			return notAllowed("%s has a field that is not allowed: leave those of the key file of a service account", f.where)
		}
	}
	return nil
}

// path names the field below credential_source that is the reason why that is refused.
func (f fields) path(name string) string {
	var below map[string]json.RawMessage
	if name != "credential_source" || json.Unmarshal(f.raw[name], &below) != nil {
		return name
	}
	for _, field := range []string{"file", "url", "executable", "environment_id", "certificate"} {
		if _, has := below[field]; has {
			return name + "." + field
		}
	}
	return name
}

func (f fields) oneOf(name string, allowed []string) error {
	v, err := f.text(name)
	if err != nil {
		return err
	}
	if !slices.Contains(allowed, v) {
		return notAllowed("%s: field %s has a value that is not allowed: give %s, or remove the field", f.where, name, allowed[0])
	}
	return nil
}

// otherType is the error of a file of another type, or without one that is known.
func (f fields) otherType(kind string) error {
	switch kind {
	case "external_account":
		const field = "credential_source"
		return notAllowed("%s: type external_account with field %s is not allowed (%s)", f.where, f.path(field), refused[field])
	case "authorized_user", "external_account_authorized_user":
		return notAllowed("%s: type %s is not allowed (%s)", f.where, kind, refused["refresh_token"])
	}
	return notAllowed("%s: field type has a value that is not allowed: give service_account or impersonated_service_account", f.where)
}

func (f fields) serviceAccount() (serviceAccountKey, error) {
	none := serviceAccountKey{}
	if err := f.only("type", "client_email", "private_key", "private_key_id", "token_uri"); err != nil {
		return none, err
	}
	if _, has := f.raw["token_uri"]; has {
		if err := f.oneOf("token_uri", tokenURIs); err != nil {
			return none, err
		}
	}
	values := map[string]string{}
	for _, name := range []string{"client_email", "private_key", "private_key_id"} {
		v, err := f.text(name)
		if err != nil {
			return none, err
		}
		values[name] = v
	}
	switch key := []byte(values["private_key"]); {
	case !emailForm.MatchString(values["client_email"]):
		return none, invalid("%s: field client_email is not the email of a service account", f.where)
	case !keyIDForm.MatchString(values["private_key_id"]):
		return none, invalid("%s: field private_key_id is malformed", f.where)
	case !isRSA(key):
		return none, invalid("%s: field private_key is not an RSA key in PEM: give the key file as it was downloaded", f.where)
	default:
		return serviceAccountKey{values["client_email"], values["private_key_id"], key}, nil
	}
}

// isRSA returns whether a text is a private key as Google gives them out.
func isRSA(text []byte) bool {
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	if _, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return true
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	_, ok := key.(*rsa.PrivateKey)
	return err == nil && ok
}

func (f fields) impersonatedServiceAccount() (fromSecret, error) {
	none := fromSecret{}
	if err := f.only("type", "service_account_impersonation_url", "delegates", "source_credentials"); err != nil {
		return none, err
	}
	address, err := f.text("service_account_impersonation_url")
	if err != nil {
		return none, err
	}
	email := impersonateURL.FindStringSubmatch(address)
	if email == nil || !emailForm.MatchString(email[1]) {
		return none, notAllowed("%s: field service_account_impersonation_url has a value that is not allowed: give "+
			"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/<email>:generateAccessToken", f.where)
	}
	found := &impersonation{email: email[1]}
	var delegates []string
	if raw, has := f.raw["delegates"]; has && json.Unmarshal(raw, &delegates) != nil {
		return none, invalid("%s: field delegates is not a list of strings", f.where)
	}
	for _, d := range delegates {
		d = strings.TrimPrefix(d, "projects/-/serviceAccounts/")
		if !emailForm.MatchString(d) {
			return none, invalid("%s: field delegates has something else than emails of service accounts", f.where)
		}
		found.delegates = append(found.delegates, d)
	}
	source, err := fieldsOf(f.where+", source_credentials", f.raw["source_credentials"])
	if err != nil {
		return none, err
	}
	switch kind, err := source.text("type"); {
	case err != nil:
		return none, err
	case kind != "service_account":
		return none, source.otherType(kind)
	}
	key, err := source.serviceAccount()
	return fromSecret{key: key, impersonate: found}, err
}
