package accounts

import (
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright.dev/test/clouds/aws/simapi"
)

// refusal is an error answer.
type refusal struct {
	status        int
	code, message string
}

// write answers in the form of the service. EC2 has another code for keys that it does not know.
func (e *refusal) write(w http.ResponseWriter, service string) {
	status, code := e.status, e.code
	if service == "ec2" && code == "InvalidClientTokenId" {
		status, code = http.StatusUnauthorized, "AuthFailure"
	}
	if service == "ssm" {
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"__type":%q,"message":%q}`, code, e.message)
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	w.WriteHeader(status)
	if service == "ec2" {
		type answer struct {
			XMLName xml.Name `xml:"Response"`
			Code    string   `xml:"Errors>Error>Code"`
			Message string   `xml:"Errors>Error>Message"`
		}
		_ = xml.NewEncoder(w).Encode(answer{Code: code, Message: e.message})
		return
	}
	type answer struct {
		XMLName xml.Name `xml:"ErrorResponse"`
		Type    string   `xml:"Error>Type"`
		Code    string   `xml:"Error>Code"`
		Message string   `xml:"Error>Message"`
	}
	_ = xml.NewEncoder(w).Encode(answer{Type: "Sender", Code: code, Message: e.message})
}

// serveSTS answers one call of STS.
func (f *Front) serveSTS(w http.ResponseWriter, r *http.Request, key string, form url.Values) {
	f.mu.Lock()
	call := simapi.Call{
		ID: int64(len(f.calls) + 1), Time: f.clock.Now(), Action: form.Get("Action"), Caller: key, Parameters: map[string]string{},
	}
	for name := range form {
		if name != "WebIdentityToken" && name != "Action" && name != "Version" {
			call.Parameters[name] = form.Get(name)
		}
	}
	f.calls = append(f.calls, call)
	hang := f.hang
	f.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
			return
		}
	}
	answer, refused := f.perform(r, key, form)
	if refused != nil {
		refused.write(w, "sts")
		return
	}
	w.Header().Set("Content-Type", "text/xml")
	name := xml.Name{Space: "https://sts.amazonaws.com/doc/" + apiVersion + "/", Local: form.Get("Action") + "Response"}
	_ = xml.NewEncoder(w).EncodeElement(answer, xml.StartElement{Name: name})
}

func (f *Front) perform(r *http.Request, key string, form url.Values) (any, *refusal) {
	if form.Get("Version") != apiVersion {
		return nil, &refusal{http.StatusBadRequest, "InvalidAction", "Could not find operation for version " + form.Get("Version")}
	}
	if form.Get("Action") == "AssumeRoleWithWebIdentity" {
		return f.assumeByToken(form)
	}
	c, refused := f.authenticate(key, r.Header.Get("X-Amz-Security-Token"))
	if refused != nil {
		return nil, refused
	}
	switch form.Get("Action") {
	case "GetCallerIdentity":
		return &callerIdentity{Arn: c.arn, UserID: key, Account: c.account}, nil
	case "AssumeRole":
		return f.assume(c, form)
	}
	return nil, &refusal{http.StatusBadRequest, "InvalidAction", "The action " + form.Get("Action") + " is not simulated"}
}

type callerIdentity struct {
	Arn     string `xml:"GetCallerIdentityResult>Arn"`
	UserID  string `xml:"GetCallerIdentityResult>UserId"`
	Account string `xml:"GetCallerIdentityResult>Account"`
}

type assumed struct {
	AccessKeyID     string `xml:"AccessKeyId"`
	SecretAccessKey string
	SessionToken    string
	Expiration      string
}

type assumedUser struct {
	Arn           string
	AssumedRoleID string `xml:"AssumedRoleId"`
}

type assumeRole struct {
	Credentials assumed     `xml:"AssumeRoleResult>Credentials"`
	User        assumedUser `xml:"AssumeRoleResult>AssumedRoleUser"`
}

type assumeRoleWithWebIdentity struct {
	Credentials assumed     `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	User        assumedUser `xml:"AssumeRoleWithWebIdentityResult>AssumedRoleUser"`
}

// assume checks the trust of the role as AWS words its refusal.
func (f *Front) assume(c *caller, form url.Values) (any, *refusal) {
	arn := form.Get("RoleArn")
	role := f.role(arn)
	trusts := role != nil && slices.ContainsFunc(role.Principals, func(p string) bool {
		return p == c.arn || p == c.account || strings.HasPrefix(c.arn, p+"/")
	})
	if !trusts || role.ExternalID != form.Get("ExternalId") {
		message := fmt.Sprintf("User: %s is not authorized to perform: sts:AssumeRole on resource: %s", c.arn, arn)
		return nil, &refusal{http.StatusForbidden, "AccessDenied", message}
	}
	credentials, user, refused := f.issue(arn, form, c.token != "")
	return &assumeRole{credentials, user}, refused
}

func (f *Front) assumeByToken(form url.Values) (any, *refusal) {
	role := f.role(form.Get("RoleArn"))
	if role == nil || !slices.Contains(role.Tokens, form.Get("WebIdentityToken")) {
		return nil, &refusal{http.StatusBadRequest, "InvalidIdentityToken", "The web identity token that was passed could not be validated"}
	}
	credentials, user, refused := f.issue(role.ARN, form, false)
	return &assumeRoleWithWebIdentity{credentials, user}, refused
}

func (f *Front) role(arn string) *Role {
	f.mu.Lock()
	defer f.mu.Unlock()
	if i := slices.IndexFunc(f.roles, func(r Role) bool { return r.ARN == arn }); i >= 0 {
		return &f.roles[i]
	}
	return nil
}

var (
	roleARN     = regexp.MustCompile(`^arn:aws:iam::([0-9]{12}):role/(.+)$`)
	sessionName = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)
)

// issue issues the credentials of a session. chained is true if the caller has those of a session, too.
func (f *Front) issue(arn string, form url.Values, chained bool) (assumed, assumedUser, *refusal) {
	name, match := form.Get("RoleSessionName"), roleARN.FindStringSubmatch(arn)
	seconds, err := strconv.Atoi(form.Get("DurationSeconds"))
	if form.Get("DurationSeconds") == "" {
		seconds, err = 3600, nil
	}
	longest := 43200
	if chained {
		longest = 3600
	}
	if match == nil || !sessionName.MatchString(name) || err != nil || seconds < 900 || seconds > longest {
		return assumed{}, assumedUser{}, &refusal{http.StatusBadRequest, "ValidationError", "DurationSeconds or RoleSessionName is not valid"}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.issued++
	c := &caller{
		account: match[1], arn: fmt.Sprintf("arn:aws:sts::%s:assumed-role/%s/%s", match[1], match[2], name),
		token: fmt.Sprintf("token-%d", f.issued), expires: f.clock.Now().Add(time.Duration(seconds) * time.Second),
	}
	key := fmt.Sprintf("ASIASIMULATED%07d", f.issued)
	f.callers[key] = c
	return assumed{AccessKeyID: key, SecretAccessKey: "simulated", SessionToken: c.token, Expiration: c.expires.UTC().Format(time.RFC3339)},
		assumedUser{Arn: c.arn, AssumedRoleID: "AROASIMULATED:" + name}, nil
}
