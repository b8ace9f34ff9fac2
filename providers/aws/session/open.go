package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	awscredentials "github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/apicalls"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/tokenfile"
)

// Load loads the configuration of a region with the settings of the process, its own credentials among them.
type Load func(ctx context.Context, region string) (aws.Config, error)

// LoadDefault loads the SDK's default configuration. An empty region is that of the process, if it has one.
func LoadDefault(ctx context.Context, region string) (aws.Config, error) {
	var options []func(*config.LoadOptions) error
	if region != "" {
		options = append(options, config.WithRegion(region))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	return cfg, errors.Wrapf(err, "loading the AWS configuration for region %q", region)
}

// Sessions keeps the sessions of all AWSIdentities.
type Sessions = identity.Sessions[*infrav1.AWSIdentity, *Session]

// Options of Sessions.
type Options struct {
	// Load is LoadDefault, but in tests.
	Load Load
	// TokenDirectories are where files with tokens may be.
	TokenDirectories []string
	// Timeout of a call to STS.
	Timeout time.Duration
	// Namespace of the provider, where Secrets are.
	Namespace string
}

// NewSessions returns the sessions of AWSIdentities that identities has, the cache, with the Secrets that secrets has, the API server
// itself.
func NewSessions(identities, secrets client.Reader, clk clock.PassiveClock, o Options) *Sessions {
	var sessions *Sessions
	opener := opener{Options: o, onRefusal: func(name string, s *Session) { sessions.Refused(name, s) }}
	sessions = &Sessions{
		Identities: identities, Secrets: secrets, Namespace: o.Namespace, Kind: "AWSIdentity", Clock: clk,
		New: func() *infrav1.AWSIdentity { return &infrav1.AWSIdentity{} },
		SecretName: func(id *infrav1.AWSIdentity) string {
			if id.Spec.Secret == nil {
				return ""
			}
			return id.Spec.Secret.Name
		},
		Open: opener.open,
	}
	return sessions
}

type opener struct {
	Options
	onRefusal func(name string, s *Session)
}

// open creates a session. If the account of the identity is known, AWS is asked first whether the credentials are of the same: in another
// account all instances would seem to be gone.
func (o opener) open(ctx context.Context, id *infrav1.AWSIdentity, secret *corev1.Secret) (*Session, error) {
	cfg, err := o.stsConfig(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := o.source(&cfg, id, secret); err != nil {
		return nil, err
	}
	for i := range id.Spec.AssumeRoles {
		cfg.Credentials = assumed(cfg, id.Name, &id.Spec.AssumeRoles[i])
	}
	name := id.Name
	s := &Session{
		credentials: cfg.Credentials, load: o.Load, sts: stsClient(cfg),
		onRefusal: func(s *Session) { o.onRefusal(name, s) },
	}
	if err := identity.VerifyAccount(ctx, id.Status.Account, s.Verify, changedAccount); err != nil {
		return nil, err
	}
	return s, nil
}

// source sets where credentials come from.
func (o opener) source(cfg *aws.Config, id *infrav1.AWSIdentity, secret *corev1.Secret) error {
	switch {
	case secret != nil:
		credentials, err := fromSecret(secret)
		if err != nil {
			return err
		}
		cfg.Credentials = awscredentials.StaticCredentialsProvider{Value: credentials}
	case id.Spec.WebIdentity != nil:
		w := id.Spec.WebIdentity
		file := tokenFile{tokenfile.File{Field: "spec.webIdentity.tokenFile", Path: w.TokenFile, Directories: o.TokenDirectories}}
		if _, err := file.Read(); err != nil {
			return err
		}
		unsigned := *cfg
		unsigned.Credentials = aws.AnonymousCredentials{}
		provider := stscreds.NewWebIdentityRoleProvider(stsClient(unsigned), w.RoleARN, file, func(o *stscreds.WebIdentityRoleOptions) {
			o.RoleSessionName = cmp.Or(w.SessionName, sessionName(id.Name))
		})
		cfg.Credentials = renewed("AssumeRoleWithWebIdentity "+w.RoleARN, provider)
	case id.Spec.Ambient == nil:
		// The process's own credentials are for who asks for them: an identity of a later version may take its own from where this one does
		// not know of.
		return invalid("spec: give exactly one of ambient, secret and webIdentity: it is where the credentials come from")
	}
	return nil
}

// tokenFile is what the SDK reads tokens by.
type tokenFile struct{ tokenfile.File }

// GetIdentityToken reads the file.
func (f tokenFile) GetIdentityToken() ([]byte, error) { return f.Read() }

func assumed(cfg aws.Config, name string, role *infrav1.AssumedRole) aws.CredentialsProvider {
	provider := stscreds.NewAssumeRoleProvider(stsClient(cfg), role.RoleARN, func(o *stscreds.AssumeRoleOptions) {
		o.RoleSessionName = cmp.Or(role.SessionName, sessionName(name))
		o.Duration = time.Hour
		if role.DurationSeconds != nil {
			o.Duration = time.Duration(*role.DurationSeconds) * time.Second
		}
		if role.ExternalID != "" {
			o.ExternalID = aws.String(role.ExternalID)
		}
		if role.SessionPolicy != "" {
			o.Policy = aws.String(role.SessionPolicy)
		}
	})
	return renewed("AssumeRole "+role.RoleARN, provider)
}

// expiryWindow is how long before their end credentials are renewed, at random in its second half.
const expiryWindow = 5 * time.Minute

// renewed keeps credentials until shortly before their end, and says what STS was asked for where it fails.
func renewed(what string, provider aws.CredentialsProvider) aws.CredentialsProvider {
	return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		credentials, err := provider.Retrieve(ctx)
		return credentials, explain(what, err)
	}), func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow, o.ExpiryWindowJitterFrac = expiryWindow, 0.5 })
}

