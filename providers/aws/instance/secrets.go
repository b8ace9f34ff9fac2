package instance

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/pkg/errors"
	apitypes "k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

var _ driver.UserDataStore[*infrav1.AWSMachine] = (*Driver)(nil)

const (
	// secretPrefix is what the names of all secrets begin with: permissions are given for it.
	secretPrefix = "infrastructure.millwright.dev/"
	// partSize is how many bytes of the user data a secret holds, of the 65,536 that it takes, and maxParts how many there are of it.
	partSize, maxParts = 60_000, 4

	codeNoSecret = "ResourceNotFoundException"
)

// secretID is what the names of the secrets of an object have in common. It follows from the mark alone: anyone who knows whose the secrets
// are finds them, after a crash, a move or the loss of a launch record, and nothing is led to those of another object by a forged record.
func secretID(owner string, uid apitypes.UID) string {
	sum := sha256.Sum256([]byte(owner + " " + string(uid)))
	return secretPrefix + hex.EncodeToString(sum[:20])
}

func partName(id string, part int) string { return fmt.Sprintf("%s/%d", id, part) }

// StoresUserData returns whether the spec asks for Secrets Manager.
func (d *Driver) StoresUserData(m *infrav1.AWSMachine) bool {
	return m.Spec.UserDataStorage != nil && m.Spec.UserDataStorage.Type == infrav1.UserDataStorageSecretsManager
}

// StoreUserData creates the secrets, from the first part on.
func (d *Driver) StoreUserData(ctx context.Context, launch driver.Launch[*infrav1.AWSMachine]) error {
	r, err := d.in(ctx, launch.Scope)
	if err != nil {
		return err
	}
	values, err := parts(launch.UserData)
	if err != nil {
		return err
	}
	var tags []types.Tag
	for key, value := range ownershipTags(launch) {
		tags = append(tags, types.Tag{Key: aws.String(key), Value: aws.String(value)})
	}
	slices.SortFunc(tags, func(a, b types.Tag) int { return strings.Compare(*a.Key, *b.Key) })
	handle := driver.Handle{OwnerUID: launch.OwnerUID, Owner: launch.Owner}
	for n, value := range values {
		name := partName(secretID(launch.Owner, launch.OwnerUID), n+1)
		if err := r.storeSecret(ctx, handle, name, value, tags); err != nil {
			return err
		}
	}
	return nil
}

// parts cuts the user data. Each part begins with a line of its number, how many there are and the digest of the whole, so that what
// reads them knows how many to ask for, and does not mix those of data that are being replaced.
func parts(data []byte) ([][]byte, error) {
	chunks := slices.Collect(slices.Chunk(data, partSize))
	if len(chunks) > maxParts || len(chunks) == 0 {
		return nil, driver.NewTerminalError("", "", errors.Errorf("the user data has %d bytes when compressed, and there is room for 1 to %d",
			len(data), maxParts*partSize))
	}
	digest := sha256.Sum256(data)
	for n, chunk := range chunks {
		chunks[n] = append(fmt.Appendf(nil, "%d %d %x\n", n+1, len(chunks), digest), chunk...)
	}
	return chunks, nil
}

// storeSecret brings one secret into being, or up to date. It looks first: a request that repeats an earlier one would be granted, whatever
// the value has become since.
func (r *region) storeSecret(ctx context.Context, h driver.Handle, name string, value []byte, tags []types.Tag) error {
	found, err := r.findSecret(ctx, name)
	switch {
	case driver.IsNotFound(err):
	case err != nil:
		return err
	case !found.isOf(h):
		return driver.NewConflictError("DescribeSecret", "", errors.Errorf("The secret %s is not marked as this object's and is left alone. "+
			"Delete it in Secrets Manager, or replace the Machine. To let the object have it, mark it: tags %s=%s and %s=%s",
			name, TagOwnerUID, h.OwnerUID, TagMachine, h.Owner))
	case found.DeletedDate == nil:
		return r.renewSecret(ctx, found, value)
	default: // A user has scheduled its deletion, in days: it is ended now, and recreated as soon as its name is free.
		if err := r.deleteSecret(ctx, aws.ToString(found.ARN)); err != nil {
			return err
		}
	}
	_, err = r.api.CreateSecret(ctx, &secretsmanager.CreateSecretInput{
		Name: aws.String(name), SecretBinary: value, Tags: tags, ClientRequestToken: aws.String(versionOf(value, "")),
		Description: aws.String("User data of the instance of " + h.Owner + ", until its Machine has a Node"),
	}, secretOnce)
	return classify("CreateSecret", err)
}

// renewSecret replaces the value of a secret, unless it is the same. The value itself is never read: the ID of its version shows it.
func (r *region) renewSecret(ctx context.Context, found *secret, value []byte) error {
	current := found.version("AWSCURRENT")
	if current == versionOf(value, "") || current == versionOf(value, found.version("AWSPREVIOUS")) {
		return nil
	}
	_, err := r.api.PutSecretValue(ctx, &secretsmanager.PutSecretValueInput{
		SecretId: found.ARN, SecretBinary: value, ClientRequestToken: aws.String(versionOf(value, current)),
	}, secretOnce)
	return classify("PutSecretValue", err)
}

