package credentials

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/test/clouds/gcp/iam"
)

const (
	testEmail  = "machines@team-a.iam.gserviceaccount.com"
	otherEmail = "fleet@team-a.iam.gserviceaccount.com"
	// hidden is in values that no message may show.
	hidden = "hidden-value"
)

// impersonationURL is that of a service account.
func impersonationURL(host, email string) string {
	return host + "/v1/projects/-/serviceAccounts/" + email + ":generateAccessToken"
}

// changed is a key file with other fields; nil removes one.
func changed(file map[string]any, fields map[string]any) map[string]any {
	file = maps.Clone(file)
	for name, value := range fields {
		if file[name] = value; value == nil {
			delete(file, name)
		}
	}
	return file
}

func secretWith(t *testing.T, file any) *corev1.Secret {
	content, ok := file.(string)
	if !ok {
		raw, err := json.Marshal(file)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		content = string(raw)
	}
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}, Data: map[string][]byte{"credentials.json": []byte(content)}}
}

// TestCredentialsOfASecret: what a tenant writes makes the provider read no file, run no program and call no address. The message names
// the field and shows none of the values.
func TestCredentialsOfASecret(t *testing.T) {
	key := map[string]any{}
	for name, value := range iam.New(clock.RealClock{}).NewKey(testEmail) {
		key[name] = value
	}
	impersonated := map[string]any{
		"type": "impersonated_service_account", "source_credentials": key, "delegates": []string{"projects/-/serviceAccounts/" + testEmail},
		"service_account_impersonation_url": impersonationURL(DefaultIAMCredentials, otherEmail), "quota_project_id": "p",
	}
	external := func(source map[string]any) map[string]any {
		return map[string]any{
			"type": "external_account", "audience": "//iam.googleapis.com/x", "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
			"token_url": "https://sts.googleapis.com/v1/token", "credential_source": source,
		}
	}
	const invalidReason, notAllowedReason = driverv1.CredentialsInvalidReason, driverv1.CredentialsNotAllowedReason
	for name, c := range map[string]struct {
		file any
		// reason is empty if the file is accepted; says is in the message.
		reason, says string
	}{
		"a key":                      {file: key},
		"an impersonated account":    {file: impersonated},
		"a former token address":     {file: changed(key, map[string]any{"token_uri": "https://accounts.google.com/o/oauth2/token"})},
		"no token address":           {file: changed(key, map[string]any{"token_uri": nil, "universe_domain": nil})},
		"no JSON":                    {hidden, invalidReason, "not a JSON object"},
		"null":                       {"null", invalidReason, "not a JSON object"},
		"a list":                     {`["` + hidden + `"]`, invalidReason, "not a JSON object"},
		"two objects":                {`{"type": "service_account"} {"token_uri": "` + hidden + `"}`, invalidReason, "after its JSON object"},
		"no type":                    {changed(key, map[string]any{"type": nil}), invalidReason, "field type"},
		"a type in capitals":         {changed(key, map[string]any{"Type": "external_account"}), notAllowedReason, "a field that is not allowed"},
		"another type":               {changed(key, map[string]any{"type": hidden}), notAllowedReason, "field type"},
		"credentials of a person":    {map[string]any{"type": "authorized_user", "refresh_token": hidden}, notAllowedReason, "authorized_user"},
		"a file":                     {external(map[string]any{"file": "/etc/" + hidden}), notAllowedReason, "credential_source.file"},
		"an address":                 {external(map[string]any{"url": "http://169.254.169.254/" + hidden}), notAllowedReason, "credential_source.url"},
		"a program":                  {external(map[string]any{"executable": map[string]any{"command": "/bin/" + hidden}}), notAllowedReason, "credential_source.executable"},
		"the instance's own of AWS":  {external(map[string]any{"environment_id": "aws1", "region_url": hidden}), notAllowedReason, "credential_source.environment_id"},
		"a source in a key":          {changed(key, map[string]any{"credential_source": map[string]any{"file": hidden}}), notAllowedReason, "credential_source.file"},
		"another token address":      {changed(key, map[string]any{"token_uri": "https://" + hidden + "/token"}), notAllowedReason, "field token_uri"},
		"one that looks like it":     {changed(key, map[string]any{"token_uri": "https://oauth2.googleapis.com/token?" + hidden}), notAllowedReason, "field token_uri"},
		"a token address in capital": {changed(key, map[string]any{"Token_URI": "https://" + hidden}), notAllowedReason, "a field that is not allowed"},
		"another universe":           {changed(key, map[string]any{"universe_domain": hidden + ".com"}), notAllowedReason, "field universe_domain"},
		"an unknown field":           {changed(key, map[string]any{"proxy": hidden}), notAllowedReason, "field proxy"},
		"a field with a secret name": {changed(key, map[string]any{"-----" + hidden: ""}), notAllowedReason, "a field that is not allowed"},
		"no key":                     {changed(key, map[string]any{"private_key": nil}), invalidReason, "field private_key"},
		"half a key":                 {changed(key, map[string]any{"private_key": "-----BEGIN PRIVATE KEY-----\n" + hidden}), invalidReason, "field private_key"},
		"a list for a text":          {changed(key, map[string]any{"client_email": []string{hidden}}), invalidReason, "field client_email"},
		"the email of a person":      {changed(key, map[string]any{"client_email": hidden + "@example.com"}), invalidReason, "field client_email"},
		"impersonation elsewhere": {changed(impersonated, map[string]any{"service_account_impersonation_url": impersonationURL("https://"+hidden, otherEmail)}),
			notAllowedReason, "service_account_impersonation_url"},
		"impersonation by another path": {changed(impersonated, map[string]any{"service_account_impersonation_url": impersonationURL(DefaultIAMCredentials, "../"+hidden+"?x=")}),
			notAllowedReason, "service_account_impersonation_url"},
		"delegates elsewhere": {changed(impersonated, map[string]any{"delegates": []string{"https://" + hidden}}), invalidReason, "field delegates"},
		"an external source": {changed(impersonated, map[string]any{"source_credentials": external(map[string]any{"file": "/etc/" + hidden})}),
			notAllowedReason, "source_credentials: type external_account with field credential_source.file"},
		"a source with another token address": {changed(impersonated, map[string]any{"source_credentials": changed(key, map[string]any{"token_uri": "https://" + hidden})}),
			notAllowedReason, "source_credentials: field token_uri"},
		"a source of a source": {changed(impersonated, map[string]any{"source_credentials": impersonated}), notAllowedReason, "source_credentials: field type"},
		"no source":            {changed(impersonated, map[string]any{"source_credentials": nil}), invalidReason, "source_credentials is not a JSON"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			found, err := readSecret(secretWith(t, c.file))
			if c.reason == "" {
				g.Expect(err).NotTo(HaveOccurred())
				g.Expect(found.key.email).To(Equal(testEmail))
				return
			}
			g.Expect(identity.AsInvalid(err)).To(HaveField("Reason", c.reason))
			g.Expect(err.Error()).
				To(And(HavePrefix("Secret team-a"), ContainSubstring(c.says), Not(ContainSubstring(hidden)), Not(ContainSubstring("BEGIN"))))
			g.Expect(strings.Count(err.Error(), ":")).To(BeNumerically(">", 0), "a remedy follows")
		})
	}
}

// TestKeysOfASecret: one, by either name.
func TestKeysOfASecret(t *testing.T) {
	g := NewWithT(t)
	file := map[string]any{}
	for name, value := range iam.New(clock.RealClock{}).NewKey(testEmail) {
		file[name] = value
	}
	secret := secretWith(t, file)
	secret.Data["credentials"] = secret.Data["credentials.json"]
	_, err := readSecret(secret)
	g.Expect(err).To(MatchError(ContainSubstring("has 2 keys")))
	delete(secret.Data, "credentials.json")
	_, err = readSecret(secret)
	g.Expect(err).NotTo(HaveOccurred())
	_, err = readSecret(&corev1.Secret{})
	g.Expect(err).To(MatchError(ContainSubstring("give one, credentials.json")))
}