// stsConfig is the configuration for STS. The SDK renews credentials without the deadline of the call that needs them, so that its
// HTTP client has one of its own: an STS that hangs must not be waited for without end by all later calls.
func (o opener) stsConfig(ctx context.Context, id *infrav1.AWSIdentity) (aws.Config, error) {
	cfg, err := o.Load(ctx, id.Spec.Region)
	if err != nil {
		return cfg, err
	}
	if cfg.Region == "" {
		cfg.Region = homeRegion(id)
	}
	switch c := cfg.HTTPClient.(type) {
	case nil:
		cfg.HTTPClient = awshttp.NewBuildableClient().WithTimeout(o.Timeout)
	case *awshttp.BuildableClient:
		cfg.HTTPClient = c.WithTimeout(o.Timeout)
	default:
		cfg.HTTPClient = limited{c, o.Timeout}
	}
	return cfg, nil
}

// stsClient calls STS once: the caller repeats it.
func stsClient(cfg aws.Config) *sts.Client {
	return sts.NewFromConfig(cfg, func(o *sts.Options) {
		o.Retryer = aws.NopRetryer{}
		o.APIOptions = append(slices.Clone(o.APIOptions), apicalls.Measured(apicalls.Classify))
	})
}

// homeRegions are regions whose STS every account of a partition has.
var homeRegions = map[string]string{"aws": "us-east-1", "aws-cn": "cn-north-1", "aws-us-gov": "us-gov-west-1"}

// homeRegion is that of the partition of the first role that the identity names.
func homeRegion(id *infrav1.AWSIdentity) string {
	arn := ""
	if id.Spec.WebIdentity != nil {
		arn = id.Spec.WebIdentity.RoleARN
	} else if len(id.Spec.AssumeRoles) > 0 {
		arn = id.Spec.AssumeRoles[0].RoleARN
	}
	parts := strings.SplitN(arn, ":", 3)
	if len(parts) == 3 && homeRegions[parts[1]] != "" {
		return homeRegions[parts[1]]
	}
	return homeRegions["aws"]
}

// sessionName is what sessions of an identity are called by default: 64 characters at most.
func sessionName(identity string) string {
	name := "millwright-" + identity
	if len(name) > 64 {
		sum := sha256.Sum256([]byte(identity))
		name = name[:53] + "-" + hex.EncodeToString(sum[:5])
	}
	return name
}