// versionOf is the token, and so the ID, of the version with a value that follows another version: the same for the same request alone.
// A value that was there before gets a new one, since a token that a version has already changes nothing.
func versionOf(value []byte, after string) string {
	sum := sha256.Sum256(append([]byte(after+"\n"), value...))
	return hex.EncodeToString(sum[:])
}

// RemoveUserData deletes the secrets of the object permanently.
func (d *Driver) RemoveUserData(ctx context.Context, scope driver.Scope, handle driver.Handle) error {
	r, err := d.in(ctx, scope)
	if err != nil {
		return err
	}
	return r.removeSecrets(ctx, handle)
}

// removeSecrets looks at each part that there can be, also behind one that is missing, since a user may have deleted that, and deletes
// those of the handle from the last one on: whenever the process dies, those that are left begin with the first.
func (r *region) removeSecrets(ctx context.Context, h driver.Handle) error {
	var own []string
	for part := 1; part <= maxParts; part++ {
		found, err := r.findSecret(ctx, partName(secretID(h.Owner, h.OwnerUID), part))
		if driver.IsNotFound(err) {
			continue
		}
		if err != nil {
			return err
		}
		if found.isOf(h) {
			own = append(own, aws.ToString(found.ARN))
		}
	}
	for _, arn := range slices.Backward(own) {
		if err := r.deleteSecret(ctx, arn); err != nil {
			return err
		}
	}
	return nil
}

// deleteSecret deletes by the ARN, which no other secret ever has, whatever has become of the name.
func (r *region) deleteSecret(ctx context.Context, arn string) error {
	_, err := r.api.DeleteSecret(ctx, &secretsmanager.DeleteSecretInput{
		SecretId: aws.String(arn), ForceDeleteWithoutRecovery: aws.Bool(true),
	}, secretOnce)
	return driver.IgnoreNotFound(classify("DeleteSecret", err))
}

// secret is one that was found, without its value.
type secret struct {
	*secretsmanager.DescribeSecretOutput
}

func (r *region) findSecret(ctx context.Context, name string) (*secret, error) {
	out, err := r.api.DescribeSecret(ctx, &secretsmanager.DescribeSecretInput{SecretId: aws.String(name)}, secretOnce)
	if err != nil {
		return nil, classify("DescribeSecret", err)
	}
	return &secret{out}, nil
}

// isOf returns whether the secret carries the mark of the handle.
func (s *secret) isOf(h driver.Handle) bool {
	return h.OwnerUID != "" && h.Owner != "" &&
		secretTag(s.Tags, TagOwnerUID) == string(h.OwnerUID) && secretTag(s.Tags, TagMachine) == h.Owner
}

// version returns the ID of the version with that label; empty if there is none.
func (s *secret) version(label string) string {
	for id, labels := range s.VersionIdsToStages {
		if slices.Contains(labels, label) {
			return id
		}
	}
	return ""
}

func secretTag(tags []types.Tag, key string) string {
	for _, t := range tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}

const (
	// deniedFor is for how long secrets are not listed where the provider may not: most accounts have none.
	deniedFor = time.Hour
	// listSecretsFor bounds a list of secrets, so that volumes and network interfaces are collected also while Secrets Manager hangs.
	listSecretsFor = 10 * time.Second
)

// leftSecrets lists the secrets with user data, whosever they are. What goes wrong with that concerns nothing else that is left: it is
// logged, and counted among the calls.
func (r *region) leftSecrets(ctx context.Context) []driver.Leftover {
	if denied := r.secretsDenied.Load(); denied != 0 && r.clock.Since(time.Unix(0, denied)) < deniedFor {
		return nil
	}
	r.secretsDenied.Store(0)
	ctx, cancel := context.WithTimeout(ctx, listSecretsFor)
	defer cancel()
	var left []driver.Leftover
	pages := secretsmanager.NewListSecretsPaginator(r.api, &secretsmanager.ListSecretsInput{Filters: []types.Filter{
		{Key: types.FilterNameStringTypeName, Values: []string{secretPrefix}},
		{Key: types.FilterNameStringTypeTagKey, Values: []string{TagOwnerUID}},
	}})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, secretOnce)
		if err != nil {
			err = classify("ListSecrets", err)
			if code, _ := codeOf(err); strings.HasPrefix(code, "AccessDenied") { // Credentials that have expired are renewed.
				r.secretsDenied.Store(r.clock.Now().UnixNano())
			}
			ctrl.LoggerFrom(ctx).Error(err, "Secrets that have outlived their machines are not looked for in this scan")
			return left
		}
		for _, s := range page.SecretList {
			left = append(left, driver.Leftover{
				Kind: driver.LeftoverUserData, ID: aws.ToString(s.Name), OwnerUID: apitypes.UID(secretTag(s.Tags, TagOwnerUID)),
				Owner: secretTag(s.Tags, TagMachine), Lineage: secretTag(s.Tags, TagLineage), Created: aws.ToTime(s.CreatedDate),
			})
		}
	}
	return left
}

// secretOnce is once for Secrets Manager.
func secretOnce(o *secretsmanager.Options) { o.Retryer = aws.NopRetryer{} }
