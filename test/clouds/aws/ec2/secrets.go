package ec2

import (
	"encoding/base64"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"millwright.dev/test/clouds/simulator"
)

const secretsTarget = "secretsmanager."

// maxSecret is how many bytes a secret takes, see https://docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html.
const maxSecret = 65536

// secret is one secret of the account. Its versions are found by the tokens of the requests that created them.
type secret struct {
	name, arn     string
	tags          map[string]string
	versions      map[string]string // base64, by version ID
	current       string
	previous      string
	created, gone time.Time // gone is when the deletion is final; zero while none is scheduled
	forced        bool
	seq           int
}

type secretsBody struct {
	Name, SecretID, ClientRequestToken, SecretBinary, SecretString, NextToken, Description string
	Tags                                                                                   []secretTag
	Filters                                                                                []struct {
		Key    string
		Values []string
	}
	MaxResults                 int
	RecoveryWindowInDays       int
	ForceDeleteWithoutRecovery bool
	IncludePlannedDeletion     bool
}

type secretTag struct{ Key, Value string }

// secretReply is the answer of any of the actions: AWS leaves out what an action has not.
type secretReply struct {
	ARN             string              `json:",omitempty"`
	Name            string              `json:",omitempty"`
	VersionID       string              `json:"VersionId,omitempty"`
	CreatedDate     float64             `json:",omitempty"`
	DeletionDate    float64             `json:",omitempty"`
	DeletedDate     float64             `json:",omitempty"`
	SecretBinary    string              `json:",omitempty"`
	VersionStages   []string            `json:",omitempty"`
	Tags            []secretTag         `json:",omitempty"`
	VersionsToStage map[string][]string `json:"VersionIdsToStages,omitempty"`
	SecretList      []secretReply       `json:",omitempty"`
	NextToken       string              `json:",omitempty"`
}

func (*secretReply) identify(string) {}

var secretActions = map[string]func(*Server, secretsBody) (reply, error){
	"CreateSecret": createSecret, "PutSecretValue": putSecretValue, "DescribeSecret": describeSecret,
	"DeleteSecret": deleteSecret, "ListSecrets": listSecrets, "GetSecretValue": getSecretValue,
}

