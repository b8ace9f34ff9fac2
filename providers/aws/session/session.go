// Package session makes the credentials that AWSIdentities describe into configurations of the AWS SDK.
package session

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// Session is the credentials of one version of an AWSIdentity. They renew themselves. All methods may be called concurrently.
type Session struct {
	credentials aws.CredentialsProvider
	load        Load
	sts         *sts.Client
	// onRefusal is called when AWS refuses the credentials.
	onRefusal func(*Session)

	mu      sync.Mutex
	account string
}

// Config returns the configuration of a region with the credentials of the session.
func (s *Session) Config(ctx context.Context, region string) (aws.Config, error) {
	cfg, err := s.load(ctx, region)
	if err != nil {
		return cfg, err
	}
	cfg.Credentials = aws.CredentialsProviderFunc(s.retrieve)
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), s.noticing)
	return cfg, nil
}

// Account is the account of the credentials; empty until AWS has reported it.
func (s *Session) Account() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account
}

// Verify asks AWS whose credentials they are. The error is an identity.Invalid if AWS refuses them.
func (s *Session) Verify(ctx context.Context) (identity.Holder, error) {
	out, err := s.sts.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		if refusesCredentials(err) {
			s.onRefusal(s)
		}
		return identity.Holder{}, explain("GetCallerIdentity", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.account = aws.ToString(out.Account)
	return identity.Holder{Account: s.account, Principal: aws.ToString(out.Arn)}, nil
}

// retrieve returns the credentials, or an error of a class of its own for calls that are not sent because there are none.
func (s *Session) retrieve(ctx context.Context) (aws.Credentials, error) {
	credentials, err := s.credentials.Retrieve(ctx)
	if err == nil {
		return credentials, nil
	}
	if err = explain("credentials", err); identity.AsInvalid(err) != nil {
		s.onRefusal(s)
	}
	return credentials, identity.NotSent(err)
}

// noticing sees the answers of all calls that are made with the session.
func (s *Session) noticing(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("MillwrightIdentity", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		out, metadata, err := next.HandleInitialize(ctx, in)
		if refusesCredentials(err) {
			s.onRefusal(s)
		}
		return out, metadata, err
	}), middleware.After)
}

// changedAccount is the error of credentials of another account than the identity had, as long as machines use it.
func changedAccount(was, is string) error {
	return identity.NewInvalid(driverv1.AccountChangedReason, fmt.Sprintf("the credentials are of account %s, and the machines that use the identity "+
		"are in account %s (status.account), where they would not be found any more. No other call was made with them: give credentials of "+
		"account %[2]s, or use another identity for account %[1]s", is, was))
}
