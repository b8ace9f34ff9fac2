package ec2_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/aws/simclient"
)

func secretsClient(a *account) *secretsmanager.Client {
	return secretsmanager.New(secretsmanager.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(a.url), RetryMaxAttempts: 1, HTTPClient: simclient.HTTPClient(),
		Credentials: credentials.NewStaticCredentialsProvider("AKIASIMULATED", "secret", ""),
	})
}

func newSecret(name string, value []byte, token string) *secretsmanager.CreateSecretInput {
	return &secretsmanager.CreateSecretInput{
		Name: aws.String(name), SecretBinary: value, ClientRequestToken: aws.String(strings.Repeat(token, 32)),
		Tags: []types.Tag{{Key: aws.String("owner"), Value: aws.String("me")}},
	}
}

func TestSecretLives(t *testing.T) {
	a := newAccount(t, ec2.Options{SecretDeletion: time.Minute})
	client := secretsClient(a)
	id := aws.String("a/b/1")

	made, err := client.CreateSecret(a.ctx, newSecret(*id, []byte("hunter2"), "a"))
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(aws.ToString(made.ARN)).To(HavePrefix("arn:aws:secretsmanager:us-east-1:000000000000:secret:a/b/1-"))
	last := a.lastCall()
	a.Expect(last.Action).To(Equal("CreateSecret"))
	a.Expect(last.Parameters).To(HaveKeyWithValue("Name", "a/b/1"))
	a.Expect(fmt.Sprint(last)).NotTo(ContainSubstring("hunter2"))
	a.Expect(last.Parameters).NotTo(HaveKey("SecretBinary"))

	_, err = client.CreateSecret(a.ctx, newSecret(*id, []byte("hunter2"), "a"))
	a.Expect(err).NotTo(HaveOccurred(), "the same again")
	_, err = client.CreateSecret(a.ctx, newSecret(*id, []byte("other"), "b"))
	a.Expect(err).To(haveCode("ResourceExistsException"))

	put := func(value, token string) error {
		_, err := client.PutSecretValue(a.ctx, &secretsmanager.PutSecretValueInput{
			SecretId: id, SecretBinary: []byte(value), ClientRequestToken: aws.String(strings.Repeat(token, 32))})
		return err
	}
	value := func() string {
		out, err := client.GetSecretValue(a.ctx, &secretsmanager.GetSecretValueInput{SecretId: made.ARN})
		a.Expect(err).NotTo(HaveOccurred())
		return string(out.SecretBinary)
	}
	a.Expect(value()).To(Equal("hunter2"))
	a.Expect(put("other", "b")).To(Succeed())
	a.Expect(value()).To(Equal("other"))
	a.Expect(put("third", "b")).To(haveCode("ResourceExistsException"))
	a.Expect(put("hunter2", "a")).To(Succeed())
	a.Expect(value()).To(Equal("other"), "a version that is there already does not become the current one")

	described, err := client.DescribeSecret(a.ctx, &secretsmanager.DescribeSecretInput{SecretId: id})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(described.Tags).To(HaveLen(1))
	a.Expect(described.VersionIdsToStages).To(HaveKeyWithValue(strings.Repeat("b", 32), []string{"AWSCURRENT"}))

	end := func(force bool) error {
		_, err := client.DeleteSecret(a.ctx, &secretsmanager.DeleteSecretInput{SecretId: id, ForceDeleteWithoutRecovery: aws.Bool(force)})
		return err
	}
	a.Expect(end(false)).To(Succeed())
	_, err = client.GetSecretValue(a.ctx, &secretsmanager.GetSecretValueInput{SecretId: id})
	a.Expect(err).To(haveCode("InvalidRequestException"))
	_, err = client.CreateSecret(a.ctx, newSecret(*id, []byte("x"), "c"))
	a.Expect(err).To(haveCode("InvalidRequestException"), "its name is taken until it is gone")
	a.Expect(end(true)).To(Succeed())
	_, err = client.DescribeSecret(a.ctx, &secretsmanager.DescribeSecretInput{SecretId: id})
	a.Expect(err).To(haveCode("ResourceNotFoundException"))
	_, err = client.CreateSecret(a.ctx, newSecret(*id, []byte("x"), "c"))
	a.Expect(err).To(haveCode("InvalidRequestException"), "a forced deletion is over later")
	a.Expect(end(true)).To(Succeed(), "what is deleted is deleted by force without an error")
	a.clock.Step(time.Minute)
	_, err = client.CreateSecret(a.ctx, newSecret(*id, []byte("x"), "c"))
	a.Expect(err).NotTo(HaveOccurred())
}

func TestSecretLimitsAndLists(t *testing.T) {
	a := newAccount(t, ec2.Options{Throttles: map[string]ec2.Throttle{"DescribeSecret": {Burst: 1, RefillPerSecond: 0.0001}}})
	client := secretsClient(a)
	_, err := client.CreateSecret(a.ctx, newSecret("big", bytes.Repeat([]byte("x"), 65536), "a"))
	a.Expect(err).NotTo(HaveOccurred())
	_, err = client.CreateSecret(a.ctx, newSecret("bigger", bytes.Repeat([]byte("x"), 65537), "a"))
	a.Expect(err).To(haveCode("ValidationException"))
	for n := range 5 {
		_, err = client.CreateSecret(a.ctx, newSecret(fmt.Sprintf("own/%d", n), []byte("x"), "a"))
		a.Expect(err).NotTo(HaveOccurred())
	}
	pages := secretsmanager.NewListSecretsPaginator(client, &secretsmanager.ListSecretsInput{MaxResults: aws.Int32(2), Filters: []types.Filter{
		{Key: types.FilterNameStringTypeName, Values: []string{"own/"}}, {Key: types.FilterNameStringTypeTagKey, Values: []string{"owner"}}}})
	var names []string
	asked := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(a.ctx)
		a.Expect(err).NotTo(HaveOccurred())
		asked++
		for _, s := range page.SecretList {
			names = append(names, *s.Name)
		}
	}
	a.Expect(names).To(Equal([]string{"own/0", "own/1", "own/2", "own/3", "own/4"}))
	a.Expect(asked).To(Equal(3))

	describe := func() error {
		_, err := client.DescribeSecret(a.ctx, &secretsmanager.DescribeSecretInput{SecretId: aws.String("big")})
		return err
	}
	a.Expect(describe()).To(Succeed())
	a.Expect(describe()).To(haveCode("ThrottlingException"))
	a.server.AddFault(
		simapi.Fault{
			Action:     "CreateSecret",
			Parameters: map[string]string{"Name": "own/*"},
			Error:      &simapi.APIError{Code: "LimitExceededException"},
		},
	)
	_, err = client.CreateSecret(a.ctx, newSecret("own/9", []byte("x"), "a"))
	a.Expect(err).To(haveCode("LimitExceededException"))
}