// performSecrets checks the caller and the request, and does what the action does. Secrets Manager in the AWS JSON 1.1 protocol, see
// https://docs.aws.amazon.com/secretsmanager/latest/apireference/Welcome.html.
func (s *Server) performSecrets(r *http.Request, c *simulator.Exchange, p params, body secretsBody) (reply, error) {
	key, err := s.authenticate(r, "secretsmanager")
	c.SetCaller(key)
	if err != nil {
		return nil, err
	}
	do, ok := secretActions[p["Action"]]
	if !ok {
		return nil, fail("UnknownOperationException", "The operation %s is not simulated", p["Action"])
	}
	if c.Error() != nil {
		return nil, injected(c.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.buckets.Take(p["Action"]) {
		return nil, fail("ThrottlingException", "Rate exceeded")
	}
	now := s.clock.Now()
	s.secrets = slices.DeleteFunc(s.secrets, func(x *secret) bool { return !x.gone.IsZero() && !now.Before(x.gone) })
	return do(s, body)
}

var secretName = regexp.MustCompile(`^[A-Za-z0-9/_+=.@-]{1,512}$`)

func createSecret(s *Server, b secretsBody) (reply, error) {
	if !secretName.MatchString(b.Name) {
		return nil, fail("ValidationException",
			"Invalid name. Must be a valid name containing alphanumeric characters, or any of the following: -/_+=.@!")
	}
	if found := s.secret(b.Name); found != nil {
		switch {
		case !found.gone.IsZero():
			return nil, fail("InvalidRequestException",
				"You can't create this secret because a secret with this name is already scheduled for deletion.")
		case b.ClientRequestToken != "" && found.versions[b.ClientRequestToken] == b.SecretBinary && b.SecretBinary != "":
			return &secretReply{ARN: found.arn, Name: found.name, VersionID: b.ClientRequestToken}, nil
		}
		return nil, fail("ResourceExistsException", "The operation failed because the secret %s already exists.", b.Name)
	}
	if len(b.Tags) > 50 {
		return nil, fail("InvalidParameterException", "A secret has at most 50 tags")
	}
	if err := checkValue(b); err != nil {
		return nil, err
	}
	s.seq++
	made := &secret{
		name: b.Name, tags: map[string]string{}, versions: map[string]string{b.ClientRequestToken: b.SecretBinary},
		current: b.ClientRequestToken, created: s.clock.Now(), seq: s.seq,
		arn: "arn:aws:secretsmanager:" + s.options.Region + ":" + s.options.AccountID + ":secret:" + b.Name + "-" + s.ids.uuid()[:6],
	}
	for _, t := range b.Tags {
		made.tags[t.Key] = t.Value
	}
	s.secrets = append(s.secrets, made)
	return &secretReply{ARN: made.arn, Name: made.name, VersionID: made.current}, nil
}

func checkValue(b secretsBody) error {
	raw, err := base64.StdEncoding.DecodeString(b.SecretBinary)
	switch {
	case err != nil:
		return fail("SerializationException", "SecretBinary is not base64")
	case len(b.ClientRequestToken) < 32 || len(b.ClientRequestToken) > 64:
		return fail("InvalidParameterException", "You must provide a ClientRequestToken value of 32 to 64 characters")
	case b.SecretString != "" || len(raw) == 0:
		return fail("InvalidParameterException", "The simulator takes secrets in SecretBinary")
	case len(raw) > maxSecret:
		return fail("ValidationException", "1 validation error detected: Value at 'secretBinary' failed to satisfy constraint: "+
			"Member must have length less than or equal to %d", maxSecret)
	}
	return nil
}

// secret finds one by its name or ARN.
func (s *Server) secret(id string) *secret {
	if found := find(s.secrets, func(x **secret) bool { return (*x).name == id || (*x).arn == id }); found != nil {
		return *found
	}
	return nil
}

func (s *Server) secretOrFail(id string) (*secret, error) {
	found := s.secret(id)
	if found == nil || found.forced {
		return nil, fail("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
	}
	return found, nil
}

func scheduled() error {
	return fail("InvalidRequestException", "You can't perform this operation on the secret because it was marked for deletion.")
}

func putSecretValue(s *Server, b secretsBody) (reply, error) {
	found, err := s.secretOrFail(b.SecretID)
	if err != nil {
		return nil, err
	}
	if !found.gone.IsZero() {
		return nil, scheduled()
	}
	if err := checkValue(b); err != nil {
		return nil, err
	}
	if before, ok := found.versions[b.ClientRequestToken]; ok && before != b.SecretBinary {
		return nil, fail("ResourceExistsException", "You can't use ClientRequestToken %s: a version has it already.", b.ClientRequestToken)
	}
	if _, ok := found.versions[b.ClientRequestToken]; !ok { // The repetition of a request changes nothing, not even which version is current.
		found.versions[b.ClientRequestToken] = b.SecretBinary
		found.previous, found.current = found.current, b.ClientRequestToken
	}
	return &secretReply{ARN: found.arn, Name: found.name, VersionID: b.ClientRequestToken}, nil
}

func describeSecret(s *Server, b secretsBody) (reply, error) {
	found, err := s.secretOrFail(b.SecretID)
	if err != nil {
		return nil, err
	}
	out := found.describe()
	return &out, nil
}

func (x *secret) describe() secretReply {
	out := secretReply{
		ARN: x.arn, Name: x.name, CreatedDate: float64(x.created.Unix()), VersionsToStage: map[string][]string{x.current: {"AWSCURRENT"}},
	}
	if x.previous != "" {
		out.VersionsToStage[x.previous] = []string{"AWSPREVIOUS"}
	}
	if !x.gone.IsZero() {
		out.DeletedDate = float64(x.gone.Unix())
	}
	for _, key := range sortedKeys(x.tags) {
		out.Tags = append(out.Tags, secretTag{key, x.tags[key]})
	}
	return out
}

// deleteSecret schedules the deletion. A forced one is over after Options.SecretDeletion, in which the secret is not found and its name is
// not free, as the documentation says.
func deleteSecret(s *Server, b secretsBody) (reply, error) {
	found := s.secret(b.SecretID)
	now := s.clock.Now()
	switch {
	case found == nil && b.ForceDeleteWithoutRecovery:
		return &secretReply{Name: b.SecretID, DeletionDate: float64(now.Unix())}, nil
	case found == nil || found.forced && !b.ForceDeleteWithoutRecovery:
		return nil, fail("ResourceNotFoundException", "Secrets Manager can't find the specified secret.")
	case b.ForceDeleteWithoutRecovery:
		found.forced, found.gone = true, now.Add(s.options.SecretDeletion)
	case !found.gone.IsZero():
		return nil, scheduled()
	default:
		found.gone = now.AddDate(0, 0, max(7, b.RecoveryWindowInDays))
	}
	return &secretReply{ARN: found.arn, Name: found.name, DeletionDate: float64(found.gone.Unix())}, nil
}

func listSecrets(s *Server, b secretsBody) (reply, error) {
	size := b.MaxResults
	if size == 0 {
		size = 100
	}
	if size < 1 || size > 100 {
		return nil, fail("ValidationException", "MaxResults is between 1 and 100")
	}
	after, err := paging{scope: "ListSecrets"}.decode(b.NextToken)
	if err != nil {
		return nil, fail("InvalidNextTokenException", "The NextToken value is invalid.")
	}
	out := &secretReply{}
	for _, x := range s.secrets {
		listed, err := x.matches(b)
		if err != nil {
			return nil, err
		}
		if x.seq <= after || !listed || x.forced || !x.gone.IsZero() && !b.IncludePlannedDeletion {
			continue
		}
		if len(out.SecretList) == size {
			out.NextToken = paging{scope: "ListSecrets"}.encode(after)
			break
		}
		out.SecretList, after = append(out.SecretList, x.describe()), x.seq
	}
	return out, nil
}

// matches returns whether the secret passes the filters: the prefix of a name or of the key of a tag.
func (x *secret) matches(b secretsBody) (bool, error) {
	for _, f := range b.Filters {
		var names []string
		switch f.Key {
		case "name":
			names = []string{x.name}
		case "tag-key":
			names = slices.Collect(maps.Keys(x.tags))
		default:
			return false, fail("InvalidParameterException", "The filter %s is not simulated", f.Key)
		}
		if !slices.ContainsFunc(names, func(name string) bool {
			return slices.ContainsFunc(f.Values, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
		}) {
			return false, nil
		}
	}
	return true, nil
}

func getSecretValue(s *Server, b secretsBody) (reply, error) {
	found, err := s.secretOrFail(b.SecretID)
	if err != nil {
		return nil, err
	}
	if !found.gone.IsZero() {
		return nil, scheduled()
	}
	return &secretReply{
		ARN: found.arn, Name: found.name, VersionID: found.current, SecretBinary: found.versions[found.current],
		VersionStages: []string{"AWSCURRENT"}, CreatedDate: float64(found.created.Unix()),
	}, nil
}
